//! The rooms of a project, for people: a list, their removal, and a shell in one of them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookloop_core::authority::ControlledAction;
use hookloop_core::command_line::Invocation;
use hookloop_core::hook::{Hook, HookHandler, HookRegistry};
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::id::SessionId;
use hookloop_core::point::Point;
use hookloop_git::repo::{CommitId, RepoError};
use hookloop_git::room::{RemovedRooms, Room, RoomInfo, RoomOptions, RoomRetention, Rooms};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::gate_room::{RoomPlace, has_room};
use hookloop_hooks::hook_context::HookContext;
use hookloop_hooks::hook_run::{HookRun, RunRefusal};
use hookloop_hooks::hook_sequence;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::sandbox::PreparedSandbox;
use hookloop_process::{
    Cancel, Confinement, ExitReason, Job, ProcessError, find_program, run_attached,
};
use serde_json::Value;

use super::gate_run::setup_failed;
use super::lookup;
use super::room_entry::{RoomEntry, SessionRoom};
use super::session_directory::directory;
use super::session_room::{RoomContext, remember_copies};
use super::start_error::StartError;
use super::turn_files::{ended, snapshots_of};
use crate::project::Project;

/// The session of a room in a project without sessions.
const NO_SESSION: &str = "person";
/// The file with the commit that a session began with, in the session's directory.
const BASE_COMMIT: &str = "base.commit";
/// The most bytes of that file.
const BASE_COMMIT_MAX: u64 = 1_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const GIB: u64 = 1024 * 1024 * 1024;

/// The reason why a person gets no shell in a room, or why rooms stay.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error("git is not installed, so there are no rooms")]
    NoGit,
    #[error("no gate of this project runs in a room")]
    NoGates,
    #[error("there is no gate `{0}`")]
    NoSuchGate(String),
    #[error("`{0}` does not run in a room")]
    NotInRoom(String),
    #[error("{0}")]
    NotReady(String),
    /// The hint is a command that only a person may run.
    #[error("the gate `{gate}` may not run: {reason}")]
    Refused { gate: String, reason: String, hint: Option<String> },
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// Limits beyond which rooms that are not in use are removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomLimits {
    /// The time since the last use.
    pub max_age: Duration,
    /// The most disk space of all rooms of a project.
    pub max_bytes: u64,
}

impl Default for RoomLimits {
    fn default() -> RoomLimits {
        RoomLimits { max_age: DAY * 7, max_bytes: 20 * GIB }
    }
}

/// The rooms that a person removes. A room that is in use stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomScope {
    /// Those of sessions that ended.
    Ended,
    All,
}

pub(super) fn rooms_of(exec: &ExecContext, cancel: &Cancel) -> Rooms {
    Rooms::new(RoomOptions {
        state: exec.state(),
        environment: exec.environment(),
        keepers: exec.keepers(),
        cancel: cancel.clone(),
    })
}

/// Returns the rooms of a project, in the order of their slots.
pub fn list(exec: &ExecContext, cancel: &Cancel) -> Result<Vec<RoomInfo>, RepoError> {
    rooms_of(exec, cancel).list()
}

/// Removes rooms that are not in use. With `is_dry`, nothing is removed.
pub fn clean(
    project: &Project,
    exec: &ExecContext,
    cancel: &Cancel,
    scope: RoomScope,
    is_dry: bool,
) -> Result<RemovedRooms, RoomError> {
    project.authorize(ControlledAction::CleanRooms).map_err(StartError::from)?;
    let rooms = rooms_of(exec, cancel);
    let which = match scope {
        RoomScope::All => RoomRetention::All,
        RoomScope::Ended => {
            let found = rooms.list()?;
            let sessions: BTreeSet<String> =
                found.iter().filter_map(|room| room.session.clone()).collect();
            let ended = ended(project, sessions).map_err(StartError::from)?;
            let is_needed = |room: &RoomInfo| {
                room.session.as_ref().is_some_and(|session| !ended.contains(session))
            };
            let free = found.iter().filter(|room| !is_needed(room));
            RoomRetention::Slots(free.map(|room| room.slot).collect())
        }
    };
    Ok(rooms.remove(&which, is_dry)?)
}

/// Removes rooms beyond the limits that are not in use. With `is_dry`, nothing is removed.
pub fn collect(
    exec: &ExecContext,
    cancel: &Cancel,
    limits: &RoomLimits,
    is_dry: bool,
) -> Result<RemovedRooms, RepoError> {
    let rooms = rooms_of(exec, cancel);
    let old = rooms.remove(&RoomRetention::UnusedFor(limits.max_age), is_dry)?;
    let large = rooms.remove(&RoomRetention::UntilBytes(limits.max_bytes), is_dry)?;
    if is_dry {
        // Both begin with the room that was not used for the longest time, so one includes the other.
        return Ok(if old.slots.len() < large.slots.len() { large } else { old });
    }
    Ok(RemovedRooms {
        slots: [old.slots, large.slots].concat(),
        bytes: old.bytes + large.bytes,
        files: old.files + large.files,
    })
}

