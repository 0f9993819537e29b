//! The calls of an agent's own hooks.
//!
//! A session begins with the agent's conversation or with a prompt of its user, and ends when the
//! work is proven.

use hookloop_agents::TurnReport;
use hookloop_core::event::EventBody;
use hookloop_core::gate_ledger::GateChange;
use hookloop_core::hook::{Hook, HookRegistry};
use hookloop_core::id::SessionId;
use hookloop_core::point::Point;
use hookloop_core::session::plan::EXTERNAL;
use hookloop_core::session::{
    NextStep, Receipt, Session, SessionLimits, SessionOutcome, SessionPhase, SessionWork, StopWhen,
};
use hookloop_core::task::Task;

use super::external_session::{ExternalSession, PerformedStep, SessionPurpose, said};
use crate::error::EngineError;
use crate::gate_agreement;
use crate::machine::machine;
use crate::project::Project;
use crate::session::StartError;
use crate::session::lookup::{self, runner};
use crate::session::prompt::native_feedback;
use crate::session::stop_switch::StopSwitch;

/// Open sessions that are searched for the one of a conversation.
const OPEN_MAX: usize = 1_000;
/// The lock that is held while a session is searched or started.
const STARTING: &str = "external-sessions.lock";
/// Sessions of lost agents that one call ends at most.
const SWEPT_MAX: usize = 10;
/// Maximum bytes of a task description in a context.
const DESCRIPTION_MAX: usize = 4 * 1024;

/// A call of an agent's hook.
#[derive(Clone, Copy, Debug)]
pub struct HookVisit<'a> {
    /// `claude`, `codex` or `gemini`.
    pub agent: &'a str,
    /// The most times in a row that the agent lets a hook block its stop; `None` if it has no such limit.
    pub blocks_max: Option<u32>,
    /// The agent's own id of its conversation.
    pub conversation: &'a str,
    pub moment: HookMoment<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMoment<'a> {
    /// The conversation begins, or continues after a pause.
    Start,
    /// The user sent a prompt.
    Prompt,
    /// The agent is about to end its turn with this final message.
    Stop { message: &'a str },
    /// The conversation is over.
    End,
}

/// The answer to a call of an agent's hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookReply {
    /// No output.
    Nothing,
    /// Text for the agent.
    Context(String),
    /// The agent continues, with this reason.
    Block { reason: String },
    /// The agent may stop. Its user sees the note.
    Pass { note: Option<String> },
}

/// Performs the session of a conversation until it is the agent's turn.
pub fn visit(
    project: &Project,
    visit: &HookVisit<'_>,
    stop: &StopSwitch,
) -> Result<HookReply, StartError> {
    let hooks = project.hooks()?;
    let host = HookHost { project, visit, stop, has_hooks: has_hooks(&hooks) };
    match visit.moment {
        HookMoment::Start => host.begin(),
        HookMoment::Prompt => host.hear_prompt(),
        HookMoment::Stop { message } => host.stop(message),
        HookMoment::End => host.end(),
    }
}

/// Whether the project has enabled hooks at points of a session.
fn has_hooks(hooks: &HookRegistry) -> bool {
    let is_of_session = |point: &Point| !matches!(point, Point::Event(_));
    let matters = |hook: &Hook| hook.enabled && hook.points.iter().any(is_of_session);
    hooks.list().iter().any(matters)
}

struct HookHost<'a> {
    project: &'a Project,
    visit: &'a HookVisit<'a>,
    stop: &'a StopSwitch,
    has_hooks: bool,
}

