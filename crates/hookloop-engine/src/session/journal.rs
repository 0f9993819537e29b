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
use hookloop_core::purse::{Amount, Purse, ReservationAnswer};
use hookloop_core::refusal::Refusal;
use hookloop_core::session::Session;
use hookloop_store::log::{LogError, Seq, StoredEvent};
use hookloop_store::store::StoreError;

use super::allowance::set_aside;
use crate::error::{EngineError, Taken};
use crate::project::Project;
use crate::react::Reaction;
use crate::session_history::{TRIES_MAX, history};
use crate::work::{Origin, Work};

/// Events of a session that the first read returns.
const READ_BACK: usize = 16;

/// An entry that is to be stored.
#[derive(Clone, Debug)]
enum Entry {
    Event {
        id: EventId,
        body: EventBody,
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
        purse: Purse,
        wish: Amount,
    },
}

/// A session, and the part of it that is not stored yet.
pub(crate) struct Journal<'p> {
    pub(crate) project: &'p Project,
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    /// The last event of the session that `session` includes.
    version: Seq,
    /// The stored run of the session that this process performs.
    run: u32,
    /// Entries that are in `session`, but not in the log.
    unsaved: Vec<Entry>,
    /// Events of other processes that were not reported yet.
    news: Vec<StoredEvent>,
}

