//! Taking a task: the most urgent first, and not all the same one.

use std::fmt;
use std::time::Duration;

use hookloop_config::clock::now;
use hookloop_config::effective::Scheduling;
use hookloop_config::ids::fresh_id;
use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::slots::WipLimitReached;
use hookloop_core::task::Task;
use hookloop_core::time::Timestamp;
use hookloop_store::store::WorkUnit;
use hookloop_store::view::{TypeFilter, View};

use crate::command_outcome::Done;
use crate::error::EngineError;
use crate::project::Project;
use crate::sought::Hold;
use crate::spread::LEVEL_MAX;
use crate::work::Work;

/// Among how many tasks of equal urgency a claimant picks: the very first, and with each conflict
/// among more, so that many who claim at once do not want the same one for ever.
const SPREAD: [usize; LEVEL_MAX + 1] = [1, 8, 64, 512];
/// The most urgent of the ready tasks, among which those with a label are looked for.
const LABELLED_MAX: usize = 1_000;
/// Types that one claim may name.
pub const TYPES_MAX: usize = 64;

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub agent: String,
    /// Who does the work, by the name that task types know: an agent may be limited to some of them.
    pub worker: String,
    /// How long it may be silent.
    pub lease: Duration,
    pub wanted: Wanted,
    /// Only tasks with one of these; any if there are none.
    pub labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The first task that is ready, whatever its type, and whether or not it has one.
    Any,
    /// The first task that is ready and has one of these types. A task without a type has none of
    /// them.
    Types(Vec<String>),
    Task(TaskId),
}

/// Why a claim finds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNone {
    /// No task is; `next` is when one will be whose time has not come.
    NothingReady { next: Option<Timestamp> },
    /// As many as may be are in somebody's hands.
    Full(WipLimitReached),
    /// Those that are ready are of types that the agent does not work on, or were taken in this moment.
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

/// Of which types a task may be taken.
enum Takable {
    Nothing,
    Only(Vec<String>),
    Except(Vec<String>),
}

/// A task in the claimant's hands.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The task, as it is after the hooks that followed the claim.
    pub task: Task,
    /// What its holder names to change it.
    pub epoch: u64,
    /// What followed from the claim.
    pub done: Done,
}

impl Project {
    /// Puts a ready task into an agent's hands; none if none may be taken ([`Project::why_none`]). Of those that may
    /// it is one that was left by somebody who fell silent; else one of the most urgent, by priority and by how long
    /// it waits, and the oldest of these; where others claim at the same time, one of the oldest 512 of these.
    pub fn claim(&self, request: &ClaimRequest) -> Result<Option<Claimed>, EngineError> {
        if let Wanted::Types(types) = &request.wanted
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
        // Until the claim is in the view, this process's other claimants leave the task alone.
        let mut held = None;
        let claimed = self.store.transact(|unit| -> Result<_, EngineError> {
            let width = SPREAD[(start + tries).min(LEVEL_MAX)];
            // A further try is another event: it may be about another task.
            let origin = origin.part(tries);
            tries += 1;
            held.take();
            let picked = match &request.wanted {
                Wanted::Task(id) => {
                    self.check_type(unit, id, &request.worker)?;
                    Some((id.clone(), None))
                }
                wanted => match self.takable(&unit.view()?, wanted, &closed)? {
                    Takable::Nothing => None,
                    Takable::Only(types) => {
                        self.pick(unit, &TypeFilter::Only(&types), &request.labels, width)?
                    }
                    Takable::Except(types) => {
                        self.pick(unit, &TypeFilter::Except(&types), &request.labels, width)?
                    }
                },
            };
            let Some((id, hold)) = picked else { return Ok(None) };
            held = hold;
            let command = Command::ClaimTask { id, agent: request.agent.clone(), lease_ms };
            let mut work = Work::new(unit, &self.rules, now())?;
            work.perform(&command, &origin)??;
            work.react()?;
            Ok(Some(work.summary(&command)?.0))
        })?;
        self.spread.learn(start, tries);
        let claimed = claimed.and_then(Claimed::of);
        match &claimed {
            Some(Claimed { task, .. }) => {
                tracing::debug!(agent = %request.agent, task = %task.id, tries, "a task is claimed");
            }
            None => tracing::debug!(agent = %request.agent, tries, "no task is claimed"),
        }
        Ok(claimed)
    }

