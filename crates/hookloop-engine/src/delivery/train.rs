//! The merge train: merges submitted tasks one after the other, each tested on top of its
//! predecessors.
//!
//! Merges are made and tested in a private repository before the base moves. The base moves only
//! from the commit on which they were made. So the train never breaks the base. After a crash, the
//! base either did not move, or the log already names its new commits.
//!
//! - `clear`: eligibility of a single task: its request, its branch, checks and reviewers
//! - `stack`: tasks on top of each other, and the first of them that fails
//! - `land`: moving the base to the tested commit
//! - `queue`: requests that the forge merges later, by its own queue or by auto-merge

mod clear;
mod land;
mod queue;
mod stack;

use std::cell::RefCell;
use std::collections::BTreeMap;

use hookloop_agents::clipped;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::delivery::{
    Delivery, DeliveryFact, MergeBlocked, QueuePlace, Submission, TaskMerged, TaskReturned,
};
use hookloop_core::event::EventBody;
use hookloop_core::failure_fingerprint::failure_fingerprint;
use hookloop_core::hook::{Hook, HookHandler, HookRegistry};
use hookloop_core::id::{Subject, TaskId};
use hookloop_core::point::Point;
use hookloop_core::session::plan::counted;
use hookloop_core::task::{Task, TaskObstacle, TaskOutcome};
use hookloop_git::repo::CommitId;
use hookloop_git::step_error::StepError;
use hookloop_hooks::exec_context::LockError;
use hookloop_hooks::hook_context::{DeliveryFacts, HookContext, merge_context};
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::hook_sequence;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;
use hookloop_store::view::WaitingSubmission;
use serde_json::Value;

use super::step_outcome::{DeliveryHooks, StepOutcome};
use crate::command_outcome::CommandOutcome;
use crate::delivery_context::{
    DeliveryContext, DeliveryTools, StepsInContext, commit, message, title,
};
use crate::error::EngineError;
use crate::project::Project;
use crate::session::{StartError, start_checks};

/// Submitted tasks that one merge-train run examines at most.
const WAITING_MAX: usize = 256;
/// Rounds of one run at most. Each round merges or returns at least one task.
const ROUNDS_MAX: usize = 1_000;
/// Queue entries that are tested together at most.
const CARS_MAX: usize = 8;
const REASON_MAX: usize = 8_000;
const LOCK: &str = "train.lock";
/// How long a run waits for another run on this machine.
const ALONE_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
const ALONE_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
/// How often other processes may move the base first before the run ends.
const LOST_MAX: usize = 10;
/// Unreachable errors after which a run skips the remaining tasks, because each may take long.
const UNREACHABLE_MAX: usize = 2;

/// The result of a run for one submitted task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeResult {
    Merged {
        commit: String,
    },
    /// The task is ready again, for this reason.
    Returned {
        by: String,
        reason: String,
    },
    /// The task needs a person.
    Blocked {
        reason: String,
    },
    /// The request is in the merge queue of the forge.
    Queued {
        base: String,
        place: QueuePlace,
    },
    /// The task stays submitted, and a later run tries again.
    Waits {
        reason: String,
    },
    /// The task stays submitted until a person has prepared the environment of a gate.
    Held {
        reason: String,
    },
}

impl MergeResult {
    /// Whether the task is still expected to be merged without a person.
    pub fn is_pending(&self) -> bool {
        matches!(self, MergeResult::Queued { .. } | MergeResult::Waits { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainReport {
    pub task: TaskId,
    pub fate: MergeResult,
}

/// The reason why a merge-train run did not take place.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("this project delivers nothing: write `delivery: {{}}` into hookloop.yaml")]
    NoDelivery,
    #[error("another `hookloop merge` runs in this project")]
    Busy,
    #[error("{}", .0.reason())]
    Trouble(StepError),
}

impl From<LockError> for TrainError {
    fn from(error: LockError) -> TrainError {
        TrainError::Start(error.into())
    }
}

impl From<StepError> for TrainError {
    fn from(trouble: StepError) -> TrainError {
        TrainError::Trouble(trouble)
    }
}

/// A merge-train run over the submitted tasks.
pub(crate) struct MergeTrain<'t> {
    project: &'t Project,
    runner: &'t HookRunner,
    hooks: HookRegistry,
    delivery_tools: &'t DeliveryTools<'t>,
    cancel: Option<&'t Cancel>,
    arrivals: Vec<TrainReport>,
    /// How often another process moved the base first.
    lost: usize,
    /// How often a forge or remote could not be reached.
    unreachable: usize,
    /// A commit of the base for which the forge has no checks.
    unchecked: Option<CommitId>,
    /// Whether the forge has a merge queue for the base. None until the forge was asked.
    has_queue: Option<bool>,
}

/// The runner of hooks, and the changed files that it reports to them.
struct TrainPlace<'a> {
    runner: &'a HookRunner,
    changes: Option<&'a [(String, u64)]>,
    /// The values of earlier hooks at the same point, by task.
    context: RefCell<BTreeMap<(TaskId, String), Value>>,
}

impl<'a> TrainPlace<'a> {
    fn new(runner: &'a HookRunner, changes: Option<&'a [(String, u64)]>) -> TrainPlace<'a> {
        TrainPlace { runner, changes, context: RefCell::default() }
    }
}

