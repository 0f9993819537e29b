//! A session's events.
//!
//! The result of a step is stored before the next step has an effect outside. The step and its
//! direct consequences are one batch.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::action::Action;
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::id::{EventId, SessionId, Subject};
use hookloop_core::refusal::Refusal;
use hookloop_core::session::Session;
use hookloop_core::shared_budget::{Amount, ReservationAnswer, SharedBudget};
use hookloop_store::log::{LogError, Seq, StoredEvent};
use hookloop_store::store::StoreError;

use super::allowance::reserve_in_batch;
use crate::batch::{Batch, EventOrigin};
use crate::error::{EngineError, SessionTakenOver};
use crate::project::Project;
use crate::react::HookReaction;
use crate::session_history::{TRIES_MAX, history};

/// Events of a session that the first read returns.
const READ_BACK: usize = 16;

/// An entry that is to be stored.
#[derive(Clone, Debug)]
enum JournalEntry {
    Event {
        id: EventId,
        body: Box<EventBody>,
    },
    /// The actions of a hook whose run is the previous entry.
    Actions {
        hook: String,
        actions: Vec<Action>,
    },
    Command {
        id: EventId,
        command: Command,
    },
    /// The reservation of the turn that begins with the next event.
    Reserve {
        id: EventId,
        budget: SharedBudget,
        amount: Amount,
    },
}

/// A session, and the part of it that is not stored yet.
pub(crate) struct SessionJournal<'p> {
    pub(crate) project: &'p Project,
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    /// The last event of the session that `session` includes.
    version: Seq,
    /// The stored run of the session that this process performs.
    run: u32,
    /// Entries that are in `session`, but not in the log.
    unsaved: Vec<JournalEntry>,
    /// Events of other processes that were not reported yet.
    news: Vec<StoredEvent>,
}

