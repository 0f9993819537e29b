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

pub use hookloop_core::delivery::{MergeMethod, QueuePlace};

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

    /// Whether requests into `base` are merged by a queue of the forge.
    fn has_merge_queue(&self, _base: &str) -> Result<bool, ForgeError> {
        Ok(false)
    }

    /// The state of a request as far as its merge is concerned.
    fn merge_status(&self, number: u64) -> Result<MergeStatus, ForgeError> {
        Err(ForgeError::unsupported("no merge status", number))
    }

    /// Puts a request that has exactly this head into the merge queue of its base.
    fn enqueue(&self, number: u64, _head: &str) -> Result<QueuePlace, ForgeError> {
        Err(ForgeError::unsupported("no merge queue", number))
    }

    /// Has the forge merge a request with exactly this head when its base allows that.
    fn enable_auto_merge(&self, number: u64, _how: &MergeWish) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported("no auto-merge", number))
    }

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
    pub method: MergeMethod,
    /// What must be merged: if the request has another head by now, nothing is.
    pub head: String,
    /// Of the commit; a rebase makes none.
    pub title: String,
    pub message: String,
}

/// How far a request is from being merged by its forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeStatus {
    /// Neither merged nor closed.
    pub is_open: bool,
    /// The commit that would be merged.
    pub head: String,
    pub queue: QueueStatus,
    /// Required checks that have not passed.
    pub checks: Vec<String>,
    /// Requirements that only people can meet, such as a review.
    pub people: Vec<String>,
    /// Further rules of the base, of which it is not known whether the request meets them.
    pub rules: Vec<String>,
    /// The forge merges the request by itself when nothing is missing.
    pub auto_merge: bool,
    /// Whether that can be asked for.
    pub allows_auto_merge: bool,
}

/// A request and the merge queue of its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueStatus {
    NoQueue,
    Outside {
        /// The last removal, if the request was not added again since.
        removed: Option<QueueExit>,
    },
    Queued(QueuePlace),
}

/// A removal from a merge queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueExit {
    /// The forge's own word.
    pub reason: String,
    /// The account that removed the request.
    pub by: Option<String>,
}

impl QueueExit {
    /// Whether another version of the work may help: checks failed, or it conflicts.
    pub fn is_about_work(&self) -> bool {
        let reason = self.reason.to_ascii_lowercase().replace([' ', '-'], "_");
        let words = ["ci_failure", "ci_timeout", "check", "conflict", "git_tree_invalid"];
        words.iter().any(|word| reason.contains(word))
    }
}

impl MergeStatus {
    /// Whether nothing is known to be missing.
    pub fn is_ready(&self) -> bool {
        self.checks.is_empty() && self.people.is_empty()
    }

    /// What is missing, in a line.
    pub fn missing(&self) -> String {
        let mut parts = Vec::new();
        if !self.checks.is_empty() {
            let names: Vec<String> = self.checks.iter().map(|name| format!("`{name}`")).collect();
            let word = if names.len() == 1 { "the required check" } else { "the required checks" };
            parts.push(format!("{word} {}", names.join(", ")));
        }
        parts.extend(self.people.iter().cloned());
        let mut text = parts.join(", and for ");
        if !self.rules.is_empty() {
            text.push_str(&format!("; the branch also requires: {}", self.rules.join(", ")));
        }
        text
    }

    /// The error for a request that is not merged because of what is missing.
    pub fn unmet(&self, name: &str) -> ForgeError {
        let why = format!("{name} waits for {}", self.missing());
        ForgeError::Unmet { why, needs_person: !self.people.is_empty() }
    }
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
    /// The base requires something that is not there yet: checks, or people.
    #[error("{why}")]
    Unmet { why: String, needs_person: bool },
    /// Asking again changes nothing.
    #[error("{why}")]
    Permanent { why: String },
    /// Somebody has to do something first.
    #[error("{why}; {hint}")]
    NeedsHuman { why: String, hint: String },
}

impl ForgeError {
    fn unsupported(what: &str, number: u64) -> ForgeError {
        ForgeError::Permanent { why: format!("there is {what} for #{number} here") }
    }
}
