//! Chooses the project of the next claim.
//!
//! It is the project with the fewest claimed tasks for its weight. Between equal projects, the one
//! that was served longer ago is next. So a project with a thousand tasks does not delay one with
//! ten.

use std::thread::Scope;
use std::time::{Duration, Instant};

use hookloop_config::ids::fresh_id;
use hookloop_core::fleet::RateLimitReported;
use hookloop_core::id::SessionId;
use hookloop_core::shared_budget::{ReservationAnswer, Shortage};
use hookloop_core::task::TaskState;
use hookloop_engine::claim::{ClaimRequest, ClaimedTask, WantedTask};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;

use super::task_run::work_place;
use super::{AFTER_ERROR, DecisionQueue, WorkerLoop, WorkerProject, WorkerUpdate};

/// Time for which a project without a claimable task is skipped.
const DRY: Duration = Duration::from_secs(1);

/// The values by which projects are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProjectRank {
    /// Claimed tasks, over all workers.
    held: u64,
    weight: u64,
    /// Number of this worker's last claim from the project.
    served: u64,
}

/// Whether a new session may begin.
enum StartPermission {
    /// Yes, except at the rate-limited providers and forges of this list.
    Begin(Vec<RateLimitReported>),
    /// No, because the agent is rate-limited.
    Wait,
    /// No, because the budget does not cover another turn.
    Spend(Shortage),
}

impl ProjectRank {
    /// Orders projects by their claimed tasks for their weight.
    fn order(&self, other: &ProjectRank) -> std::cmp::Ordering {
        // Compares the shares that both would have with one more task.
        let (own, its) = ((self.held + 1) * other.weight, (other.held + 1) * self.weight);
        own.cmp(&its).then(self.served.cmp(&other.served))
    }
}

