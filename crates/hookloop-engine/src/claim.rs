//! Claims of ready tasks, the most urgent first.
//!
//! A task whose claim expired comes before all others. Within a priority the oldest task is the
//! most urgent, so only the first task of each priority is compared.
//!
//! Claimants of one process avoid each other's choice (`sought`). Claimants of several processes
//! pick among more tasks after each conflict (`spread`). The claim is one event on the task's
//! subject, so the log decides between them.

use std::fmt;
use std::time::Duration;

use hookloop_config::clock::now;
use hookloop_config::effective::SchedulingRules;
use hookloop_config::ids::fresh_id;
use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::slots::WipLimitReached;
use hookloop_core::task::Task;
use hookloop_core::time::Timestamp;
use hookloop_store::store::WorkUnit;
use hookloop_store::view::{TypeFilter, View};

use crate::batch::Batch;
use crate::claim_backoff::LEVEL_MAX;
use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;
use crate::in_flight_claims::ClaimGuard;
use crate::project::Project;

/// Number of equally urgent tasks among which a claimant picks, by contention level.
///
/// It grows with each conflict, so that concurrent claimants do not keep choosing the same task.
const SPREAD: [usize; LEVEL_MAX + 1] = [1, 8, 64, 512];
/// Number of the most urgent ready tasks that are searched for labels.
const LABELLED_MAX: usize = 1_000;
/// Maximum number of types in one claim.
pub const TYPES_MAX: usize = 64;

/// A request for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub agent: String,
    /// The agent's name in the task types. A type may be limited to certain agents.
    pub worker: String,
    /// The time without a heartbeat after which the claim expires.
    pub lease: Duration,
    pub wanted: WantedTask,
    /// Only tasks with one of these labels. An empty list allows any task.
    pub labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedTask {
    /// The first ready task, with or without a type.
    Any,
    /// The first ready task that has one of these types. A task without a type does not match.
    Types(Vec<String>),
    Task(TaskId),
}

/// The reason why a claim found no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNone {
    /// No task is ready. `next` is the time at which the next delayed task becomes ready.
    NothingReady { next: Option<Timestamp> },
    /// The work-in-progress limit is reached.
    Full(WipLimitReached),
    /// The ready tasks have types that the agent does not work on, or were claimed concurrently.
    NotForAgent,
}

impl fmt::Display for WhyNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNone::NothingReady { next: None } => f.write_str("no task is ready"),
            WhyNone::NothingReady { next: Some(next) } => {
                write!(f, "no task is ready; the next one is at {}", next.brief())
            }
            WhyNone::Full(full) => write!(f, "{full}"),
            WhyNone::NotForAgent => f.write_str("no task is ready for this agent"),
        }
    }
}

/// The task types that a claim may pick from.
enum ClaimableTypes {
    Nothing,
    Only(Vec<String>),
    Except(Vec<String>),
}

/// A successful claim.
#[derive(Clone, Debug)]
pub struct ClaimedTask {
    /// The task, after the hooks that reacted to the claim.
    pub task: Task,
    /// The fencing token with which the claimant changes the task.
    pub epoch: u64,
    /// The outcome of the claim command.
    pub done: CommandOutcome,
}

