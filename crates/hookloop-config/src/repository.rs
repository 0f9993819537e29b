//! The repository of a project that a worker clones.

/// Where a project's repository is, and how much of it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub url: String,
    /// The remote's own choice if it is not given.
    pub branch: Option<String>,
    /// So many of its last commits; all of them if it is not given.
    pub depth: Option<u32>,
}
