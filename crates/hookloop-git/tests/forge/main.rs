//! Tests of the GitHub client against a forge on loopback with real git behind it, and against
//! GitHub's own API description.
//!
//! - [`ground`]: a repository with branches, and a forge over it
//! - [`flows`]: requests from opening to merging or closing
//! - [`failures`]: failures of a forge, and the reaction to them
//! - [`token`]: the sources of a user's token
//! - [`contract`]: conformance of every request to GitHub's API description
#![expect(clippy::unwrap_used, reason = "tests")]

mod contract;
mod failures;
mod flows;
mod ground;
mod token;
