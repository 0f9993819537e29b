//! The data of events about a submission: reviews, merges and returns.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work that waits to be merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    pub branch: String,
    /// The last commit of the branch.
    pub head: String,
    /// The branch that the work is merged into.
    pub base: String,
    /// The address of the merge request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Whether gates passed on the files of this commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
    /// The number of commits that the base does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u32>,
    /// The agent that did the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Remediation turns that the task has used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediations: Option<u32>,
}

/// The review of a submission by a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReviewed {
    pub gate: String,
    /// The reviewed commit.
    pub head: String,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A commit is about to be pushed to the task's branch. The next holder of the task recognises the commit by
/// this record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushPlanned {
    /// The branch's last commit.
    pub head: String,
}

/// A merge is about to be made. A process that finds no result checks whether it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergePlanned {
    /// The branch's last commit.
    pub head: String,
    /// The commit of the base before the merge.
    pub onto: String,
    /// The commit of the base after the merge, if hookloop makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskMerged {
    /// The branch's last commit.
    pub head: String,
    /// The commit of the base that contains the merge.
    pub commit: String,
}

/// The reason why a submission waits for a person; none if it no longer does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeBlocked {
    /// The branch's last commit.
    pub head: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The forge merges a submission later, or does not allow its merge yet; without a reason it waits no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedMerge {
    /// The branch's last commit.
    pub head: String,
    /// The requirement that the forge waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The place in the merge queue of the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlace>,
    /// Whether the forge merges by itself when nothing is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_merge: bool,
}

/// A place in the merge queue of a forge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePlace {
    /// 1 is merged next.
    pub position: u64,
    /// The forge's own word, in lower case: `queued`, `awaiting_checks`, `mergeable`, `unmergeable`, `locked`.
    pub state: String,
    /// The forge's estimate of the seconds until the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_seconds: Option<u64>,
}

impl fmt::Display for QueuePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}, {}", self.position, self.state.replace('_', " "))?;
        match self.estimated_seconds {
            Some(seconds) if seconds < 60 => write!(f, ", about {seconds} s"),
            Some(seconds) => write!(f, ", about {} min", seconds.div_ceil(60)),
            None => Ok(()),
        }
    }
}

impl AwaitedMerge {
    /// Whether both are equal apart from the estimate, which changes with each request.
    pub fn is_like(&self, other: &AwaitedMerge) -> bool {
        let place = |awaited: &AwaitedMerge| {
            awaited.queue.as_ref().map(|place| (place.position, place.state.clone()))
        };
        (&self.head, self.auto_merge, place(self)) == (&other.head, other.auto_merge, place(other))
            && (self.queue.is_some() || self.reason == other.reason)
    }
}

/// The commit that a person approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskApproved {
    /// The branch's last commit.
    pub head: String,
}

/// A submission was sent back to the next holder of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReturned {
    /// The branch's last commit.
    pub head: String,
    /// The origin of the return: a gate, `merge`, or a person.
    pub by: String,
    pub reason: String,
    /// Whether `by` is a person, and the reason that person's words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_person: bool,
}

/// An event of a submission that does not change the state of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryFact {
    Reviewed(TaskReviewed),
    Planned(MergePlanned),
    Merged(TaskMerged),
    Held(MergeBlocked),
    Awaited(AwaitedMerge),
}

impl DeliveryFact {
    pub fn head(&self) -> &str {
        match self {
            DeliveryFact::Reviewed(TaskReviewed { head, .. })
            | DeliveryFact::Planned(MergePlanned { head, .. })
            | DeliveryFact::Merged(TaskMerged { head, .. })
            | DeliveryFact::Held(MergeBlocked { head, .. })
            | DeliveryFact::Awaited(AwaitedMerge { head, .. }) => head,
        }
    }
}
