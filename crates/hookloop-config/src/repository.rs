//! The repository of a project that a worker clones.

/// The repository of a project, and the part of it that is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositorySource {
    pub url: String,
    /// The branch [default: the remote's default branch].
    pub branch: Option<String>,
    /// The number of latest commits to fetch [default: all].
    pub depth: Option<u32>,
}
