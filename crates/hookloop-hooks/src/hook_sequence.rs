//! Runs the hooks of one hook point in order, or concurrently if they are `parallel`.
//!
//! The keeper gets the next command before the last one ends, so no time passes between two hooks.
//! It waits in these cases:
//!
//! - the last hook may be retried
//! - the next hook needs the result of another hook
//! - the next hook needs a value of a delivery, or a secret that is not read yet
//!
//! Each parallel hook has its own keeper.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use hookloop_config::condition::Condition;
use hookloop_core::builtin::Builtin;
use hookloop_core::command_line::Invocation;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::options::RetryPolicy;
use hookloop_process::{
    Cancel, Job, JobObserver, JobResult, JobSource, OutputFilter, OutputStream, PARALLEL_MAX,
    ProcessError, StoredOutput, StreamOutput, try_lock_file,
};
use serde_json::Value;

use crate::exec_context::redacting;
use crate::gate_report::{GateReport, ReportedRun};
use crate::hook_context::{HookContext, HookStart, merge_context};
use crate::hook_outcome::{self, RawHookOutput};
use crate::hook_run::{HookRun, RunRefusal, describe};
use crate::hook_values;
use crate::runner::HookRunner;
use crate::sandbox::PreparedSandbox;

/// The directory with the locks of resources, beside the states of projects.
const RESOURCES: &str = "_resources";
/// Time between two looks at a resource that another hook uses.
const RESOURCE_LOOK: Duration = Duration::from_millis(100);
/// Largest number of times that the pause between attempts doubles.
const DOUBLINGS_MAX: u32 = 16;

/// Looks after the directory in which hooks run. A hook may change the files on which the next hook runs.
pub trait PlaceGuard {
    /// Prepares the directory for a hook, for concurrent hooks, or for a further attempt. The error is for a person.
    fn prepare(&self) -> Result<(), String>;
    /// Restores the directory after concurrent hooks, and returns how many files they had changed.
    ///
    /// If there are any, the hooks did not run on the same files. `run_guarded` runs those again one by one that passed
    /// in their room.
    fn restore(&self, hooks: &[Hook]) -> Result<usize, String>;
}

/// A directory that hooks may change.
struct Unguarded;

impl PlaceGuard for Unguarded {
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    fn restore(&self, _: &[Hook]) -> Result<usize, String> {
        Ok(0)
    }
}

/// Runs the hooks of a hook point and returns their results in order.
///
/// `ended` gets each result when its hook ends.
pub fn run_all(
    runner: &HookRunner,
    hooks: &[Hook],
    hook_context: &HookContext<'_>,
    ended: &mut dyn FnMut(&HookRun),
) -> Vec<HookRun> {
    let sequence = Sequence { runner, hook_context, guard: &Unguarded };
    let mut runs: Vec<HookRun> = Vec::new();
    while let Some(rest) = hooks.get(runs.len()..).filter(|rest| !rest.is_empty()) {
        let beside = side_by_side(rest);
        let done = if beside > 1 {
            sequence.together(&rest[..beside], &runs, ended)
        } else {
            let alone = (1..rest.len()).find(|start| side_by_side(&rest[*start..]) > 1);
            sequence.in_turn(&rest[..alone.unwrap_or(rest.len())], &runs, ended)
        };
        runs.extend(done);
    }
    runs
}

/// Runs the hooks of a hook point in a directory that `guard` looks after.
///
/// After the first error of `guard` no further hook starts.
pub fn run_guarded(
    runner: &HookRunner,
    hooks: &[Hook],
    hook_context: &HookContext<'_>,
    guard: &dyn PlaceGuard,
    ended: &mut dyn FnMut(&HookRun),
) -> Vec<HookRun> {
    let sequence = Sequence { runner, hook_context, guard };
    let mut runs: Vec<HookRun> = Vec::new();
    while let Some(rest) = hooks.get(runs.len()..).filter(|rest| !rest.is_empty()) {
        if let Err(why) = guard.prepare() {
            runs.extend(sequence.not_started(rest, &why));
            break;
        }
        let group = &rest[..side_by_side(rest).max(1)];
        let done = if group.len() == 1 {
            sequence.in_turn(group, &runs, ended)
        } else {
            let done = sequence.together(group, &runs, ended);
            match guard.restore(group) {
                Ok(0) => done,
                Ok(_) => sequence.one_by_one(group, (&runs, done), ended),
                Err(why) => sequence.not_started(group, &why),
            }
        };
        runs.extend(done);
    }
    runs
}

