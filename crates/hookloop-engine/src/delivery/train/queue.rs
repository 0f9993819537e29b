//! Requests that the forge merges later: by its merge queue, or by auto-merge when its requirements
//! are met.
//!
//! If the base has a merge queue, the forge stacks and tests requests. So the train does not stack
//! them there. It tests each task alone on the newest base, and enqueues exactly that head.

use hookloop_agents::clipped;
use hookloop_core::delivery::{AwaitedMerge, DeliveryFact, QueuePlace};
use hookloop_git::forge::{ForgeError, MergeStatus, MergeWish, QueueExit, QueueStatus};
use hookloop_git::step_error::StepError;
use hookloop_store::crash;

use super::stack::StackedEntry;
use super::{MergeResult, MergeTrain, TrainEntry, TrainError};

/// Maximum length of the reason why a merge waits.
const WAIT_MAX: usize = 2_000;

impl MergeTrain<'_> {
    /// Whether the forge has a merge queue for the base. The forge is asked once per run.
    pub(super) fn has_queue(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if let Some(known) = self.has_queue {
            return Ok(known);
        }
        let found = match self.shop.forge.has_merge_queue(&car.submission.base) {
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
        self.has_queue == Some(true) || self.shop.rules.auto_merge
    }

    /// Checks an open request that the forge merges later, and returns how to proceed.
    pub(super) fn follow(
        &mut self,
        car: &TrainEntry,
        number: u64,
    ) -> Result<FollowedRequest, TrainError> {
        let awaited = car.delivery.awaited(car.head.as_str()).cloned();
        if !self.has_queue(car)? && awaited.is_none() {
            return Ok(FollowedRequest::GoOn);
        }
        let status = self.shop.forge.merge_status(number).map_err(StepError::from)?;
        if !status.is_open {
            return Ok(FollowedRequest::Settled);
        }
        // The branch has another commit, which the next check handles.
        if status.head != car.head.as_str() {
            return Ok(FollowedRequest::GoOn);
        }
        let was_queued = awaited.as_ref().is_some_and(|awaited| awaited.queue.is_some());
        match &status.queue {
            QueueStatus::Queued(place) => {
                self.queued(car, place)?;
                return Ok(FollowedRequest::Waits);
            }
            QueueStatus::Outside { removed: Some(exit) } if was_queued => {
                self.removed(car, number, exit)?;
                return Ok(FollowedRequest::Waits);
            }
            QueueStatus::Outside { .. } | QueueStatus::NoQueue => {}
        }
        let waits = status.auto_merge || awaited.is_some_and(|awaited| awaited.queue.is_none());
        if waits && !status.is_ready() {
            self.missing(car, number, &status)?;
            return Ok(FollowedRequest::Waits);
        }
        // GitHub is about to merge the request.
        if status.auto_merge {
            self.await_forge(car, "auto-merge: nothing is missing any more", None, true)?;
            return Ok(FollowedRequest::Waits);
        }
        Ok(FollowedRequest::GoOn)
    }

    /// Enqueues tested tasks at the forge.
    pub(super) fn land_in_queue(&mut self, stack: &[StackedEntry]) -> Result<bool, TrainError> {
        for StackedEntry { car, .. } in stack {
            let Some(number) = car.submission.number else { continue };
            if let Err(error) = self.enqueue(car, number) {
                self.pass_over(car, error)?;
            }
        }
        Ok(true)
    }

    fn enqueue(&mut self, car: &TrainEntry, number: u64) -> Result<(), TrainError> {
        if self.is_auto_merging(car, number)? {
            return Ok(());
        }
        crash::point("enqueue");
        let place = self.shop.forge.enqueue(number, car.head.as_str());
        crash::point("enqueued");
        match place {
            Ok(place) => self.queued(car, &place),
            Err(error) => self.not_merged(car, error),
        }
    }

    /// Lets the forge merge a request later, if auto-merge is configured and requirements are
    /// missing.
    ///
    /// Returns true if the train must not merge the request itself.
    pub(super) fn is_auto_merging(
        &mut self,
        car: &TrainEntry,
        number: u64,
    ) -> Result<bool, TrainError> {
        if !self.shop.rules.auto_merge {
            return Ok(false);
        }
        let mut status = self.shop.forge.merge_status(number).map_err(StepError::from)?;
        if status.is_ready() {
            return Ok(false);
        }
        if !status.auto_merge && status.allows_auto_merge {
            let how = self.merge_wish(car);
            crash::point("auto-merge");
            if let Err(error) = self.shop.forge.enable_auto_merge(number, &how) {
                self.not_merged(car, error)?;
                return Ok(true);
            }
            status.auto_merge = true;
        }
        self.missing(car, number, &status)?;
        Ok(true)
    }

    pub(super) fn merge_wish(&self, car: &TrainEntry) -> MergeWish {
        MergeWish {
            method: self.shop.rules.method,
            head: car.head.to_string(),
            title: super::title(&car.task),
            message: super::message(&car.task),
        }
    }

    /// Handles a merge that the forge refused: the task waits, or it is blocked for a person.
    pub(super) fn not_merged(
        &mut self,
        car: &TrainEntry,
        error: ForgeError,
    ) -> Result<(), TrainError> {
        match error {
            ForgeError::Unmet { why, needs_person } => {
                self.record_awaited(car, &why, None, false)?;
                if needs_person {
                    self.hold(car, Some(&why))?;
                }
                self.wait(car, why);
                Ok(())
            }
            ForgeError::Stale { why } | ForgeError::Retry { why, .. } => {
                self.wait(car, why);
                Ok(())
            }
            error => self.block(car, error.to_string()),
        }
    }

    /// Records the requirements of the base that a request does not meet.
    fn missing(
        &mut self,
        car: &TrainEntry,
        number: u64,
        status: &MergeStatus,
    ) -> Result<(), TrainError> {
        let base = &car.submission.base;
        let how = if status.auto_merge {
            format!("GitHub merges #{number} into `{base}` by itself, and waits for ")
        } else if self.shop.rules.auto_merge && !status.allows_auto_merge {
            format!("the repository does not allow auto-merge; #{number} into `{base}` waits for ")
        } else {
            format!("#{number} into `{base}` waits for ")
        };
        let why = format!("{how}{}", status.missing());
        self.record_awaited(car, &why, None, status.auto_merge)?;
        match status.people.is_empty() {
            true => self.wait(car, why),
            // The task is in the inbox until a person meets the requirement.
            false => return Err(StepError::NeedsHuman { why }.into()),
        }
        Ok(())
    }

    fn await_forge(
        &mut self,
        car: &TrainEntry,
        why: &str,
        queue: Option<QueuePlace>,
        auto_merge: bool,
    ) -> Result<(), TrainError> {
        self.record_awaited(car, why, queue, auto_merge)?;
        self.wait(car, why.to_owned());
        Ok(())
    }

    fn queued(&mut self, car: &TrainEntry, place: &QueuePlace) -> Result<(), TrainError> {
        let reason = format!("in the merge queue of `{}`", car.submission.base);
        self.record_awaited(car, &reason, Some(place.clone()), false)?;
        let base = car.submission.base.clone();
        self.arrive(car, MergeResult::Queued { base, place: place.clone() });
        Ok(())
    }

    /// Handles a request that was removed from the merge queue.
    fn removed(
        &mut self,
        car: &TrainEntry,
        number: u64,
        exit: &QueueExit,
    ) -> Result<(), TrainError> {
        let base = &car.submission.base;
        let by = exit.by.as_ref().map_or(String::new(), |by| format!(" ({by})"));
        let reason = match exit.reason.as_str() {
            "" => "without a reason",
            reason => reason,
        };
        let page = car.submission.url.as_deref().unwrap_or_default();
        let why = format!(
            "GitHub removed #{number} from the merge queue of `{base}`{by}: {reason} {page}"
        );
        if exit.is_about_work() {
            let why = format!(
                "{why}\nThe queue tests the branch together with `{base}` and the requests before it. \
                 Rebase on `{base}`, find out what fails there, and submit again."
            );
            return self.give_back(car, "merge queue", why);
        }
        // If the person approves without changes, the next run enqueues the request again.
        self.record(car, DeliveryFact::Awaited(nothing_awaited(car)))?;
        self.block(car, why)
    }

    /// Records the reason why the forge waits, if it changed.
    pub(super) fn record_awaited(
        &self,
        car: &TrainEntry,
        reason: &str,
        queue: Option<QueuePlace>,
        auto_merge: bool,
    ) -> Result<(), TrainError> {
        let reason = Some(clipped(reason, WAIT_MAX));
        let awaited = AwaitedMerge { head: car.head.to_string(), reason, queue, auto_merge };
        let known = car.delivery.awaited(car.head.as_str());
        match known.is_some_and(|known| known.is_like(&awaited)) {
            true => Ok(()),
            false => self.record(car, DeliveryFact::Awaited(awaited)),
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

fn nothing_awaited(car: &TrainEntry) -> AwaitedMerge {
    let head = car.head.to_string();
    AwaitedMerge { head, reason: None, queue: None, auto_merge: false }
}
