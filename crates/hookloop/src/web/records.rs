//! Sessions of open pages, each folded from its events once; later requests read only new events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::Session;
use hookloop_core::session::timeline::Timeline;
use hookloop_engine::check_history::CheckHistory;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_engine::store::{Seq, StoredEvent};

/// Sessions that are kept.
const KEPT_MAX: usize = 32;
/// Events that are read at first when a session has grown, and how many times as many at the next try.
const STEP: usize = 64;
const STEP_GROWTH: usize = 8;

/// The events of a session, and its state.
#[derive(Debug)]
pub(super) struct SessionRecord {
    pub(super) timeline: Timeline,
    pub(super) session: Session,
    pub(super) checks: CheckHistory,
    /// Its last event.
    version: Seq,
}

#[derive(Debug, Default)]
pub(super) struct SessionRecords(Mutex<HashMap<SessionId, Arc<Mutex<SessionRecord>>>>);

impl SessionRecords {
    /// Returns the session in its current state; none if the log has no such session.
    pub(super) fn get(
        &self,
        project: &Project,
        id: &SessionId,
    ) -> Result<Option<Arc<Mutex<SessionRecord>>>, EngineError> {
        let known = lock(&self.0).get(id).cloned();
        if let Some(known) = known {
            lock(&known).grow(project, id)?;
            return Ok(Some(known));
        }
        let Some(read) = SessionRecord::read(project, id)? else { return Ok(None) };
        let read = Arc::new(Mutex::new(read));
        let mut kept = lock(&self.0);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(id.clone(), Arc::clone(&read));
        Ok(Some(read))
    }
}

impl SessionRecord {
    fn read(project: &Project, id: &SessionId) -> Result<Option<SessionRecord>, EngineError> {
        let events = project.log().history(&Subject::Session(id.clone()), usize::MAX)?;
        let timed = events.iter().map(|stored| (stored.event.at, &stored.event.body));
        let timeline = Timeline::of(timed);
        let session = Session::of(events.iter().map(|stored| &stored.event.body));
        let version = events.last().map_or(0, |last| last.seq);
        let mut checks = CheckHistory::default();
        events.iter().for_each(|stored| note_checks(&mut checks, id, stored));
        Ok(timeline.zip(session).map(|(timeline, session)| SessionRecord {
            timeline,
            session,
            checks,
            version,
        }))
    }

    fn grow(&mut self, project: &Project, id: &SessionId) -> Result<(), EngineError> {
        for stored in new_events(project, id, self.version)? {
            self.timeline.apply(stored.event.at, &stored.event.body);
            self.session.apply(&stored.event.body);
            note_checks(&mut self.checks, id, &stored);
            self.version = stored.seq;
        }
        Ok(())
    }
}

fn note_checks(checks: &mut CheckHistory, id: &SessionId, stored: &StoredEvent) {
    if let EventBody::ChecksRecorded(recorded) = &stored.event.body {
        checks.apply(id, stored.event.at, recorded);
    }
}

/// The events of a session after event `known`.
fn new_events(
    project: &Project,
    id: &SessionId,
    known: Seq,
) -> Result<Vec<StoredEvent>, EngineError> {
    let subject = Subject::Session(id.clone());
    let mut wanted = 1;
    loop {
        let mut events = project.log().history(&subject, wanted)?;
        if events.len() < wanted || events.first().is_none_or(|first| first.seq <= known) {
            events.retain(|stored| stored.seq > known);
            return Ok(events);
        }
        wanted = if wanted == 1 { STEP } else { wanted.saturating_mul(STEP_GROWTH) };
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