/// The circumstances of all hooks of one hook point.
#[derive(Clone, Copy)]
struct Sequence<'s> {
    runner: &'s HookRunner,
    hook_context: &'s HookContext<'s>,
    guard: &'s dyn PlaceGuard,
}

impl Sequence<'_> {
    fn not_started(&self, hooks: &[Hook], why: &str) -> Vec<HookRun> {
        let point = self.hook_context.point;
        let reason = format!("not started: {why}");
        let unable = |hook| HookRun::unable(hook, point, HookStatus::NotStarted, reason.clone());
        hooks.iter().map(unable).collect()
    }

    /// Runs hooks again that passed in their room while others changed its files.
    ///
    /// A failed run stands: it may have left files with which the hook would pass.
    fn one_by_one(
        &self,
        hooks: &[Hook],
        (before, done): (&[HookRun], Vec<HookRun>),
        ended: &mut dyn FnMut(&HookRun),
    ) -> Vec<HookRun> {
        let mut runs: Vec<HookRun> = Vec::new();
        for (hook, run) in hooks.iter().zip(done) {
            let is_due = run.in_room && run.outcome.status == HookStatus::Passed;
            let hook = std::slice::from_ref(hook);
            match is_due.then(|| self.guard.prepare()) {
                None => runs.push(run),
                Some(Ok(())) => runs.extend(self.in_turn(hook, before, ended)),
                Some(Err(why)) => runs.extend(self.not_started(hook, &why)),
            }
        }
        runs
    }

    /// Runs hooks concurrently, at most [`PARALLEL_MAX`] at a time.
    ///
    /// A further attempt of one of them runs among the files of the others.
    fn together(
        &self,
        hooks: &[Hook],
        before: &[HookRun],
        ended: &mut dyn FnMut(&HookRun),
    ) -> Vec<HookRun> {
        let (runner, hook_context) = (self.runner, self.hook_context);
        let next = AtomicUsize::new(0);
        let mut done: Vec<(usize, HookRun)> = Vec::with_capacity(hooks.len());
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..hooks.len().min(PARALLEL_MAX) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    let sequence = Sequence { runner, hook_context, guard: &Unguarded };
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(hook) = hooks.get(index) else { return };
                        let hook = std::slice::from_ref(hook);
                        for run in sequence.in_turn(hook, before, &mut |_| {}) {
                            // The receiver outlives this thread.
                            let _ = sender.send((index, run));
                        }
                    }
                });
            }
            drop(sender);
            for (index, run) in receiver {
                ended(&run);
                done.push((index, run));
            }
        });
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, run)| run).collect()
    }

    fn in_turn(
        &self,
        hooks: &[Hook],
        before: &[HookRun],
        ended: &mut dyn FnMut(&HookRun),
    ) -> Vec<HookRun> {
        let Sequence { runner, hook_context, guard } = *self;
        if runner.redactor().is_none() {
            let reason = "the secrets of the environment are too many to look for";
            let unable = |hook| {
                HookRun::unable(hook, hook_context.point, HookStatus::NotStarted, reason.to_owned())
            };
            return hooks.iter().map(unable).collect();
        }
        let filter = |_: OutputStream| redacting(runner);
        let mut turns = InTurn {
            runner,
            hooks,
            hook_context,
            guard,
            before,
            filter: &filter,
            ended,
            runs: Vec::new(),
            under_way: VecDeque::new(),
            again: None,
        };
        runner.keepers().run_sequence(&mut turns);
        turns.runs.into_iter().flatten().collect()
    }
}

/// Returns how many hooks, from the first on, may run concurrently.
///
/// They are all `parallel`, and none needs another.
fn side_by_side(hooks: &[Hook]) -> usize {
    let is_apart = |(index, hook): (usize, &Hook)| {
        let needs = |earlier: &Hook| hook.options.needs.contains(&earlier.name);
        hook.options.parallel && !hooks[..index].iter().any(needs)
    };
    hooks.iter().enumerate().position(|found| !is_apart(found)).unwrap_or(hooks.len())
}

/// Hooks that run one after another.
struct InTurn<'r, 'e> {
    runner: &'r HookRunner,
    hooks: &'r [Hook],
    hook_context: &'r HookContext<'r>,
    guard: &'r dyn PlaceGuard,
    before: &'r [HookRun],
    filter: &'r dyn Fn(OutputStream) -> OutputFilter<'r>,
    /// Gets each run when it ends.
    ended: &'e mut dyn FnMut(&HookRun),
    /// The results of the hooks so far. `None` is a hook that is running.
    runs: Vec<Option<HookRun>>,
    under_way: VecDeque<HookAttempt>,
    /// A failed attempt to retry before anything else, and its result.
    again: Option<(HookAttempt, HookRun)>,
}