/// A queue entry: a submitted task with its submission and head.
#[derive(Clone, Debug)]
struct TrainEntry {
    task: Task,
    delivery: Delivery,
    submission: Submission,
    head: CommitId,
}

/// Runs the merge train until no task can be merged, and reports each result through `told`.
pub fn merge(
    project: &Project,
    runner: &HookRunner,
    cancel: &Cancel,
    told: &mut dyn FnMut(&TrainReport),
) -> Result<Vec<TrainReport>, TrainError> {
    let rules = project.rules().delivery.as_ref().ok_or(TrainError::NoDelivery)?;
    let delivery_tools = DeliveryTools::open(runner, rules, cancel)?;
    let mut train = MergeTrain::new(project, runner, &delivery_tools, Some(cancel))?;
    train.ride(told)?;
    Ok(train.arrivals)
}

/// Runs the merge train as the built-in hook `merge`, within a session.
pub(crate) fn run_train(
    runner: &HookRunner,
    delivery_context: DeliveryContext<'_>,
    task: &TaskId,
    cancel: Option<&Cancel>,
) -> Result<StepOutcome, StepError> {
    let train =
        MergeTrain::new(delivery_context.project, runner, delivery_context.delivery_tools, cancel);
    let ridden = train.and_then(|mut train| train.ride(&mut |_| {}).map(|()| train.arrivals));
    let arrivals = ridden.map_err(|error| StepError::Retry { why: error.to_string() })?;
    let said: Vec<String> = arrivals.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    let own = arrivals.iter().find(|arrival| arrival.task == *task);
    Ok(match own.map(|arrival| (&arrival.fate, arrival)) {
        Some((MergeResult::Merged { .. }, _)) => StepOutcome { said, ..StepOutcome::default() },
        Some((MergeResult::Waits { .. } | MergeResult::Held { .. }, _)) => {
            StepOutcome { said, skipped: Some("not merged yet"), ..StepOutcome::default() }
        }
        Some((_, arrival)) => {
            StepOutcome { said, refused: Some(arrival.to_string()), ..StepOutcome::default() }
        }
        None => {
            let said = format!("{task} waits for another merge\n{said}");
            StepOutcome { said, skipped: Some("not merged yet"), ..StepOutcome::default() }
        }
    })
}

