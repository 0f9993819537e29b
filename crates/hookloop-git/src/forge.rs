//! Services that merge branches on request.
//!
//! - [`github`]: pull requests, by GitHub's API
//! - [`branches`]: no forge: only pushed branches
//! - [`remote`]: the repository on a forge that the address of a remote names
//!
//! Every method may be called again after any error, and repeated calls lead to one request, not two. Only comments
//! are repeated: after a lost answer, a comment may appear twice.
//!
//! The variant of an error decides the next action. It follows from status, headers and structured fields, never
//! from a message.

pub mod branches;
pub mod github;
pub mod remote;

use std::time::Duration;

pub use hookloop_core::delivery::{MergeMethod, QueuePlace};

/// A service that merges branches on request.
pub trait Forge: std::fmt::Debug {
    /// Returns the name of the forge in a configuration.
    fn name(&self) -> &'static str;

    /// Returns the newest request for `branch` into `base`: an open one, else a merged one, else a closed one.
    fn find(&self, branch: &str, base: &str) -> Result<Option<MergeRequest>, ForgeError>;

    fn get(&self, number: u64) -> Result<MergeRequest, ForgeError>;

    /// Opens a request. If the branch has an open one already, updates that one.
    fn open(&self, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError>;

    /// Updates an open request. Labels and reviewers are added, and none is removed. A reviewer is asked for a
    /// review only once. A merged request is not changed.
    fn update(&self, number: u64, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError>;

    /// Returns the joint result of a commit's checks. Just after a push there may be none *yet*; the caller decides
    /// how long to wait.
    fn checks(&self, commit: &str) -> Result<CommitChecks, ForgeError>;

    /// Merges a request that has exactly this head.
    fn merge(&self, number: u64, how: &MergeOptions) -> Result<ForgeMerge, ForgeError>;

    /// Whether requests into `base` are merged by a queue of the forge.
    fn has_merge_queue(&self, _base: &str) -> Result<bool, ForgeError> {
        Ok(false)
    }

    /// Returns the state of a request's merge.
    fn merge_status(&self, number: u64) -> Result<MergeStatus, ForgeError> {
        Err(ForgeError::unsupported("no merge status", number))
    }

    /// Puts a request that has exactly this head into the merge queue of its base.
    fn enqueue(&self, number: u64, _head: &str) -> Result<QueuePlace, ForgeError> {
        Err(ForgeError::unsupported("no merge queue", number))
    }

    /// Has the forge merge a request with exactly this head when its base allows that.
    fn enable_auto_merge(&self, number: u64, _how: &MergeOptions) -> Result<(), ForgeError> {
        Err(ForgeError::unsupported("no auto-merge", number))
    }

    fn comment(&self, number: u64, text: &str) -> Result<(), ForgeError>;

    /// Closes a request without merging it.
    fn close(&self, number: u64) -> Result<(), ForgeError>;
}

/// A request as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequestDraft {
    pub branch: String,
    pub base: String,
    /// The commit that the branch must have.
    pub head: String,
    pub title: String,
    pub body: String,
    pub is_draft: bool,
    pub labels: Vec<String>,
    /// The name of a user, or `team:` and the name of a team.
    pub reviewers: Vec<String>,
}

/// A request as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeRequest {
    /// `None` where there are no requests.
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
    /// The base contains the request by this commit.
    Merged {
        commit: String,
    },
    Closed,
}

/// The joint result of a commit's checks. A check that is not known to have passed is pending or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitChecks {
    /// No check has a result. A skipped check has none.
    None,
    Passed,
    Pending {
        names: Vec<String>,
    },
    Failed {
        names: Vec<String>,
        /// The pages of the failed checks, where there are any.
        urls: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeOptions {
    pub method: MergeMethod,
    /// The commit that must be merged. If the request has another head by now, nothing is merged.
    pub head: String,
    /// The title of the commit. A rebase makes no commit.
    pub title: String,
    pub message: String,
}

/// The conditions for a forge to merge a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeStatus {
    /// The request is neither merged nor closed.
    pub is_open: bool,
    /// The commit that would be merged.
    pub head: String,
    pub queue: QueueStatus,
    /// Required checks that have not passed.
    pub checks: Vec<String>,
    /// Requirements that only people can meet, such as a review.
    pub people: Vec<String>,
    /// Further rules of the base. Whether the request meets them is unknown.
    pub rules: Vec<String>,
    /// The forge merges the request by itself when nothing is missing.
    pub auto_merge: bool,
    /// The repository allows auto-merge.
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
    /// The reason in the forge's own words.
    pub reason: String,
    /// The account that removed the request.
    pub by: Option<String>,
}

impl QueueExit {
    /// Returns whether another version of the work may help: checks failed, or it conflicts.
    pub fn is_about_work(&self) -> bool {
        let reason = self.reason.to_ascii_lowercase().replace([' ', '-'], "_");
        let words = ["ci_failure", "ci_timeout", "check", "conflict", "git_tree_invalid"];
        words.iter().any(|word| reason.contains(word))
    }
}

impl MergeStatus {
    /// Returns whether nothing is known to be missing.
    pub fn is_ready(&self) -> bool {
        self.checks.is_empty() && self.people.is_empty()
    }

    /// Returns the missing conditions in one line.
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

    /// Returns the error for a request that waits for missing conditions.
    pub fn unmet(&self, name: &str) -> ForgeError {
        let why = format!("{name} waits for {}", self.missing());
        ForgeError::Unmet { why, needs_person: !self.people.is_empty() }
    }
}

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeMerge {
    /// The commit by which the base contains the request.
    pub commit: String,
}

/// Why a request to a forge failed. The variant alone decides the next action; the text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// A later try may succeed: the network failed, the server failed, or there were too many requests.
    #[error("{why}")]
    Retry {
        why: String,
        /// The time that the forge asks to wait.
        after: Option<Duration>,
    },
    /// Head or base have changed, or the forge does not know yet. Look again, then continue.
    #[error("{why}")]
    Stale { why: String },
    /// The forge requires the branch to contain all of its base first.
    #[error("{why}")]
    Behind { why: String },
    /// The base requires something that is missing: checks, or people.
    #[error("{why}")]
    Unmet { why: String, needs_person: bool },
    /// A further try would fail in the same way.
    #[error("{why}")]
    Permanent { why: String },
    /// A person has to act first.
    #[error("{why}; {hint}")]
    NeedsHuman { why: String, hint: String },
}

impl ForgeError {
    fn unsupported(what: &str, number: u64) -> ForgeError {
        ForgeError::Permanent { why: format!("there is {what} for #{number} here") }
    }
}
