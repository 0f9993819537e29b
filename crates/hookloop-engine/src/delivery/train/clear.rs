//! Checks whether a single task may be merged, regardless of other tasks.

use hookloop_core::delivery::{DeliveryFact, TaskReviewed};
use hookloop_core::hook_protocol::{HookStatus, HookVerdict};
use hookloop_core::point::Point;
use hookloop_git::forge::{CommitChecks, RequestState};
use hookloop_git::step_error::StepError;

use super::queue::FollowedRequest;
use super::{MergeTrain, TrainEntry, TrainError, TrainPlace, is_of_branch, reason_of};
use crate::delivery_context::commit;
use crate::protected_files;

impl MergeTrain<'_> {
    /// Completes a merge that an earlier run started, and returns whether this run is done with the
    /// task.
    ///
    /// A run may crash between a merge and its record. Requests that were merged, closed or
    /// retargeted at the forge are settled too.
    pub(super) fn pick_up(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if let Some(merged) = &car.delivery.merged {
            self.finish(car, &commit(&merged.commit)?)?;
            return Ok(true);
        }
        if let Some(planned) =
            car.delivery.planned.as_ref().and_then(|planned| planned.commit.as_ref())
        {
            let base = self.shop.repo.newest_base().map_err(StepError::from)?;
            let planned = commit(planned)?;
            if self.shop.repo.is_ancestor(&planned, &base).unwrap_or(false) {
                self.record_merged(car, &planned)?;
                return Ok(true);
            }
        }
        let Some(number) = car.submission.number else { return Ok(false) };
        match self.shop.forge.get(number) {
            Ok(request) if request.base != car.submission.base => {
                let reason = format!(
                    "its request is for `{}` now, and the work is for `{}`",
                    request.base, car.submission.base
                );
                self.block(car, reason)?;
                Ok(true)
            }
            Ok(request) => match request.state {
                RequestState::Merged { commit: merged } => {
                    self.record_merged(car, &commit(&merged)?)?;
                    Ok(true)
                }
                RequestState::Closed => {
                    let reason =
                        "its request was closed by somebody, without being merged".to_owned();
                    self.block(car, reason)?;
                    Ok(true)
                }
                RequestState::Open => match self.follow(car, number)? {
                    FollowedRequest::GoOn => Ok(false),
                    FollowedRequest::Waits => Ok(true),
                    FollowedRequest::Settled => {
                        self.wait(car, "its request was merged or closed just now".to_owned());
                        Ok(true)
                    }
                },
            },
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Whether all checks that concern this task alone allow the merge.
    pub(super) fn is_cleared(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if car.submission.number.is_none() {
            self.shop.requests.check("it can't be merged into the remote's base")?;
        }
        Ok(self.is_proven(car)?
            && self.is_as_submitted(car)?
            && self.has_consent(car)?
            && self.is_checked(car)?
            && self.is_reviewed(car)?)
    }

    /// Whether the work leaves the protected files unchanged, or a person approved this commit.
    ///
    /// It returns an error that needs a person otherwise.
    fn has_consent(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if car.delivery.is_approved(car.head.as_str()) {
            return Ok(true);
        }
        match protected_files::why_consent(self.runner, &self.hooks, self.shop, &car.head)? {
            None => Ok(true),
            Some(why) => Err(StepError::NeedsHuman { why }.into()),
        }
    }

    /// Whether gates proved the work or will prove the merge, or a person accepted it without them.
    fn is_proven(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        let is_fine = car.submission.proven
            || self.project.rules().wants_no_gates
            || car.delivery.is_approved(car.head.as_str())
            || !self.gates(car).is_empty()
            || !self.tests(car).is_empty();
        if !is_fine {
            let reason = "completed without proof: no gate passed. Accept it with `hookloop inbox approve`, or add a \
                          `stop` hook to hookloop.yaml";
            self.block(car, reason.to_owned())?;
        }
        Ok(is_fine)
    }

    /// Whether the branch still has the submitted commit. Another push blocks the task.
    fn is_as_submitted(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if self.shop.repo.target().remote.is_none() {
            return Ok(true);
        }
        match self.shop.repo.remote_head(&car.submission.branch) {
            Ok(Some(found)) if found == car.head => {
                match self.shop.repo.bring(&car.submission.branch, &car.head) {
                    Ok(true) => Ok(true),
                    Ok(false) => {
                        self.wait(car, format!("{} could not be fetched", car.head));
                        Ok(false)
                    }
                    Err(error) => Err(StepError::from(error).into()),
                }
            }
            Ok(None) => self.is_pushed(car),
            Ok(Some(found)) => {
                let (id, branch) = (&car.task.id, &car.submission.branch);
                let reason = format!(
                    "somebody pushed to {branch}: it is at {found}, and {} was submitted; to have it worked on again: \
                     hookloop task unblock {id}",
                    car.head
                );
                self.block(car, reason)?;
                Ok(false)
            }
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Pushes a branch that the remote does not have, and returns whether that worked.
    fn is_pushed(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        let pushed =
            self.shop.repo.push(&car.submission.branch, &car.head).map_err(StepError::from);
        match pushed {
            Ok(_) => Ok(true),
            Err(StepError::Retry { why }) => {
                self.wait(car, why);
                Ok(false)
            }
            Err(trouble) => {
                let reason = format!(
                    "branch {} is not at the remote: {}",
                    car.submission.branch,
                    trouble.reason()
                );
                self.block(car, reason)?;
                Ok(false)
            }
        }
    }

    /// Whether the forge's own checks passed. Pending checks have not passed.
    fn is_checked(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        if !self.shop.rules.wait_for_checks || car.submission.number.is_none() {
            return Ok(true);
        }
        match self.shop.forge.checks(car.head.as_str()) {
            Ok(CommitChecks::Passed) => Ok(true),
            Ok(CommitChecks::None) if self.is_left_to_forge(car, &[])? => Ok(true),
            Ok(CommitChecks::None) => self.is_without_checks(car),
            Ok(CommitChecks::Pending { names }) if self.is_left_to_forge(car, &names)? => Ok(true),
            Ok(CommitChecks::Pending { names }) => {
                let reason = format!("checks are pending: {}", names.join(", "));
                self.record_awaited(car, &reason, None, false)?;
                self.wait(car, reason);
                Ok(false)
            }
            Ok(CommitChecks::Failed { names, urls }) => {
                let reason = format!("checks failed: {}\n{}", names.join(", "), urls.join("\n"));
                self.give_back(car, "checks", reason)?;
                Ok(false)
            }
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Whether the forge's auto-merge waits for all of these checks.
    ///
    /// The forge merges nothing before its required checks passed.
    fn is_left_to_forge(&self, car: &TrainEntry, pending: &[String]) -> Result<bool, TrainError> {
        let Some(number) = car.submission.number.filter(|_| self.shop.rules.auto_merge) else {
            return Ok(false);
        };
        let status = self.shop.forge.merge_status(number).map_err(StepError::from)?;
        let is_required = |name: &String| status.checks.contains(name);
        Ok(!status.checks.is_empty() && pending.iter().all(is_required))
    }

    /// Whether the forge has no checks for this base, as opposed to none that started yet.
    ///
    /// A forge takes a while to start checks. If the base has checks, the request gets some too.
    fn is_without_checks(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        let base = self.shop.repo.newest_base().map_err(StepError::from)?;
        // The forge is asked once for all tasks that are merged into this base.
        if self.unchecked.as_ref() == Some(&base)
            || matches!(self.shop.forge.checks(base.as_str()), Ok(CommitChecks::None))
        {
            self.unchecked = Some(base);
            return Ok(true);
        }
        let reason = "no check has begun yet; if there is none for requests: delivery: {wait_for_checks: false}";
        self.wait(car, reason.to_owned());
        Ok(false)
    }

    /// Whether gatekeepers and other gates on the branch approve it.
    ///
    /// A gate that approved this commit is not asked again.
    fn is_reviewed(&mut self, car: &TrainEntry) -> Result<bool, TrainError> {
        // A person approved this commit, and reviewers do not overrule a person.
        if car.delivery.is_approved(car.head.as_str()) {
            return Ok(true);
        }
        let at = TrainPlace::new(self.runner, None);
        for hook in self.gates(car).into_iter().filter(is_of_branch) {
            match car.delivery.review(&hook.name, car.head.as_str()) {
                Some(review) if review.passed => continue,
                // The same commit gets the same verdict without asking again.
                Some(review) => {
                    let reason = review.reason.clone().unwrap_or_default();
                    self.give_back(car, &hook.name, reason)?;
                    return Ok(false);
                }
                None => {}
            }
            let runs = self.run(std::slice::from_ref(&hook), &Point::BeforeMerge, car, &at);
            let Some(run) = runs.into_iter().next() else {
                self.wait(car, format!("the gate `{}` gave no result", hook.name));
                return Ok(false);
            };
            if self.is_cancelled() {
                return Ok(false);
            }
            let passed = run.outcome.verdict == HookVerdict::Pass;
            let reason = reason_of(&run);
            let has_said = passed || run.outcome.status == HookStatus::Blocked;
            if has_said {
                self.record(
                    car,
                    DeliveryFact::Reviewed(TaskReviewed {
                        gate: hook.name.clone(),
                        head: car.head.to_string(),
                        passed,
                        reason: (!passed).then(|| reason.clone()),
                    }),
                )?;
            }
            match &run.outcome.verdict {
                HookVerdict::Pass => {}
                HookVerdict::Escalate { reason } => {
                    self.block(car, reason.clone())?;
                    return Ok(false);
                }
                HookVerdict::Block { .. } if !has_said => {
                    self.wait(car, reason);
                    return Ok(false);
                }
                HookVerdict::Block { .. } => {
                    self.give_back(car, &hook.name, reason)?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
