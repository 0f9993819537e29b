//! Restores files to their state before or after a turn.
//!
//! A change between two snapshots of one turn is the agent's. Every other change is a person's, and is not
//! overwritten. The files before a restore are kept, so that it can be undone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::authority::ControlledAction;
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::facts::{FilesRestored, RestoreKind};
use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::{
    RestoreItem, RestoreLock, RestorePlan, RestoreReport, RestoredFiles, RestoredStates, Snapshot,
    Snapshots, TurnFiles, top_of, unfinished_restore,
};
use hookloop_hooks::runner::HookRunner;
use hookloop_process::{Cancel, find_program};
use hookloop_store::view::SessionRow;

use super::checkout;
use super::lookup::{self, OPEN_MAX, is_review};
use super::session_directory::is_running;
use super::start_error::StartError;
use super::turn_files::{TurnMoment, name, snapshots_of, turn_of};
use crate::project::Project;

/// The group of the snapshots before and after each restore.
const RESTORES: &str = "restores";
/// A file that changed within this time before a snapshot could change again unnoticed.
const SETTLE: Duration = Duration::from_millis(50);
/// Earlier restores whose files are known.
const RESTORES_MAX: usize = 50;
/// Sessions that are searched for one with snapshots.
const SESSIONS_MAX: usize = OPEN_MAX;

#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Repo(#[from] RepoError),
    #[error("no session of this project has a turn whose files are kept on this machine")]
    NoSession,
    #[error("session {0} has no turn whose files are kept on this machine")]
    NoTurns(SessionId),
    #[error(
        "session {session} has no kept files of turn {turn}: it has those of turns {first} to {last}"
    )]
    NoSuchTurn { session: SessionId, turn: u32, first: u32, last: u32 },
    #[error("session {0} is running")]
    Running(SessionId),
    #[error("git is not installed, so no files were kept")]
    NoGit,
    #[error("nothing was undone or restored yet")]
    NothingToTakeBack,
    #[error("`{0}` is outside of {1}")]
    Outside(String, PathBuf),
    #[error("an {0} did not finish")]
    Unfinished(String),
}

/// The request of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoRequest {
    /// The state before this turn. None for the first turn.
    Before(Option<u32>),
    /// The state of these files after this turn; 0 for the state before the first.
    Files { turn: u32, paths: Vec<PathBuf> },
    /// The state before the last restore.
    Back,
}

/// A file that a person changed since a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedFile {
    pub path: String,
    pub reason: &'static str,
}

/// The effect of a restore on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileEffect {
    Created,
    Changed,
    Deleted,
}

impl FileEffect {
    /// Returns the effect as a verb.
    pub fn name(self) -> &'static str {
        match self {
            FileEffect::Created => "create",
            FileEffect::Changed => "change",
            FileEffect::Deleted => "delete",
        }
    }
}

/// A restore that was not made yet.
#[derive(Debug)]
pub struct PlannedRestore {
    plan: RestorePlan,
    planned: SystemTime,
    lock: RestoreLock,
    snapshots: Snapshots,
    session: SessionId,
    now: Snapshot,
    /// Files that a person changed, which are left as they are.
    pub edited: Vec<EditedFile>,
    /// The number of turns that worked in another directory, and stay.
    pub elsewhere: usize,
    /// The commits of the agent that stay: the commit before its turns, if it is another now.
    pub old_head: Option<String>,
    _alone: Option<File>,
}

impl PlannedRestore {
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the state that is restored, in words.
    pub fn label(&self) -> &str {
        &self.plan.label
    }

    /// Returns each file with the effect on it.
    pub fn files(&self) -> impl Iterator<Item = (String, FileEffect)> {
        self.plan.items.iter().map(|item| {
            let effect = match (&item.expected, &item.target) {
                (None, _) => FileEffect::Created,
                (Some(_), None) => FileEffect::Deleted,
                (Some(_), Some(_)) => FileEffect::Changed,
            };
            (item.shown(), effect)
        })
    }