impl Project {
    /// Claims a ready task for an agent. Returns none if no task can be claimed.
    ///
    /// [`Project::why_none`] explains an empty result. The choice, in this order:
    ///
    /// 1. a task whose claim expired
    /// 2. the most urgent task, by priority and waiting time
    /// 3. the oldest among equally urgent tasks
    ///
    /// If other agents claim at the same time, the choice is random among up to 512 of the oldest.
    pub fn claim(&self, request: &ClaimRequest) -> Result<Option<ClaimedTask>, EngineError> {
        if let WantedTask::Types(types) = &request.wanted
            && types.len() > TYPES_MAX
        {
            let len = types.len();
            return Err(Refusal::TooMany { what: "types in a claim", len, max: TYPES_MAX }.into());
        }
        let lease_ms = lease_ms(request.lease);
        let closed = self.rules.types_closed_to(&request.worker);
        let origin = self.origin()?;
        let start = self.spread.level();
        let mut tries = 0;
        // Until the view has the claim, other claimants of this process avoid the task.
        let mut held = None;
        let claimed = self.store.transact(|unit| -> Result<_, EngineError> {
            let width = SPREAD[(start + tries).min(LEVEL_MAX)];
            // Each attempt needs its own event id, because it may choose another task.
            let origin = origin.part(tries);
            tries += 1;
            held.take();
            let picked = match &request.wanted {
                WantedTask::Task(id) => {
                    self.check_type(unit, id, &request.worker)?;
                    Some((id.clone(), None))
                }
                wanted => match self.takable(&unit.view()?, wanted, &closed)? {
                    ClaimableTypes::Nothing => None,
                    ClaimableTypes::Only(types) => {
                        self.pick(unit, &TypeFilter::Only(&types), &request.labels, width)?
                    }
                    ClaimableTypes::Except(types) => {
                        self.pick(unit, &TypeFilter::Except(&types), &request.labels, width)?
                    }
                },
            };
            let Some((id, hold)) = picked else { return Ok(None) };
            held = hold;
            let command = Command::ClaimTask { id, agent: request.agent.clone(), lease_ms };
            let mut work = Batch::new(unit, &self.rules, now())?;
            work.perform(&command, &origin)??;
            work.react()?;
            Ok(Some(work.summary(&command)?.0))
        })?;
        self.spread.learn(start, tries);
        let claimed = claimed.and_then(ClaimedTask::of);
        match &claimed {
            Some(ClaimedTask { task, .. }) => {
                tracing::debug!(agent = %request.agent, task = %task.id, tries, "a task is claimed");
            }
            None => tracing::debug!(agent = %request.agent, tries, "no task is claimed"),
        }
        Ok(claimed)
    }

    /// Returns the task types that a claim of `wanted` may pick from, without those in `closed`.
    fn takable(
        &self,
        view: &View<'_>,
        wanted: &WantedTask,
        closed: &[String],
    ) -> Result<ClaimableTypes, EngineError> {
        let slots = &self.rules.scheduling.slots;
        let mut out = closed.to_vec();
        if !slots.is_none() {
            let held = view.in_hands()?;
            if slots.full(&held).is_some() {
                return Ok(ClaimableTypes::Nothing);
            }
            out.extend(slots.full_types(&held).into_iter().filter_map(|full| full.kind));
        }
        Ok(match wanted {
            WantedTask::Types(types) => {
                let mut types = types.clone();
                types.retain(|kind| !out.contains(kind));
                if types.is_empty() { ClaimableTypes::Nothing } else { ClaimableTypes::Only(types) }
            }
            WantedTask::Any | WantedTask::Task(_) => ClaimableTypes::Except(out),
        })
    }

    /// Returns why a claim found no task, judged by the current view.
    pub fn why_none(&self, wanted: &WantedTask) -> Result<WhyNone, EngineError> {
        let SchedulingRules { priority_aging, slots } = &self.rules.scheduling;
        let types: &[String] = match wanted {
            WantedTask::Types(types) => types,
            WantedTask::Any | WantedTask::Task(_) => &[],
        };
        self.read(|view| {
            let ready = match types {
                [] => view.ready(*priority_aging, 1)?,
                types => view.ready_of(types, *priority_aging, 1)?,
            };
            let held = view.in_hands()?;
            let is_wanted = |full: &WipLimitReached| {
                types.is_empty() || full.kind.as_ref().is_some_and(|kind| types.contains(kind))
            };
            let of_type = || slots.full_types(&held).into_iter().find(is_wanted);
            Ok(match (ready.is_empty(), slots.full(&held).or_else(of_type)) {
                (false, Some(full)) => WhyNone::Full(full),
                (false, None) => WhyNone::NotForAgent,
                (true, _) => WhyNone::NothingReady { next: view.early()?.next },
            })
        })
    }

