//! A session as its events tell it, updated with new events.

use std::sync::Arc;

use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::timeline::Timeline;
use hookloop_core::session::{Session, SessionPhase, SessionState};
use hookloop_engine::check_history::{CheckHistory, GateChecks};
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_engine::session::live_transcript::TranscriptReader;
use hookloop_engine::session::lookup;
use hookloop_engine::session::now::{self, NowRecord};
use hookloop_engine::store::{Seq, SessionRow, StoredEvent};
use hookloop_hooks::runner::HookRunner;

use super::data::{AgentOutput, GateLine, OutputTail, SessionContent};

/// Events that an update reads first; more if these do not reach back to the known ones.
const NEW_EVENTS: usize = 64;
const MORE: usize = 16;
/// Slowest checks of a gate that are shown.
const SLOWEST_SHOWN: usize = 3;

pub(super) struct SessionView {
    pub(super) id: SessionId,
    session: Arc<Session>,
    timeline: Arc<Timeline>,
    checks: CheckHistory,
    gates: Arc<Vec<GateLine>>,
    version: Seq,
    hearing: Option<(TranscriptReader, OutputTail)>,
    now: Option<NowRecord>,
}

impl SessionView {
    /// Reads a session; none if the log has no such session.
    pub(super) fn open(
        project: &Project,
        id: &SessionId,
    ) -> Result<Option<SessionView>, EngineError> {
        let events = project.log().history(&Subject::Session(id.clone()), usize::MAX)?;
        let Some(first) = events.first() else { return Ok(None) };
        let EventBody::SessionStarted(plan) = &first.event.body else { return Ok(None) };
        let mut view = SessionView {
            id: id.clone(),
            session: Arc::new(Session::new(plan.clone())),
            timeline: Arc::new(Timeline::new(plan.clone(), first.event.at)),
            checks: CheckHistory::default(),
            gates: Arc::default(),
            version: first.seq,
            hearing: None,
            now: None,
        };
        view.apply(&events);
        Ok(Some(view))
    }

    /// Applies the new events. The cost depends on their number alone.
    pub(super) fn catch_up(&mut self, project: &Project) -> Result<(), EngineError> {
        let subject = Subject::Session(self.id.clone());
        let mut most = NEW_EVENTS;
        if project.read(|view| view.version(&subject))? == self.version {
            return Ok(());
        }
        loop {
            let events = project.log().history(&subject, most)?;
            let reaches = events.first().is_none_or(|first| first.seq <= self.version);
            if reaches || events.len() < most {
                self.apply(&events);
                return Ok(());
            }
            most = most.saturating_mul(MORE);
        }
    }

    fn apply(&mut self, events: &[StoredEvent]) {
        let known = self.version;
        let session = Arc::make_mut(&mut self.session);
        let timeline = Arc::make_mut(&mut self.timeline);
        let mut has_checks = false;
        for stored in events.iter().filter(|stored| stored.seq > known) {
            let body = &stored.event.body;
            session.apply(body);
            timeline.apply(stored.event.at, body);
            if let EventBody::ChecksRecorded(recorded) = body {
                self.checks.apply(&self.id, stored.event.at, recorded);
                has_checks = true;
            }
            self.version = stored.seq;
        }
        if has_checks {
            self.gates = Arc::new(self.checks.gates().filter_map(gate_line).collect());
        }
    }

    /// Reads the step and the agent's output of a session that is performed on this machine. Returns whether something
    /// is new.
    pub(super) fn listen(&mut self, project: &Project) -> bool {
        let Some(runner) = project.runner() else { return false };
        let now = match self.session.phase {
            SessionPhase::Ended => None,
            _ => now::read(runner, &self.id),
        };
        let is_new = self.now != now;
        self.now = now;
        self.listen_to_agent(runner) || is_new
    }

    fn listen_to_agent(&mut self, runner: &HookRunner) -> bool {
        if !matches!(self.session.phase, SessionPhase::Turn(_)) {
            return self.hearing.take().is_some();
        }
        self.hearing.take_if(|(hearing, _)| !hearing.is_of(&self.session));
        let (hearing, said) = self.hearing.get_or_insert_with(|| {
            (TranscriptReader::new(runner, &self.id, &self.session), OutputTail::default())
        });
        let more = hearing.more().unwrap_or_default();
        said.push(&more);
        !more.is_empty()
    }

    pub(super) fn shown(
        &self,
        row: &SessionRow,
        state: SessionState,
        machine: &str,
    ) -> SessionContent {
        let heard = match (&self.hearing, self.session.phase.clone()) {
            (_, SessionPhase::Turn(_)) if lookup::is_external(row) => AgentOutput::External,
            (_, SessionPhase::Turn(_)) if row.machine != machine => {
                AgentOutput::Elsewhere(row.machine.clone())
            }
            (Some((_, said)), _) => AgentOutput::Here(said.clone()),
            (None, _) => AgentOutput::Nothing,
        };
        SessionContent {
            id: self.id.clone(),
            state,
            machine: row.machine.clone(),
            timeline: Arc::clone(&self.timeline),
            session: Arc::clone(&self.session),
            gates: Arc::clone(&self.gates),
            heard,
            now: self.now.clone(),
        }
    }
}

fn gate_line(gate: &GateChecks) -> Option<GateLine> {
    let slowest = gate.slowest(SLOWEST_SHOWN).into_iter();
    Some(GateLine {
        gate: gate.name.clone(),
        counts: gate.newest()?.counts,
        slowest: slowest.map(|(id, ms)| (id.to_owned(), ms)).collect(),
    })
}
