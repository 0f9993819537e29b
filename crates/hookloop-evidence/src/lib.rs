//! Reads the tests of a git tree by syntax, and puts those of the base into the work.
//!
//! - `role`: the part that a file has in the tests of a project
//! - `readers`: tests of a source, one reader per language; `source_test`, `assertions`: their parts
//! - `manifests`: test settings of the base in manifests of the work
//! - `grafts`: test code of the base in sources of the work
//! - `functions`: the functions that a change touched
//! - `suspicion`: signs that source code is written for tests
//! - `language`, `syntax`, `tokens`, `literals`, `rust_attributes`: bounded reading of sources
//! - `error`: the reasons why a source or a manifest is not read
//!
//! The crate is pure: it gets contents of files and returns data. Sources are untrusted, as an agent writes them:
//! sizes, depths and steps are limited, and errors contain no text of a source. A source that is not understood is an
//! error, and never one without tests.

mod assertions;
mod error;
mod functions;
mod grafts;
mod language;
mod literals;
mod manifests;
mod readers;
mod role;
mod rust_attributes;
mod source_test;
mod suspicion;
mod syntax;
mod tokens;

pub use assertions::TestAssertion;
pub use error::EvidenceError;
pub use functions::{SourceFunction, changed_functions, functions_in};
pub use grafts::{graft_tests, test_modules};
pub use language::SourceLanguage;
pub use manifests::{MANIFEST_BYTES_MAX, graft_manifest};
pub use readers::tests_in;
pub use role::{EvidenceRole, ManifestKind, role_of};
pub use source_test::{SCOPE_DEPTH_MAX, SourceTest, TESTS_MAX};
pub use suspicion::{SourceBaseline, SourceSuspicion, SuspicionKind};
pub use syntax::{SOURCE_BYTES_MAX, SYNTAX_DEPTH_MAX};