/// A run of a hook's command.
struct HookAttempt {
    /// The index of the hook.
    index: usize,
    number: u32,
    begun: CommandRun,
    artifacts: PathBuf,
}

/// The prepared command of a hook, the same for each attempt.
struct CommandRun {
    invocation: Invocation,
    sandbox: PreparedSandbox,
    /// For the environment of the process only.
    secrets: Vec<(OsString, OsString)>,
    report: Option<GateReport>,
    /// The lock of the hook's resource, held until the hook has ended.
    resource: Option<File>,
}

impl<'r> JobSource<'r> for InTurn<'r, '_> {
    fn next(&mut self) -> Option<Job<'r>> {
        if let Some((failed, run)) = self.again.take() {
            let index = failed.index;
            match self.next_attempt(failed) {
                Ok(attempt) => return Some(self.start(attempt)),
                Err(why) => {
                    tracing::warn!(hook = run.hook, why, "a hook is not run again");
                    (self.ended)(&run);
                    self.runs[index] = Some(run);
                }
            }
        }
        loop {
            let index = self.runs.len();
            let hook = self.hooks.get(index)?;
            if !self.under_way.is_empty() && !self.may_follow_at_once(hook) {
                return None;
            }
            match self.begin(hook) {
                Ok(begun) => {
                    self.runs.push(None);
                    let artifacts = self.runner.fresh_artifacts();
                    return Some(self.start(HookAttempt { index, number: 1, begun, artifacts }));
                }
                Err(run) => {
                    (self.ended)(&run);
                    self.runs.push(Some(*run));
                }
            }
        }
    }

    fn done(&mut self, result: Result<JobResult, ProcessError>) {
        let Some(attempt) = self.under_way.pop_front() else { return };
        let (hook, point) = (&self.hooks[attempt.index], self.hook_context.point);
        let run = match result {
            Ok(ran) => {
                let said = RawHookOutput::of(&ran, &attempt.artifacts);
                let directory = self.runner.directory_of(hook);
                let run = hook_outcome::judged(hook, point, said, attempt.number);
                let in_room = self.runner.room_of(hook).is_some();
                let run = HookRun { in_room, ..run }.with_gap(&directory);
                match &attempt.begun.report {
                    Some(report) => {
                        let cwd = hook.options.cwd.as_deref().unwrap_or("");
                        let read = report.read(ReportedRun {
                            cwd: &directory,
                            seen: &self.runner.seen_root(hook).join(cwd),
                            streams: [stored(&ran.output.stdout), stored(&ran.output.stderr)],
                            printed: &run.printed,
                            is_cut: !run.left_out.is_empty(),
                        });
                        run.with_report(hook, point, read)
                    }
                    None => run,
                }
            }
            Err(error) => HookRun::unable(hook, point, HookStatus::NotStarted, error.to_string()),
        };
        let (name, status) = (hook.name.as_str(), run.outcome.status.name());
        tracing::debug!(hook = name, %point, attempt = attempt.number, status, "a hook ended");
        if run.has_failed() && attempt.number < hook.options.retry.attempts {
            tracing::info!(hook = name, status, "a hook is run again");
            self.again = Some((attempt, run));
        } else {
            (self.ended)(&run);
            self.runs[attempt.index] = Some(run);
        }
    }
}

