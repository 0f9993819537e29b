//! Requests that the forge merges later: by its merge queue, or by auto-merge when its requirements
//! are met.
//!
//! If the base has a merge queue, the forge stacks and tests requests. So the train does not stack
//! them there. It tests each task alone on the newest base, and enqueues exactly that head.

use hookloop_agents::clipped;
use hookloop_core::delivery::{AwaitedMerge, DeliveryFact, QueuePlace};
use hookloop_git::forge::{ForgeError, MergeOptions, MergeStatus, QueueExit, QueueStatus};
use hookloop_git::step_error::StepError;
use hookloop_store::crash;

use super::stack::StackedEntry;
use super::{MergeResult, MergeTrain, TrainEntry, TrainError};

/// Maximum length of the reason why a merge waits.
const WAIT_MAX: usize = 2_000;

impl MergeTrain<'_> {
    /// Whether the forge has a merge queue for the base. The forge is asked once per run.
    pub(super) fn has_queue(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if let Some(known) = self.has_queue {
            return Ok(known);
        }
        let found = match self.delivery_tools.forge.has_merge_queue(&entry.submission.base) {
            Ok(found) => found,
            Err(error @ (ForgeError::Retry { .. } | ForgeError::Stale { .. })) => {
                return Err(StepError::from(error).into());
            }
            // The token may not ask. If there is a queue, the forge refuses a merge past it.
            Err(_) => false,
        };
        self.has_queue = Some(found);
        Ok(found)
    }

    /// Whether tasks are merged one by one, and not stacked.
    pub(super) fn is_one_by_one(&self) -> bool {
        self.has_queue == Some(true) || self.delivery_tools.rules.auto_merge
    }

    /// Checks an open request that the forge merges later, and returns how to proceed.
    pub(super) fn follow(
        &mut self,
        entry: &TrainEntry,
        number: u64,
    ) -> Result<FollowedRequest, TrainError> {
        let awaited = entry.delivery.awaited(entry.head.as_str()).cloned();
        if !self.has_queue(entry)? && awaited.is_none() {
            return Ok(FollowedRequest::GoOn);
        }
        let status = self.delivery_tools.forge.merge_status(number).map_err(StepError::from)?;
        if !status.is_open {
            return Ok(FollowedRequest::Settled);
        }
        // The branch has another commit, which the next check handles.
        if status.head != entry.head.as_str() {
            return Ok(FollowedRequest::GoOn);
        }
        let was_queued = awaited.as_ref().is_some_and(|awaited| awaited.queue.is_some());
        match &status.queue {
            QueueStatus::Queued(place) => {
                self.queued(entry, place)?;
                return Ok(FollowedRequest::Waits);
            }
            QueueStatus::Outside { removed: Some(exit) } if was_queued => {
                self.removed(entry, number, exit)?;
                return Ok(FollowedRequest::Waits);
            }
            QueueStatus::Outside { .. } | QueueStatus::NoQueue => {}
        }
        let waits = status.auto_merge || awaited.is_some_and(|awaited| awaited.queue.is_none());
        if waits && !status.is_ready() {
            self.missing(entry, number, &status)?;
            return Ok(FollowedRequest::Waits);
        }
        // GitHub is about to merge the request.
        if status.auto_merge {
            self.await_forge(entry, "auto-merge: nothing is missing any more", None, true)?;
            return Ok(FollowedRequest::Waits);
        }
        Ok(FollowedRequest::GoOn)
    }

    /// Enqueues tested tasks at the forge.
    pub(super) fn land_in_queue(&mut self, stack: &[StackedEntry]) -> Result<bool, TrainError> {
        for StackedEntry { entry, .. } in stack {
            let Some(number) = entry.submission.number else { continue };
            if let Err(error) = self.enqueue(entry, number) {
                self.pass_over(entry, error)?;
            }
        }
        Ok(true)
    }

    fn enqueue(&mut self, entry: &TrainEntry, number: u64) -> Result<(), TrainError> {
        if self.is_auto_merging(entry, number)? {
            return Ok(());
        }
        crash::point("enqueue");
        let place = self.delivery_tools.forge.enqueue(number, entry.head.as_str());
        crash::point("enqueued");
        match place {
            Ok(place) => self.queued(entry, &place),
            Err(error) => self.not_merged(entry, error),
        }
    }

    /// Lets the forge merge a request later, if auto-merge is configured and requirements are
    /// missing.
    ///
    /// Returns true if the train must not merge the request itself.
    pub(super) fn is_auto_merging(
        &mut self,
        entry: &TrainEntry,
        number: u64,
    ) -> Result<bool, TrainError> {
        if !self.delivery_tools.rules.auto_merge {
            return Ok(false);
        }
        let mut status = self.delivery_tools.forge.merge_status(number).map_err(StepError::from)?;
        if status.is_ready() {
            return Ok(false);
        }
        if !status.auto_merge && status.allows_auto_merge {
            let how = self.merge_options(entry);
            crash::point("auto-merge");
            if let Err(error) = self.delivery_tools.forge.enable_auto_merge(number, &how) {
                self.not_merged(entry, error)?;
                return Ok(true);
            }
            status.auto_merge = true;
        }
        self.missing(entry, number, &status)?;
        Ok(true)
    }

    pub(super) fn merge_options(&self, entry: &TrainEntry) -> MergeOptions {
        MergeOptions {
            method: self.delivery_tools.rules.method,
            head: entry.head.to_string(),
            title: super::title(&entry.task),
            message: super::message(&entry.task),
        }
    }

    /// Handles a merge that the forge refused: the task waits, or it is blocked for a person.
    pub(super) fn not_merged(
        &mut self,
        entry: &TrainEntry,
        error: ForgeError,
    ) -> Result<(), TrainError> {
        match error {
            ForgeError::Unmet { why, needs_person } => {
                self.record_awaited(entry, &why, None, false)?;
                if needs_person {
                    self.hold(entry, Some(&why))?;
                }
                self.wait(entry, why);
                Ok(())
            }
            ForgeError::Stale { why } | ForgeError::Retry { why, .. } => {
                self.wait(entry, why);
                Ok(())
            }
            error => self.block(entry, error.to_string()),
        }
    }

    /// Records the requirements of the base that a request does not meet.
    fn missing(
        &mut self,
        entry: &TrainEntry,
        number: u64,
        status: &MergeStatus,
    ) -> Result<(), TrainError> {
        let base = &entry.submission.base;
        let how = if status.auto_merge {
            format!("GitHub merges #{number} into `{base}` by itself, and waits for ")
        } else if self.delivery_tools.rules.auto_merge && !status.allows_auto_merge {
            format!("the repository does not allow auto-merge; #{number} into `{base}` waits for ")
        } else {
            format!("#{number} into `{base}` waits for ")
        };
        let why = format!("{how}{}", status.missing());
        self.record_awaited(entry, &why, None, status.auto_merge)?;
        match status.people.is_empty() {
            true => self.wait(entry, why),
            // The task is in the inbox until a person meets the requirement.
            false => return Err(StepError::NeedsHuman { why }.into()),
        }
        Ok(())
    }

    fn await_forge(
        &mut self,
        entry: &TrainEntry,
        why: &str,
        queue: Option<QueuePlace>,
        auto_merge: bool,
    ) -> Result<(), TrainError> {
        self.record_awaited(entry, why, queue, auto_merge)?;
        self.wait(entry, why.to_owned());
        Ok(())
    }

    fn queued(&mut self, entry: &TrainEntry, place: &QueuePlace) -> Result<(), TrainError> {
        let reason = format!("in the merge queue of `{}`", entry.submission.base);
        self.record_awaited(entry, &reason, Some(place.clone()), false)?;
        let base = entry.submission.base.clone();
        self.arrive(entry, MergeResult::Queued { base, place: place.clone() });
        Ok(())
    }

    /// Handles a request that was removed from the merge queue.
    fn removed(
        &mut self,
        entry: &TrainEntry,
        number: u64,
        exit: &QueueExit,
    ) -> Result<(), TrainError> {
        let base = &entry.submission.base;
        let by = exit.by.as_ref().map_or(String::new(), |by| format!(" ({by})"));
        let reason = match exit.reason.as_str() {
            "" => "without a reason",
            reason => reason,
        };
        let page = entry.submission.url.as_deref().unwrap_or_default();
        let why = format!(
            "GitHub removed #{number} from the merge queue of `{base}`{by}: {reason} {page}"
        );
        if exit.is_about_work() {
            let why = format!(
                "{why}\nThe queue tests the branch together with `{base}` and the requests before it. \
                 Rebase on `{base}`, find out what fails there, and submit again."
            );
            return self.give_back(entry, "merge queue", why);
        }
        // If the person approves without changes, the next run enqueues the request again.
        self.record(entry, DeliveryFact::Awaited(nothing_awaited(entry)))?;
        self.block(entry, why)
    }

    /// Records the reason why the forge waits, if it changed.
    pub(super) fn record_awaited(
        &self,
        entry: &TrainEntry,
        reason: &str,
        queue: Option<QueuePlace>,
        auto_merge: bool,
    ) -> Result<(), TrainError> {
        let reason = Some(clipped(reason, WAIT_MAX));
        let awaited = AwaitedMerge { head: entry.head.to_string(), reason, queue, auto_merge };
        let known = entry.delivery.awaited(entry.head.as_str());
        match known.is_some_and(|known| known.is_like(&awaited)) {
            true => Ok(()),
            false => self.record(entry, DeliveryFact::Awaited(awaited)),
        }
    }
}

/// How to proceed with a request that the forge merges later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowedRequest {
    /// The forge does not wait for anything, so the train may merge the request.
    GoOn,
    /// The request waits, or its task was returned.
    Waits,
    /// The request was merged or closed just now.
    Settled,
}

fn nothing_awaited(entry: &TrainEntry) -> AwaitedMerge {
    let head = entry.head.to_string();
    AwaitedMerge { head, reason: None, queue: None, auto_merge: false }
}
