//! Stacks queue entries on top of each other, and finds the first that fails.

use std::sync::Arc;

use hookloop_core::gates::{self, GateResult, GateRun};
use hookloop_core::hook::Hook;
use hookloop_core::point::Point;
use hookloop_git::repo::{CommitId, MergeHow, MergedOnto, ScratchCheckout};
use hookloop_git::step_error::StepError;
use hookloop_hooks::gate_room::RoomPlace;
use hookloop_hooks::hook_context::needs_changes;
use hookloop_hooks::hook_run::HookRun;
use hookloop_process::Cancel;

use super::{MergeResult, MergeTrain, TrainEntry, TrainError, TrainPlace, reason_of};
use crate::delivery_context::message;
use crate::session::room_entry::SessionRoom;

/// The name under which the train uses a room.
const SESSION: &str = "merge-train";

/// A queue entry, and the commit that merges it on top of its predecessors.
#[derive(Clone, Debug)]
pub(super) struct StackedEntry {
    pub(super) entry: TrainEntry,
    pub(super) commit: CommitId,
}

/// The result of the tests on a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TestVerdict {
    Green,
    Red(RedTest),
}

/// A test that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RedTest {
    hook: String,
    why: String,
    /// The reason why the test could not run, if it could not.
    unable: Option<WhyUnable>,
}

/// The reason why a test could not run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WhyUnable {
    reason: String,
    /// Whether its command was not found or cannot be executed.
    is_of_environment: bool,
}

/// A failed test of a stack: the first `good` entries pass together, the first `bad` do not.
#[derive(Debug)]
struct StackFailure {
    good: usize,
    bad: usize,
    evidence: RedTest,
}