impl<'r> InTurn<'r, '_> {
    /// Whether the keeper may get this hook before the running one ends.
    ///
    /// It may if the hook runs regardless of the other's result.
    fn may_follow_at_once(&self, hook: &Hook) -> bool {
        let is_single =
            |attempt: &HookAttempt| self.hooks[attempt.index].options.retry.attempts <= 1;
        hook.options.needs.is_empty()
            // A running hook may hold the same resource.
            && hook.options.exclusive.is_none()
            && matches!(hook.handler, HookHandler::Command(_))
            // A hook of a delivery gets the values of the hooks before it.
            && self.hook_context.delivery.is_none()
            // Reading a secret blocks this thread, which must read the output of the running hook.
            && self.runner.has_secrets_of(hook)
            && self.under_way.iter().all(is_single)
    }

    /// Prepares a hook's command, or returns the result of a hook that runs no command.
    fn begin(&self, hook: &Hook) -> Result<CommandRun, Box<HookRun>> {
        let (runner, hook_context) = (self.runner, self.hook_context);
        let ran = self.before.iter().chain(self.runs.iter().flatten());
        if let Some(run) = skipped(runner, hook, hook_context, ran) {
            return Err(Box::new(run));
        }
        let begun = match &hook.handler {
            HookHandler::Rule(rule) => Ok(Err(Box::new(runner.check(hook, rule, hook_context)))),
            HookHandler::Http { url } => runner.may_run(hook).map(|_| {
                let _progress = self.shown(hook);
                let context = self.context();
                let send = |number| runner.send(hook, hook_context, url, (number, &context));
                Err(Box::new(attempts(hook, hook_context, send)))
            }),
            HookHandler::Builtin(_) | HookHandler::Gatekeepers { .. } => {
                let run = |_| {
                    // The commands of the project's tests are shown separately.
                    let is_tests = matches!(hook.handler, HookHandler::Builtin(Builtin::RunTests));
                    let _progress = if is_tests { None } else { self.shown(hook) };
                    let run = match hook_context.builtins {
                        Some(builtins) => builtins.run(hook, hook_context),
                        None => {
                            let reason = "nothing runs built-in hooks here".to_owned();
                            HookRun::unable(
                                hook,
                                hook_context.point,
                                HookStatus::NotStarted,
                                reason,
                            )
                        }
                    };
                    Err(Box::new(run))
                };
                runner.may_run(hook).map(run)
            }
            _ => self.command(hook, None).map(Ok),
        };
        begun.unwrap_or_else(|refusal| {
            Err(Box::new(HookRun::refused(hook, hook_context.point, refusal)))
        })
    }

    /// Prepares the attempt after a failed one, after its pause. The error is for a person.
    fn next_attempt(&self, failed: HookAttempt) -> Result<HookAttempt, String> {
        let HookAttempt { index, number, begun, .. } = failed;
        let (hook, number) = (&self.hooks[index], number + 1);
        nap(pause(hook.options.retry, number), self.hook_context);
        // The directory gets the files again on which the first attempt ran. Its temporary files are removed.
        self.guard.prepare()?;
        let begun = self.command(hook, begun.resource).map_err(|refusal| refusal.reason)?;
        let artifacts = self.runner.fresh_artifacts();
        Ok(HookAttempt { index, number, begun, artifacts })
    }

    /// Prepares the command of a hook. `held` is the lock of its resource from an earlier attempt.
    fn command(&self, hook: &Hook, held: Option<File>) -> Result<CommandRun, RunRefusal> {
        let (runner, hook_context) = (self.runner, self.hook_context);
        // Checked first: nothing is created for a hook that may not run.
        runner.may_run(hook)?;
        runner.check_directory(hook)?;
        let reports = runner.room_of(hook).map(|room| room.reports());
        let reports = reports.unwrap_or_else(|| runner.temporary_files());
        let cwd = runner.directory_of(hook);
        let report = GateReport::new(hook, hook_context.point, &reports, &cwd)?;
        let invocation = runner.invocation(hook, hook_context, report.as_ref())?;
        let secrets = runner.secrets_of(hook).map_err(|error| error.to_string())?;
        let resource = match held {
            Some(resource) => Some(resource),
            None => self.lock_resource(hook)?,
        };
        let mut sandbox = runner.sandbox(hook)?;
        if let Some(report) = &report {
            sandbox.allow(report.directory());
        }
        Ok(CommandRun { invocation, sandbox, secrets, report, resource })
    }

    /// Waits until no other hook of this machine uses the resource of a hook, at most as long as the hook may run.
    fn lock_resource(&self, hook: &Hook) -> Result<Option<File>, String> {
        let Some(name) = &hook.options.exclusive else { return Ok(None) };
        let state = self.runner.state();
        let directory = state.parent().unwrap_or(state).join(RESOURCES);
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let path = directory.join(format!("{name}.lock"));
        let timeout = hook.options.timeout_at(self.hook_context.point.kind());
        let end = Instant::now() + Duration::from_millis(timeout);
        loop {
            let locked = try_lock_file(&path);
            if let Some(file) = locked.map_err(|error| format!("{}: {error}", path.display()))? {
                return Ok(Some(file));
            }
            let is_cancelled = self.hook_context.cancel.is_some_and(Cancel::is_triggered);
            if is_cancelled || Instant::now() >= end {
                return Err(format!("another gate uses the resource `{name}`"));
            }
            nap(RESOURCE_LOOK, self.hook_context);
        }
    }

    /// Returns the merged values of the hooks so far, for the next hook of a delivery.
    fn context(&self) -> Value {
        let Some(delivery) = self.hook_context.delivery else { return Value::Null };
        let mut context = delivery.context.clone();
        for run in self.before.iter().chain(self.runs.iter().flatten()) {
            merge_context(&mut context, &run.outcome.values);
        }
        context
    }

    /// Shows a hook without a process on the board until the result is dropped.
    fn shown(&self, hook: &Hook) -> Option<Arc<dyn JobObserver>> {
        let progress = self.progress(hook, 1)?;
        progress.began();
        Some(progress)
    }

    fn progress(&self, hook: &Hook, attempt: u32) -> Option<Arc<dyn JobObserver>> {
        let timeout = hook.options.timeout_at(self.hook_context.point.kind());
        Some(self.hook_context.board?.show(HookStart {
            name: hook.name.clone(),
            command: describe(hook),
            attempt,
            timeout: Duration::from_millis(timeout),
        }))
    }

    fn start(&mut self, mut attempt: HookAttempt) -> Job<'r> {
        if let Some(report) = &mut attempt.begun.report
            && let Err(error) = report.begin()
        {
            // A report of an earlier attempt must not count for this one.
            tracing::warn!(%error, "the directory of a report can't be emptied");
            attempt.begun.report = None;
        }
        let (hook, begun) = (&self.hooks[attempt.index], &attempt.begun);
        let point = self.hook_context.point;
        tracing::debug!(hook = hook.name, %point, attempt = attempt.number, "a hook starts");
        let context = self.context();
        let told = (attempt.number, &context);
        let mut job =
            self.runner.job(hook, self.hook_context, &begun.invocation, &begun.sandbox, told);
        if let Some(report) = &begun.report {
            report.add_variables(&mut job.env);
        }
        // The last of two variables with the same name wins.
        job.env.extend(begun.secrets.iter().cloned());
        let artifacts = Some(attempt.artifacts.clone());
        let observer = self.progress(hook, attempt.number);
        self.under_way.push_back(attempt);
        Job { artifacts, filter: Some(self.filter), observer, ..job }
    }
}

