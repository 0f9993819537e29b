//! A hook's sandbox as it is for one run: its places by their real paths, and a directory of its own for
//! what is temporary. What can't be enforced is refused.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hookloop_config::ids::fresh_id;
use hookloop_config::paths::{SCRATCH, WORKTREES};
use hookloop_core::options::HookSandbox;
use hookloop_process::{Confinement, SandboxSupport};

/// The project's directory, among the places of a sandbox.
pub(crate) const WORKTREE: &str = "worktree";
/// A directory that is made for the run and deleted after it.
pub(crate) const TEMPORARY: &str = "tmp";
/// Where temporary files are, if the user does not say.
const TEMPORARY_FILES: &str = "/tmp";

/// Where a hook is run from, and what it must not get at.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub root: &'a Path,
    pub state: &'a Path,
    /// The user's `TMPDIR`.
    pub temporary_files: Option<&'a Path>,
}

/// A sandbox that is ready. Its temporary directory is there as long as this is.
#[derive(Debug, Default)]
pub struct Prepared {
    pub confinement: Option<Confinement>,
    temporary: Option<Temporary>,
}

#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // The system's cleaner of temporary files deletes the rest.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            let path = self.0.display();
            tracing::warn!(%path, %error, "a hook's temporary directory is not deleted");
        }
    }
}

impl Prepared {
    /// Makes a sandbox ready, or says why the hook is not run.
    pub fn new(
        sandbox: Option<&HookSandbox>,
        around: Surroundings<'_>,
    ) -> Result<Prepared, String> {
        let Some(sandbox) = sandbox else { return Ok(Prepared::default()) };
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
                TEMPORARY => temporary.get_or_insert(Temporary::new(around)?).0.clone(),
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
        let confinement = Some(Confinement { no_network: sandbox.no_network, write });
        Ok(Prepared { confinement, temporary })
    }

    /// The variable that leads programs to the temporary directory.
    pub fn variable(&self) -> Option<(OsString, OsString)> {
        self.temporary.as_ref().map(|temporary| ("TMPDIR".into(), temporary.0.clone().into()))
    }
}

impl Temporary {
    fn new(around: Surroundings<'_>) -> Result<Temporary, String> {
        let parent = around.temporary_files.unwrap_or(Path::new(TEMPORARY_FILES));
        let path = parent.join(format!("hookloop-{}", fresh_id()));
        // What is there already is somebody else's, and an error.
        let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| path.canonicalize());
        made.map(Temporary).map_err(|error| {
            format!("no temporary directory for its sandbox: {}: {error}", path.display())
        })
    }
}

/// The place that `path` leads to. One that is named from the project is in it, whatever links say.
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

/// Whether one of two places is in the other, and what is in both is ours: not a checkout that is kept beside our
/// state, a task's or one that is thrown away.
fn is_of_state(place: &Path, state: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (place, state) = (real(place), real(state));
    let Ok(inside) = place.strip_prefix(&state) else { return state.starts_with(&place) };
    let mut parts = inside.components();
    let is_of_checkouts = parts
        .next()
        .is_some_and(|first| [WORKTREES, SCRATCH].iter().any(|name| first.as_os_str() == *name));
    // The directory of all of them is ours.
    !(is_of_checkouts && parts.next().is_some())
}

/// A sandbox in a line.
pub fn in_words(sandbox: &HookSandbox) -> String {
    let network = if sandbox.no_network { "no network" } else { "no local sockets" };
    match sandbox.write.as_deref() {
        None => format!("{network}; writes anywhere"),
        Some([]) => format!("{network}; writes nowhere"),
        Some(places) => format!("{network}; writes only to {}", places.join(", ")),
    }
}