    pub fn len(&self) -> usize {
        self.plan.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.plan.items.is_empty()
    }
}

/// Finds the session that a person means: the named one, else the last one with kept files.
pub fn find(
    project: &Project,
    runner: &HookRunner,
    wanted: Option<&str>,
) -> Result<SessionId, UndoError> {
    if let Some(wanted) = wanted {
        return Ok(lookup::find(project, wanted)?.id);
    }
    let snapshots = open(runner, "undo")?;
    let rows = project.read(|view| view.sessions(SESSIONS_MAX)).map_err(StartError::from)?;
    let has_turns = |row: &&SessionRow| {
        let names = snapshots.names(row.id.as_str());
        let is_turn = |name: &String| turn_of(name, TurnMoment::Before).is_some();
        !is_review(row) && names.is_ok_and(|names| names.iter().any(is_turn))
    };
    rows.iter().find(has_turns).map(|row| row.id.clone()).ok_or(UndoError::NoSession)
}

/// Continues a restore that a crash interrupted. None if there is none.
pub fn finish(
    project: &Project,
    runner: &HookRunner,
) -> Result<Option<(String, RestoreReport)>, UndoError> {
    authorize(project)?;
    let snapshots = open(runner, "undo")?;
    let Some(plan) = snapshots.pending_restore()? else { return Ok(None) };
    let _alone = checkout::hold_alone(runner, "undo")?;
    let snapshots = open(runner, &plan.session)?.at(&plan.directory()?);
    let lock = snapshots.lock_restore()?;
    let report = snapshots.continue_restore(&plan, &lock)?;
    let left = report.left.len();
    end(project, &snapshots, &plan, &report, left)?;
    Ok(Some((plan.label, report)))
}

/// Gives up a restore that a crash interrupted. The files stay as they are.
pub fn abandon(project: &Project, runner: &HookRunner) -> Result<Option<String>, UndoError> {
    authorize(project)?;
    let snapshots = open(runner, "undo")?;
    let label = unfinished_restore(runner.state());
    let _lock = snapshots.lock_restore()?;
    snapshots.end_restore()?;
    Ok(label)
}

/// Plans a restore. Nothing changes yet.
pub fn plan(
    project: &Project,
    runner: &HookRunner,
    session: &SessionId,
    request: &UndoRequest,
    overwrites: bool,
) -> Result<PlannedRestore, UndoError> {
    authorize(project)?;
    if let Some(label) = unfinished_restore(runner.state()) {
        return Err(UndoError::Unfinished(label));
    }
    if is_running(runner, session) {
        return Err(UndoError::Running(session.clone()));
    }
    let snapshots = open(runner, session.as_str())?;
    let (kind, turns) = match request {
        UndoRequest::Before(turn) => (RestoreKind::Undo, turns(&snapshots, session, *turn)?),
        UndoRequest::Files { .. } => (RestoreKind::Restore, turns(&snapshots, session, None)?),
        UndoRequest::Back => (RestoreKind::Back, vec![last_restore(&snapshots)?]),
    };
    let Some(last) = turns.last() else { return Err(UndoError::NoTurns(session.clone())) };
    let top = top_of(&last.before)?;
    let is_checkout = runner.root().starts_with(&top);
    let alone =
        if is_checkout { Some(checkout::hold_alone(runner, session.as_str())?) } else { None };
    let lock = snapshots.lock_restore()?;
    // Git takes a file for unchanged if it was written at the moment of the last look.
    std::thread::sleep(SETTLE);
    let planned = SystemTime::now();
    let snapshots = snapshots.at(&top);
    let now = snapshots.take()?;
    let elsewhere = turns.iter().filter(|turn| turn.before.top != last.before.top).count();
    let turns: Vec<&TurnFiles> =
        turns.iter().filter(|turn| turn.before.top == last.before.top).collect();
    let (files, label, turn) = wanted_files(&snapshots, session, request, &turns, &now)?;
    let (items, edited) = split(files, overwrites);
    let first = turns.first().and_then(|turn| turn.before.head.as_ref());
    let old_head =
        first.filter(|head| Some(*head) != now.head.as_ref() && kind == RestoreKind::Undo);
    let old_head = old_head.map(ToString::to_string);
    let since = planned.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let plan = RestorePlan {
        kind,
        turn,
        label,
        name: since.to_string(),
        session: session.to_string(),
        top: now.top.clone(),
        before: now.id.clone(),
        items,
    };
    Ok(PlannedRestore {
        plan,
        planned,
        lock,
        snapshots,
        session: session.clone(),
        now,
        edited,
        elsewhere,
        old_head,
        _alone: alone,
    })
}

