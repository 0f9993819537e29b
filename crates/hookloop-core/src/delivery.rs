//! The delivery of a task's work: submitted, reviewed, merged, or sent back.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::claim::ReleaseReason;
use crate::event::EventBody;
use crate::failure_fingerprint::failure_fingerprint;

pub use crate::payload::delivery::{
    AwaitedMerge, DeliveryFact, MergeBlocked, MergePlanned, PushPlanned, QueuePlace, Submission,
    TaskApproved, TaskMerged, TaskReturned, TaskReviewed,
};

/// Reviews of one submission that are remembered.
pub(crate) const REVIEWS_MAX: usize = 64;

/// Pushes of a task that are remembered.
pub(crate) const PUSHES_MAX: usize = 32;

/// The way in which a branch is merged into its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeMethod {
    /// As one commit.
    #[default]
    Squash,
    /// Commit by commit.
    Rebase,
    /// With a commit that has both as parents.
    Merge,
}

impl MergeMethod {
    pub const ALL: [MergeMethod; 3] =
        [MergeMethod::Squash, MergeMethod::Rebase, MergeMethod::Merge];

    pub fn name(self) -> &'static str {
        match self {
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
            MergeMethod::Merge => "merge",
        }
    }
}

impl fmt::Display for MergeMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to merge: `squash`, `rebase` or `merge`")]
pub struct UnknownMergeMethod(String);

impl FromStr for MergeMethod {
    type Err = UnknownMergeMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = MergeMethod::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| UnknownMergeMethod(text.to_owned()))
    }
}

/// The delivery state of a task, folded from its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivery {
    /// The last submission, also while its task is worked on again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<Submission>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<TaskReviewed>,
    /// Commits that a holder of the task was about to push to its branch, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pushes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<MergePlanned>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<TaskMerged>,
    /// Number of returns since a person last handled the task.
    pub returns: u32,
    /// Remediation turns since a person last handled the task.
    #[serde(default)]
    pub remediations: u32,
    /// The last failure for which a merge sent the task back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<String>,
    /// The reason of the last return, for the next holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person that returned the task, if a person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned_by: Option<String>,
    /// No session has worked on the task since it was submitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
    /// The reason why the submission waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The requirement that the forge waits for before it merges the submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaited: Option<AwaitedMerge>,
    /// The commit that a person approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
}

impl Delivery {
    /// Whether an event can change the delivery state. Most events can't.
    pub fn concerns(event: &EventBody) -> bool {
        match event {
            EventBody::TaskSubmitted(submitted) => submitted.submission.is_some(),
            EventBody::TaskReleased(released) => {
                matches!(
                    released.reason,
                    ReleaseReason::NeedsContinuation | ReleaseReason::Requeued
                )
            }
            EventBody::TaskReviewed(_)
            | EventBody::PushPlanned(_)
            | EventBody::MergePlanned(_)
            | EventBody::TaskMerged(_)
            | EventBody::MergeBlocked(_)
            | EventBody::MergeAwaited(_)
            | EventBody::TaskApproved(_)
            | EventBody::TaskReturned(_)
            | EventBody::TaskUnblocked(_) => true,
            _ => false,
        }
    }

    /// Applies the next event of the task. Returns whether the state changed.
    pub fn apply(&mut self, event: &EventBody) -> bool {
        match event {
            EventBody::TaskSubmitted(submitted) => match &submitted.submission {
                Some(submission) => self.submit(submission.clone()),
                None => return false,
            },
            EventBody::TaskReviewed(reviewed) => {
                self.reviews.retain(|known| known.gate != reviewed.gate);
                if self.reviews.len() < REVIEWS_MAX {
                    self.reviews.push(reviewed.clone());
                }
            }
            EventBody::PushPlanned(PushPlanned { head }) => {
                self.pushes.retain(|known| known != head);
                if self.pushes.len() == PUSHES_MAX {
                    self.pushes.remove(0);
                }
                self.pushes.push(head.clone());
            }
            EventBody::MergePlanned(planned) => self.planned = Some(planned.clone()),
            EventBody::TaskMerged(merged) => {
                (self.merged, self.awaited) = (Some(merged.clone()), None);
            }
            EventBody::MergeBlocked(held) => self.held.clone_from(&held.reason),
            EventBody::MergeAwaited(awaited) => {
                self.awaited = awaited.reason.is_some().then(|| awaited.clone());
            }
            EventBody::TaskApproved(approved) => {
                (self.held, self.returns) = (None, 0);
                (self.remediations, self.last_failure) = (0, None);
                self.approved = Some(approved.head.clone());
            }
            EventBody::TaskReturned(returned) => {
                (self.planned, self.held, self.stands) = (None, None, false);
                self.remediations += 1;
                self.last_failure = Some(failure_fingerprint(&returned.by, &returned.reason));
                self.awaited = None;
                self.go_back(format!("{}: {}", returned.by, returned.reason));
                self.returned_by = returned.is_by_person.then(|| returned.by.clone());
            }
            EventBody::TaskReleased(released) => match released.reason {
                ReleaseReason::NeedsContinuation => {
                    self.go_back(released.note.clone().unwrap_or_default());
                }
                ReleaseReason::Requeued => return self.reopen(),
                ReleaseReason::Released | ReleaseReason::Expired => return false,
            },
            EventBody::TaskUnblocked(_) => return self.reopen(),
            _ => return false,
        }
        true
    }

