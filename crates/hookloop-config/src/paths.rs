//! The directories of a project and of its state.
//!
//! A project is a directory with `hookloop.yaml`. Its state is in the user's state directory, under a name made
//! from the project's real path. So a clone contains no state, and an agent that works in the repository does not
//! see it.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use hookloop_core::digest::short_sha256_hex;
use hookloop_core::store_config::TABLES_VERSION;

/// The number of digest bytes in the name of a state directory.
const KEY_BYTES: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("no {FILE_NAME} in {} or above it", .0.display())]
    NoProject(PathBuf),
    #[error("neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoHome,
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} belongs to another user", .0.display())]
    Foreign(PathBuf),
    #[error("{} can be written by other users", .0.display())]
    Exposed(PathBuf),
    #[error("{}: the name of this directory is not UTF-8, and agents and hooks are given it as text", .0.display())]
    NotText(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPaths {
    /// The directory with `hookloop.yaml`, without symbolic links.
    pub root: PathBuf,
    /// The directory of the project's state.
    pub state: PathBuf,
}

impl ProjectPaths {
    /// Returns the project that contains `start`.
    pub fn find(start: &Path, state_home: &Path) -> Result<ProjectPaths, PlaceError> {
        let real = start.canonicalize().map_err(|source| io(start, source))?;
        check_text(&real)?;
        check_text(state_home)?;
        if let Some(root) = home_of_worktree(&real, state_home) {
            return Ok(ProjectPaths::at(&root, state_home));
        }
        match real.ancestors().find(|dir| dir.join(FILE_NAME).is_file()) {
            Some(root) => Ok(ProjectPaths::at(root, state_home)),
            None => Err(PlaceError::NoProject(real)),
        }
    }

    /// Returns the paths of a new project in `root`, a real path.
    pub fn of_new(root: &Path, state_home: &Path) -> Result<ProjectPaths, PlaceError> {
        check_text(root)?;
        check_text(state_home)?;
        Ok(ProjectPaths::at(root, state_home))
    }

    /// Returns the paths of a project in `root`, a real path.
    pub fn at(root: &Path, state_home: &Path) -> ProjectPaths {
        let key = short_sha256_hex(root.as_os_str().as_encoded_bytes(), KEY_BYTES);
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().filter(fits).take(40).collect();
        ProjectPaths { root: root.to_owned(), state: state_home.join(format!("{name}-{key}")) }
    }

    /// Returns the paths of a project that workers of this machine cloned.
    pub fn of_copy(state_home: &Path, name: &str) -> ProjectPaths {
        ProjectPaths::at(&state_home.join(COPIES).join(name), state_home)
    }

    /// Returns the name of the project that workers cloned here, if this is such a clone.
    pub fn copy_of(&self) -> Option<&str> {
        let copies = self.state.parent()?.join(COPIES);
        self.root.strip_prefix(copies).ok()?.iter().next()?.to_str()
    }

    /// Returns the paths of a fleet, which has only a state. Each store has its own fleet.
    pub fn of_fleet(state_home: &Path, store: &str) -> ProjectPaths {
        let key = short_sha256_hex(store, KEY_BYTES);
        let state = state_home.join(format!("_fleet-{key}"));
        ProjectPaths { root: state.clone(), state }
    }

    /// Returns the paths of this user's projects that still have a configuration, the most recently used first, at
    /// most `max`.
    pub fn all(state_home: &Path, max: usize) -> Vec<ProjectPaths> {
        let entries = std::fs::read_dir(state_home).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .take(STATES_MAX)
            .filter_map(|entry| {
                let place = ProjectPaths::at(&root_of(&entry.path())?, state_home);
                // A state that names another directory was copied here.
                let is_it = place.state == entry.path() && place.config().is_file();
                is_it.then(|| (used(&place.state), place))
            })
            .collect();
        found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.state.cmp(&other.state)));
        found.into_iter().take(max).map(|(_, place)| place).collect()
    }

    pub fn config(&self) -> PathBuf {
        self.root.join(FILE_NAME)
    }

    /// Returns the file of the view of a remote log. Programs of two versions may run at once during an upgrade,
    /// each with its own tables.
    pub fn view(&self) -> PathBuf {
        self.state.join(format!("view-{TABLES_VERSION}.db"))
    }

    pub fn database(&self) -> PathBuf {
        self.state.join("hookloop.db")
    }

    /// Returns whether sessions of the project have left files here.
    pub fn has_sessions(&self) -> bool {
        let entries = std::fs::read_dir(self.state.join(SESSIONS));
        entries.is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Returns whether the project's log is or was on servers: its view is a file here.
    pub fn has_remote_view(&self) -> bool {
        let entries = std::fs::read_dir(&self.state).into_iter().flatten().flatten();
        entries.take(STATES_MAX).any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("view-") && name.ends_with(".db")
        })
    }

    /// Creates the state directory for this user only. Refuses a directory that other users could
    /// change.
    pub fn prepare(&self) -> Result<(), PlaceError> {
        // A user who can change the directory of all states can replace this one.
        if let Some(home) = self.state.parent().filter(|home| home.exists()) {
            check_own(home, &std::fs::metadata(home).map_err(|source| io(home, source))?)?;
        }
        match std::fs::symlink_metadata(&self.state) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut builder = std::fs::DirBuilder::new();
                builder.recursive(true).mode(0o700);
                builder.create(&self.state).map_err(|source| io(&self.state, source))?;
            }
            Err(source) => return Err(io(&self.state, source)),
            Ok(found) => check_own(&self.state, &found)?,
        }
        let note = self.state.join(PROJECT);
        if note.exists() {
            return Ok(());
        }
        let root = self.root.as_os_str().as_encoded_bytes();
        std::fs::write(&note, root).map_err(|source| io(&note, source))
    }
}

