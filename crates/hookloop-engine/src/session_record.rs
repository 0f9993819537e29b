//! The timeline of a session, brought up to date with the log.

use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::timeline::Timeline;
use hookloop_core::trace::SpanNames;
use hookloop_store::log::{Seq, StoredEvent};

use crate::error::EngineError;
use crate::project::Project;
use crate::session_history::history;

/// Events that the first read returns, if some are known already.
const READ_BACK: usize = 16;

#[derive(Debug)]
pub struct SessionTimeline {
    id: SessionId,
    seen: Seq,
    timeline: Option<Timeline>,
}

impl SessionTimeline {
    pub fn new(id: SessionId) -> SessionTimeline {
        SessionTimeline { id, seen: 0, timeline: None }
    }

    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// Returns the names of the session's spans.
    pub fn names(&self) -> Option<SpanNames> {
        let parent = self.timeline.as_ref()?.plan.trace_parent;
        Some(SpanNames::new(self.id.clone(), parent))
    }

    /// Applies the new events in the log.
    pub fn look(&mut self, project: &Project) -> Result<(), EngineError> {
        let subject = Subject::Session(self.id.clone());
        let known = project.read(|view| view.version(&subject))?;
        if known == self.seen {
            return Ok(());
        }
        let mut limit = if self.seen == 0 { usize::MAX } else { READ_BACK };
        let events = loop {
            let events = history(project, &subject, known, limit)?;
            let reaches_back = events.first().is_none_or(|first| first.seq <= self.seen);
            if events.len() < limit || reaches_back {
                break events;
            }
            limit = limit.saturating_mul(2);
        };
        for StoredEvent { seq, event, .. } in events {
            if seq <= self.seen {
                continue;
            }
            self.seen = seq;
            match &mut self.timeline {
                Some(timeline) => timeline.apply(event.at, &event.body),
                None => self.timeline = Timeline::of([(event.at, &event.body)]),
            }
        }
        Ok(())
    }
}