    /// Describes, for each ready type that is closed to `worker`, the agents that work on the type.
    pub fn closed_in_words(&self, worker: &str) -> Result<Vec<String>, EngineError> {
        let closed = self.rules.types_closed_to(worker);
        let aging = self.rules.scheduling.priority_aging;
        let is_ready = |kind: &String| -> Result<bool, EngineError> {
            let kinds = std::slice::from_ref(kind);
            Ok(!self.read(|view| view.ready_of(kinds, aging, 1))?.is_empty())
        };
        let mut words = Vec::new();
        for kind in closed.iter().take(TYPES_MAX) {
            if is_ready(kind)? {
                words.extend(self.rules.implementers_in_words(kind));
            }
        }
        Ok(words)
    }

    /// Picks a task among the first `width` that no other claimant of this process is trying to
    /// claim.
    fn pick(
        &self,
        unit: &WorkUnit<'_>,
        kinds: &TypeFilter<'_>,
        labels: &[String],
        width: usize,
    ) -> Result<Option<(TaskId, Option<ClaimGuard>)>, EngineError> {
        let view = unit.view()?.at(now());
        let aging = self.rules.scheduling.priority_aging;
        let front = match labels {
            [] => self.sought.among(|sought| view.front(kinds, aging, width, sought))?,
            labels => {
                let is_wanted = |task: &Task| {
                    let is_kind = kinds.include(task.spec.kind.as_ref());
                    is_kind && labels.iter().any(|label| task.spec.has_label(label))
                };
                let ready = view.ready(aging, LABELLED_MAX)?;
                let is_free = |num: &u64| self.sought.among(|sought| !sought.contains(num));
                let found = ready.iter().filter(|row| is_wanted(&row.task)).map(|row| row.num);
                found.filter(is_free).take(width).collect()
            }
        };
        let one = match front.len() {
            0 => return Ok(None),
            1 => front[0],
            len => front[random_below(len)],
        };
        Ok(Some((view.id_of(one)?, Some(self.sought.hold(one)))))
    }

    /// Returns an error if the worker may not work on tasks of this type.
    fn check_type(
        &self,
        unit: &WorkUnit<'_>,
        id: &TaskId,
        worker: &str,
    ) -> Result<(), EngineError> {
        let Some(row) = unit.view()?.task(id)? else { return Ok(()) };
        let Some(kind) = row.task.spec.kind else { return Ok(()) };
        match self.rules.implementers(&kind) {
            Some(agents) if !agents.iter().any(|agent| agent == worker) => {
                let (agent, agents) = (worker.to_owned(), agents.to_vec());
                Err(Refusal::NotItsType { agent, kind, agents }.into())
            }
            _ => Ok(()),
        }
    }

    /// Takes over a claim that missed its heartbeats for its whole lease at `silent_epoch`.
    pub fn take_over(
        &self,
        id: &TaskId,
        silent_epoch: u64,
        agent: &str,
        lease: Duration,
    ) -> Result<ClaimedTask, EngineError> {
        let done = self.carry_out(&Command::TakeOverTask {
            id: id.clone(),
            agent: agent.to_owned(),
            lease_ms: lease_ms(lease),
            silent_epoch,
        })?;
        ClaimedTask::of(done).ok_or_else(|| Refusal::NoSuchTask(id.clone()).into())
    }
}

impl ClaimedTask {
    /// Returns the claimed task. The batch of a claim never deletes the task, so it is present.
    fn of(done: CommandOutcome) -> Option<ClaimedTask> {
        let task = done.task.clone()?;
        Some(ClaimedTask { epoch: task.epoch, task, done })
    }
}

fn lease_ms(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a random number below `len`, derived from a fresh id.
fn random_below(len: usize) -> usize {
    let [.., a, b, c, d] = fresh_id().derive("pick", 0).0;
    u32::from_be_bytes([a, b, c, d]) as usize % len
}