/// The directory of clones that workers of this machine made, below the directory of all states.
const COPIES: &str = "_copies";

/// The directory of task worktrees in a project's state.
pub const WORKTREES: &str = "worktrees";

/// The directory of sessions' files in a project's state.
pub const SESSIONS: &str = "sessions";

/// The directory of the rooms of gates in a project's state.
pub const ROOMS: &str = "rooms";

/// The directory of temporary checkouts.
pub const SCRATCH: &str = "scratch";

/// Returns the project whose task has its worktree or temporary checkout at `path`. The path decides it, never the
/// content.
fn home_of_worktree(path: &Path, state_home: &Path) -> Option<PathBuf> {
    let mut parts = path.strip_prefix(state_home.canonicalize().ok()?).ok()?.components();
    let (project, worktrees, _task) = (parts.next()?, parts.next()?, parts.next()?);
    if ![WORKTREES, SCRATCH].iter().any(|name| worktrees.as_os_str() == *name) {
        return None;
    }
    let root = root_of(&state_home.join(project))?;
    root.join(FILE_NAME).is_file().then_some(root)
}

/// Returns the project of a state directory.
fn root_of(state: &Path) -> Option<PathBuf> {
    let note = state.join(PROJECT);
    // A directory without a readable note is no state of a project.
    let note = std::fs::read(&note)
        .inspect_err(|error| tracing::debug!(path = %note.display(), %error, "no project is named"))
        .ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(note)))
}

/// Returns the time at which an entry of a state was last added or removed.
fn used(state: &Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(state).and_then(|found| found.modified()).ok()
}

/// The most states that are searched for projects.
const STATES_MAX: usize = 10_000;

/// The file that names the project of a state.
const PROJECT: &str = "project";

/// Returns the directory of all projects' states: `$XDG_STATE_HOME/hookloop`, else `~/.local/state/hookloop`.
pub fn state_home(xdg: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, PlaceError> {
    let absolute = |path: &&Path| path.is_absolute();
    match (xdg.filter(absolute), home.filter(absolute)) {
        (Some(xdg), _) => Ok(xdg.join("hookloop")),
        (None, Some(home)) => Ok(home.join(".local/state/hookloop")),
        (None, None) => Err(PlaceError::NoHome),
    }
}

/// Checks that a directory belongs to the user, and that no other user can write to it.
fn check_own(path: &Path, found: &std::fs::Metadata) -> Result<(), PlaceError> {
    match found {
        found if found.uid() != rustix::process::geteuid().as_raw() => {
            Err(PlaceError::Foreign(path.to_owned()))
        }
        found if !found.is_dir() || found.mode() & 0o022 != 0 => {
            Err(PlaceError::Exposed(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Refuses a path that is not valid UTF-8: JSON, the configuration of git and the protocols of agents need text.
fn check_text(path: &Path) -> Result<(), PlaceError> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(PlaceError::NotText(path.to_owned())),
    }
}

fn io(path: &Path, source: std::io::Error) -> PlaceError {
    PlaceError::Io { path: path.to_owned(), source }
}

/// The name of the file that makes a directory a project.
pub const FILE_NAME: &str = "hookloop.yaml";