impl HookHost<'_> {
    fn name(&self) -> String {
        format!("{}:{}", self.visit.agent, self.visit.conversation)
    }

    fn agent(&self) -> String {
        format!("{EXTERNAL}{}", self.visit.agent)
    }

    /// Returns the open session of this conversation.
    fn open(&self) -> Result<Option<ExternalSession>, StartError> {
        let (name, agent) = (self.name(), self.agent());
        let rows = self.project.read(|view| view.open_sessions(OPEN_MAX))?;
        let own = rows.into_iter().find(|row| row.name == name && row.agent == agent);
        own.map(|row| ExternalSession::find(self.project, runner(self.project)?, &row.id))
            .transpose()
    }

    fn start(&self) -> Result<ExternalSession, StartError> {
        let rules = self.project.rules();
        let own = rules.limits.session;
        let limits = self.visit.blocks_max.map_or(own, |blocks| SessionLimits {
            gate_retries: own.gate_retries.min(blocks.saturating_sub(1)),
            max_iterations: own.max_iterations.min(blocks),
            ..own
        });
        let purpose = SessionPurpose {
            name: self.name(),
            agent: self.agent(),
            work: SessionWork::Own,
            // An agent that stops claims completion, unless it reports that it is blocked.
            stop_when: vec![StopWhen::Promise, StopWhen::Turn],
            promises: Vec::new(),
            limits,
        };
        ExternalSession::start(self.project, runner(self.project)?, purpose)
    }

    /// Returns the session of this conversation, or a new one. None if the hooks may not run.
    fn open_or_start(&self) -> Result<Option<ExternalSession>, StartError> {
        // An agent with hookloop in two hook files calls twice at the same moment.
        let _alone = runner(self.project)?.lock_exclusive(STARTING)?;
        if let Some(visited) = self.open()? {
            return Ok(Some(visited));
        }
        self.sweep()?;
        match self.start() {
            Ok(visited) => Ok(Some(visited)),
            Err(StartError::Untrusted(_) | StartError::WeakenedGates(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends some of the sessions whose agents made no call for long.
    fn sweep(&self) -> Result<(), StartError> {
        for id in lookup::silent_external_sessions(self.project, SWEPT_MAX)? {
            let Ok(mut gone) = ExternalSession::find(self.project, runner(self.project)?, &id)
            else {
                continue;
            };
            gone.perform(self.project, self.stop, |session| {
                session.journal.note(EventBody::SessionEnding(SessionOutcome::Interrupted));
                session.advance(|_| false).map(drop)
            })?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<HookReply, StartError> {
        let told = match self.has_hooks {
            true => self.begin_session()?,
            false => None,
        };
        let task = self.current_task()?.map(|task| describe(&task));
        let parts: Vec<String> = task.into_iter().chain(told).collect();
        Ok(match parts.is_empty() {
            true => HookReply::Nothing,
            false => HookReply::Context(parts.join("\n\n")),
        })
    }

    /// Starts or continues a session, and returns the output that its current turn has for the
    /// agent.
    fn begin_session(&self) -> Result<Option<String>, StartError> {
        let Some(mut visited) = self.open_or_start()? else { return Ok(None) };
        let runner = runner(self.project)?;
        visited.perform(self.project, self.stop, |session| {
            session.hold_to_hooks(runner)?;
            session.advance(|_| false)?;
            session.world().note_prompt_files();
            Ok(session.bound())
        })
    }

    fn hear_prompt(&self) -> Result<HookReply, StartError> {
        if !self.has_hooks {
            return Ok(HookReply::Nothing);
        }
        // In a started turn, the agent already has its context. Newer output waits for the next
        // turn.
        let told = match self.open()? {
            None => self.begin_session()?,
            Some(mut visited) => visited.perform(self.project, self.stop, |session| {
                // Some agents take feedback for a prompt. Refused work stays refused.
                if !is_refused(session.session()) {
                    session.world().note_prompt_files();
                }
                Ok(None)
            })?,
        };
        Ok(told.map_or(HookReply::Nothing, HookReply::Context))
    }

    fn stop(&self, message: &str) -> Result<HookReply, StartError> {
        // An open session keeps the hooks that it began with, even if the project has none any
        // more.
        let open = self.open()?;
        let was_open = open.is_some();
        let mut visited = match open {
            Some(visited) => visited,
            None if !self.has_hooks => return self.pass_without_hooks(),
            None => match self.start() {
                Ok(visited) => visited,
                Err(StartError::Untrusted(names)) => {
                    return Ok(HookReply::Pass { note: Some(untrusted(&names)) });
                }
                Err(StartError::WeakenedGates(changes)) => {
                    return Ok(HookReply::Pass { note: Some(weakened(&changes)) });
                }
                Err(error) => return Err(error),
            },
        };
        let id = visited.id().clone();
        let runner = runner(self.project)?;
        visited.perform(self.project, self.stop, |session| {
            session.hold_to_hooks(runner)?;
            // Steps that an earlier stop left undone come first.
            let was_judging = matches!(
                session.session().phase,
                SessionPhase::After
                    | SessionPhase::Deciding
                    | SessionPhase::Gating
                    | SessionPhase::AtRetryLimit
            );
            // An answer to a question is no claim.
            if was_open && !was_judging && session.world().is_as_at_prompt() {
                return Ok(HookReply::Pass { note: unproven_note(session.session(), &id) });
            }
            let mut step = session.advance(|_| false)?;
            if let (NextStep::Turn(kind), false) = (&step, was_judging) {
                session.hear(*kind, said(message))?;
                step = session.advance(|_| false)?;
            }
            Ok(reply(session, &step, &id))
        })
    }

    /// Lets the agent stop in a project without hooks, with a note if a person had agreed to gates.
    fn pass_without_hooks(&self) -> Result<HookReply, StartError> {
        let changes = gate_agreement::weakened(self.project, runner(self.project)?)?;
        let note = (!changes.is_empty()).then(|| weakened(&changes));
        Ok(HookReply::Pass { note })
    }

    fn end(&self) -> Result<HookReply, StartError> {
        if let Some(mut visited) = self.open()? {
            visited.perform(self.project, self.stop, |session| {
                if session.session().outcome.is_none() {
                    session.journal.note(EventBody::SessionEnding(SessionOutcome::Cancelled));
                }
                // The agent has ended, so the remaining output is dropped.
                while let NextStep::Turn(kind) = session.advance(|_| false)? {
                    session.end_turn(kind, TurnReport::cancelled(), 0)?;
                }
                Ok(())
            })?;
        }
        Ok(HookReply::Nothing)
    }

    /// Returns the task that the user has claimed, else the only active task.
    fn current_task(&self) -> Result<Option<Task>, EngineError> {
        use hookloop_core::task::TaskState;
        use hookloop_store::view::TaskFilter;
        self.project.read(|view| {
            let user = self.project.actor();
            for holder in [user.to_owned(), format!("{user}@{}", machine())] {
                if let Some(row) = view.held_by(&holder)? {
                    return Ok(Some(row.task));
                }
            }
            let filter = TaskFilter {
                state: Some(TaskState::Active),
                limit: Some(2),
                ..TaskFilter::default()
            };
            let mut active = view.list(&filter)?;
            Ok(if active.len() == 1 { active.pop().map(|row| row.task) } else { None })
        })
    }
}

/// Returns the answer to an agent that wants to stop, when the session is at `step`.
fn reply(session: &PerformedStep<'_>, step: &NextStep, id: &SessionId) -> HookReply {
    match step {
        NextStep::Turn(kind) => {
            HookReply::Block { reason: native_feedback(session.session(), *kind) }
        }
        _ => HookReply::Pass { note: note(session.session(), id) },
    }
}

/// Returns the note for the user when the agent may stop.
fn note(session: &Session, id: &SessionId) -> Option<String> {
    let look = format!("hookloop sessions show {id}");
    match session.outcome.as_ref()? {
        SessionOutcome::Complete { unproven: true } => {
            Some(format!("hookloop: accepted although its gates fail ({look})"))
        }
        SessionOutcome::Complete { unproven: false } => {
            let (passed, others): (Vec<&Receipt>, Vec<&Receipt>) =
                session.receipts.iter().partition(|receipt| receipt.is_green());
            let names = |receipts: &[&Receipt]| {
                let names: Vec<&str> =
                    receipts.iter().map(|receipt| receipt.gate.as_str()).collect();
                names.join(", ")
            };
            if passed.is_empty() && others.is_empty() {
                None
            } else if !session.is_proven() {
                Some(format!("hookloop: not proven: no gate passed ({})", names(&others)))
            } else if others.is_empty() {
                Some(format!("hookloop: proven by {}", names(&passed)))
            } else {
                let (by, not) = (names(&passed), names(&others));
                Some(format!("hookloop: proven by {by}; skipped or failed without blocking: {not}"))
            }
        }
        SessionOutcome::NeedsHuman { reason } => {
            Some(format!("hookloop: not proven, a person must decide: {reason} ({look})"))
        }
        SessionOutcome::Limit { limit } => {
            Some(format!("hookloop: not proven, limit reached: {} ({look})", limit.name()))
        }
        SessionOutcome::Cancelled | SessionOutcome::Interrupted => None,
    }
}

/// Whether the gates refused the session's work.
fn is_refused(session: &Session) -> bool {
    session.judged.as_ref().is_some_and(|judged| !judged.is_proof())
}

/// Returns the note for the user after a turn that changed nothing, if earlier work is not proven.
fn unproven_note(session: &Session, id: &SessionId) -> Option<String> {
    is_refused(session).then(|| {
        format!(
            "hookloop: not proven: gates failed, and no file changed since (hookloop sessions show {id})"
        )
    })
}

fn untrusted(names: &[String]) -> String {
    format!(
        "hookloop: nothing was checked: the hooks of this repository are not trusted ({}). Run `hookloop hooks trust`.",
        names.join(", ")
    )
}

fn weakened(changes: &[GateChange]) -> String {
    format!(
        "hookloop: nothing was checked: {}. Run `hookloop hooks trust`.",
        gate_agreement::weakened_words(changes)
    )
}

fn describe(task: &Task) -> String {
    let description = hookloop_agents::clipped(&task.spec.description, DESCRIPTION_MAX);
    let mut text = format!("The current task is {}: {}", task.id, task.spec.goal);
    for part in [description.as_str()].into_iter().filter(|part| !part.is_empty()) {
        text = format!("{text}\n{part}");
    }
    for deliverable in &task.spec.deliverables {
        text = format!("{text}\n- deliverable: {deliverable}");
    }
    text
}
