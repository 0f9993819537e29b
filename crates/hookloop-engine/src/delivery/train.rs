//! The merge train: submitted tasks, merged one after the other, each tested on top of what goes before it.
//!
//! Merges are made and tested in a repository of our own before anything moves, and the base moves only from the
//! commit that they were made on. So the base is never red by our doing, and whoever is killed in the middle leaves
//! either a base that did not move or one whose commits the log has named before.

mod land;
mod stack;

use hookloop_core::answer::{Status, Verdict};
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::delivery::{Delivery, Fact, Merged, Returned, Reviewed, Submission};
use hookloop_core::event::EventBody;
use hookloop_core::hook::{Handler, Hook, Registry};
use hookloop_core::id::{Subject, TaskId};
use hookloop_core::point::Point;
use hookloop_core::task::{Obstacle, Outcome, Task};
use hookloop_store::view::Waiting;

use super::repo::Commit;
use super::steps::Done;
use super::workshop::{Bench, Workshop, commit};
use crate::agents::clipped;
use crate::forge::{Checks, RequestState};
use crate::process::Cancel;
use crate::project::{EngineError, Project};
use crate::run::HookRun;
use crate::runner::{Occasion, Runner};
use crate::session::world::Trouble;
use crate::session::{StartError, open};
use crate::turns;

/// Tasks that are looked at in one ride.
const WAITING_MAX: usize = 256;
/// Trains of one ride: each lands or sends back one task at least.
const ROUNDS_MAX: usize = 1_000;
/// Tasks of one train.
const CARS_MAX: usize = 8;
const REASON_MAX: usize = 8_000;
const LOCK: &str = "train.lock";
/// How long one train waits for another.
const ALONE_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
const ALONE_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
/// How often others may be first to move the base until the ride ends.
const LOST_MAX: usize = 10;
/// What could not be reached so often is not asked for the others: that may take long each time.
const UNREACHABLE_MAX: usize = 2;

/// What became of a task that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Merged {
        commit: String,
    },
    /// It is ready again, for this reason.
    Returned {
        by: String,
        reason: String,
    },
    /// A human is needed.
    Blocked {
        reason: String,
    },
    /// It waits on.
    Waits {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub task: TaskId,
    pub fate: Fate,
}

/// Why there was no train.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("this project delivers nothing: write `delivery: {{}}` into hookloop.yaml")]
    NoDelivery,
    #[error("another `hookloop merge` is under way here")]
    Busy,
    #[error("{}", .0.reason())]
    Trouble(Trouble),
}

impl From<Trouble> for TrainError {
    fn from(trouble: Trouble) -> TrainError {
        TrainError::Trouble(trouble)
    }
}

/// Submitted tasks on their way into the base.
pub(crate) struct Train<'t> {
    project: &'t Project,
    runner: &'t Runner,
    hooks: Registry,
    shop: &'t Workshop<'t>,
    cancel: Option<&'t Cancel>,
    arrivals: Vec<Arrival>,
    /// How often others were first.
    lost: usize,
    /// How often something could not be reached.
    unreachable: usize,
}

/// Where hooks run, and what has changed there.
struct Place<'a> {
    runner: &'a Runner,
    changes: Option<&'a [(String, u64)]>,
}

/// A task that waits, with what is needed to merge it.
#[derive(Clone, Debug)]
struct Car {
    task: Task,
    delivery: Delivery,
    submission: Submission,
    head: Commit,
}

/// Merges what waits, for as long as something can be merged; `told` hears of each task.
pub fn merge(
    project: &Project,
    runner: &Runner,
    cancel: &Cancel,
    told: &mut dyn FnMut(&Arrival),
) -> Result<Vec<Arrival>, TrainError> {
    let rules = project.rules().delivery.as_ref().ok_or(TrainError::NoDelivery)?;
    let shop = Workshop::open(runner, rules, cancel)?;
    let mut train = Train::new(project, runner, &shop, Some(cancel))?;
    train.ride(told)?;
    Ok(train.arrivals)
}

/// The built-in hook `merge`: the same, in the middle of a session.
pub(crate) fn ride(
    runner: &Runner,
    bench: Bench<'_>,
    cancel: Option<&Cancel>,
) -> Result<Done, Trouble> {
    let train = Train::new(bench.project, runner, bench.shop, cancel);
    let ridden = train.and_then(|mut train| train.ride(&mut |_| {}).map(|()| train.arrivals));
    let arrivals = ridden.map_err(|error| Trouble::Retry { why: error.to_string() })?;
    let said: Vec<String> = arrivals.iter().map(ToString::to_string).collect();
    Ok(Done { said: said.join("\n"), values: serde_json::Value::Null })
}

impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let task = &self.task;
        match &self.fate {
            Fate::Merged { commit } => write!(f, "{task} merged as {commit}"),
            Fate::Returned { by, reason } => {
                write!(f, "{task} went back: {by}: {}", first_line(reason))
            }
            Fate::Blocked { reason } => write!(f, "{task} needs a human: {}", first_line(reason)),
            Fate::Waits { reason } => write!(f, "{task} waits: {}", first_line(reason)),
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl<'t> Train<'t> {
    fn new(
        project: &'t Project,
        runner: &'t Runner,
        shop: &'t Workshop<'t>,
        cancel: Option<&'t Cancel>,
    ) -> Result<Train<'t>, TrainError> {
        let hooks = project.hooks()?;
        // A gate that may not run says nothing about anybody's work.
        open::check_trust(runner, &hooks)?;
        Ok(Train {
            project,
            runner,
            hooks,
            shop,
            cancel,
            arrivals: Vec::new(),
            lost: 0,
            unreachable: 0,
        })
    }

    /// Rounds, until nothing moves any more.
    fn ride(&mut self, told: &mut dyn FnMut(&Arrival)) -> Result<(), TrainError> {
        // One at a time on this machine; others lose the race for the base, and look again.
        let _alone = self.alone()?;
        let mut heard = 0;
        for _ in 0..ROUNDS_MAX {
            let cars = self.muster()?;
            let has_moved = !cars.is_empty() && self.round(cars)?;
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

    /// Waits until no other train of this machine is under way.
    fn alone(&self) -> Result<std::fs::File, TrainError> {
        let until = std::time::Instant::now() + ALONE_WITHIN;
        loop {
            if let Some(alone) = self.runner.alone_now(LOCK)? {
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

    /// The tasks that may be merged now, the most urgent first.
    fn muster(&mut self) -> Result<Vec<Car>, TrainError> {
        let waiting = self.project.read(|view| view.waiting(WAITING_MAX))?;
        let mut cars = Vec::new();
        for waiting in waiting {
            let is_told = |arrival: &Arrival| arrival.task == waiting.row.task.id;
            let is_away = self.unreachable >= UNREACHABLE_MAX;
            if self.is_cancelled() || cars.len() >= CARS_MAX || is_away {
                break;
            }
            if self.arrivals.iter().any(is_told) {
                continue;
            }
            let Some(car) = Car::of(waiting)? else { continue };
            let is_ready = self.pick_up(&car).and_then(|is_over| match is_over {
                true => Ok(false),
                false => self.is_cleared(&car),
            });
            // What is wrong with one is no reason for the others to wait.
            match is_ready {
                Ok(true) => cars.push(car),
                Ok(false) => {}
                Err(error) => self.pass_over(&car, error)?,
            }
        }
        Ok(cars)
    }

    /// A task that something is wrong with, or that others did something about, waits; what concerns all ends the ride.
    fn pass_over(&mut self, car: &Car, error: TrainError) -> Result<(), TrainError> {
        match error {
            TrainError::Trouble(trouble) => {
                self.unreachable += usize::from(matches!(trouble, Trouble::Retry { .. }));
                self.wait(car, trouble.reason().to_owned());
            }
            TrainError::Engine(EngineError::Refused(refusal)) => {
                self.wait(car, refusal.to_string())
            }
            error => return Err(error),
        }
        Ok(())
    }

    /// What somebody began and did not come to record. Answers whether the task is done with.
    fn pick_up(&mut self, car: &Car) -> Result<bool, TrainError> {
        if let Some(merged) = &car.delivery.merged {
            self.finish(car, &commit(&merged.commit)?)?;
            return Ok(true);
        }
        if let Some(planned) =
            car.delivery.planned.as_ref().and_then(|planned| planned.commit.as_ref())
        {
            let base = self.shop.repo.newest_base().map_err(Trouble::from)?;
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
                RequestState::Open => Ok(false),
            },
            Err(error) => Err(Trouble::from(error).into()),
        }
    }

    /// Whether everything that is about this task alone says yes to it.
    fn is_cleared(&mut self, car: &Car) -> Result<bool, TrainError> {
        Ok(self.is_as_submitted(car)? && self.is_checked(car)? && self.is_reviewed(car)?)
    }

    /// Whether the branch is what was submitted: somebody may have pushed to it.
    fn is_as_submitted(&mut self, car: &Car) -> Result<bool, TrainError> {
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
                    Err(error) => Err(Trouble::from(error).into()),
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
            Err(error) => Err(Trouble::from(error).into()),
        }
    }

    /// A branch that nobody has pushed, or somebody has deleted, is pushed now.
    fn is_pushed(&mut self, car: &Car) -> Result<bool, TrainError> {
        let pushed = self.shop.repo.push(&car.submission.branch, &car.head).map_err(Trouble::from);
        match pushed {
            Ok(_) => Ok(true),
            Err(Trouble::Retry { why }) => {
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

    /// What the forge's own checks say. What has not passed yet has not passed.
    fn is_checked(&mut self, car: &Car) -> Result<bool, TrainError> {
        if !self.shop.rules.wait_for_checks || car.submission.number.is_none() {
            return Ok(true);
        }
        match self.shop.forge.checks(car.head.as_str()) {
            Ok(Checks::Passed) => Ok(true),
            Ok(Checks::None) => self.is_without_checks(car),
            Ok(Checks::Pending { names }) => {
                self.wait(car, format!("checks are pending: {}", names.join(", ")));
                Ok(false)
            }
            Ok(Checks::Failed { names, urls }) => {
                let reason = format!("checks failed: {}\n{}", names.join(", "), urls.join("\n"));
                self.give_back(car, "checks", reason)?;
                Ok(false)
            }
            Err(error) => Err(Trouble::from(error).into()),
        }
    }

    /// Whether there are no checks, or none yet: a forge takes a while to begin. Where the base has some, this will too.
    fn is_without_checks(&mut self, car: &Car) -> Result<bool, TrainError> {
        let base = self.shop.repo.newest_base().map_err(Trouble::from)?;
        if let Ok(Checks::None) = self.shop.forge.checks(base.as_str()) {
            return Ok(true);
        }
        let reason = "no check has begun yet; if there is none for requests: delivery: {wait_for_checks: false}";
        self.wait(car, reason.to_owned());
        Ok(false)
    }

    /// Gatekeepers and others who look at the branch as it is. Who has said yes to this commit is not asked again.
    fn is_reviewed(&mut self, car: &Car) -> Result<bool, TrainError> {
        for hook in self.gates(car).into_iter().filter(is_of_branch) {
            match car.delivery.review(&hook.name, car.head.as_str()) {
                Some(review) if review.passed => continue,
                // Who asks again about the very same gets the same answer.
                Some(review) => {
                    let reason = review.reason.clone().unwrap_or_default();
                    self.give_back(car, &hook.name, reason)?;
                    return Ok(false);
                }
                None => {}
            }
            let at = Place { runner: self.runner, changes: None };
            let runs = self.run(std::slice::from_ref(&hook), &Point::BeforeMerge, car, &at);
            let Some(run) = runs.into_iter().next() else { continue };
            if self.is_cancelled() {
                return Ok(false);
            }
            let passed = run.outcome.verdict == Verdict::Pass;
            let reason = reason_of(&run);
            let has_said = passed || run.outcome.status == Status::Blocked;
            if has_said {
                self.record(
                    car,
                    Fact::Reviewed(Reviewed {
                        gate: hook.name.clone(),
                        head: car.head.to_string(),
                        passed,
                        reason: (!passed).then(|| reason.clone()),
                    }),
                )?;
            }
            match &run.outcome.verdict {
                Verdict::Pass => {}
                Verdict::Escalate { reason } => {
                    self.block(car, reason.clone())?;
                    return Ok(false);
                }
                Verdict::Block { .. } if !has_said => {
                    self.wait(car, reason);
                    return Ok(false);
                }
                Verdict::Block { .. } => {
                    self.give_back(car, &hook.name, reason)?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The gates before a merge.
    fn gates(&self, car: &Car) -> Vec<Hook> {
        let kind = car.task.spec.kind.as_deref();
        self.hooks.resolve(Point::BeforeMerge.name(), kind).into_iter().cloned().collect()
    }

    /// What is run on the merged files: what before_merge says, and where it says nothing of that sort, what counts as
    /// done in a session.
    fn tests(&self, car: &Car) -> Vec<(Point, Hook)> {
        let kind = car.task.spec.kind.as_deref();
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

    fn run(&self, hooks: &[Hook], point: &Point, car: &Car, at: &Place<'_>) -> Vec<HookRun> {
        let bench = Bench {
            project: self.project,
            shop: self.shop,
            worktree: None,
            branch: car.head.as_str(),
            left: None,
        };
        let occasion = Occasion {
            point,
            event: None,
            task: Some(&car.task),
            session: None,
            cancel: self.cancel,
            bench: Some(bench),
            changes: at.changes,
            branches: Some((&car.submission.branch, &car.submission.base)),
        };
        let runs = turns::run_all(at.runner, hooks, &occasion);
        for ran in runs.iter().filter_map(|run| run.ran.as_ref()) {
            // What is not counted is no reason to stop.
            let _ = self.project.append(&Subject::Project, EventBody::HookRan(ran.clone()));
        }
        runs
    }

    /// Runs after_merge and completes the task. What is left over of it goes.
    fn finish(&mut self, car: &Car, merged: &Commit) -> Result<(), TrainError> {
        let kind = car.task.spec.kind.as_deref();
        let hooks = self.hooks.resolve(Point::AfterMerge.name(), kind);
        let hooks: Vec<Hook> = hooks.into_iter().cloned().collect();
        if !hooks.is_empty() {
            // A forge made it, and has it alone so far.
            self.shop.repo.newest_base().map_err(Trouble::from)?;
            let scratch = self.shop.repo.scratch(merged, "after").map_err(Trouble::from)?;
            let place = self.runner.at(scratch.project.clone());
            let at = Place { runner: &place, changes: None };
            self.run(&hooks, &Point::AfterMerge, car, &at);
        }
        let outcome = Outcome {
            result: Some(format!("merged as {merged}")),
            artifacts: car.submission.url.iter().cloned().collect(),
        };
        let id = car.task.id.clone();
        let command = Command::CompleteTask { id, outcome, fence: Fence::None };
        self.project.execute(&command)?;
        self.project.dispatch()?;
        self.clean_up(car);
        self.arrive(car, Fate::Merged { commit: merged.to_string() });
        Ok(())
    }

    fn record_merged(&mut self, car: &Car, merged: &Commit) -> Result<(), TrainError> {
        let (head, commit) = (car.head.to_string(), merged.to_string());
        self.record(car, Fact::Merged(Merged { head, commit }))?;
        self.finish(car, merged)
    }

    fn record(&self, car: &Car, fact: Fact) -> Result<(), TrainError> {
        let command = Command::RecordDelivery { id: car.task.id.clone(), fact };
        self.project.execute(&command)?;
        Ok(())
    }

    /// Sends a task back to whoever takes it next; one that went back too often is for a human.
    fn give_back(&mut self, car: &Car, by: &str, reason: String) -> Result<(), TrainError> {
        let reason = clipped(&reason, REASON_MAX);
        let returns = car.delivery.returns;
        if returns >= self.project.rules().limits.session.continuations {
            return self.block(car, format!("it went back {returns} times; now {by}: {reason}"));
        }
        let (head, by) = (car.head.to_string(), by.to_owned());
        let returned = Returned { head, by: by.clone(), reason: reason.clone() };
        self.project.execute(&Command::ReturnTask { id: car.task.id.clone(), returned })?;
        self.project.dispatch()?;
        self.arrive(car, Fate::Returned { by, reason });
        Ok(())
    }

    fn block(&mut self, car: &Car, reason: String) -> Result<(), TrainError> {
        let reason = clipped(&reason, REASON_MAX);
        let obstacle = Obstacle { reason: reason.clone(), required_knowledge: None };
        let id = car.task.id.clone();
        self.project.execute(&Command::BlockTask { id, obstacle, fence: Fence::None })?;
        self.project.dispatch()?;
        self.arrive(car, Fate::Blocked { reason });
        Ok(())
    }

    fn wait(&mut self, car: &Car, reason: String) {
        self.arrive(car, Fate::Waits { reason });
    }

    fn arrive(&mut self, car: &Car, fate: Fate) {
        self.arrivals.push(Arrival { task: car.task.id.clone(), fate });
    }
}

impl Car {
    fn of(waiting: Waiting) -> Result<Option<Car>, TrainError> {
        let Waiting { row, delivery } = waiting;
        let Some(submission) = delivery.submission.clone() else { return Ok(None) };
        let head = commit(&submission.head)?;
        Ok(Some(Car { task: row.task, delivery, submission, head }))
    }
}

/// What a gate that said no has to say.
fn reason_of(run: &HookRun) -> String {
    let said = run.outcome.next_prompt.clone();
    let printed = [run.stderr.trim(), run.stdout.trim()].join("\n");
    let why = run.outcome.reason.clone().unwrap_or_default();
    let text = said.unwrap_or_else(|| format!("{why}\n{}", printed.trim()));
    clipped(text.trim(), REASON_MAX)
}

/// Whether a gate looks at the branch, and not at the merged files.
fn is_of_branch(hook: &Hook) -> bool {
    matches!(hook.handler, Handler::Gatekeepers { .. } | Handler::Http { .. })
}

fn is_command(hook: &Hook) -> bool {
    matches!(hook.handler, Handler::Command(_))
}

fn is_run_tests(hook: &Hook) -> bool {
    matches!(hook.handler, Handler::Builtin(hookloop_core::builtin::Builtin::RunTests))
}