/// Returns the file with all of an output, if there is one.
fn stored(output: &StreamOutput) -> Option<&Path> {
    match &output.stored {
        StoredOutput::Whole(path) => Some(path),
        _ => None,
    }
}

/// Calls `once` until it succeeds or the attempts of the hook are used up.
fn attempts(hook: &Hook, hook_context: &HookContext<'_>, once: impl Fn(u32) -> HookRun) -> HookRun {
    let mut number = 1;
    loop {
        let run = once(number);
        if !run.has_failed() || number >= hook.options.retry.attempts {
            return run;
        }
        number += 1;
        nap(pause(hook.options.retry, number), hook_context);
    }
}

/// Waits for a time, or until the run is cancelled.
pub fn nap(length: Duration, hook_context: &HookContext<'_>) {
    match hook_context.cancel {
        Some(cancel) => drop(cancel.wait(length)),
        None => std::thread::sleep(length),
    }
}

/// Returns the pause before an attempt after the first.
///
/// It doubles with each attempt. With jitter it is a random length between half of that and all.
fn pause(retry: RetryPolicy, number: u32) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let doublings = number.saturating_sub(2).min(DOUBLINGS_MAX);
    let pause = Duration::from_millis(retry.backoff_ms << doublings);
    match retry.jitter {
        true => pause / 2 + pause / 128 * (RandomState::new().hash_one(0) % 64) as u32,
        false => pause,
    }
}

/// Returns the result of a hook that does not run this time. `ran` are the hooks before it.
fn skipped<'h>(
    runner: &HookRunner,
    hook: &Hook,
    hook_context: &HookContext<'_>,
    mut ran: impl Iterator<Item = &'h HookRun>,
) -> Option<HookRun> {
    let is_needed = |run: &&HookRun| hook.options.needs.contains(&run.hook);
    if let Some(need) = ran.find(|run| is_needed(run) && run.outcome.status != HookStatus::Passed) {
        let reason = format!("it needs `{}`, which did not pass", need.hook);
        return Some(HookRun::skipped(hook, reason));
    }
    let when = hook.options.when.as_deref()?;
    let condition = Condition::compile(when, hook_context.point);
    let values = hook_values::for_condition(hook_context, Some(runner.root()));
    match condition.and_then(|condition| condition.holds(&values)) {
        Ok(true) => None,
        Ok(false) => {
            let reason = format!("its condition does not hold: {when}");
            Some(HookRun::skipped(hook, reason))
        }
        Err(error) => {
            let reason = format!("its condition failed: {error}");
            Some(HookRun::undecided(hook, hook_context.point, reason))
        }
    }
}