impl std::fmt::Display for TrainReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let task = &self.task;
        match &self.fate {
            MergeResult::Merged { commit } => write!(f, "{task} merged as {commit}"),
            MergeResult::Returned { by, reason } => {
                write!(f, "{task} went back: {by}: {}", first_line(reason))
            }
            MergeResult::Blocked { reason } => {
                write!(f, "{task} needs a human: {}", first_line(reason))
            }
            MergeResult::Queued { base, place } => {
                write!(f, "{task} is in the merge queue of {base}: {place}")
            }
            MergeResult::Held { reason } => {
                write!(f, "{task} waits, and needs a human: {}", first_line(reason))
            }
            MergeResult::Waits { reason } => write!(f, "{task} waits: {}", first_line(reason)),
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl<'t> MergeTrain<'t> {
    fn new(
        project: &'t Project,
        runner: &'t HookRunner,
        delivery_tools: &'t DeliveryTools<'t>,
        cancel: Option<&'t Cancel>,
    ) -> Result<MergeTrain<'t>, TrainError> {
        let hooks = project.hooks()?;
        // If a gate may not run, its absence must not count as a verdict on a task.
        start_checks::check_gates(project, runner, &hooks)?;
        Ok(MergeTrain {
            project,
            runner,
            hooks,
            delivery_tools,
            cancel,
            arrivals: Vec::new(),
            lost: 0,
            unreachable: 0,
            unchecked: None,
            has_queue: None,
        })
    }

    /// Runs rounds until a round changes nothing.
    fn ride(&mut self, told: &mut dyn FnMut(&TrainReport)) -> Result<(), TrainError> {
        // One run at a time on this machine. Runs on other machines lose the race for the base and
        // retry.
        let _alone = self.alone()?;
        let mut heard = 0;
        for _ in 0..ROUNDS_MAX {
            let entries = self.muster()?;
            let mut has_moved = false;
            if self.is_one_by_one() {
                for entry in entries {
                    has_moved |= self.round(vec![entry])?;
                }
            } else {
                has_moved = !entries.is_empty() && self.round(entries)?;
            }
            for arrival in &self.arrivals[heard..] {
                told(arrival);
            }
            heard = self.arrivals.len();
            if !has_moved || self.is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until no other run on this machine holds the lock.
    fn alone(&self) -> Result<std::fs::File, TrainError> {
        let until = std::time::Instant::now() + ALONE_WITHIN;
        loop {
            if let Some(alone) = self.runner.try_lock_exclusive(LOCK)? {
                return Ok(alone);
            }
            if self.is_cancelled() || std::time::Instant::now() > until {
                return Err(TrainError::Busy);
            }
            std::thread::sleep(ALONE_PAUSE);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(Cancel::is_triggered)
    }

    /// Returns the tasks that can be merged now, the most urgent first.
    fn muster(&mut self) -> Result<Vec<TrainEntry>, TrainError> {
        let waiting = self.project.read(|view| view.waiting(WAITING_MAX))?;
        let mut entries = Vec::new();
        for waiting in waiting {
            let is_told = |arrival: &TrainReport| arrival.task == waiting.row.task.id;
            let is_away = self.unreachable >= UNREACHABLE_MAX;
            if self.is_cancelled() || entries.len() >= CARS_MAX || is_away {
                break;
            }
            if self.arrivals.iter().any(is_told) {
                continue;
            }
            let Some(entry) = TrainEntry::of(waiting)? else { continue };
            let is_ready = self.pick_up(&entry).and_then(|is_over| match is_over {
                true => Ok(false),
                false => self.is_cleared(&entry),
            });
            // An error of one task does not delay the others.
            match is_ready {
                Ok(true) => entries.push(entry),
                // The task no longer waits for a person.
                Ok(false) => self.hold(&entry, None)?,
                Err(error) => self.pass_over(&entry, error)?,
            }
        }
        Ok(entries)
    }

    /// Lets a task wait after an error that concerns it alone. Other errors end the run.
    fn pass_over(&mut self, entry: &TrainEntry, error: TrainError) -> Result<(), TrainError> {
        match error {
            TrainError::Trouble(trouble) => {
                self.unreachable += usize::from(matches!(trouble, StepError::Retry { .. }));
                if let StepError::NeedsHuman { why } = &trouble {
                    self.hold(entry, Some(why))?;
                }
                self.wait(entry, trouble.reason().to_owned());
            }
            TrainError::Engine(EngineError::Refused(refusal)) => {
                self.wait(entry, refusal.to_string())
            }
            error => return Err(error),
        }
        Ok(())
    }

    /// Returns the hooks at `before_merge`.
    fn gates(&self, entry: &TrainEntry) -> Vec<Hook> {
        let kind = entry.task.spec.kind.as_deref();
        self.hooks.resolve(Point::BeforeMerge.name(), kind).into_iter().cloned().collect()
    }

    /// Returns the hooks that test the merged files.
    ///
    /// These are the hooks at `before_merge` that test files. If there are none, they are the gates
    /// that decide completion in a session.
    fn tests(&self, entry: &TrainEntry) -> Vec<(Point, Hook)> {
        let kind = entry.task.spec.kind.as_deref();
        let at = |point: Point| {
            let hooks = self.hooks.resolve(point.name(), kind).into_iter();
            hooks
                .filter(|hook| !is_of_branch(hook))
                .map(|hook| (point.clone(), hook.clone()))
                .collect::<Vec<_>>()
        };
        let before_merge = at(Point::BeforeMerge);
        match before_merge.is_empty() {
            false => before_merge,
            true => {
                let mut usual = at(Point::Stop);
                usual
                    .extend(at(Point::Validation).into_iter().filter(|(_, hook)| is_command(hook)));
                let is_test = |(_, hook): &(Point, Hook)| is_command(hook) || is_run_tests(hook);
                usual.extend(at(Point::BeforeSubmit).into_iter().filter(is_test));
                usual
            }
        }
    }

    fn run(
        &self,
        hooks: &[Hook],
        point: &Point,
        entry: &TrainEntry,
        at: &TrainPlace<'_>,
    ) -> Vec<HookRun> {
        let delivery_context = DeliveryContext {
            project: self.project,
            delivery_tools: self.delivery_tools,
            worktree: None,
            branch: entry.head.as_str(),
            left: None,
        };
        let builtins = StepsInContext {
            steps: &DeliveryHooks,
            runner: at.runner,
            delivery_context: Some(delivery_context),
        };
        let key = (entry.task.id.clone(), point.name().to_owned());
        let mut facts = DeliveryFacts::of_submission(&entry.submission);
        facts.context = at.context.borrow().get(&key).cloned().unwrap_or_default();
        let hook_context = HookContext {
            task: Some(&entry.task),
            cancel: self.cancel,
            builtins: Some(&builtins),
            changes: at.changes,
            branches: Some((&entry.submission.branch, &entry.submission.base)),
            delivery: Some(&facts),
            ..HookContext::at(point)
        };
        let runs = hook_sequence::run_all(at.runner, hooks, &hook_context, &mut |_| {});
        for run in &runs {
            let mut context = at.context.borrow_mut();
            merge_context(context.entry(key.clone()).or_default(), &run.outcome.values);
        }
        for ran in runs.iter().filter_map(|run| run.ran.as_ref()) {
            // A missing usage record does not stop the merge.
            let body = EventBody::HookRan(ran.clone());
            if let Err(error) = self.project.append(&Subject::Project, body) {
                tracing::warn!(hook = %ran.hook_name, %error, "the run of a hook is not recorded");
            }
        }
        runs
    }

    /// Runs `after_merge`, completes the task, and cleans up its branch and worktree.
    fn finish(&mut self, entry: &TrainEntry, merged: &CommitId) -> Result<(), TrainError> {
        let kind = entry.task.spec.kind.as_deref();
        let hooks = self.hooks.resolve(Point::AfterMerge.name(), kind);
        let hooks: Vec<Hook> = hooks.into_iter().cloned().collect();
        if !hooks.is_empty() {
            // The forge made the merge commit, so it must be fetched first.
            self.delivery_tools.repo.newest_base().map_err(StepError::from)?;
            let scratch =
                self.delivery_tools.repo.scratch(merged, "after").map_err(StepError::from)?;
            let place = self.runner.at(scratch.project.clone());
            self.run(&hooks, &Point::AfterMerge, entry, &TrainPlace::new(&place, None));
        }
        let outcome = TaskOutcome {
            result: Some(format!("merged as {merged}")),
            artifacts: entry.submission.url.iter().cloned().collect(),
            proven: entry.submission.proven || !self.tests(entry).is_empty(),
        };
        let id = entry.task.id.clone();
        let command = Command::CompleteTask { id, outcome, fence: Fence::None };
        self.project.carry_out(&command)?;
        self.project.settle_reactions(&mut CommandOutcome::default())?;
        self.clean_up(entry);
        self.arrive(entry, MergeResult::Merged { commit: merged.to_string() });
        Ok(())
    }

    fn record_merged(&mut self, entry: &TrainEntry, merged: &CommitId) -> Result<(), TrainError> {
        let (head, commit) = (entry.head.to_string(), merged.to_string());
        self.record(entry, DeliveryFact::Merged(TaskMerged { head, commit }))?;
        self.finish(entry, merged)
    }

    fn record(&self, entry: &TrainEntry, fact: DeliveryFact) -> Result<(), TrainError> {
        let command = Command::RecordDelivery { id: entry.task.id.clone(), fact };
        self.project.carry_out(&command)?;
        Ok(())
    }

    /// Returns a task to the queue with the reason for its next attempt.
    ///
    /// Instead, it blocks a task that was returned too often or fails in the same way again.
    fn give_back(
        &mut self,
        entry: &TrainEntry,
        by: &str,
        reason: String,
    ) -> Result<(), TrainError> {
        let reason = clipped(&reason, REASON_MAX);
        let limits = &self.project.rules().limits.session;
        let (returns, turns) = (entry.delivery.returns, entry.delivery.remediations);
        if entry.delivery.last_failure.as_ref() == Some(&failure_fingerprint(by, &reason)) {
            let why = format!("`{by}` fails in the same way after a remediation turn: {reason}");
            return self.block(entry, why);
        }
        if turns >= limits.max_remediations {
            let turns = counted(turns, "remediation turn", "remediation turns");
            return self.block(entry, format!("`{by}` still fails after {turns}: {reason}"));
        }
        if returns >= limits.max_continuations {
            return self.block(entry, format!("it went back {returns} times; now {by}: {reason}"));
        }
        let (head, by) = (entry.head.to_string(), by.to_owned());
        let returned =
            TaskReturned { head, by: by.clone(), reason: reason.clone(), is_by_person: false };
        self.project.carry_out(&Command::ReturnTask { id: entry.task.id.clone(), returned })?;
        self.project.settle_reactions(&mut CommandOutcome::default())?;
        self.arrive(entry, MergeResult::Returned { by, reason });
        Ok(())
    }

    fn block(&mut self, entry: &TrainEntry, reason: String) -> Result<(), TrainError> {
        let reason = clipped(&reason, REASON_MAX);
        let obstacle = TaskObstacle { reason: reason.clone(), required_knowledge: None };
        let id = entry.task.id.clone();
        self.project.carry_out(&Command::BlockTask { id, obstacle, fence: Fence::None })?;
        self.project.settle_reactions(&mut CommandOutcome::default())?;
        self.arrive(entry, MergeResult::Blocked { reason });
        Ok(())
    }

    /// Records that a task waits for a person, or no longer does, if that changed.
    fn hold(&self, entry: &TrainEntry, why: Option<&str>) -> Result<(), TrainError> {
        let reason = why.map(|why| clipped(why, REASON_MAX));
        if entry.delivery.held == reason {
            return Ok(());
        }
        match self.record(
            entry,
            DeliveryFact::Held(MergeBlocked { head: entry.head.to_string(), reason }),
        ) {
            // The task is no longer submitted, so nothing needs recording.
            Err(TrainError::Engine(EngineError::Refused(_))) => Ok(()),
            done => done,
        }
    }

    fn wait(&mut self, entry: &TrainEntry, reason: String) {
        self.arrive(entry, MergeResult::Waits { reason });
    }

    fn arrive(&mut self, entry: &TrainEntry, fate: MergeResult) {
        self.arrivals.push(TrainReport { task: entry.task.id.clone(), fate });
    }
}

impl TrainEntry {
    fn of(waiting: WaitingSubmission) -> Result<Option<TrainEntry>, TrainError> {
        let WaitingSubmission { row, delivery } = waiting;
        let Some(submission) = delivery.submission.clone() else { return Ok(None) };
        let head = commit(&submission.head)?;
        Ok(Some(TrainEntry { task: row.task, delivery, submission, head }))
    }
}

/// Returns the feedback of a gate that did not pass, with its output.
fn reason_of(run: &HookRun) -> String {
    let said = run.blocking_words().join("\n\n");
    // The output of a built-in gate has its details, so a blank line separates it.
    let gap = if run.outcome.next_prompt.is_some() { "\n\n" } else { "\n" };
    let text = format!("{said}{gap}{}", run.printed.trim());
    clipped(text.trim(), REASON_MAX)
}

/// Whether a gate examines the branch, and not the merged files.
fn is_of_branch(hook: &Hook) -> bool {
    matches!(hook.handler, HookHandler::Gatekeepers { .. } | HookHandler::Http { .. })
}

fn is_command(hook: &Hook) -> bool {
    matches!(hook.handler, HookHandler::Command(_))
}

fn is_run_tests(hook: &Hook) -> bool {
    matches!(hook.handler, HookHandler::Builtin(hookloop_core::builtin::Builtin::RunTests))
}
