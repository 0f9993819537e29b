//! A session's part of the fleet's log.
//!
//! A turn's usage is reserved here before the project's log begins the turn. The session's cost events follow here
//! in the order of the project's log. So the fleet's log equals the projects' logs, or lags behind by an amount
//! that is still reserved. After a crash, any process can add the missing part from the project's log.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::event::{BudgetReserved, Event, EventBody};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::{SessionPlan, SessionWork, TurnEnded};
use hookloop_core::shared_budget::{Amount, ReservationAnswer, SharedBudget};
use hookloop_engine::batch::{Batch, EventOrigin};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::{FleetBudget, Project};
use hookloop_store::log::{AppendError, MAX_BATCH, NewEvent, StoredEvent};
use hookloop_store::store::StoreError;

use super::Fleet;

/// Attempts to append when other processes write for the same session, or a copy lags behind.
const TRIES_MAX: usize = 100;
const LAG: std::time::Duration = std::time::Duration::from_millis(20);

/// The fleet ledger, for the sessions of one project.
#[derive(Clone, Debug)]
pub(crate) struct FleetLedger {
    fleet: Fleet,
    /// The fleet's name of the project.
    project: String,
}

impl FleetLedger {
    pub(crate) fn new(fleet: Fleet, project: &str) -> FleetLedger {
        FleetLedger { fleet, project: project.to_owned() }
    }
}

impl FleetBudget for FleetLedger {
    fn budget(&self) -> Result<SharedBudget, EngineError> {
        self.fleet.budget()
    }

    /// Reserves `amount` for a session's turn, in addition to the project's own reservation.
    ///
    /// Returns `None` if another process has ended the session.
    fn reserve(
        &self,
        project: &Project,
        session: &SessionId,
        amount: Amount,
    ) -> Result<Option<ReservationAnswer>, EngineError> {
        // Without a budget there are no reservations, and the usage of other sessions does not
        // matter.
        if self.fleet.budget()?.is_none() {
            return Ok(Some(ReservationAnswer::Granted));
        }
        let log = self.fleet.ledger()?;
        // The reservation of the last turn must be settled before the next turn reserves.
        self.follow(project, session)?;
        let id = fresh_id();
        log.store().transact(|unit| {
            let mut work = Batch::new(unit, log.rules(), now())?;
            let view = work.unit.view()?;
            if view.session(session)?.is_none_or(|row| row.is_over()) {
                return Ok(None);
            }
            let budget = view.budget()?;
            let held = view.reservations()?;
            let held = held.iter().find(|held| held.session == *session);
            // A process that died may have reserved already and stopped here.
            let missing = amount.minus(held.map_or(Amount::default(), |held| held.amount));
            if budget.is_none() || missing.is_nothing() {
                return Ok(Some(ReservationAnswer::Granted));
            }
            let answer = budget.reserve(&view.budget_standing(now().into())?, missing);
            if answer == ReservationAnswer::Granted {
                let reserved = BudgetReserved { session: session.clone(), amount: missing };
                let origin = EventOrigin::command(id, log.actor());
                work.stage_quietly(origin, Subject::Budget, EventBody::BudgetReserved(reserved))?;
            }
            Ok(Some(answer))
        })
    }

    /// Settles every session of the project that has a reservation, on any worker.
    fn settle_all(&self, project: &Project) -> Result<(), EngineError> {
        if self.fleet.budget()?.is_none() {
            return Ok(());
        }
        let log = self.fleet.ledger()?;
        let start = format!("{}:", self.project);
        let of_project = log.read(|view| {
            let mut found = Vec::new();
            for held in view.reservations()? {
                let row = view.session(&held.session)?;
                if row.is_some_and(|row| row.name.starts_with(&start)) {
                    found.push(held.session);
                }
            }
            Ok(found)
        })?;
        of_project.iter().try_for_each(|session| self.follow(project, session))
    }

    /// Copies the missing events of a session from the project's log to the fleet's log.
    fn follow(&self, project: &Project, session: &SessionId) -> Result<(), EngineError> {
        let (log, subject) = (&self.fleet.log, Subject::Session(session.clone()));
        for _ in 0..TRIES_MAX {
            let said = project.log().history(&subject, usize::MAX)?;
            let all = self.of_fleet(&said);
            // Reads only this session's events. The view would have to apply those of all others
            // first.
            let known = log.log().history(&subject, usize::MAX)?;
            let Some(missing) = all.get(known.len()..).filter(|missing| !missing.is_empty()) else {
                return Ok(());
            };
            let expected = known.last().map_or(0, |last| last.seq);
            let event = |body: &EventBody| Event {
                id: fresh_id(),
                at: now(),
                subject: subject.clone(),
                actor: log.actor().to_owned(),
                cause: None,
                due: false,
                body: body.clone(),
            };
            let new = |body| NewEvent { expected, event: event(body) };
            let batch: Vec<NewEvent> = missing.iter().take(MAX_BATCH).map(new).collect();
            match log.log().append(&batch) {
                Ok(_) if batch.len() == missing.len() => return Ok(()),
                Ok(_) => {}
                // Another process wrote for the same session, or the copy that answered lags
                // behind.
                Err(AppendError::Conflict { .. }) => std::thread::sleep(LAG),
                Err(error) => return Err(StoreError::from(error).into()),
            }
        }
        Err(EngineError::Store(StoreError::Contended))
    }
}

impl FleetLedger {
    /// Returns the events of a session that the fleet's log also holds.
    fn of_fleet(&self, events: &[StoredEvent]) -> Vec<EventBody> {
        let mut has_turn = false;
        let mut told = Vec::new();
        for stored in events {
            match &stored.event.body {
                EventBody::SessionStarted(plan) => {
                    told.push(EventBody::SessionStarted(self.abridged(plan)));
                }
                EventBody::SessionTaskClaimed(_) => told.push(stored.event.body.clone()),
                EventBody::IterationStarted(_) | EventBody::TurnStarted(_) => has_turn = true,
                EventBody::TurnEnded(ended) => {
                    has_turn = false;
                    told.push(EventBody::TurnEnded(counted(ended)));
                }
                // The reservation of a turn that never began is kept for the next one.
                EventBody::SessionResumed(_) if has_turn => {
                    has_turn = false;
                    told.push(stored.event.body.clone());
                }
                EventBody::SessionEnded(_) => told.push(stored.event.body.clone()),
                _ => {}
            }
        }
        told
    }

    fn abridged(&self, plan: &SessionPlan) -> SessionPlan {
        let work = match &plan.work {
            SessionWork::Prompt(_) | SessionWork::Review(_) => {
                SessionWork::Prompt(self.project.clone())
            }
            work => work.clone(),
        };
        let name = format!("{}:{}", self.project, plan.name);
        SessionPlan { name, work, fence: String::new(), scripts: None, ..plan.clone() }
    }
}

/// Returns the usage of a turn without its content.
fn counted(ended: &TurnEnded) -> TurnEnded {
    TurnEnded {
        message: String::new(),
        promises: Vec::new(),
        near_misses: Vec::new(),
        files: None,
        tree: None,
        head: None,
        changed: Vec::new(),
        refused: Vec::new(),
        artifact: None,
        conversation: None,
        stderr: None,
        ..ended.clone()
    }
}
