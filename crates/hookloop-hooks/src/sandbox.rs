//! The sandbox of one run: the real paths of its places, and its temporary directory.
//!
//! If this system cannot enforce a restriction, the run is refused.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hookloop_config::ids::fresh_id;
use hookloop_config::paths::{ROOMS, SCRATCH, WORKTREES};
use hookloop_core::options::HookSandbox;
use hookloop_process::{Confinement, SandboxSupport};

use crate::gate_room::{RoomPlace, apart, directories_of};

/// The name of the project's directory among the places of a sandbox.
pub(crate) const WORKTREE: &str = "worktree";
/// The name of a directory that is created for the run and deleted after it.
pub(crate) const TEMPORARY: &str = "tmp";
/// The parent of temporary directories if `TMPDIR` is not set.
pub(crate) const TEMPORARY_FILES: &str = "/tmp";

/// The directory of a hook, and the state directory that it must not write to.
#[derive(Clone, Copy, Debug)]
pub struct SandboxContext<'a> {
    pub root: &'a Path,
    pub state: &'a Path,
    /// The user's `TMPDIR`.
    pub temporary_files: Option<&'a Path>,
}

/// A prepared sandbox. Its temporary directory exists until this is dropped.
#[derive(Debug, Default)]
pub struct PreparedSandbox {
    pub confinement: Option<Confinement>,
    temporary: Option<TemporaryDirectory>,
}

/// A directory that is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory(PathBuf);

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The system's cleaner of temporary files deletes the rest.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            let path = self.0.display();
            tracing::warn!(%path, %error, "a hook's temporary directory is not deleted");
        }
    }
}

impl PreparedSandbox {
    /// Prepares a sandbox, or returns the reason why the hook must not run.
    pub fn new(
        sandbox: Option<&HookSandbox>,
        around: SandboxContext<'_>,
    ) -> Result<PreparedSandbox, String> {
        let Some(sandbox) = sandbox else { return Ok(PreparedSandbox::default()) };
        if let Some(gap) = SandboxSupport::of_this_system().gap() {
            return Err(format!(
                "its sandbox can't be enforced, so it is not run: {gap}. Run it on another system, or take `sandbox:` out and trust it again"
            ));
        }
        let mut temporary = None;
        let mut places = Vec::new();
        for place in sandbox.write.iter().flatten() {
            places.push(match place.as_str() {
                WORKTREE => around.root.to_owned(),
                TEMPORARY => temporary.get_or_insert(TemporaryDirectory::new(around)?).0.clone(),
                path => real(path, around.root)?,
            });
        }
        if let Some(place) = places.iter().find(|place| is_of_state(place, around.state)) {
            return Err(format!(
                "its sandbox would let it write to hookloop's own state in {}, by `{}`: name smaller places",
                around.state.display(),
                place.display()
            ));
        }
        let write = sandbox.write.is_some().then_some(places);
        let confinement =
            Some(Confinement { no_network: sandbox.no_network, write, ..Confinement::default() });
        Ok(PreparedSandbox { confinement, temporary })
    }

    /// Prepares the box of a gate in a room, and the sandbox of the hook in it.
    pub(crate) fn in_room(
        sandbox: Option<&HookSandbox>,
        around: SandboxContext<'_>,
        (room, parallel): (&RoomPlace, Option<&str>),
    ) -> Result<PreparedSandbox, String> {
        let Some(of_room) = room.confinement() else {
            return PreparedSandbox::new(sandbox, around);
        };
        let of_room = match parallel {
            Some(hook) => &apart(of_room, hook),
            None => of_room,
        };
        for directory in directories_of(of_room).iter().chain(room.caches()) {
            fs::create_dir_all(directory)
                .map_err(|error| format!("no room: {}: {error}", directory.display()))?;
        }
        let PreparedSandbox { confinement, temporary } = PreparedSandbox::new(sandbox, around)?;
        let confinement = match confinement {
            None => of_room.clone(),
            Some(own) => Confinement {
                no_network: own.no_network,
                write: own.write.or_else(|| of_room.write.clone()),
                local_sockets: false,
                ..of_room.clone()
            },
        };
        Ok(PreparedSandbox { confinement: Some(confinement), temporary })
    }

    /// Lets the processes write to one more directory.
    pub(crate) fn allow(&mut self, directory: &Path) {
        if let Some(Confinement { write: Some(places), .. }) = &mut self.confinement {
            places.push(directory.to_owned());
        }
    }

    /// Returns the variable that names the temporary directory.
    pub fn variable(&self) -> Option<(OsString, OsString)> {
        self.temporary.as_ref().map(|temporary| ("TMPDIR".into(), temporary.0.clone().into()))
    }
}

impl TemporaryDirectory {
    fn new(around: SandboxContext<'_>) -> Result<TemporaryDirectory, String> {
        let parent = around.temporary_files.unwrap_or(Path::new(TEMPORARY_FILES));
        TemporaryDirectory::below(parent, "its sandbox")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a directory. `purpose` names its use in errors.
    pub(crate) fn below(parent: &Path, purpose: &str) -> Result<TemporaryDirectory, String> {
        let path = parent.join(format!("hookloop-{}", fresh_id()));
        // Fails if the path exists: it would belong to another process.
        let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| path.canonicalize());
        made.map(TemporaryDirectory).map_err(|error| {
            format!("no temporary directory for {purpose}: {}: {error}", path.display())
        })
    }
}

/// Returns the real path of `path`. A relative path must not lead out of the project.
fn real(path: &str, root: &Path) -> Result<PathBuf, String> {
    let named = root.join(path);
    let real = named.canonicalize().map_err(|error| {
        format!("its sandbox lets it write to `{path}`: {error}; make it, or name what there is")
    })?;
    let leads_out = Path::new(path).is_relative()
        && !root.canonicalize().is_ok_and(|root| real.starts_with(root));
    match leads_out {
        true => Err(format!(
            "its sandbox lets it write to `{path}`, which leads to {}, out of the project: name that",
            real.display()
        )),
        false => Ok(real),
    }
}

/// Whether a place contains, or is part of, hookloop's own state.
///
/// Checkouts that are stored in the state directory do not count as state.
fn is_of_state(place: &Path, state: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (place, state) = (real(place), real(state));
    let Ok(inside) = place.strip_prefix(&state) else { return state.starts_with(&place) };
    let mut parts = inside.components();
    let is_of_checkouts = parts.next().is_some_and(|first| {
        [WORKTREES, SCRATCH, ROOMS].iter().any(|name| first.as_os_str() == *name)
    });
    // The parent directory of all checkouts counts as state.
    !(is_of_checkouts && parts.next().is_some())
}

/// Describes a sandbox in one line.
pub fn in_words(sandbox: &HookSandbox) -> String {
    let network = if sandbox.no_network { "no network" } else { "no local sockets" };
    match sandbox.write.as_deref() {
        None => format!("{network}; writes anywhere"),
        Some([]) => format!("{network}; writes nowhere"),
        Some(places) => format!("{network}; writes only to {}", places.join(", ")),
    }
}
