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
    pub(super) fn pick_up(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if let Some(merged) = &entry.delivery.merged {
            self.finish(entry, &commit(&merged.commit)?)?;
            return Ok(true);
        }
        if let Some(planned) =
            entry.delivery.planned.as_ref().and_then(|planned| planned.commit.as_ref())
        {
            let base = self.delivery_tools.repo.newest_base().map_err(StepError::from)?;
            let planned = commit(planned)?;
            if self.delivery_tools.repo.is_ancestor(&planned, &base).unwrap_or(false) {
                self.record_merged(entry, &planned)?;
                return Ok(true);
            }
        }
        let Some(number) = entry.submission.number else { return Ok(false) };
        match self.delivery_tools.forge.get(number) {
            Ok(request) if request.base != entry.submission.base => {
                let reason = format!(
                    "its request is for `{}` now, and the work is for `{}`",
                    request.base, entry.submission.base
                );
                self.block(entry, reason)?;
                Ok(true)
            }
            Ok(request) => match request.state {
                RequestState::Merged { commit: merged } => {
                    self.record_merged(entry, &commit(&merged)?)?;
                    Ok(true)
                }
                RequestState::Closed => {
                    let reason =
                        "its request was closed by somebody, without being merged".to_owned();
                    self.block(entry, reason)?;
                    Ok(true)
                }
                RequestState::Open => match self.follow(entry, number)? {
                    FollowedRequest::GoOn => Ok(false),
                    FollowedRequest::Waits => Ok(true),
                    FollowedRequest::Settled => {
                        self.wait(entry, "its request was merged or closed just now".to_owned());
                        Ok(true)
                    }
                },
            },
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Whether all checks that concern this task alone allow the merge.
    pub(super) fn is_cleared(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if entry.submission.number.is_none() {
            self.delivery_tools.requests.check("it can't be merged into the remote's base")?;
        }
        Ok(self.is_proven(entry)?
            && self.is_as_submitted(entry)?
            && self.has_consent(entry)?
            && self.is_checked(entry)?
            && self.is_reviewed(entry)?)
    }

    /// Whether the work leaves the protected files unchanged, or a person approved this commit.
    ///
    /// It returns an error that needs a person otherwise.
    fn has_consent(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if entry.delivery.is_approved(entry.head.as_str()) {
            return Ok(true);
        }
        match protected_files::why_consent(
            self.runner,
            &self.hooks,
            self.delivery_tools,
            &entry.head,
        )? {
            None => Ok(true),
            Some(why) => Err(StepError::NeedsHuman { why }.into()),
        }
    }

    /// Whether gates proved the work or will prove the merge, or a person accepted it without them.
    fn is_proven(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        let is_fine = entry.submission.proven
            || self.project.rules().wants_no_gates
            || entry.delivery.is_approved(entry.head.as_str())
            || !self.gates(entry).is_empty()
            || !self.tests(entry).is_empty();
        if !is_fine {
            let reason = "completed without proof: no gate passed. Accept it with `hookloop inbox approve`, or add a \
                          `stop` hook to hookloop.yaml";
            self.block(entry, reason.to_owned())?;
        }
        Ok(is_fine)
    }

    /// Whether the branch still has the submitted commit. Another push blocks the task.
    fn is_as_submitted(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if self.delivery_tools.repo.target().remote.is_none() {
            return Ok(true);
        }
        match self.delivery_tools.repo.remote_head(&entry.submission.branch) {
            Ok(Some(found)) if found == entry.head => {
                match self.delivery_tools.repo.bring(&entry.submission.branch, &entry.head) {
                    Ok(true) => Ok(true),
                    Ok(false) => {
                        self.wait(entry, format!("{} could not be fetched", entry.head));
                        Ok(false)
                    }
                    Err(error) => Err(StepError::from(error).into()),
                }
            }
            Ok(None) => self.is_pushed(entry),
            Ok(Some(found)) => {
                let (id, branch) = (&entry.task.id, &entry.submission.branch);
                let reason = format!(
                    "somebody pushed to {branch}: it is at {found}, and {} was submitted; to have it worked on again: \
                     hookloop task unblock {id}",
                    entry.head
                );
                self.block(entry, reason)?;
                Ok(false)
            }
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Pushes a branch that the remote does not have, and returns whether that worked.
    fn is_pushed(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        let pushed = self
            .delivery_tools
            .repo
            .push(&entry.submission.branch, &entry.head)
            .map_err(StepError::from);
        match pushed {
            Ok(_) => Ok(true),
            Err(StepError::Retry { why }) => {
                self.wait(entry, why);
                Ok(false)
            }
            Err(trouble) => {
                let reason = format!(
                    "branch {} is not at the remote: {}",
                    entry.submission.branch,
                    trouble.reason()
                );
                self.block(entry, reason)?;
                Ok(false)
            }
        }
    }

    /// Whether the forge's own checks passed. Pending checks have not passed.
    fn is_checked(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        if !self.delivery_tools.rules.wait_for_checks || entry.submission.number.is_none() {
            return Ok(true);
        }
        match self.delivery_tools.forge.checks(entry.head.as_str()) {
            Ok(CommitChecks::Passed) => Ok(true),
            Ok(CommitChecks::None) if self.is_left_to_forge(entry, &[])? => Ok(true),
            Ok(CommitChecks::None) => self.is_without_checks(entry),
            Ok(CommitChecks::Pending { names }) if self.is_left_to_forge(entry, &names)? => {
                Ok(true)
            }
            Ok(CommitChecks::Pending { names }) => {
                let reason = format!("checks are pending: {}", names.join(", "));
                self.record_awaited(entry, &reason, None, false)?;
                self.wait(entry, reason);
                Ok(false)
            }
            Ok(CommitChecks::Failed { names, urls }) => {
                let reason = format!("checks failed: {}\n{}", names.join(", "), urls.join("\n"));
                self.give_back(entry, "checks", reason)?;
                Ok(false)
            }
            Err(error) => Err(StepError::from(error).into()),
        }
    }

    /// Whether the forge's auto-merge waits for all of these checks.
    ///
    /// The forge merges nothing before its required checks passed.
    fn is_left_to_forge(&self, entry: &TrainEntry, pending: &[String]) -> Result<bool, TrainError> {
        let Some(number) = entry.submission.number.filter(|_| self.delivery_tools.rules.auto_merge)
        else {
            return Ok(false);
        };
        let status = self.delivery_tools.forge.merge_status(number).map_err(StepError::from)?;
        let is_required = |name: &String| status.checks.contains(name);
        Ok(!status.checks.is_empty() && pending.iter().all(is_required))
    }

    /// Whether the forge has no checks for this base, as opposed to none that started yet.
    ///
    /// A forge takes a while to start checks. If the base has checks, the request gets some too.
    fn is_without_checks(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        let base = self.delivery_tools.repo.newest_base().map_err(StepError::from)?;
        // The forge is asked once for all tasks that are merged into this base.
        if self.unchecked.as_ref() == Some(&base)
            || matches!(self.delivery_tools.forge.checks(base.as_str()), Ok(CommitChecks::None))
        {
            self.unchecked = Some(base);
            return Ok(true);
        }
        let reason = "no check has begun yet; if there is none for requests: delivery: {wait_for_checks: false}";
        self.wait(entry, reason.to_owned());
        Ok(false)
    }

    /// Whether gatekeepers and other gates on the branch approve it.
    ///
    /// A gate that approved this commit is not asked again.
    fn is_reviewed(&mut self, entry: &TrainEntry) -> Result<bool, TrainError> {
        // A person approved this commit, and reviewers do not overrule a person.
        if entry.delivery.is_approved(entry.head.as_str()) {
            return Ok(true);
        }
        let at = TrainPlace::new(self.runner, None);
        for hook in self.gates(entry).into_iter().filter(is_of_branch) {
            match entry.delivery.review(&hook.name, entry.head.as_str()) {
                Some(review) if review.passed => continue,
                // The same commit gets the same verdict without asking again.
                Some(review) => {
                    let reason = review.reason.clone().unwrap_or_default();
                    self.give_back(entry, &hook.name, reason)?;
                    return Ok(false);
                }
                None => {}
            }
            let runs = self.run(std::slice::from_ref(&hook), &Point::BeforeMerge, entry, &at);
            let Some(run) = runs.into_iter().next() else {
                self.wait(entry, format!("the gate `{}` gave no result", hook.name));
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
                    entry,
                    DeliveryFact::Reviewed(TaskReviewed {
                        gate: hook.name.clone(),
                        head: entry.head.to_string(),
                        passed,
                        reason: (!passed).then(|| reason.clone()),
                    }),
                )?;
            }
            match &run.outcome.verdict {
                HookVerdict::Pass => {}
                HookVerdict::Escalate { reason } => {
                    self.block(entry, reason.clone())?;
                    return Ok(false);
                }
                HookVerdict::Block { .. } if !has_said => {
                    self.wait(entry, reason);
                    return Ok(false);
                }
                HookVerdict::Block { .. } => {
                    self.give_back(entry, &hook.name, reason)?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