/// Removes rooms beyond the default limits.
pub(crate) fn collect_old(exec: &ExecContext, cancel: &Cancel) {
    match collect(exec, cancel, &RoomLimits::default(), false) {
        Ok(removed) => tracing::debug!(?removed, "old rooms are removed"),
        Err(RepoError::Cancelled) => {}
        Err(error) => tracing::warn!(%error, "old rooms are not removed"),
    }
}

/// The request for a shell in a room.
#[derive(Debug)]
pub struct ShellRequest<'r> {
    /// The gate whose environment and box the shell gets. None for the first gate of the project.
    pub gate: Option<&'r str>,
    /// The session whose room is used. None for that of the newest room.
    pub session: Option<&'r str>,
    /// The program of the shell.
    pub shell: OsString,
    /// An empty directory, for files that are copied into the room.
    pub scratch: &'r Path,
    pub cancel: &'r Cancel,
}

/// A shell in a room, ready to start. The room is in use until this is dropped.
pub struct RoomShell {
    room: SessionRoom,
    place: Arc<RoomPlace>,
    gate: String,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    confinement: Option<Confinement>,
    setup_problem: Option<String>,
    /// Keeps the temporary directory of the gate's sandbox.
    _sandbox: PreparedSandbox,
}

impl std::fmt::Debug for RoomShell {
    /// Names the gate only: the environment may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoomShell").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl RoomShell {
    /// Puts the current files into a room, and sets the room up.
    pub fn prepare(
        project: &Project,
        runner: &HookRunner,
        request: &ShellRequest<'_>,
    ) -> Result<RoomShell, RoomError> {
        project.authorize(ControlledAction::EnterRoom).map_err(StartError::from)?;
        if find_program("git", runner.path()).is_none() {
            return Err(RoomError::NoGit);
        }
        let registry = project.hooks().map_err(StartError::from)?;
        let (gate, point) = gate_of(&registry, request.gate)?;
        runner.may_run(&gate).map_err(|refusal| refused(&gate, refusal))?;
        let session = session_of(project, runner, request)?;
        let use_of =
            RoomUse { session: &session, scratch: request.scratch, cancel: request.cancel };
        let (mut room, place) = enter(runner, &use_of, &gate)?;
        let runner = runner.in_room(Some(Arc::clone(&place)));
        let setup = registry.resolve(Point::Setup.name(), gate.task_type.as_deref());
        let setup: Vec<Hook> = setup.into_iter().cloned().collect();
        let setup_point = Point::Setup;
        let context = HookContext { cancel: Some(request.cancel), ..HookContext::at(&setup_point) };
        let setup_problem = set_up(&mut room, &runner, &setup, &context).err();
        runner.check_directory(&gate).map_err(RoomError::NotReady)?;
        let sandbox = runner.sandbox(&gate).map_err(RoomError::NotReady)?;
        let secrets = runner.secrets_of(&gate);
        let secrets = secrets.map_err(|error| RoomError::NotReady(error.to_string()))?;
        let argv = vec![request.shell.clone().into_vec()];
        let invocation = Invocation { argv, env: Vec::new() };
        let context = HookContext::at(&point);
        let job = runner.job(&gate, &context, &invocation, &sandbox, (1, &Value::Null));
        let Job { argv, mut env, cwd, confinement, .. } = job;
        // The last of two variables with the same name wins.
        env.extend(secrets);
        Ok(RoomShell {
            room,
            place,
            gate: gate.name,
            argv,
            env,
            cwd,
            confinement,
            setup_problem,
            _sandbox: sandbox,
        })
    }

    pub fn gate(&self) -> &str {
        &self.gate
    }

    /// Returns the number of the room.
    pub fn slot(&self) -> u32 {
        self.room.room.as_ref().map_or(0, Room::slot)
    }

    /// Returns the directory in which the shell starts, as the shell sees it.
    pub fn directory(&self) -> &Path {
        &self.cwd
    }

    /// Returns the project's directory in the room, as other processes see it.
    pub fn files(&self) -> &Path {
        self.place.files()
    }

    /// Whether commands of the shell can write only to the room.
    pub fn is_boxed(&self) -> bool {
        self.place.is_boxed()
    }

    /// Returns the reason why the setup is not in the room, if it is not.
    pub fn setup_problem(&self) -> Option<&str> {
        self.setup_problem.as_deref()
    }

    /// Runs the shell on the terminal of this program, until it ends.
    pub fn run(mut self) -> Result<ExitReason, RoomError> {
        let mut job = Job::new(self.argv.clone(), self.cwd.clone(), Duration::ZERO);
        job.env = std::mem::take(&mut self.env);
        job.confinement = self.confinement.take();
        let ended = run_attached(&job);
        // Commands of a person may have left any file, so no later run relies on the room as it is.
        self.room.leave(true);
        Ok(ended?)
    }
}