    /// Of which types a task may be taken by who wants `wanted`, and not those in `closed`.
    fn takable(
        &self,
        view: &View<'_>,
        wanted: &Wanted,
        closed: &[String],
    ) -> Result<Takable, EngineError> {
        let slots = &self.rules.scheduling.slots;
        let mut out = closed.to_vec();
        if !slots.is_none() {
            let held = view.in_hands()?;
            if slots.full(&held).is_some() {
                return Ok(Takable::Nothing);
            }
            out.extend(slots.full_types(&held).into_iter().filter_map(|full| full.kind));
        }
        Ok(match wanted {
            Wanted::Types(types) => {
                let mut types = types.clone();
                types.retain(|kind| !out.contains(kind));
                if types.is_empty() { Takable::Nothing } else { Takable::Only(types) }
            }
            Wanted::Any | Wanted::Task(_) => Takable::Except(out),
        })
    }

    /// Why a claim that found nothing found nothing, as far as that can be told now.
    pub fn why_none(&self, wanted: &Wanted) -> Result<WhyNone, EngineError> {
        let Scheduling { ageing, slots } = &self.rules.scheduling;
        let types: &[String] = match wanted {
            Wanted::Types(types) => types,
            Wanted::Any | Wanted::Task(_) => &[],
        };
        self.read(|view| {
            let ready = match types {
                [] => view.ready(*ageing, 1)?,
                types => view.ready_of(types, *ageing, 1)?,
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

    /// For each type of the tasks that are ready and not for `worker`: who works on it, and what to write if nobody can.
    pub fn closed_in_words(&self, worker: &str) -> Result<Vec<String>, EngineError> {
        let closed = self.rules.types_closed_to(worker);
        let ageing = self.rules.scheduling.ageing;
        let is_ready = |kind: &String| -> Result<bool, EngineError> {
            let kinds = std::slice::from_ref(kind);
            Ok(!self.read(|view| view.ready_of(kinds, ageing, 1))?.is_empty())
        };
        let mut words = Vec::new();
        for kind in closed.iter().take(TYPES_MAX) {
            if is_ready(kind)? {
                words.extend(self.rules.implementers_in_words(kind));
            }
        }
        Ok(words)
    }

    /// The task to try for, among the first `width` that no claimant of this process is after.
    fn pick(
        &self,
        unit: &WorkUnit<'_>,
        kinds: &TypeFilter<'_>,
        labels: &[String],
        width: usize,
    ) -> Result<Option<(TaskId, Option<Hold>)>, EngineError> {
        let view = unit.view()?.at(now());
        let ageing = self.rules.scheduling.ageing;
        let front = match labels {
            [] => self.sought.among(|sought| view.front(kinds, ageing, width, sought))?,
            labels => {
                let is_wanted = |task: &Task| {
                    let is_kind = kinds.include(task.spec.kind.as_ref());
                    is_kind && labels.iter().any(|label| task.spec.has_label(label))
                };
                let ready = view.ready(ageing, LABELLED_MAX)?;
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

    /// Whether the worker may have a task of that type.
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

    /// Takes a claim over that was silent for its lease when it had the epoch `silent_epoch`.
    pub fn take_over(
        &self,
        id: &TaskId,
        silent_epoch: u64,
        agent: &str,
        lease: Duration,
    ) -> Result<Claimed, EngineError> {
        let done = self.carry_out(&Command::TakeOverTask {
            id: id.clone(),
            agent: agent.to_owned(),
            lease_ms: lease_ms(lease),
            silent_epoch,
        })?;
        Claimed::of(done).ok_or_else(|| Refusal::NoSuchTask(id.clone()).into())
    }
}

impl Claimed {
    /// The task is there: nothing that can be in its batch deletes it.
    fn of(done: Done) -> Option<Claimed> {
        let task = done.task.clone()?;
        Some(Claimed { epoch: task.epoch, task, done })
    }
}

fn lease_ms(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}

/// A number that no two claimants share, from what makes ids differ.
fn random_below(len: usize) -> usize {
    let [.., a, b, c, d] = fresh_id().derive("pick", 0).0;
    u32::from_be_bytes([a, b, c, d]) as usize % len
}