    fn submit(&mut self, submission: Submission) {
        self.reviews.retain(|review| review.head == submission.head);
        (self.planned, self.merged, self.reason) = (None, None, None);
        (self.held, self.awaited, self.stands) = (None, None, true);
        self.remediations = submission.remediations.unwrap_or(self.remediations);
        self.submission = Some(submission);
    }

    fn go_back(&mut self, reason: String) {
        self.returns += 1;
        self.reason = Some(reason);
        self.returned_by = None;
    }

    /// Resets the counters after a person has handled the task. Returns whether anything changed.
    fn reopen(&mut self) -> bool {
        let was = (std::mem::take(&mut self.stands), self.held.take(), self.awaited.take());
        let used = (std::mem::take(&mut self.remediations), self.last_failure.take());
        std::mem::take(&mut self.returns) > 0 || was != (false, None, None) || used != (0, None)
    }

    /// Returns the requirement that the forge waits for before it merges this commit.
    pub fn awaited(&self, head: &str) -> Option<&AwaitedMerge> {
        self.awaited.as_ref().filter(|awaited| awaited.head == head)
    }

    /// Whether a person approved this commit.
    pub fn is_approved(&self, head: &str) -> bool {
        self.approved.as_deref() == Some(head)
    }

    /// Returns the submission that a person could approve.
    pub fn standing(&self) -> Option<&Submission> {
        self.submission.as_ref().filter(|_| self.stands)
    }

    /// Returns the review of a commit by a gate.
    pub fn review(&self, gate: &str, head: &str) -> Option<&TaskReviewed> {
        self.reviews.iter().find(|review| review.gate == gate && review.head == head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NoData, TaskReleased, TaskSubmitted};

    #[test]
    fn merge_methods_are_parsed_from_their_written_form() {
        for method in MergeMethod::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
            assert_eq!(serde_json::json!(method), method.name());
        }
        for other in ["", "Squash", "fast-forward", "merge "] {
            assert_eq!(other.parse::<MergeMethod>(), Err(UnknownMergeMethod(other.to_owned())));
        }
    }

    fn submitted(head: &str) -> EventBody {
        let word = |text: &str| text.to_owned();
        let (branch, base) = (word("b"), word("main"));
        let submission = Submission {
            branch,
            head: word(head),
            base,
            url: None,
            number: Some(7),
            proven: false,
            commits: None,
            agent: None,
            remediations: None,
        };
        EventBody::TaskSubmitted(TaskSubmitted { submission: Some(submission) })
    }

    fn reviewed(gate: &str, head: &str, passed: bool) -> EventBody {
        let (gate, head) = (gate.to_owned(), head.to_owned());
        EventBody::TaskReviewed(TaskReviewed { gate, head, passed, reason: None })
    }

    fn released(reason: ReleaseReason) -> EventBody {
        EventBody::TaskReleased(TaskReleased { epoch: 1, reason, note: Some("why".to_owned()) })
    }

    /// Applies events. An event that `concerns` rejects must change nothing.
    fn after(events: &[EventBody]) -> Delivery {
        let mut delivery = Delivery::default();
        for event in events {
            let has_changed = delivery.apply(event);
            assert!(Delivery::concerns(event) || !has_changed, "{event:?}");
        }
        delivery
    }

    #[test]
    fn a_review_counts_for_one_commit() {
        let delivery = after(&[submitted("a"), reviewed("qa", "a", true)]);
        assert!(delivery.review("qa", "a").is_some_and(|review| review.passed));
        assert_eq!(delivery.review("qa", "b"), None);
        let delivery = after(&[submitted("a"), reviewed("qa", "a", true), submitted("b")]);
        assert_eq!((delivery.review("qa", "a"), delivery.reviews.len()), (None, 0));
        let twice = [submitted("a"), reviewed("qa", "a", false), reviewed("qa", "a", true)];
        assert!(after(&twice).review("qa", "a").is_some_and(|review| review.passed));
    }

