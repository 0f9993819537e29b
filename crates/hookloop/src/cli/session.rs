//! What the commands that perform a session have in common.

pub(super) mod live;
pub(super) mod words;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hookloop_core::hook::Registry;
use hookloop_core::id::Subject;
use hookloop_core::session::{Outcome, Phase, Session, Work};
use hookloop_engine::agents;
use hookloop_engine::agents::crew::{Crew, Roll};
use hookloop_engine::files::read_text;
use hookloop_engine::project::{EngineError, Project};
use hookloop_engine::runner::Runner;
use hookloop_engine::session::open::Drift;
use hookloop_engine::session::real::{Real, Stop, Surroundings};
use hookloop_engine::session::{Driver, Opened, prompt};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Context;
use crate::error::CliError;
use crate::output::{Result, plain};
use crate::wire::EventJson;
use live::{Heading, Live};

/// What scripts can rely on.
const NEEDS_HUMAN: u8 = 3;
const LIMIT: u8 = 4;
const PAUSED: u8 = 5;
const CANCELLED: u8 = 130;

/// Performs a session to its end, and says by the exit code what came of it.
pub(super) fn perform(
    context: &mut Context,
    project: &Project,
    opened: &Opened,
    stop: Stop,
) -> Result {
    if context.out.json {
        // How it began, or was taken on.
        for stored in project.log().history(&Subject::Session(opened.id.clone()), 1)? {
            context.out.json(&EventJson::from(&stored))?;
        }
    }
    let place = context.place()?;
    let session = drive(context, project, opened, &place.config(), stop)?;
    context.exit = exit_code(&session);
    Ok(())
}

/// The same, without a word about the exit code.
pub(super) fn drive(
    context: &mut Context,
    project: &Project,
    opened: &Opened,
    config: &Path,
    stop: Stop,
) -> Result<Session> {
    // What others say to the session is seen when they say it.
    project.store().go_live().map_err(EngineError::from)?;
    let runner = runner(project)?;
    let rules = project.rules();
    let crew = match opened.is_ending {
        // Nobody is asked any more: it need not be there.
        true => Crew::nobody(rules, &opened.plan),
        false => Crew::new(rules, &opened.plan),
    };
    let powers = match opened.is_ending {
        true => Vec::new(),
        false => muster(project, &Roll::from(&opened.plan))?,
    };
    let hooks = match opened.plan.work {
        // Nothing of the project's runs for a review, not even when its program died.
        Work::Review(_) => Registry::default(),
        _ => project.hooks()?,
    };
    let heading = Heading { powers: &powers, purse: &rules.limits.purse };
    let around = Surroundings {
        project,
        runner,
        directory: opened.directory.clone(),
        template: template(project, runner)?,
        onlooker: Live::new(&mut context.out, opened, heading, stop.clone()),
        stop,
        drift: Drift::new(runner, config, &hooks),
        active_ms: opened.active_ms,
        duration_ms: opened.plan.limits.duration_ms,
    };
    let mut world = Real::new(around, crew)?;
    world.remember_base_for(&hooks);
    let driver = Driver::open(project, &opened.id, world, hooks)?;
    let no_session = || CliError::refused(format!("there is no session `{}`", opened.id));
    let mut driver = driver.ok_or_else(no_session)?.after(opened.active_ms);
    driver.run()?;
    let session = driver.session().clone();
    driver.world().onlooker().conclude(&session)?;
    if session.is_over() {
        opened.tidy();
    }
    Ok(session)
}

/// Looks whether all agents of a session can be started; says what each may do.
pub(super) fn muster(project: &Project, roll: &Roll) -> Result<Vec<String>> {
    let runner = runner(project)?;
    let mut lines = Vec::new();
    for (place, (name, fit)) in
        roll.muster(project.rules(), runner.ground())?.into_iter().enumerate()
    {
        let settings = fit.settings;
        let base = settings.base.filter(|base| *base != name);
        let what: Vec<&str> = base.into_iter().chain(settings.model.as_deref()).collect();
        let what = match what.is_empty() {
            true => String::new(),
            false => format!(" ({})", plain(&what.join(", "))),
        };
        let role = if place == 0 { "agent" } else { "then" };
        lines.push(format!("{role} {}{what} may {}", plain(name), settings.powers()));
        if !fit.ignored.is_empty() {
            let files = fit.ignored.join(", ");
            lines.push(format!("  not used, because you have not agreed to it: {}", plain(&files)));
        }
        agents::open(settings, runner.root())?;
    }
    Ok(lines)
}

pub(super) fn runner(project: &Project) -> Result<&Runner> {
    project.runner().ok_or_else(|| CliError::system("there is no directory to work in"))
}

/// The template for prompts: the project's, else ours.
fn template(project: &Project, runner: &Runner) -> Result<String> {
    let Some(path) = &project.rules().session.prompt else {
        return Ok(prompt::TEMPLATE.to_owned());
    };
    let path = runner.root().join(path);
    let wrong = |why: String| CliError::usage(format!("{}: {why}", path.display()));
    read_text(&path, prompt::TEMPLATE_MAX).map_err(wrong)
}

pub(super) fn exit_code(session: &Session) -> u8 {
    match (&session.outcome, &session.phase) {
        (_, Phase::Paused) => PAUSED,
        (Some(Outcome::Complete { .. }), _) => 0,
        (Some(Outcome::NeedsHuman { .. }), _) => NEEDS_HUMAN,
        (Some(Outcome::Limit { .. }), _) => LIMIT,
        (Some(Outcome::Cancelled | Outcome::Interrupted) | None, _) => CANCELLED,
    }
}

/// The first signal ends the session as it should be ended, the second one ends the program.
pub(super) fn heed_signals() -> Result<Stop> {
    let stop = Stop::new()?;
    let asked = Arc::new(AtomicBool::new(false));
    let (mut reads, writes) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            CANCELLED.into(),
            Arc::clone(&asked),
        )?;
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
        signal_hook::low_level::pipe::register(signal, OwnedFd::from(writes.try_clone()?))?;
    }
    let of_thread = stop.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut byte = [0];
        if reads.read(&mut byte).is_ok_and(|read| read > 0) {
            of_thread.by_user();
        }
        // Kept until the program ends: a signal after this writes to it.
        drop(writes);
        std::thread::park();
    })?;
    Ok(stop)
}
