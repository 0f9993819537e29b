//! A worker process: runs one role until its standard input is closed.
//!
//! - [`mixed`]: adds, claims, sends heartbeats, completes, releases, and attempts forbidden
//!   operations
//! - [`dispatcher`]: dispatches deferred work, concurrently with other dispatchers
//! - [`claimant`]: claims with many threads
//! - [`lease`]: holds a task, or watches other holders
//!
//! An error after the product's own timeout counts as a missing response, and the worker continues.

mod claimant;
mod dispatcher;
mod lease;
mod mixed;

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::task::TaskOutcome;
use hookloop_engine::claim::{ClaimRequest, WantedTask};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_store::jetstream;
use hookloop_store::jetstream::NatsOptions;

use crate::history::{History, Op, Outcome};

const OPEN_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Mixed,
    Dispatcher,
    Claimant,
    Holder,
    Observer,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    pub(crate) role: Role,
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) urls: String,
    #[arg(long, value_delimiter = ',')]
    pub(crate) monitors: Vec<String>,
    #[arg(long)]
    pub(crate) project: String,
    /// Directory of the view and the history.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    #[arg(long)]
    pub(crate) seed: u64,
    /// Follows the log on a thread the whole time.
    #[arg(long)]
    pub(crate) live: bool,
    /// Number of claims after which the view is deleted and opened again.
    #[arg(long)]
    pub(crate) reopen_after: Option<u64>,
}

impl Args {
    pub(crate) fn view(&self) -> PathBuf {
        self.dir.join("view.db")
    }

    pub(crate) fn history(&self) -> PathBuf {
        self.dir.join("history.jsonl")
    }

    fn open(&self) -> Result<Project, EngineError> {
        let access = NatsOptions::at(self.urls.clone(), self.monitors.clone());
        let project = self.project.parse().unwrap();
        let opened = jetstream::open(&access, &project, &self.view())?;
        assert_eq!(opened.lost, None, "the log is shorter than this machine's view");
        if self.live {
            opened.store.go_live()?;
        }
        Ok(Project::new(opened.store, EffectiveConfig::default(), &self.name))
    }

    /// Opens the project, retrying until it succeeds.
    fn open_patiently(&self, stop: &Stop) -> Option<Project> {
        while !stop.is_set() {
            if let Ok(project) = self.open() {
                return Some(project);
            }
            std::thread::sleep(OPEN_PAUSE);
        }
        None
    }
}

/// Set when standard input is closed.
#[derive(Clone)]
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn when_input_ends() -> Stop {
        let stop = Stop(Arc::new(AtomicBool::new(false)));
        let flag = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            flag.0.store(true, Ordering::Relaxed);
        });
        stop
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A running worker.
struct Worker {
    args: Args,
    project: Project,
    history: History,
    stop: Stop,
}

pub(crate) fn run(args: &Args) {
    let stop = Stop::when_input_ends();
    let Some(project) = args.open_patiently(&stop) else { return };
    let history = History::create(&args.history());
    let worker = Worker { args: args.clone(), project, history, stop };
    match args.role {
        Role::Mixed => mixed::run(&worker),
        Role::Dispatcher => dispatcher::run(&worker),
        Role::Claimant => claimant::run(worker),
        Role::Holder => lease::hold(&worker),
        Role::Observer => lease::observe(&worker),
    }
}

/// A claim that the worker was granted.
#[derive(Clone, Debug)]
struct Claim {
    task: String,
    epoch: u64,
}

impl Claim {
    fn id(&self) -> TaskId {
        id(&self.task)
    }
}

impl Worker {
    fn claim(
        &self,
        project: &Project,
        agent: String,
        wanted: WantedTask,
        lease: Duration,
    ) -> Outcome {
        let types = match &wanted {
            WantedTask::Types(types) => types.clone(),
            _ => vec![],
        };
        let op = Op::Claim { agent: agent.clone(), types };
        self.history.record(op, || {
            let claimed = project.claim(&ClaimRequest {
                worker: agent.clone(),
                agent,
                lease,
                wanted,
                labels: Vec::new(),
            })?;
            Ok(claimed.map_or(Outcome::Nothing, |claimed| Outcome::Claimed {
                task: claimed.task.id.to_string(),
                epoch: claimed.epoch,
            }))
        })
    }

    /// Completes as the holder of `claim`. `op` records how the worker regards its claim.
    fn complete(&self, claim: &Claim, token: String, op: fn(Claim, String) -> Op) -> Outcome {
        let outcome = TaskOutcome { result: Some(token.clone()), ..TaskOutcome::default() };
        let command =
            Command::CompleteTask { id: claim.id(), outcome, fence: Fence::Epoch(claim.epoch) };
        self.execute(op(claim.clone(), token), &command)
    }

    fn execute(&self, op: Op, command: &Command) -> Outcome {
        self.history.record(op, || self.project.execute(command).map(|_| Outcome::Done))
    }

    fn beat(&self, claim: &Claim) -> Outcome {
        let op = Op::Beat { task: claim.task.clone(), epoch: claim.epoch };
        self.history
            .record(op, || self.project.heartbeat(&claim.id(), claim.epoch).map(|()| Outcome::Done))
    }
}

fn by_holder(claim: Claim, token: String) -> Op {
    Op::Complete { task: claim.task, epoch: claim.epoch, token }
}

fn by_zombie(claim: Claim, token: String) -> Op {
    Op::CompleteStale { task: claim.task, epoch: claim.epoch, token }
}

fn id(task: &str) -> TaskId {
    task.parse().unwrap()
}
