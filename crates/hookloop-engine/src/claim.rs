//! Taking a task: the most urgent first, and not all the same one.

use std::time::Duration;

use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::refusal::Refusal;
use hookloop_core::task::Task;
use hookloop_store::store::Unit;
use hookloop_store::view::Kinds;

use crate::project::{Done, EngineError, Project, fresh_id, now};
use crate::sought::Hold;
use crate::spread::LEVEL_MAX;
use crate::work::{Origin, Work};

/// Among how many tasks of equal urgency a claimant picks: the very first, and with each conflict
/// among more, so that many who claim at once do not want the same one for ever.
const SPREAD: [usize; LEVEL_MAX + 1] = [1, 8, 64, 512];
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
    /// Puts a ready task into an agent's hands; none if none is ready. Of those that are, it is one of
    /// the highest priority and the oldest of these; where others claim at the same time, one of the
    /// oldest 512 of these.
    pub fn claim(&self, request: &ClaimRequest) -> Result<Option<Claimed>, EngineError> {
        if let Wanted::Types(types) = &request.wanted
            && types.len() > TYPES_MAX
        {
            let len = types.len();
            return Err(Refusal::TooMany { what: "types in a claim", len, max: TYPES_MAX }.into());
        }
        let lease_ms = lease_ms(request.lease);
        let closed = self.rules.types_closed_to(&request.worker);
        let origin = Origin::command(fresh_id(), &self.actor);
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
                Wanted::Types(types) => {
                    let mut types = types.clone();
                    types.retain(|kind| !closed.contains(kind));
                    match types.is_empty() {
                        true => None,
                        false => self.pick(unit, &Kinds::Only(&types), width)?,
                    }
                }
                Wanted::Any => self.pick(unit, &Kinds::Except(&closed), width)?,
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
        Ok(claimed.and_then(Claimed::of))
    }

    /// The task to try for, among the first `width` that no claimant of this process is after.
    fn pick(
        &self,
        unit: &Unit<'_>,
        kinds: &Kinds<'_>,
        width: usize,
    ) -> Result<Option<(TaskId, Option<Hold>)>, EngineError> {
        let view = unit.view()?;
        let front = self.sought.among(|sought| view.front(kinds, width, sought))?;
        let one = match front.len() {
            0 => return Ok(None),
            1 => front[0],
            len => front[random_below(len)],
        };
        Ok(Some((view.id_of(one)?, Some(self.sought.hold(one)))))
    }

    /// Whether the worker may have a task of that type.
    fn check_type(&self, unit: &Unit<'_>, id: &TaskId, worker: &str) -> Result<(), EngineError> {
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
        let done = self.execute(&Command::TakeOverTask {
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
