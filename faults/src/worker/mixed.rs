//! Adds, claims, sends heartbeats, completes, releases, sweeps, appends, and attempts forbidden
//! operations.

use std::time::Duration;

use hookloop_core::claim::{Fence, ReleaseReason};
use hookloop_core::command::Command;
use hookloop_core::event::{Event, EventBody, OtherEvent};
use hookloop_core::id::{EventId, RunId, Subject};
use hookloop_core::task::{Priority, TaskSpec};
use hookloop_core::time::Timestamp;
use hookloop_engine::claim::WantedTask;
use hookloop_engine::lease::SilenceDetector;
use hookloop_store::log::{AppendError, NewEvent, Seq};
use hookloop_testkit::SeededRandom;

use super::{Claim, Worker, by_holder, by_zombie, id};
use crate::history::{Op, Outcome, now_ms};

/// Short, so that faults end claims of living holders too.
const LEASE: Duration = Duration::from_secs(3);
/// Number of claims that one worker holds at once, and of past claims that it remembers.
const HELD_MAX: usize = 4;
const REMEMBERED: usize = 32;
const DEPENDENCIES_MAX: usize = 3;

struct Mixed<'w> {
    worker: &'w Worker,
    dice: SeededRandom,
    count: u64,
    /// Tasks on which later ones may depend.
    added: Vec<String>,
    held: Vec<Claim>,
    /// Claims that this worker has ended itself.
    ended: Vec<Claim>,
    /// Claims that it holds without sending heartbeats; other workers may have ended them.
    abandoned: Vec<Claim>,
    watch: SilenceDetector,
    version: Seq,
    /// An event that was sent and not acknowledged.
    unanswered: Option<NewEvent>,
}

pub(super) fn run(worker: &Worker) {
    let dice = SeededRandom::named(worker.args.seed, &worker.args.name);
    let mut mixed = Mixed {
        worker,
        dice,
        count: 0,
        added: vec![],
        held: vec![],
        ended: vec![],
        abandoned: vec![],
        watch: SilenceDetector::default(),
        version: 0,
        unanswered: None,
    };
    while !worker.stop.is_set() {
        mixed.step();
        std::thread::sleep(Duration::from_millis(mixed.dice.within(1..15)));
    }
}

impl Mixed<'_> {
    fn step(&mut self) {
        self.count += 1;
        match self.dice.below(100) {
            0..22 => self.add(),
            22..47 => self.claim(),
            47..52 => self.beat(),
            52..74 => self.complete(),
            74..79 => self.release(),
            79..82 => self.abandon(),
            82..87 => self.complete_stale(),
            87..89 => self.complete_abandoned(),
            89..98 => self.append(),
            _ => self.sweep(),
        }
    }

    /// Returns a key that no other operation of any worker has.
    fn token(&self) -> String {
        format!("{}-{}", self.worker.args.name, self.count)
    }

    fn add(&mut self) {
        let task = self.token();
        let labels = if self.dice.below(2) == 0 { vec!["agent".to_owned()] } else { vec![] };
        let priority = Priority::try_from(self.dice.below(4) as u8).unwrap();
        let spec = TaskSpec { goal: task.clone(), labels, priority, ..TaskSpec::default() };
        let count = self.dice.below(DEPENDENCIES_MAX + 1).min(self.added.len());
        let depends_on = self.added.iter().rev().take(count).map(|task| id(task)).collect();
        let command = Command::AddTask { id: id(&task), spec, depends_on };
        // A task whose response is missing may not exist; a task that depends on it is then
        // refused.
        self.worker.execute(Op::Add { task: task.clone() }, &command);
        remember(&mut self.added, task);
    }

    fn claim(&mut self) {
        if self.held.len() >= HELD_MAX {
            return self.complete();
        }
        let project = &self.worker.project;
        let claimed = self.worker.claim(project, self.token(), WantedTask::Any, LEASE);
        if let Outcome::Claimed { task, epoch } = claimed {
            self.held.push(Claim { task, epoch });
        }
    }

    fn beat(&mut self) {
        if let Some(claim) = self.held.last() {
            self.worker.beat(claim);
        }
    }

    fn complete(&mut self) {
        if let Some(claim) = self.dice.take(&mut self.held) {
            self.worker.complete(&claim, self.token(), by_holder);
        }
    }

    fn release(&mut self) {
        let Some(claim) = self.dice.take(&mut self.held) else { return };
        let token = self.token();
        let command = Command::ReleaseTask {
            id: claim.id(),
            fence: Fence::Epoch(claim.epoch),
            reason: ReleaseReason::Released,
            note: Some(token.clone()),
        };
        let op = Op::Release { task: claim.task.clone(), epoch: claim.epoch, token };
        match self.worker.execute(op, &command) {
            Outcome::Done => remember(&mut self.ended, claim),
            _ => remember(&mut self.abandoned, claim),
        }
    }

    fn abandon(&mut self) {
        if let Some(claim) = self.dice.take(&mut self.held) {
            remember(&mut self.abandoned, claim);
        }
    }

    fn complete_stale(&mut self) {
        let Some(claim) = self.ended.get(self.dice.below(REMEMBERED)) else { return };
        self.worker.complete(claim, self.token(), by_zombie);
    }

    fn complete_abandoned(&mut self) {
        if let Some(claim) = self.dice.take(&mut self.abandoned) {
            self.worker.complete(&claim, self.token(), by_holder);
        }
    }

    fn append(&mut self) {
        let new = self.unanswered.take().unwrap_or_else(|| NewEvent {
            expected: self.version,
            event: Event {
                id: EventId(*uuid::Uuid::now_v7().as_bytes()),
                at: Timestamp(now_ms() as i64),
                subject: self.subject(),
                actor: self.worker.args.name.clone(),
                cause: None,
                due: false,
                body: EventBody::Other(OtherEvent {
                    kind: "note".to_owned(),
                    data: serde_json::json!({ "token": self.token() }),
                }),
            },
        });
        let log = self.worker.project.log();
        let mut answer = None;
        let op = Op::Append { event: new.event.id.to_string() };
        self.worker.history.record(op, || {
            match answer.insert(log.append(std::slice::from_ref(&new))) {
                Ok(_) => Ok(Outcome::Done),
                Err(conflict @ AppendError::Conflict { .. }) => {
                    Ok(Outcome::Refused { why: conflict.to_string() })
                }
                Err(error) => Ok(Outcome::Unknown { why: error.to_string() }),
            }
        });
        match answer {
            Some(Ok(appended)) => self.version = appended.first(),
            Some(Err(AppendError::Conflict { actual, .. })) => self.version = actual,
            _ => self.unanswered = Some(new),
        }
    }

    /// Returns a subject that no other worker writes to.
    fn subject(&self) -> Subject {
        Subject::Workflow(RunId(self.worker.args.name.clone()))
    }

    fn sweep(&mut self) {
        let watch = &mut self.watch;
        self.worker.history.record(Op::Sweep, || {
            let ended = self.worker.project.expire_silent(watch)?;
            let ended = ended.into_iter().map(|one| (one.id.to_string(), one.claim.epoch));
            Ok(Outcome::Swept { ended: ended.collect() })
        });
    }
}

/// Keeps the last few.
fn remember<T>(all: &mut Vec<T>, one: T) {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(one);
}