/// Returns the files of a request, a label, and the turn whose state is restored.
fn wanted_files(
    snapshots: &Snapshots,
    session: &SessionId,
    request: &UndoRequest,
    turns: &[&TurnFiles],
    now: &Snapshot,
) -> Result<(RestoredFiles, String, Option<u32>), UndoError> {
    let kept = restored_states(snapshots)?;
    Ok(match request {
        UndoRequest::Before(_) => {
            let number = turns.first().map_or(1, |turn| turn.number);
            let last = turns.last().map_or(number, |turn| turn.number);
            let label = match last {
                last if last == number => format!("undo of turn {number}"),
                last => format!("undo of turns {number} to {last}"),
            };
            (snapshots.undone_files(turns, now, &kept)?, label, Some(number))
        }
        UndoRequest::Back => {
            let files = snapshots.undone_files(turns, now, &RestoredStates::new())?;
            (files, "undo of the last restore".to_owned(), None)
        }
        UndoRequest::Files { turn, paths } => {
            let paths = relative(&top_of(now)?, paths)?;
            let state = state_after(session, turns, *turn)?;
            let files = snapshots.restored_files(turns, state, now, &kept, &paths)?;
            (files, format!("restore of files from turn {turn}"), Some(*turn))
        }
    })
}

/// Separates the files that change from those that a person changed.
fn split(files: RestoredFiles, overwrites: bool) -> (Vec<RestoreItem>, Vec<EditedFile>) {
    let mut items = Vec::new();
    let mut edited = Vec::new();
    for (path, file) in files {
        match file.edited {
            Some(reason) if !overwrites => {
                let path = String::from_utf8_lossy(&path).into_owned();
                edited.push(EditedFile { path, reason });
            }
            _ => items.push(RestoreItem::new(&path, file.current, file.target)),
        }
    }
    (items, edited)
}

/// Makes a planned restore.
pub fn perform(project: &Project, planned: &PlannedRestore) -> Result<RestoreReport, UndoError> {
    authorize(project)?;
    let PlannedRestore { plan, snapshots, now, .. } = planned;
    snapshots.keep(RESTORES, &format!("{}-before", plan.name), now)?;
    let report = snapshots.restore(plan, planned.planned, &planned.lock)?;
    let left = report.left.len() + planned.edited.len();
    end(project, snapshots, plan, &report, left)?;
    Ok(report)
}

/// Records a restore whose files are done.
fn end(
    project: &Project,
    snapshots: &Snapshots,
    plan: &RestorePlan,
    report: &RestoreReport,
    left: usize,
) -> Result<(), UndoError> {
    // Taking a restore back may bring the work of a person back.
    if plan.kind != RestoreKind::Back {
        snapshots.record_restored(plan, report)?;
    }
    let after = snapshots.take()?;
    snapshots.keep(RESTORES, &format!("{}-after", plan.name), &after)?;
    snapshots.end_restore()?;
    let event = EventBody::FilesRestored(FilesRestored {
        kind: plan.kind,
        turn: plan.turn,
        files: count(report.restored),
        left: count(left),
        tree: after.tree,
    });
    let id: SessionId = plan.session.parse().map_err(|_| UndoError::NoSession)?;
    project.append(&Subject::Session(id), event).map_err(StartError::from)?;
    Ok(())
}

fn count(files: usize) -> u32 {
    u32::try_from(files).unwrap_or(u32::MAX)
}