impl<'w> WorkerLoop<'w> {
    /// Claims tasks until all slots are in use. Returns whether no task was left to claim.
    pub(super) fn fill<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        queue: &mut DecisionQueue,
    ) -> bool {
        let slots = self.worker.plan.slots as usize;
        while queue.task_runs.len() < slots {
            let slowed = match self.may_begin() {
                Ok(StartPermission::Begin(slowed)) => {
                    queue.is_broke = false;
                    slowed
                }
                // Work may be left when the rate limit ends.
                Ok(StartPermission::Wait) => return false,
                Ok(StartPermission::Spend(shortage)) => {
                    if !std::mem::replace(&mut queue.is_broke, true) {
                        let why = format!("the fleet's budget: {shortage}");
                        self.tell(&WorkerUpdate::Error { project: None, why });
                    }
                    return true;
                }
                Err(error) => {
                    self.tell(&WorkerUpdate::Error { project: None, why: error.to_string() });
                    return false;
                }
            };
            if !self.take_one(scope, queue, &slowed) {
                // A project that is skipped for a moment may have a ready task. Pending reactions
                // may add one.
                let has_pending =
                    |place: &WorkerProject| place.project().has_pending().unwrap_or(true);
                return queue.rests.iter().all(Option::is_none)
                    && !self
                        .worker
                        .served_projects
                        .iter()
                        .any(|place| place.is_refreshing() || has_pending(place));
            }
        }
        false
    }

    /// Checks the fleet's budget and the rate limit of the agent.
    fn may_begin(&self) -> Result<StartPermission, EngineError> {
        let fleet = &self.worker.fleet;
        if let ReservationAnswer::Exhausted(shortage) = fleet.may_begin()? {
            return Ok(StartPermission::Spend(shortage));
        }
        let slowed = fleet.slowed()?;
        let agent = format!("agent:{}", self.worker.plan.agent);
        Ok(match slowed.iter().any(|slowed| slowed.source == agent) {
            true => StartPermission::Wait,
            false => StartPermission::Begin(slowed),
        })
    }

    /// Claims a task of the next project. Returns whether one was claimed.
    fn take_one<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        queue: &mut DecisionQueue,
        slowed: &[RateLimitReported],
    ) -> bool {
        for place in self.in_order(queue, slowed) {
            let served = &self.worker.served_projects[place];
            let Some(project) = self.look(place) else { continue };
            let Some(work_place) = work_place(&project) else { continue };
            if !served.enter() {
                continue;
            }
            let session = SessionId::generate(fresh_id());
            match self.claim(&project, &session) {
                Ok(Some(claimed)) => {
                    queue.count += 1;
                    queue.served[place] = queue.count;
                    self.begin(scope, queue, (place, project, work_place), claimed, session);
                    return true;
                }
                Ok(None) => {
                    served.exit();
                    queue.dry[place] = Some(Instant::now());
                }
                Err(error) => {
                    served.exit();
                    queue.rests[place] = Some(Instant::now() + AFTER_ERROR);
                    self.trouble(place, &error);
                }
            }
        }
        false
    }

    fn claim(
        &self,
        project: &Project,
        session: &SessionId,
    ) -> Result<Option<ClaimedTask>, EngineError> {
        let plan = &self.worker.plan;
        let wanted = match plan.types.is_empty() {
            true => WantedTask::Any,
            false => WantedTask::Types(plan.types.clone()),
        };
        project.claim(&ClaimRequest {
            agent: session.actor(),
            worker: plan.agent.clone(),
            lease: plan.lease,
            wanted,
            labels: plan.labels.clone(),
        })
    }

    /// Returns the projects with ready tasks, in the order in which the worker tries them.
    fn in_order(&self, queue: &DecisionQueue, slowed: &[RateLimitReported]) -> Vec<usize> {
        let plan = &self.worker.plan;
        let mut ranked: Vec<(usize, ProjectRank)> = Vec::new();
        for (place, served) in self.worker.served_projects.iter().enumerate() {
            let forge = format!("forge:{}", served.name());
            let is_dry = queue.dry[place].is_some_and(|since| since.elapsed() < DRY);
            let is_left_alone = queue.rests[place].is_some()
                || is_dry
                || queue.orders.of(plan.name.as_str(), served.name()).is_some()
                || slowed.iter().any(|slowed| slowed.source == forge);
            if is_left_alone {
                continue;
            }
            match self.rank(queue, place) {
                Ok(Some(rank)) => ranked.push((place, rank)),
                Ok(None) => {}
                Err(error) => self.trouble(place, &error),
            }
        }
        ranked.sort_by(|(_, a), (_, b)| a.order(b));
        ranked.into_iter().map(|(place, _)| place).collect()
    }

    /// Returns the rank of a project, or `None` if no task of it can begin.
    fn rank(
        &self,
        queue: &DecisionQueue,
        place: usize,
    ) -> Result<Option<ProjectRank>, EngineError> {
        let served = &self.worker.served_projects[place];
        let project = served.project();
        let (ready, held) = project.read(|view| {
            let ready = view.totals()?.count(TaskState::Ready);
            Ok((ready.saturating_sub(view.early()?.count), view.count_claimed()?))
        })?;
        if ready == 0 || matches!(project.may_begin()?, ReservationAnswer::Exhausted(_)) {
            return Ok(None);
        }
        Ok(Some(ProjectRank { held, weight: served.weight(), served: queue.served[place] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_with_the_fewest_claimed_tasks_for_its_weight_is_next() {
        let rank = |held, weight, served| ProjectRank { held, weight, served };
        let check = |a: ProjectRank, b: ProjectRank, is_first: bool| {
            let is_before = |a: &ProjectRank, b: &ProjectRank| a.order(b).is_lt();
            assert_eq!(
                (is_before(&a, &b), is_before(&b, &a)),
                (is_first, !is_first),
                "{a:?} {b:?}"
            );
        };
        check(rank(0, 1, 9), rank(3, 1, 0), true);
        check(rank(2, 1, 1), rank(2, 1, 2), true);
        check(rank(2, 2, 5), rank(2, 1, 0), true);
        check(rank(3, 2, 0), rank(1, 1, 1), true);
        check(rank(4, 2, 0), rank(1, 1, 9), false);
    }
}