impl<'p> SessionJournal<'p> {
    /// Reads a session from the log. Returns none if there is no such session.
    pub(crate) fn open(
        project: &'p Project,
        id: &SessionId,
    ) -> Result<Option<SessionJournal<'p>>, EngineError> {
        let subject = Subject::Session(id.clone());
        let known = project.read(|view| view.version(&subject))?;
        let events = history(project, &subject, known, usize::MAX)?;
        let Some(session) = Session::of(events.iter().map(|stored| &stored.event.body)) else {
            return Ok(None);
        };
        let version = events.last().map_or(0, |stored| stored.seq);
        Ok(Some(SessionJournal::of(project, id, (session, version))))
    }

    /// Continues a session that was read before, with the events that other processes stored since.
    pub(crate) fn known(
        project: &'p Project,
        id: &SessionId,
        known: (Session, Seq),
    ) -> Result<SessionJournal<'p>, EngineError> {
        let mut journal = SessionJournal::of(project, id, known);
        journal.look()?;
        Ok(journal)
    }

    fn of(
        project: &'p Project,
        id: &SessionId,
        (session, version): (Session, Seq),
    ) -> SessionJournal<'p> {
        let (run, unsaved, news) = (session.run, Vec::new(), Vec::new());
        SessionJournal { project, id: id.clone(), session, version, run, unsaved, news }
    }

    /// Returns the session and its position in the log, if everything is stored.
    pub(crate) fn into_known(self) -> Option<(Session, Seq)> {
        self.unsaved.is_empty().then_some((self.session, self.version))
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject::Session(self.id.clone())
    }

    /// Applies an event, to be stored with the next commit.
    pub(crate) fn note(&mut self, body: EventBody) {
        self.session.apply(&body);
        self.unsaved.push(JournalEntry::Event { id: fresh_id(), body: Box::new(body) });
    }

    /// Adds the actions of the hook whose run was noted last.
    pub(crate) fn note_actions(&mut self, hook: &str, actions: Vec<Action>) {
        if !actions.is_empty() {
            self.unsaved.push(JournalEntry::Actions { hook: hook.to_owned(), actions });
        }
    }

    /// Stores the noted events, and returns all new events in the log, including those of other
    /// processes.
    pub(crate) fn commit(&mut self) -> Result<Vec<StoredEvent>, EngineError> {
        if self.unsaved.is_empty() {
            return Ok(std::mem::take(&mut self.news));
        }
        for _ in 0..TRIES_MAX {
            match self.store()? {
                StoredBatch::All => return self.catch_up(),
                StoredBatch::Refused(refusal) => return Err(refusal.into()),
                StoredBatch::Behind | StoredBatch::Short(_) => self.refold()?,
            }
        }
        Err(EngineError::Store(StoreError::Contended))
    }

    /// Stores a change of the graph and its event for the session, both or neither.
    ///
    /// Nothing else may be unsaved. The inner error is the reason why the graph did not change.
    pub(crate) fn change(
        &mut self,
        command: Command,
        body: EventBody,
    ) -> Result<Result<Vec<StoredEvent>, Refusal>, EngineError> {
        for _ in 0..TRIES_MAX {
            self.unsaved = vec![
                JournalEntry::Command { id: fresh_id(), command: command.clone() },
                JournalEntry::Event { id: fresh_id(), body: Box::new(body.clone()) },
            ];
            match self.store() {
                Ok(StoredBatch::All) => {
                    self.session.apply(&body);
                    return self.catch_up().map(Ok);
                }
                Ok(StoredBatch::Refused(refusal)) => {
                    self.unsaved.clear();
                    return Ok(Err(refusal));
                }
                Ok(StoredBatch::Behind | StoredBatch::Short(_)) => {
                    self.unsaved.clear();
                    self.refold()?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Store(StoreError::Contended))
    }

    /// Stores the start of a turn and its reservation, with all noted events.
    ///
    /// Stores nothing if the budget has no room.
    pub(crate) fn begin_turn(
        &mut self,
        budget: &SharedBudget,
        amount: Amount,
        body: EventBody,
    ) -> Result<TurnStart, EngineError> {
        let noted = self.unsaved.len();
        self.unsaved.push(JournalEntry::Reserve { id: fresh_id(), budget: *budget, amount });
        self.unsaved.push(JournalEntry::Event { id: fresh_id(), body: Box::new(body.clone()) });
        let stored = self.store();
        if !matches!(stored, Ok(StoredBatch::All)) {
            self.unsaved.truncate(noted);
        }
        match stored? {
            StoredBatch::All => {
                self.session.apply(&body);
                self.catch_up().map(TurnStart::Stored)
            }
            StoredBatch::Short(answer) => Ok(TurnStart::Not(answer)),
            StoredBatch::Refused(refusal) => Err(refusal.into()),
            StoredBatch::Behind => self.refold().map(|()| TurnStart::Behind),
        }
    }

    /// Applies the events that other processes stored.
    pub(crate) fn look(&mut self) -> Result<(), EngineError> {
        let subject = self.subject();
        match self.project.read(|view| view.version(&subject))? == self.version {
            true => Ok(()),
            false => self.refold(),
        }
    }

    fn store(&self) -> Result<StoredBatch, EngineError> {
        let (project, subject) = (self.project, self.subject());
        project
            .store
            .transact(|unit| -> Result<_, BatchRefusal> {
                if unit.view()?.version(&subject)? != self.version {
                    return Ok(StoredBatch::Behind);
                }
                let mut work = Batch::new(unit, &project.rules, now())?;
                for entry in &self.unsaved {
                    match entry {
                        JournalEntry::Event { id, body } => {
                            let origin = EventOrigin::command(*id, project.actor());
                            work.stage_quietly(origin, subject.clone(), EventBody::clone(body))?;
                        }
                        JournalEntry::Actions { hook, actions } => {
                            let run = work.unit.len().checked_sub(1);
                            let Some(run) = run.and_then(|run| work.unit.staged(run)).cloned()
                            else {
                                continue;
                            };
                            let outcome = Ok(actions.clone());
                            let (hook, offset) = (hook.clone(), 0);
                            let reaction = HookReaction {
                                hook,
                                counted: true,
                                offset,
                                outcome,
                                record: None,
                                piped: None,
                            };
                            work.carry_out_one(&run, reaction, 0)?;
                        }
                        JournalEntry::Command { id, command } => {
                            let origin = EventOrigin::command(*id, &self.id.actor());
                            if let Err(refusal) = work.perform(command, &origin)? {
                                return Err(EngineError::Refused(refusal).into());
                            }
                        }
                        JournalEntry::Reserve { id, budget, amount } => {
                            let origin = EventOrigin::command(*id, project.actor());
                            match reserve_in_batch(&mut work, origin, budget, &self.id, *amount)? {
                                ReservationAnswer::Granted => {}
                                answer => return Err(BatchRefusal::Short(Box::new(answer))),
                            }
                        }
                    }
                }
                work.react()?;
                Ok(StoredBatch::All)
            })
            .or_else(|error| match error {
                BatchRefusal::Error(EngineError::Refused(refusal)) => {
                    Ok(StoredBatch::Refused(refusal))
                }
                BatchRefusal::Error(error) => Err(error),
                BatchRefusal::Short(answer) => Ok(StoredBatch::Short(*answer)),
            })
    }

    /// Returns the last events of the session, including all that the view has.
    fn history(&self, limit: usize) -> Result<Vec<StoredEvent>, EngineError> {
        let subject = self.subject();
        let known = self.project.read(|view| view.version(&subject))?.max(self.version);
        history(self.project, &subject, known, limit)
    }

    /// Rebuilds the session with the events of other processes before the unsaved ones.
    fn refold(&mut self) -> Result<(), EngineError> {
        let events = self.history(usize::MAX)?;
        let Some(mut session) = Session::of(events.iter().map(|stored| &stored.event.body)) else {
            return Err(LogError::damaged(self.version, "the session has no beginning").into());
        };
        // This also applies if this process was about to continue the session itself.
        if session.run > self.run {
            return Err(EngineError::SessionTaken(SessionTakenOver));
        }
        for entry in &self.unsaved {
            if let JournalEntry::Event { body, .. } = entry {
                session.apply(body);
            }
        }
        self.session = session;
        let before = self.version;
        self.news.extend(events.iter().filter(|stored| stored.seq > before).cloned());
        self.version = events.last().map_or(0, |stored| stored.seq);
        Ok(())
    }

    /// Returns the events since the last read, and applies those of other processes.
    fn catch_up(&mut self) -> Result<Vec<StoredEvent>, EngineError> {
        let is_own = |entry: &JournalEntry, stored: &StoredEvent| match entry {
            JournalEntry::Event { id, .. } => *id == stored.event.id,
            _ => false,
        };
        let own = std::mem::take(&mut self.unsaved);
        let mut limit = READ_BACK;
        let new = loop {
            let events = self.history(limit)?;
            let is_whole = events.len() < limit
                || events.first().is_some_and(|first| first.seq <= self.version);
            if is_whole {
                break events.into_iter().filter(|stored| stored.seq > self.version);
            }
            limit *= 2;
        };
        let new: Vec<StoredEvent> = new.collect();
        let mut all = std::mem::take(&mut self.news);
        self.run = self.session.run;
        for stored in &new {
            if !own.iter().any(|entry| is_own(entry, stored)) {
                self.session.apply(&stored.event.body);
            }
        }
        // Another process continued the session between the commit and this read. A process may be
        // suspended there for any time.
        if self.session.run > self.run {
            return Err(EngineError::SessionTaken(SessionTakenOver));
        }
        if let Some(last) = new.last() {
            self.version = last.seq;
        }
        all.extend(new);
        Ok(all)
    }
}

enum StoredBatch {
    All,
    /// Another process wrote first.
    Behind,
    Refused(Refusal),
    /// The budget has no room for the turn.
    Short(ReservationAnswer),
}

/// The reason why a batch is not stored.
enum BatchRefusal {
    Error(EngineError),
    Short(Box<ReservationAnswer>),
}

impl<E: Into<EngineError>> From<E> for BatchRefusal {
    fn from(error: E) -> BatchRefusal {
        BatchRefusal::Error(error.into())
    }
}

/// The result of an attempt to begin a turn.
pub(crate) enum TurnStart {
    Stored(Vec<StoredEvent>),
    /// Another process wrote to the session first, so the next step may differ.
    Behind,
    Not(ReservationAnswer),
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hookloop_core::session::facts::SessionResumed;
    use hookloop_store::memory::MemoryLog;
    use hookloop_store::store::Store;
    use serde_json::json;

    use super::*;
    use hookloop_config::effective::EffectiveConfig;

    fn project() -> (Project, SessionId) {
        let store = Store::over(Arc::new(MemoryLog::default())).unwrap();
        let (project, id) = (
            Project::new(store, EffectiveConfig::default(), "tester"),
            "abcdefgh2345".parse().unwrap(),
        );
        let plan = json!({"name": "s", "work": {"prompt": "p"}, "agent": "a", "stop_when": ["default"],
            "at_retry_limit": "needs_human", "limits": {"max_iterations": 1, "max_duration_ms": 1, "turn_timeout_ms": 1, "max_errors": 1,
            "gate_retries": 1, "max_no_progress": 1, "max_tokens": 1, "max_cost_micros": 1}, "hooks": "h", "fence": "f", "machine": "m"});
        let started = EventBody::decode("session_started", 1, &plan.to_string()).unwrap();
        project.append(&Subject::Session(SessionId::clone(&id)), started).unwrap();
        (project, id)
    }

    fn resumed(run: u32) -> EventBody {
        EventBody::SessionResumed(SessionResumed {
            run,
            machine: "m".to_owned(),
            hooks: None,
            scripts: None,
        })
    }

    fn is_taken<T>(answer: Result<T, EngineError>) -> bool {
        matches!(answer, Err(EngineError::SessionTaken(SessionTakenOver)))
    }

    /// A process may be suspended for any time between its commit and its next read.
    #[test]
    fn a_suspended_process_finds_its_session_resumed_by_another() {
        let (project, id) = project();
        let mut ours = SessionJournal::open(&project, &id).unwrap().unwrap();
        ours.note(EventBody::PauseRequested(Default::default()));
        assert!(matches!(ours.store(), Ok(StoredBatch::All)));
        project.append(&ours.subject(), resumed(2)).unwrap();
        assert!(is_taken(ours.catch_up()));
    }

    #[test]
    fn of_two_processes_that_resume_a_session_one_loses() {
        let (project, id) = project();
        let open = || SessionJournal::open(&project, &id).unwrap().unwrap();
        let (mut first, mut second) = (open(), open());
        first.note(resumed(2));
        second.note(resumed(2));
        first.commit().unwrap();
        assert!(is_taken(second.commit()));
        // The winner can lose the session again.
        let mut third = open();
        third.note(resumed(3));
        third.commit().unwrap();
        first.note(EventBody::PauseRequested(Default::default()));
        assert!(is_taken(first.commit()));
    }
}