impl<'p> Journal<'p> {
    /// Reads a session from the log. Returns none if there is no such session.
    pub(crate) fn open(
        project: &'p Project,
        id: &SessionId,
    ) -> Result<Option<Journal<'p>>, EngineError> {
        let subject = Subject::Session(id.clone());
        let known = project.read(|view| view.version(&subject))?;
        let events = history(project, &subject, known, usize::MAX)?;
        let Some(session) = Session::of(events.iter().map(|stored| &stored.event.body)) else {
            return Ok(None);
        };
        let version = events.last().map_or(0, |stored| stored.seq);
        Ok(Some(Journal::of(project, id, (session, version))))
    }

    /// Continues a session that was read before, with the events that other processes stored since.
    pub(crate) fn known(
        project: &'p Project,
        id: &SessionId,
        known: (Session, Seq),
    ) -> Result<Journal<'p>, EngineError> {
        let mut journal = Journal::of(project, id, known);
        journal.look()?;
        Ok(journal)
    }

    fn of(project: &'p Project, id: &SessionId, (session, version): (Session, Seq)) -> Journal<'p> {
        let (run, unsaved, news) = (session.run, Vec::new(), Vec::new());
        Journal { project, id: id.clone(), session, version, run, unsaved, news }
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
        self.unsaved.push(Entry::Event { id: fresh_id(), body });
    }

    /// Adds the actions of the hook whose run was noted last.
    pub(crate) fn note_actions(&mut self, hook: &str, actions: Vec<Action>) {
        if !actions.is_empty() {
            self.unsaved.push(Entry::Actions { hook: hook.to_owned(), actions });
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
                Stored::All => return self.catch_up(),
                Stored::Refused(refusal) => return Err(refusal.into()),
                Stored::Behind | Stored::Short(_) => self.refold()?,
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
                Entry::Command { id: fresh_id(), command: command.clone() },
                Entry::Event { id: fresh_id(), body: body.clone() },
            ];
            match self.store() {
                Ok(Stored::All) => {
                    self.session.apply(&body);
                    return self.catch_up().map(Ok);
                }
                Ok(Stored::Refused(refusal)) => {
                    self.unsaved.clear();
                    return Ok(Err(refusal));
                }
                Ok(Stored::Behind | Stored::Short(_)) => {
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
        purse: &Purse,
        wish: Amount,
        body: EventBody,
    ) -> Result<Began, EngineError> {
        let noted = self.unsaved.len();
        self.unsaved.push(Entry::Reserve { id: fresh_id(), purse: *purse, wish });
        self.unsaved.push(Entry::Event { id: fresh_id(), body: body.clone() });
        let stored = self.store();
        if !matches!(stored, Ok(Stored::All)) {
            self.unsaved.truncate(noted);
        }
        match stored? {
            Stored::All => {
                self.session.apply(&body);
                self.catch_up().map(Began::Stored)
            }
            Stored::Short(answer) => Ok(Began::Not(answer)),
            Stored::Refused(refusal) => Err(refusal.into()),
            Stored::Behind => self.refold().map(|()| Began::Behind),
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

    fn store(&self) -> Result<Stored, EngineError> {
        let (project, subject) = (self.project, self.subject());
        project
            .store
            .transact(|unit| -> Result<_, Undone> {
                if unit.view()?.version(&subject)? != self.version {
                    return Ok(Stored::Behind);
                }
                let mut work = Work::new(unit, &project.rules, now())?;
                for entry in &self.unsaved {
                    match entry {
                        Entry::Event { id, body } => {
                            let origin = Origin::command(*id, project.actor());
                            work.stage_quietly(origin, subject.clone(), body.clone())?;
                        }
                        Entry::Actions { hook, actions } => {
                            let run = work.unit.len().checked_sub(1);
                            let Some(run) = run.and_then(|run| work.unit.staged(run)).cloned()
                            else {
                                continue;
                            };
                            let outcome = Ok(actions.clone());
                            let (hook, offset) = (hook.clone(), 0);
                            let reaction = Reaction {
                                hook,
                                counted: true,
                                offset,
                                outcome,
                                record: None,
                                piped: None,
                            };
                            work.carry_out_one(&run, reaction, 0)?;
                        }
                        Entry::Command { id, command } => {
                            let origin = Origin::command(*id, &self.id.actor());
                            if let Err(refusal) = work.perform(command, &origin)? {
                                return Err(EngineError::Refused(refusal).into());
                            }
                        }
                        Entry::Reserve { id, purse, wish } => {
                            let origin = Origin::command(*id, project.actor());
                            match set_aside(&mut work, origin, purse, &self.id, *wish)? {
                                ReservationAnswer::Granted => {}
                                answer => return Err(Undone::Short(Box::new(answer))),
                            }
                        }
                    }
                }
                work.react()?;
                Ok(Stored::All)
            })
            .or_else(|error| match error {
                Undone::Error(EngineError::Refused(refusal)) => Ok(Stored::Refused(refusal)),
                Undone::Error(error) => Err(error),
                Undone::Short(answer) => Ok(Stored::Short(*answer)),
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
            return Err(EngineError::SessionTaken(Taken));
        }
        for entry in &self.unsaved {
            if let Entry::Event { body, .. } = entry {
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
        let is_own = |entry: &Entry, stored: &StoredEvent| match entry {
            Entry::Event { id, .. } => *id == stored.event.id,
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
            return Err(EngineError::SessionTaken(Taken));
        }
        if let Some(last) = new.last() {
            self.version = last.seq;
        }
        all.extend(new);
        Ok(all)
    }
}

enum Stored {
    All,
    /// Another process wrote first.
    Behind,
    Refused(Refusal),
    /// The budget has no room for the turn.
    Short(ReservationAnswer),
}

/// The reason why a batch is not stored.
enum Undone {
    Error(EngineError),
    Short(Box<ReservationAnswer>),
}

impl<E: Into<EngineError>> From<E> for Undone {
    fn from(error: E) -> Undone {
        Undone::Error(error.into())
    }
}

/// The result of an attempt to begin a turn.
pub(crate) enum Began {
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
    use hookloop_config::effective::Rules;

    fn project() -> (Project, SessionId) {
        let store = Store::over(Arc::new(MemoryLog::default())).unwrap();
        let (project, id) =
            (Project::new(store, Rules::default(), "tester"), "abcdefgh2345".parse().unwrap());
        let plan = json!({"name": "s", "work": {"prompt": "p"}, "agent": "a", "stopWhen": ["default"],
            "atRetryLimit": "needs_human", "limits": {"iterations": 1, "durationMs": 1, "turnMs": 1, "errors": 1,
            "hookRetries": 1, "noProgress": 1, "tokens": 1, "costMicros": 1}, "hooks": "h", "fence": "f", "machine": "m"});
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
        matches!(answer, Err(EngineError::SessionTaken(Taken)))
    }

    /// A process may be suspended for any time between its commit and its next read.
    #[test]
    fn who_is_stopped_while_it_looks_finds_its_session_taken() {
        let (project, id) = project();
        let mut ours = Journal::open(&project, &id).unwrap().unwrap();
        ours.note(EventBody::PauseRequested(Default::default()));
        assert!(matches!(ours.store(), Ok(Stored::All)));
        project.append(&ours.subject(), resumed(2)).unwrap();
        assert!(is_taken(ours.catch_up()));
    }

    #[test]
    fn of_two_who_take_a_session_on_one_has_it() {
        let (project, id) = project();
        let open = || Journal::open(&project, &id).unwrap().unwrap();
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
