//! The snapshots of a session: the files before and after each turn.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hookloop_core::id::SessionId;
use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::{
    GcReport, RetentionLimits, Snapshot, SnapshotOptions, Snapshots, store_of,
};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::Cancel;

use crate::error::EngineError;
use crate::project::Project;

/// The least time between two removals of old snapshots by sessions.
const COLLECT_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The file that was written when the last removal by a session began.
const COLLECTED: &str = "collected";

/// A side of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnMoment {
    Before,
    After,
}

/// Returns the snapshots of the directory that a context works in. See [`SnapshotOptions::period`].
pub(super) fn snapshots_of(exec: &ExecContext, period: &str, cancel: &Cancel) -> Snapshots {
    Snapshots::new(SnapshotOptions {
        root: exec.root(),
        state: exec.state(),
        period: period.to_owned(),
        environment: exec.environment(),
        keepers: exec.keepers(),
        cancel: cancel.clone(),
    })
}

/// Returns the name of the snapshot at one side of a turn.
pub(crate) fn name(turn: u32, moment: TurnMoment) -> String {
    match moment {
        TurnMoment::Before => format!("{turn}-before"),
        TurnMoment::After => format!("{turn}-after"),
    }
}

/// Returns the turn of a snapshot's name, if it is of that side.
pub(crate) fn turn_of(name: &str, moment: TurnMoment) -> Option<u32> {
    let end = match moment {
        TurnMoment::Before => "-before",
        TurnMoment::After => "-after",
    };
    name.strip_suffix(end)?.parse().ok()
}

/// Keeps the snapshot at one side of a turn.
///
/// A turn that a crash interrupted begins again: the snapshot before its first attempt stays.
pub(super) fn keep(
    snapshots: &Snapshots,
    id: &SessionId,
    turn: u32,
    moment: TurnMoment,
    snapshot: &Snapshot,
) -> Result<(), RepoError> {
    let name = name(turn, moment);
    if moment == TurnMoment::Before && snapshots.find(id.as_str(), &name)?.is_some() {
        return Ok(());
    }
    snapshots.keep(id.as_str(), &name, snapshot)
}

/// The reason why old snapshots were not removed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Removes old snapshots of a project. A session that runs or can be resumed keeps its snapshots.
pub fn collect(
    project: &Project,
    exec: &ExecContext,
    cancel: &Cancel,
    limits: &RetentionLimits,
    is_dry: bool,
) -> Result<GcReport, CollectError> {
    let snapshots = snapshots_of(exec, "", cancel);
    let ended = ended(project, snapshots.groups()?)?;
    // A session that began meanwhile is kept, too.
    let is_kept = |group: &str| !ended.contains(group);
    Ok(snapshots.collect(limits, SystemTime::now(), &is_kept, is_dry)?)
}

/// Returns those of the groups that no open session needs.
pub(super) fn ended(
    project: &Project,
    groups: BTreeSet<String>,
) -> Result<BTreeSet<String>, EngineError> {
    project.read(|view| {
        let mut ended = BTreeSet::new();
        for group in groups {
            // Some groups are of no session.
            let row = match group.parse::<SessionId>() {
                Ok(id) => view.session(&id)?,
                Err(_) => None,
            };
            if row.is_none_or(|row| row.is_over()) {
                ended.insert(group);
            }
        }
        Ok(ended)
    })
}

/// Removes old snapshots at the end of a session, if no session did so in the last day.
///
/// Returns whether it was time for that.
pub(crate) fn collect_old(project: &Project, exec: &ExecContext, cancel: &Cancel) -> bool {
    let store = store_of(exec.state());
    let age = age_of_stamp(&store);
    // A session that is being stopped ends at once.
    if age.is_some_and(|age| age < COLLECT_EVERY) || !has_store(&store) || cancel.is_triggered() {
        return false;
    }
    let stamp = store.join(COLLECTED);
    // Written first: sessions that end at the same time need not all do it.
    let written = fs::write(&stamp, format!("{}\n", std::process::id()));
    if let Err(error) = written {
        tracing::warn!(path = %stamp.display(), %error, "old snapshots are not removed");
        return false;
    }
    // A new store has no old snapshots.
    if age.is_none() {
        return false;
    }
    match collect(project, exec, cancel, &RetentionLimits::default(), false) {
        Ok(report) => tracing::debug!(?report, "old snapshots are removed"),
        Err(CollectError::Repo(RepoError::Cancelled)) => {}
        Err(error) => tracing::warn!(%error, "old snapshots are not removed"),
    }
    true
}

/// Returns the time since the last removal; none if there was none.
fn age_of_stamp(store: &Path) -> Option<Duration> {
    let stamp = fs::metadata(store.join(COLLECTED)).and_then(|found| found.modified()).ok()?;
    Some(stamp.elapsed().unwrap_or_default())
}

fn has_store(store: &Path) -> bool {
    store.join("HEAD").exists()
}