    #[test]
    fn an_approval_counts_for_the_last_submitted_commit() {
        let approved = EventBody::TaskApproved(TaskApproved { head: "a".to_owned() });
        let delivery = after(&[submitted("a"), reviewed("qa", "a", false), approved.clone()]);
        assert!(delivery.is_approved("a") && !delivery.is_approved("b"));
        assert!(delivery.standing().is_some());
        assert!(!after(&[submitted("a"), approved, submitted("b")]).is_approved("b"));
        for worked_on in [
            EventBody::TaskUnblocked(NoData {}),
            EventBody::TaskReturned(TaskReturned {
                head: "a".to_owned(),
                by: "qa".to_owned(),
                reason: "no".to_owned(),
                is_by_person: false,
            }),
        ] {
            assert_eq!(after(&[submitted("a"), worked_on]).standing(), None);
        }
    }

    #[test]
    fn a_blocked_merge_lasts_until_unblocked_or_resubmitted() {
        let held = |reason: Option<&str>| {
            let reason = reason.map(str::to_owned);
            EventBody::MergeBlocked(MergeBlocked { head: "a".to_owned(), reason })
        };
        let delivery = after(&[submitted("a"), held(Some("no token"))]);
        assert_eq!(delivery.held.as_deref(), Some("no token"));
        for end in [held(None), submitted("b")] {
            assert_eq!(after(&[submitted("a"), held(Some("no token")), end]).held, None);
        }
    }

    #[test]
    fn a_queue_position_belongs_to_one_commit_and_ends_with_its_submission() {
        let awaited = |reason: Option<&str>, position: u64| {
            let place =
                QueuePlace { position, state: "queued".to_owned(), estimated_seconds: Some(90) };
            EventBody::MergeAwaited(AwaitedMerge {
                head: "a".to_owned(),
                reason: reason.map(str::to_owned),
                queue: Some(place),
                auto_merge: false,
            })
        };
        let delivery = after(&[submitted("a"), awaited(Some("r"), 2)]);
        let place = delivery.awaited("a").and_then(|awaited| awaited.queue.clone());
        assert_eq!(
            place.map(|place| place.to_string()).as_deref(),
            Some("position 2, queued, about 2 min")
        );
        assert_eq!(delivery.awaited("b"), None);
        let merged = TaskMerged { head: "a".to_owned(), commit: "c".to_owned() };
        let returned = TaskReturned {
            head: "a".to_owned(),
            by: "q".to_owned(),
            reason: "r".to_owned(),
            is_by_person: false,
        };
        for end in [
            awaited(None, 2),
            submitted("b"),
            EventBody::TaskMerged(merged),
            EventBody::TaskReturned(returned),
            EventBody::TaskUnblocked(NoData {}),
        ] {
            assert_eq!(after(&[submitted("a"), awaited(Some("r"), 2), end]).awaited, None);
        }
    }

    #[test]
    fn the_last_planned_pushes_are_kept() {
        let push = |n: usize| EventBody::PushPlanned(PushPlanned { head: n.to_string() });
        let all: Vec<EventBody> = (0..=PUSHES_MAX).chain([5]).map(push).collect();
        let pushes = after(&all).pushes;
        assert_eq!(pushes.len(), PUSHES_MAX);
        assert_eq!(
            (pushes.first().map(String::as_str), pushes.last()),
            (Some("1"), Some(&"5".to_owned()))
        );
        assert_eq!(pushes.iter().filter(|head| *head == "5").count(), 1);
    }

    #[test]
    fn returns_of_a_task_are_counted_until_a_person_requeues_or_unblocks() {
        let back = EventBody::TaskReturned(TaskReturned {
            head: "a".to_owned(),
            by: "qa".to_owned(),
            reason: "no".to_owned(),
            is_by_person: false,
        });
        let events = [submitted("a"), back, released(ReleaseReason::NeedsContinuation)];
        let delivery = after(&events);
        assert_eq!((delivery.returns, delivery.reason.as_deref()), (2, Some("why")));
        assert!(delivery.submission.is_some(), "the request that was opened is found again");
        for person in [released(ReleaseReason::Requeued), EventBody::TaskUnblocked(NoData {})] {
            let delivery = after(&[events.to_vec(), vec![person]].concat());
            assert_eq!((delivery.returns, delivery.reason.as_deref()), (0, Some("why")));
        }
        let nobody = after(&[events.to_vec(), vec![released(ReleaseReason::Expired)]].concat());
        assert_eq!(nobody.returns, 2);
        assert_eq!(after(&[events.to_vec(), vec![submitted("b")]].concat()).reason, None);
    }
}
