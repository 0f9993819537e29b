//! Measures the layout of the workspace's sources, and compares it with the house rules.
//!
//! - [`use_paths`]: the paths of `use` items
//! - [`workspace_members`]: the packages, targets and dependencies that Cargo knows
//! - [`module_tree`]: the modules of a target, parsed
//! - [`test_code`]: the items that only tests compile
//! - [`path_mentions`]: every path that a module names
//! - [`resolver`]: the module and the item behind a path, through imports and re-exports
//! - [`import_circles`]: arrows between sibling modules, and those that close a circle
//! - [`crate_picture`]: the dependency arrows between crates, as ARCHITECTURE.md shows them
//! - [`code_sizes`]: lines of files and functions
//! - [`type_names`]: types that share a name
//! - [`prose`]: sentences of documents and comments without a noun as subject
//! - [`public_items`]: public items that no other crate names
//! - [`ratchet`]: figures that are above their bar today and may only fall
//! - [`house_rules`]: all rules and their limits
//!
//! Nothing here is part of the product.

pub mod code_sizes;
pub mod crate_picture;
pub mod house_rules;
pub mod import_circles;
pub mod module_tree;
pub mod path_mentions;
pub mod prose;
pub mod public_items;
pub mod ratchet;
pub mod resolver;
pub mod test_code;
pub mod type_names;
pub mod use_paths;
pub mod workspace_members;

use std::path::PathBuf;

/// A reason why the sources could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: syn::Error },
    #[error("{}: module `{module}` has no file", path.display())]
    NoModuleFile { path: PathBuf, module: String },
    #[error("cargo metadata: {0}")]
    Metadata(String),
    #[error("{}:{line}: expected `KIND NAME NUMBER`", path.display())]
    RatchetLine { path: PathBuf, line: usize },
    #[error("the sum of `{kind}` rises from {before} to {today}: a ratchet may only fall")]
    RatchetRises { kind: String, before: u64, today: u64 },
    #[error("{}: no block between `{marker}` and the end of its fence", path.display())]
    NoPicture { path: PathBuf, marker: &'static str },
}
