//! Functions that the commands that run a session share.

pub(super) mod live;
mod status_line;
pub(super) mod worktree;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookloop_agents as agents;
use hookloop_agents::AgentPowers;
use hookloop_agents::agent_chain::AgentNames;
use hookloop_agents::readiness::check_ready;
use hookloop_agents::repo_consent::AgentRefusal;
use hookloop_config::agents::profile::CostReport;
use hookloop_core::id::Subject;
use hookloop_core::point::Point;
use hookloop_core::session::plan::{CompactCount, Dollars};
use hookloop_core::session::{Session, SessionOutcome, SessionPhase, SessionPlan};
use hookloop_engine::launch::{self, SessionAttendance};
use hookloop_engine::project::Project;
use hookloop_engine::session::SessionHandle;
use hookloop_engine::session::stop_switch::{RestSwitch, StopSwitch};
use hookloop_hooks::runner::HookRunner;
use live::{LiveSession, SessionHeading};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::json_output::EventJson;
use crate::logs::SessionLog;
use crate::sanitize::plain;
use crate::tui::{self, Screen, ScreenContent};
use crate::{present, quiet};

/// Exit codes that scripts can rely on.
const NEEDS_HUMAN: u8 = 3;
const LIMIT: u8 = 4;
const PAUSED: u8 = 5;
const UNPROVEN: u8 = 6;
const CANCELLED: u8 = 130;

/// The display of a session on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionDisplay {
    Screen,
    Lines,
}

impl SessionDisplay {
    pub(super) fn new(is_plain: bool) -> SessionDisplay {
        if is_plain { SessionDisplay::Lines } else { SessionDisplay::Screen }
    }

    /// Whether a screen opens on this terminal.
    pub(super) fn is_screen(self) -> bool {
        self == SessionDisplay::Screen && tui::is_wanted()
    }
}

/// The options of a session's run.
pub(super) struct SessionStage<'a> {
    pub(super) config: &'a Path,
    pub(super) stop: StopSwitch,
    /// The content of a screen; none for lines.
    pub(super) showing: Option<ScreenContent>,
}

/// Runs a session to its end, and sets the exit code by its result.
pub(super) fn perform(
    context: &mut CommandContext,
    project: &Project,
    opened: &SessionHandle,
    stop: StopSwitch,
    look: SessionDisplay,
) -> CliResult {
    if context.out.json {
        // The event that started or resumed the session.
        for stored in project.log().history(&Subject::Session(opened.id.clone()), 1)? {
            context.out.json(&EventJson::from(&stored))?;
        }
    }
    let place = context.place()?;
    let showing =
        if look.is_screen() && !context.out.json { Some(context.showing()?) } else { None };
    let stage = SessionStage { config: &place.config(), stop, showing };
    let session = drive(context, project, opened, stage)?;
    context.exit = exit_code(&session);
    Ok(())
}

