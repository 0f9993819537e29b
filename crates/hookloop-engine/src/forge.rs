//! Where branches are asked to be merged.
//!
//! - [`github`]: pull requests, by GitHub's API
//! - [`branches`]: no forge: a branch that was pushed is all there is
//! - [`remote`]: which repository of a forge the address of a remote means
//!
//! Every method may be called again after any error, and whoever does so ends with one request, not two.
//! Only a comment is made anew each time: an answer that was lost may leave it there twice.

pub mod branches;
pub mod github;
pub mod remote;

use std::time::Duration;

pub use hookloop_core::delivery::Method;

/// Where branches are asked to be merged.
pub trait Forge: std::fmt::Debug {
    /// The word for it in a configuration.
    fn name(&self) -> &'static str;

    /// The newest request for `branch` into `base`: one that is open, else one that was merged, else one
    /// that was closed.
    fn find(&self, branch: &str, base: &str) -> Result<Option<Request>, ForgeError>;

    fn get(&self, number: u64) -> Result<Request, ForgeError>;

    /// Opens a request. If there is an open one for the branch already, that one becomes what is wished.
    fn open(&self, wish: &Wish) -> Result<Request, ForgeError>;

    /// Makes an open request what is wished. Labels and reviewers are added, none is taken away, and who
    /// was asked for a review once is not asked again. One that was merged is left as it is.
    fn update(&self, number: u64, wish: &Wish) -> Result<Request, ForgeError>;

    /// What the checks of a commit say. Just after a push there may be none *yet*: that is up to who asks.
    fn checks(&self, commit: &str) -> Result<Checks, ForgeError>;

    /// Merges a request that has exactly this head.
    fn merge(&self, number: u64, how: &MergeWish) -> Result<Merged, ForgeError>;

    fn comment(&self, number: u64, text: &str) -> Result<(), ForgeError>;

    /// Closes a request without merging it.
    fn close(&self, number: u64) -> Result<(), ForgeError>;
}

/// A request as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub branch: String,
    pub base: String,
    /// The commit that the branch must be at.
    pub head: String,
    pub title: String,
    pub body: String,
    pub is_draft: bool,
    pub labels: Vec<String>,
    /// A user's name, or `team:` and that of a team.
    pub reviewers: Vec<String>,
}

/// A request as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// None where there are no requests.
    pub number: Option<u64>,
    pub url: Option<String>,
    /// The commit that would be merged.
    pub head: String,
    pub base: String,
    pub state: RequestState,
    pub is_draft: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// In the base by this commit.
    Merged {
        commit: String,
    },
    Closed,
}

/// What the checks of a commit say together. What is not known to have passed is pending or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checks {
    /// There are none that say anything: a check that was skipped does not.
    None,
    Passed,
    Pending {
        names: Vec<String>,
    },
    Failed {
        names: Vec<String>,
        /// Where to read about those that have a page.
        urls: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeWish {
    pub method: Method,
    /// What must be merged: if the request has another head by now, nothing is.
    pub head: String,
    /// Of the commit; a rebase makes none.
    pub title: String,
    pub message: String,
}

/// What a merge came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// By which it is in the base.
    pub commit: String,
}

/// Why a forge did not do what was asked. What to do next follows from the variant alone; the text is for
/// people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// It may go well the next time: the network, a server in trouble, too many requests.
    #[error("{why}")]
    Retry {
        why: String,
        /// What the forge asks to wait.
        after: Option<Duration>,
    },
    /// Head or base are not what they were, or the forge does not know yet: look again, then go on.
    #[error("{why}")]
    Stale { why: String },
    /// The forge wants the branch to have all of its base first.
    #[error("{why}")]
    Behind { why: String },
    /// Asking again changes nothing.
    #[error("{why}")]
    Permanent { why: String },
    /// Somebody has to do something first.
    #[error("{why}; {hint}")]
    NeedsHuman { why: String, hint: String },
}