/// Returns a gate that runs in a room, and its point.
fn gate_of(registry: &HookRegistry, wanted: Option<&str>) -> Result<(Hook, Point), RoomError> {
    let points = [Point::Stop, Point::Validation, Point::BeforeSubmit, Point::BeforeMerge];
    for point in &points {
        let hooks: Vec<&Hook> = match wanted {
            Some(_) => registry.list().iter().filter(|hook| hook.points.contains(point)).collect(),
            None => registry.resolve(point.name(), None),
        };
        let is_command = |hook: &Hook| matches!(hook.handler, HookHandler::Command(_));
        let is_wanted = |hook: &&&Hook| match wanted {
            Some(name) => hook.name == name,
            None => is_command(hook),
        };
        if let Some(hook) = hooks.iter().filter(is_wanted).find(|hook| has_room(hook)) {
            return Ok(((*hook).clone(), point.clone()));
        }
    }
    match wanted {
        None => Err(RoomError::NoGates),
        Some(name) if registry.list().iter().any(|hook| hook.name == name) => {
            Err(RoomError::NotInRoom(name.to_owned()))
        }
        Some(name) => Err(RoomError::NoSuchGate(name.to_owned())),
    }
}

fn refused(gate: &Hook, refusal: RunRefusal) -> RoomError {
    let RunRefusal { reason, hint } = refusal;
    RoomError::Refused { gate: gate.name.clone(), reason, hint }
}

/// Returns the session whose room is used.
fn session_of(
    project: &Project,
    runner: &HookRunner,
    request: &ShellRequest<'_>,
) -> Result<String, RoomError> {
    if let Some(wanted) = request.session {
        return Ok(lookup::find(project, wanted)?.id.to_string());
    }
    let rooms = list(runner, request.cancel)?;
    let newest = rooms.into_iter().max_by_key(|room| room.last_used);
    if let Some(session) = newest.and_then(|room| room.session) {
        return Ok(session);
    }
    let latest = lookup::latest(project)?;
    Ok(latest.map_or_else(|| NO_SESSION.to_owned(), |row| row.id.to_string()))
}

/// The use of a room outside of a running session.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomUse<'u> {
    /// The session whose room is used.
    pub(super) session: &'u str,
    /// A directory for files that are copied into the room.
    pub(super) scratch: &'u Path,
    pub(super) cancel: &'u Cancel,
}

/// Puts the current files into the room of a session.
pub(super) fn enter(
    runner: &HookRunner,
    use_of: &RoomUse<'_>,
    gate: &Hook,
) -> Result<(SessionRoom, Arc<RoomPlace>), RoomError> {
    let RoomUse { session, scratch, cancel } = *use_of;
    let gates = std::slice::from_ref(gate);
    remember_copies(runner.root(), scratch, gates);
    let snapshots = snapshots_of(runner, session, cancel);
    let base = base_of(runner, session);
    let context = RoomContext {
        runner,
        snapshots: &snapshots,
        directory: scratch,
        session,
        base: base.as_ref(),
        cancel,
    };
    let mut room = SessionRoom::default();
    if let RoomEntry::Unable { reason } = room.enter(&context, gates, None) {
        return Err(RoomError::NotReady(reason));
    }
    let place = room.place.clone();
    let place = place.ok_or_else(|| RoomError::NotReady("there is no room".to_owned()))?;
    Ok((room, place))
}

/// Returns the commit that a session began with, if it is known.
fn base_of(runner: &HookRunner, session: &str) -> Option<CommitId> {
    let id: SessionId = session.parse().ok()?;
    let path = directory(runner, &id).join(BASE_COMMIT);
    let size = fs::metadata(&path).ok()?.len();
    let text = fs::read_to_string(path).ok().filter(|_| size < BASE_COMMIT_MAX)?;
    text.trim().parse().ok()
}

/// Runs the setup, if its result is not in the room. The error is for a person.
pub(super) fn set_up(
    room: &mut SessionRoom,
    runner: &HookRunner,
    setup: &[Hook],
    context: &HookContext<'_>,
) -> Result<(), String> {
    if setup.is_empty() {
        return room.discard_setup();
    }
    let (digest, is_ready) = room.setup_state(runner, setup)?;
    if is_ready {
        return Ok(());
    }
    // Files that gates left must not count as a result of the setup.
    room.discard_setup()?;
    room.make_cold(None)?;
    let runs = hook_sequence::run_all(runner, setup, context, &mut |_| {});
    let has_failed =
        |run: &&HookRun| !matches!(run.outcome.status, HookStatus::Passed | HookStatus::Skipped);
    match runs.iter().find(has_failed) {
        Some(run) => Err(setup_failed(run)),
        None => room.note_setup(&digest, None),
    }
}