impl MergeTrain<'_> {
    /// Merges the entries that pass together, and returns whether any task changed.
    pub(super) fn round(&mut self, entries: Vec<TrainEntry>) -> Result<bool, TrainError> {
        let before = self.arrivals.len();
        let base = self.delivery_tools.repo.newest_base().map_err(StepError::from)?;
        let stack = self.stack(&base, entries)?;
        if stack.is_empty() || self.is_cancelled() {
            return Ok(self.arrivals.len() > before);
        }
        let good = match self.test_all(&base, &stack)? {
            None => stack.len(),
            Some(broken) => self.bisect(&base, &stack, broken)?,
        };
        if self.is_cancelled() {
            return Ok(false);
        }
        let has_landed = good > 0 && self.land(&base, &stack[..good])?;
        Ok(has_landed || self.arrivals.len() > before)
    }

    /// Stacks entries on top of each other.
    ///
    /// An entry that conflicts with the base goes back to its agent. An entry that conflicts with
    /// its predecessors waits for their result.
    fn stack(
        &mut self,
        base: &CommitId,
        entries: Vec<TrainEntry>,
    ) -> Result<Vec<StackedEntry>, TrainError> {
        let mut stack: Vec<StackedEntry> = Vec::new();
        for entry in entries {
            let tip = stack.last().map_or(base, |below| &below.commit);
            let how = MergeHow {
                method: self.delivery_tools.rules.method,
                message: message(&entry.task),
            };
            let merged = self
                .delivery_tools
                .repo
                .merge_onto(tip, &entry.head, &how)
                .map_err(StepError::from);
            let merged = match merged {
                Ok(merged) => merged,
                Err(trouble) => {
                    self.wait(&entry, trouble.reason().to_owned());
                    continue;
                }
            };
            match merged {
                MergedOnto::Done { commit, .. } => stack.push(StackedEntry { entry, commit }),
                MergedOnto::AlreadyIn if stack.is_empty() => {
                    if let Err(error) = self.record_merged(&entry, base) {
                        self.pass_over(&entry, error)?;
                    }
                }
                MergedOnto::AlreadyIn => {}
                MergedOnto::Conflict { files } if stack.is_empty() => {
                    let excerpts: Vec<String> = files
                        .iter()
                        .map(|file| format!("{}:\n{}", file.path, file.excerpt))
                        .collect();
                    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
                    let reason = format!(
                        "it conflicts with {} in {}\n\n{}",
                        self.delivery_tools.base(),
                        names.join(", "),
                        excerpts.join("\n\n")
                    );
                    self.give_back(&entry, "merge", reason)?;
                }
                MergedOnto::Conflict { .. } => {}
            }
        }
        Ok(stack)
    }

    /// Returns the first failing entry to its agent, and returns the number of good entries before
    /// it.
    fn bisect(
        &mut self,
        base: &CommitId,
        stack: &[StackedEntry],
        broken: StackFailure,
    ) -> Result<usize, TrainError> {
        let StackFailure { mut good, mut bad, mut evidence } = broken;
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.test(base, stack, middle)? {
                TestVerdict::Green => good = middle,
                TestVerdict::Red(red) => (bad, evidence) = (middle, red),
            }
            if self.is_cancelled() {
                return Ok(0);
            }
        }
        let culprit = stack[bad - 1].entry.clone();
        let RedTest { hook, why, unable } = evidence;
        // The first entry stands on the base itself, which may fail without it.
        if good == 0
            && let TestVerdict::Red(red) = self.test_commit(base, &stack[..1], base)?
        {
            let RedTest { hook, why, unable } = red;
            let base_fails =
                format!("{} fails `{hook}` by itself, at {base}", self.delivery_tools.base());
            // A failing base affects every entry.
            for StackedEntry { entry, .. } in stack {
                match &unable {
                    // A gate that cannot run does not prove the base wrong.
                    Some(unable) => {
                        let reason = format!("{}\n{why}", unable.reason);
                        self.hold(entry, Some(&reason))?;
                        self.arrive(entry, MergeResult::Held { reason });
                    }
                    None => {
                        let reason = format!("{}\n{why}", base_fails);
                        self.wait(entry, reason);
                    }
                }
            }
            return Ok(0);
        }
        let onto = match good {
            0 => format!("{} at {base}", self.delivery_tools.base()),
            _ => {
                let before: Vec<String> =
                    stack[..good].iter().map(|coupled| coupled.entry.task.id.to_string()).collect();
                format!("{} with {}", self.delivery_tools.base(), before.join(", "))
            }
        };
        let reason = format!("it fails on top of {onto}\n{why}");
        // The gate's command runs without the task's change. If the change removes it, the agent
        // has to fix that.
        if let Some(unable) = unable.filter(|unable| !unable.is_of_environment) {
            self.block(&culprit, format!("{}: {reason}", unable.reason))?;
        } else {
            self.give_back(&culprit, &hook, reason)?;
        }
        Ok(good)
    }

    /// Tests the whole stack, and returns the first failure.
    ///
    /// If the forge merges the entries one after the other, each is tested on its predecessors,
    /// because each becomes the base for a while.
    fn test_all(
        &self,
        base: &CommitId,
        stack: &[StackedEntry],
    ) -> Result<Option<StackFailure>, TrainError> {
        let from = if MergeTrain::is_by_forge(stack) { 1 } else { stack.len() };
        let mut good = 0;
        for count in from..=stack.len() {
            match self.test(base, stack, count)? {
                TestVerdict::Red(evidence) => {
                    return Ok(Some(StackFailure { good, bad: count, evidence }));
                }
                TestVerdict::Green if self.is_cancelled() => break,
                TestVerdict::Green => good = count,
            }
        }
        Ok(None)
    }

    /// Tests the first `count` entries together.
    fn test(
        &self,
        base: &CommitId,
        stack: &[StackedEntry],
        count: usize,
    ) -> Result<TestVerdict, TrainError> {
        match stack[..count].last() {
            Some(top) => self.test_commit(base, &stack[..count], &top.commit),
            None => Ok(TestVerdict::Green),
        }
    }

    /// Runs the tests of these entries on a commit. A commit that cannot be checked out fails.
    fn test_commit(
        &self,
        base: &CommitId,
        entries: &[StackedEntry],
        commit: &CommitId,
    ) -> Result<TestVerdict, TrainError> {
        match self.run_tests(base, entries, commit) {
            Err(TrainError::Trouble(
                StepError::NeedsHuman { why } | StepError::Block { prompt: why, .. },
            )) => {
                let hook = "checkout".to_owned();
                Ok(TestVerdict::Red(RedTest { hook, why, unable: None }))
            }
            tested => tested,
        }
    }

    /// Runs each distinct test once in a scratch checkout.
    fn run_tests(
        &self,
        base: &CommitId,
        entries: &[StackedEntry],
        commit: &CommitId,
    ) -> Result<TestVerdict, TrainError> {
        let mut tests: Vec<(&TrainEntry, Point, Hook)> = Vec::new();
        for StackedEntry { entry, .. } in entries {
            for (point, hook) in self.tests(entry) {
                let is_same = |(_, at, known): &(&TrainEntry, Point, Hook)| {
                    *at == point && known.is_alike(&hook)
                };
                if !tests.iter().any(is_same) {
                    tests.push((entry, point, hook));
                }
            }
        }
        if tests.is_empty() {
            return Ok(TestVerdict::Green);
        }
        let scratch = self.delivery_tools.repo.scratch(commit, "train").map_err(StepError::from)?;
        self.delivery_tools.repo.copy_along(&scratch).map_err(StepError::from)?;
        let place = self.runner.at(scratch.project.clone());
        let changes = self.changes(base, commit, &tests)?;
        let at = TrainPlace::new(&place, changes.as_deref());
        self.set_up(entries, &at);
        let mut room = SessionRoom::default();
        let room = self.room_of(&scratch, &mut room)?;
        let place = place.in_room(room);
        let at = TrainPlace::new(&place, changes.as_deref());
        let mut runs: Vec<(HookRun, Hook)> = Vec::new();
        for (entry, point, hook) in tests {
            let ran = self.run(std::slice::from_ref(&hook), &point, entry, &at);
            runs.extend(ran.into_iter().map(|run| (run, hook.clone())));
        }
        let gates: Vec<GateRun<'_>> = runs
            .iter()
            .map(|(run, hook)| GateRun {
                name: &run.hook,
                any_of: hook.options.any_of.as_deref(),
                outcome: &run.outcome,
            })
            .collect();
        let judged = gates::verdict(&gates);
        let first = judged.results.iter().position(|result| *result == GateResult::Blocked);
        Ok(match first.and_then(|place| runs.into_iter().nth(place)) {
            Some((run, hook)) => {
                let unable = run.is_misconfigured().then(|| WhyUnable {
                    reason: run.why_unable(&hook.handler),
                    is_of_environment: run.gap.is_some(),
                });
                TestVerdict::Red(RedTest { why: reason_of(&run), hook: run.hook, unable })
            }
            None => TestVerdict::Green,
        })
    }

    /// Returns the box of the gates in a scratch checkout, which is their room.
    fn room_of(
        &self,
        scratch: &ScratchCheckout,
        room: &mut SessionRoom,
    ) -> Result<Option<Arc<RoomPlace>>, TrainError> {
        let retry = |why: String| StepError::Retry { why };
        let cancel = match self.cancel {
            Some(cancel) => cancel.clone(),
            None => Cancel::new().map_err(|error| retry(error.to_string()))?,
        };
        let directories = (scratch.path.as_path(), scratch.project.as_path());
        room.box_checkout(self.runner, directories, (SESSION, &cancel)).map_err(retry)?;
        Ok(room.place.clone())
    }

    /// Runs the hooks that prepare each checkout.
    fn set_up(&self, entries: &[StackedEntry], at: &TrainPlace<'_>) {
        let mut done: Vec<Hook> = Vec::new();
        for point in [Point::SessionStart, Point::Setup] {
            for StackedEntry { entry, .. } in entries {
                let kind = entry.task.spec.kind.as_deref();
                let hooks = self.hooks.resolve(point.name(), kind).into_iter().cloned();
                let hooks: Vec<Hook> =
                    hooks.filter(|hook| !done.iter().any(|known| known.is_alike(hook))).collect();
                self.run(&hooks, &point, entry, at);
                done.extend(hooks);
            }
        }
    }

    /// Returns the changed files and lines between `base` and `commit`, if a test needs them.
    fn changes(
        &self,
        base: &CommitId,
        commit: &CommitId,
        tests: &[(&TrainEntry, Point, Hook)],
    ) -> Result<Option<Vec<(String, u64)>>, TrainError> {
        if !tests.iter().any(|(_, _, hook)| needs_changes(hook)) {
            return Ok(None);
        }
        let diff = self.delivery_tools.repo.diff(base, commit, 0).map_err(StepError::from)?;
        let lines = diff.files.into_iter().map(|file| (file.path, file.added + file.deleted));
        Ok(Some(lines.collect()))
    }
}