/// Runs a session to its end, without an exit code.
pub(super) fn drive(
    context: &mut CommandContext,
    project: &Project,
    opened: &SessionHandle,
    stage: SessionStage<'_>,
) -> CliResult<Session> {
    let SessionStage { config, stop, showing } = stage;
    if let Some(logger) = context.log {
        let mut logged = SessionLog::new(logger, project, opened);
        let around =
            SessionAttendance { observer: &mut logged, stop, rest: RestSwitch::default(), config };
        let session = launch::perform(project, opened, around)?;
        logged.conclude(&session);
        return Ok(session);
    }
    let rules = project.rules();
    let powers = if opened.is_ending {
        Vec::new()
    } else {
        muster(project, &AgentNames::from(&opened.plan))?
    };
    let mut powers = powers;
    if !opened.is_ending
        && let Some(line) = unknown_cost(project, &opened.plan)
    {
        if context.out.json && opened.plan.limits.max_unpriced_turns != u32::MAX && !quiet::is_set()
        {
            let warning = json!({ "warning": { "message": line, "hint": Value::Null } });
            // If standard error is closed, nobody can be warned.
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
        powers.push(line);
    }
    let has_gates = has_gates(project)?;
    let heading = SessionHeading { powers: &powers, budget: &rules.limits.budget, has_gates };
    let mut live = LiveSession::new(&mut context.out, opened, heading, stop.clone());
    if let Some(showing) = showing {
        live.show(|| Screen::open(showing, opened.id.clone()));
    }
    let around =
        SessionAttendance { observer: &mut live, stop, rest: RestSwitch::default(), config };
    let session = launch::perform(project, opened, around)?;
    live.conclude(&session)?;
    Ok(session)
}

/// Whether the project has a gate that judges a session's work.
fn has_gates(project: &Project) -> CliResult<bool> {
    let hooks = project.hooks()?;
    Ok(hooks.list().iter().any(|hook| hook.enabled && hook.points.iter().any(Point::judges_work)))
}

/// Checks that all agents of a session can start, and returns their permissions in words.
pub(super) fn muster(project: &Project, roll: &AgentNames) -> CliResult<Vec<String>> {
    let runner = runner(project)?;
    let mut lines = Vec::new();
    for (place, (name, fit)) in
        roll.muster(project.rules(), runner.ground())?.into_iter().enumerate()
    {
        let settings = fit.settings;
        let base = settings.base.filter(|base| *base != name);
        let what: Vec<&str> = base.into_iter().chain(settings.model.as_deref()).collect();
        let what =
            if what.is_empty() { String::new() } else { format!(" ({})", plain(&what.join(", "))) };
        let role = if place == 0 { "agent" } else { "then" };
        let powers = AgentPowers(&settings).to_string();
        lines.push(format!("{role} {}{what} may {}", plain(name), plain(&powers)));
        let ready = check_ready(&settings, runner).map_err(AgentRefusal::from)?;
        if let Some(command) = ready.unsure_login {
            lines.push(format!(
                "  the login of {} could not be checked; to log in: {command}",
                plain(name)
            ));
        }
        if !fit.ignored.is_empty() {
            let files = fit.ignored.join(", ");
            lines.push(format!("  not applied, because it is not trusted: {}", plain(&files)));
        }
        agents::open(settings, runner.root())?;
    }
    Ok(lines)
}

/// Names the limits that bound a session whose agent may not report its cost.
fn unknown_cost(project: &Project, plan: &SessionPlan) -> Option<String> {
    let rules = project.rules();
    let settings = rules.agent(&plan.agent).ok()?;
    let model = plan.model.as_deref().or(settings.model.as_deref());
    if rules.price(&plan.agent, model).is_some() {
        return None;
    }
    // A user's own program may have no model.
    let is_bounded = plan.limits.max_unpriced_turns != u32::MAX;
    let agent = plain(&plan.agent);
    let why = match settings.cost_report() {
        CostReport::Always => return None,
        _ if settings.base.is_none() && !is_bounded => return None,
        CostReport::SomeModels => format!("{agent} reports no cost for some models"),
        CostReport::Never => format!("{agent} reports no cost"),
    };
    let limits = &plan.limits;
    let unpriced = match limits.max_unpriced_turns {
        u32::MAX => String::new(),
        turns => format!(", {} of unknown cost", present::counted(turns, "turn", "turns")),
    };
    Some(format!(
        "cost may be unknown: {why}, so the limit of {} can't apply; limited by {}, {} tokens{unpriced}",
        Dollars(limits.max_cost_micros),
        present::counted(limits.max_iterations, "iteration", "iterations"),
        CompactCount(limits.max_tokens),
    ))
}

pub(super) fn runner(project: &Project) -> CliResult<&HookRunner> {
    project.runner().ok_or_else(|| CliError::system("the project has no directory"))
}

pub(super) fn exit_code(session: &Session) -> u8 {
    match (&session.outcome, &session.phase) {
        (_, SessionPhase::Paused) => PAUSED,
        (Some(SessionOutcome::Complete { .. }), _) if is_sound(session) => 0,
        (Some(SessionOutcome::Complete { .. }), _) => UNPROVEN,
        (Some(SessionOutcome::NeedsHuman { .. }), _) => NEEDS_HUMAN,
        (Some(SessionOutcome::Limit { .. }), _) => LIMIT,
        (Some(SessionOutcome::Cancelled | SessionOutcome::Interrupted) | None, _) => CANCELLED,
    }
}

/// Whether a complete session is proven, or had no work to prove.
fn is_sound(session: &Session) -> bool {
    let is_accepted = session.outcome == Some(SessionOutcome::Complete { unproven: true });
    session.is_proven() || session.had_nothing_to_do() && !is_accepted
}

/// Handles signals: the first ends the session in order, the second ends the program.
pub(super) fn handle_signals() -> CliResult<StopSwitch> {
    let stop = StopSwitch::new()?;
    let asked = Arc::new(AtomicBool::new(false));
    for signals in [&[SIGINT][..], &[SIGTERM, SIGHUP]] {
        let (reads, writes) = UnixStream::pair()?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, OwnedFd::from(writes.try_clone()?))?;
        }
        let handler = SignalHandler { reads, asked: Arc::clone(&asked), stop: stop.clone() };
        let is_key = signals == [SIGINT];
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || handler.run(is_key))?;
    }
    Ok(stop)
}

/// Waits for signals.
struct SignalHandler {
    /// Receives one byte for each signal.
    reads: UnixStream,
    /// Whether there was a signal before.
    asked: Arc<AtomicBool>,
    stop: StopSwitch,
}

impl SignalHandler {
    fn run(mut self, is_key: bool) {
        let mut byte = [0];
        while self.reads.read(&mut byte).is_ok_and(|read| read > 0) {
            // In a pager, ctrl-c is for the pager.
            if is_key && tui::is_lent() {
                continue;
            }
            if self.asked.swap(true, Ordering::SeqCst) {
                tui::restore();
                signal_hook::low_level::exit(CANCELLED.into());
            }
            self.stop.by_user();
        }
    }
}