fn authorize(project: &Project) -> Result<(), UndoError> {
    Ok(project.authorize(ControlledAction::RestoreFiles).map_err(StartError::from)?)
}

fn open(runner: &HookRunner, period: &str) -> Result<Snapshots, UndoError> {
    if find_program("git", runner.path()).is_none() {
        return Err(UndoError::NoGit);
    }
    let io = |source| StartError::Io { path: PathBuf::new(), source };
    let cancel = Cancel::new().map_err(io)?;
    Ok(snapshots_of(runner, period, &cancel))
}

/// Returns the turns of a session from this one on.
fn turns(
    snapshots: &Snapshots,
    session: &SessionId,
    from: Option<u32>,
) -> Result<Vec<TurnFiles>, UndoError> {
    let group = session.as_str();
    let names = snapshots.names(group)?;
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| turn_of(name, TurnMoment::Before)).collect();
    numbers.sort_unstable();
    let (Some(first), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else {
        return Err(UndoError::NoTurns(session.clone()));
    };
    let wanted = from.unwrap_or(first);
    if !numbers.contains(&wanted) {
        let session = session.clone();
        return Err(UndoError::NoSuchTurn { session, turn: wanted, first, last });
    }
    let mut turns = Vec::new();
    for number in numbers.into_iter().filter(|number| *number >= wanted) {
        let before = snapshots.find(group, &name(number, TurnMoment::Before))?;
        let Some(before) = before else { continue };
        let after = snapshots.find(group, &name(number, TurnMoment::After))?;
        turns.push(TurnFiles { number, before, after });
    }
    Ok(turns)
}

/// Returns the files around the last restore.
fn last_restore(snapshots: &Snapshots) -> Result<TurnFiles, UndoError> {
    let times = restore_times(snapshots)?;
    let last = times.last().ok_or(UndoError::NothingToTakeBack)?;
    let find = |side: &str| snapshots.find(RESTORES, &format!("{last}-{side}"));
    let before = find("before")?.ok_or(UndoError::NothingToTakeBack)?;
    Ok(TurnFiles { number: 0, before, after: find("after")? })
}

/// Returns the files that the last restores changed. In that state they have no work of a person.
fn restored_states(snapshots: &Snapshots) -> Result<RestoredStates, UndoError> {
    let mut states = RestoredStates::new();
    let times = restore_times(snapshots)?;
    for time in &times[times.len().saturating_sub(RESTORES_MAX)..] {
        states.extend(snapshots.recorded(&time.to_string())?);
    }
    Ok(states)
}

/// Returns the times of all restores, the last one last.
fn restore_times(snapshots: &Snapshots) -> Result<Vec<u128>, UndoError> {
    let names = snapshots.names(RESTORES)?;
    let mut times: Vec<u128> =
        names.iter().filter_map(|name| name.strip_suffix("-after")?.parse().ok()).collect();
    times.sort_unstable();
    Ok(times)
}

/// Returns the state after a turn; for 0 that before the first.
fn state_after<'t>(
    session: &SessionId,
    turns: &[&'t TurnFiles],
    turn: u32,
) -> Result<&'t Snapshot, UndoError> {
    let numbers = || turns.iter().map(|turn| turn.number);
    let state = match turn {
        0 => turns.first().map(|first| &first.before),
        turn => {
            turns.iter().find(|known| known.number == turn).and_then(|turn| turn.after.as_ref())
        }
    };
    state.ok_or_else(|| UndoError::NoSuchTurn {
        session: session.clone(),
        turn,
        first: numbers().min().unwrap_or_default(),
        last: numbers().max().unwrap_or_default(),
    })
}

/// Returns paths relative to the working directory.
fn relative(top: &Path, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, UndoError> {
    let one = |path: &PathBuf| {
        let outside = || UndoError::Outside(path.display().to_string(), top.to_owned());
        let below = path.strip_prefix(top).map_err(|_| outside())?;
        Ok(below.as_os_str().as_encoded_bytes().to_vec())
    };
    paths.iter().map(one).collect()
}
