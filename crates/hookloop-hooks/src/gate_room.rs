//! The room of gates: the directory in which their commands run, and the box around them.
//!
//! If the system has mount namespaces, the room's files are mounted over the working directory. So a gate sees the
//! project at its usual path, and no path leads to the agent's files. Otherwise the gate runs at the room's own path,
//! and reads of the working directory are refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hookloop_core::builtin::Builtin;
use hookloop_core::digest::hex;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::options::RoomChoice;
use hookloop_process::{Confinement, PrivateMount};

/// Directories below the home directory in which tools keep downloads and build results.
///
/// A gate can read them. If it writes to them, the changes stay in its room.
const CACHES: [&str; 18] = [
    ".cache",
    ".cargo",
    ".rustup",
    ".npm",
    ".yarn",
    ".bun",
    ".deno",
    ".pnpm-store",
    ".local/share/pnpm",
    ".local/share/uv",
    "go",
    ".m2",
    ".gradle",
    ".ivy2",
    ".sbt",
    ".nuget",
    ".gem",
    ".composer",
];
/// Variables that move a cache, for a cache that can't be mounted: the name, and the directory of the cache.
const CACHE_VARIABLES: [(&str, &str, &str); 6] = [
    (".cache", "XDG_CACHE_HOME", "xdg"),
    (".cache", "GOCACHE", "go-build"),
    (".npm", "npm_config_cache", "npm"),
    ("go", "GOPATH", "go"),
    (".gradle", "GRADLE_USER_HOME", "gradle"),
    (".yarn", "YARN_CACHE_FOLDER", "yarn"),
];
/// Sockets of services that start processes outside of the box.
const SERVICES: [&str; 10] = [
    "/run/user",
    "/run/dbus",
    "/run/systemd",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/libvirt",
    "/run/snapd.socket",
    "/run/incus",
];
/// Devices of terminals.
const TERMINALS: [&str; 2] = ["/dev/pts", "/dev/ptmx"];
const SHARED_MEMORY: &str = "/dev/shm";
const SHARED_FILES: &str = "/tmp";
/// The variable with object directories that git reads besides those of a repository.
const GIT_OBJECTS: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";
/// The directory of a room for the reports of gates.
const REPORTS: &str = "reports";
/// The kernel's list of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Maximum mounts that are read.
const MOUNTS_READ_MAX: usize = 10_000;

/// The parts from which a [`RoomPlace`] is built.
#[derive(Clone, Copy, Debug)]
pub struct RoomParts<'p> {
    /// The working directory of the agent, and the top directory of its repository.
    pub root: &'p Path,
    pub top: &'p Path,
    /// hookloop's state of the project.
    pub state: &'p Path,
    /// The user's home directory.
    pub home: Option<&'p Path>,
    /// The room's checkout of the top directory.
    pub files: &'p Path,
    pub caches: &'p Path,
    pub temporary: &'p Path,
    /// The directory onto which the objects of the user's repository are mounted, and these objects.
    pub objects: Option<(&'p Path, &'p Path)>,
    pub slot: u32,
    pub support: RoomSupport,
}

/// The features of this system for the box of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomSupport {
    /// Whether writes can be confined.
    pub confines: bool,
    pub mounts: bool,
    pub overlays: bool,
}

/// The room in which gates run.
#[derive(Clone, Debug)]
pub struct RoomPlace {
    /// The project's directory in the room, as hookloop sees it.
    files: PathBuf,
    /// The project's directory as a gate sees it.
    seen: PathBuf,
    /// The top directory of the working files, and its replacement if the room is not mounted there.
    moved: Option<(PathBuf, PathBuf)>,
    confinement: Option<Confinement>,
    environment: Vec<(OsString, OsString)>,
    caches: Vec<PathBuf>,
    temporary: PathBuf,
    /// The time at which the room got its files.
    entered: SystemTime,
    /// The files of the tree that rules look at, from the project's directory.
    tree_files: Vec<PathBuf>,
}

/// Returns the time that a file gets that is written now. The clock of files lags behind that of the system.
fn file_time(directory: &Path) -> SystemTime {
    let written = tempfile::NamedTempFile::new_in(directory)
        .and_then(|mut file| file.write_all(b"x").and_then(|()| file.as_file().metadata()))
        .and_then(|metadata| metadata.modified());
    // Without a file, reports count only from a later time on.
    written.unwrap_or_else(|_| SystemTime::now())
}

impl RoomPlace {
    pub fn new(parts: RoomParts<'_>) -> RoomPlace {
        let prefix = parts.root.strip_prefix(parts.top).unwrap_or(Path::new(""));
        let files = parts.files.join(prefix);
        // Below the covered directory, gates could not read the scripts that hookloop keeps for them.
        let is_mounted = parts.support.mounts
            && parts.support.confines
            && !parts.state.starts_with(parts.top)
            && parts.root.starts_with(parts.top);
        let seen = if is_mounted { parts.root.to_owned() } else { files.clone() };
        let mut box_of = BoxBuilder::new(&parts, is_mounted);
        box_of.add_caches(&parts);
        let moved = (!is_mounted).then(|| (parts.top.to_owned(), parts.files.to_owned()));
        let hides = !is_mounted && parts.support.confines && parts.files != parts.top;
        let mut environment = box_of.environment;
        if let (false, Some((_, objects))) = (is_mounted, parts.objects) {
            // The room's repository expects the objects at a directory on which they are mounted.
            environment.push((GIT_OBJECTS.into(), listed(objects)));
        }
        environment.push(("HOOKLOOP_SLOT".into(), parts.slot.to_string().into()));
        environment.push(("TMPDIR".into(), parts.temporary.into()));
        let confinement = parts.support.confines.then_some(Confinement {
            write: Some(box_of.write),
            mounts: box_of.mounts,
            local_sockets: is_mounted,
            hide: if hides { vec![parts.top.to_owned()] } else { Vec::new() },
            // The room, hookloop's scripts and the objects that the room borrows may be below the hidden directory.
            read: if hides { readable(&parts) } else { Vec::new() },
            ..Confinement::default()
        });
        RoomPlace {
            files,
            seen,
            moved,
            confinement,
            environment,
            caches: box_of.caches,
            temporary: parts.temporary.to_owned(),
            entered: file_time(parts.state),
            tree_files: Vec::new(),
        }
    }

    /// Names the files of the tree, from the project's directory.
    #[must_use]
    pub fn with_tree_files(mut self, files: Vec<PathBuf>) -> RoomPlace {
        self.tree_files = files;
        self
    }

    /// Returns the files of the tree, from the project's directory. Empty if no rule needs them.
    pub fn tree_files(&self) -> &[PathBuf] {
        &self.tree_files
    }

    /// Whether a gate can write only to its room.
    pub fn is_boxed(&self) -> bool {
        self.confinement.is_some()
    }

    /// Returns the top of the working directory, if reads of it are refused.
    pub fn hidden(&self) -> Option<&Path> {
        let hidden = &self.confinement.as_ref()?.hide;
        hidden.first().map(PathBuf::as_path)
    }

    /// Returns the project's directory in the room, for hookloop's own checks.
    pub fn files(&self) -> &Path {
        &self.files
    }

    /// Returns the project's directory as a gate sees it.
    pub fn seen(&self) -> &Path {
        &self.seen
    }

    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Returns the directory for the reports of gates. A gate can write to its own report, not to this directory.
    pub(crate) fn reports(&self) -> PathBuf {
        self.temporary.with_file_name(REPORTS)
    }

    /// Returns the directories of caches that must exist before the room's box is used.
    pub(crate) fn caches(&self) -> &[PathBuf] {
        &self.caches
    }

    pub fn entered(&self) -> SystemTime {
        self.entered
    }

    pub fn confinement(&self) -> Option<&Confinement> {
        self.confinement.as_ref()
    }

    /// Returns a path of the room, as a gate sees it, as hookloop sees it.
    pub fn outside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.seen) {
            Ok(below) => self.files.join(below),
            Err(_) => path.to_owned(),
        }
    }

    /// Adds the variables of the room to a gate's environment.
    ///
    /// If the room is not mounted over the working directory, values that name this directory name the room instead.
    pub fn adapt(&self, env: &mut Vec<(OsString, OsString)>) {
        if let Some((from, to)) = &self.moved {
            for (_, value) in env.iter_mut() {
                if let Some(changed) = replaced(value, from.as_os_str(), to.as_os_str()) {
                    *value = changed;
                }
            }
        }
        // The last of two variables with the same name wins.
        env.extend(self.environment.iter().cloned());
    }
}

/// Whether a hook runs in the room, if there is one.
pub fn has_room(hook: &Hook) -> bool {
    hook.options.room.choice == RoomChoice::Clean
        && matches!(
            hook.handler,
            HookHandler::Command(_)
                | HookHandler::Rule(_)
                | HookHandler::Builtin(Builtin::RunTests)
        )
}

/// Builds the box of a room.
struct BoxBuilder {
    mounts: Vec<PrivateMount>,
    write: Vec<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// Directories of caches that variables name.
    caches: Vec<PathBuf>,
    is_mounted: bool,
    /// The mount points of this system.
    mounted: Vec<PathBuf>,
}

impl BoxBuilder {
    fn new(parts: &RoomParts<'_>, is_mounted: bool) -> BoxBuilder {
        let mut builder = BoxBuilder {
            mounts: Vec::new(),
            write: vec![parts.temporary.to_owned()],
            environment: Vec::new(),
            caches: Vec::new(),
            is_mounted,
            mounted: mount_points(),
        };
        let terminals = TERMINALS.iter().map(PathBuf::from).filter(|path| path.exists());
        builder.write.extend(terminals);
        if !is_mounted {
            builder.write.push(parts.files.to_owned());
            return builder;
        }
        for service in SERVICES {
            builder.mounts.push(PrivateMount::Hide { target: service.into() });
        }
        // Mounted first: a project may be below this directory.
        let has_own_files = has_mounts_below(&builder.mounted, Path::new(SHARED_FILES));
        if parts.support.overlays && !parts.state.starts_with(SHARED_FILES) && !has_own_files {
            builder.overlay(Path::new(SHARED_FILES), &parts.caches.join("tmp"));
        }
        builder.mounts.push(PrivateMount::Bind {
            source: parts.files.to_owned(),
            target: parts.top.to_owned(),
            read_only: false,
        });
        builder.write.push(parts.top.to_owned());
        if let Some((target, objects)) = parts.objects {
            builder.mounts.push(PrivateMount::Bind {
                source: objects.to_owned(),
                target: target.to_owned(),
                read_only: true,
            });
        }
        if Path::new(SHARED_MEMORY).is_dir() {
            let source = parts.caches.join("shm");
            let target = PathBuf::from(SHARED_MEMORY);
            builder.write.push(target.clone());
            builder.mounts.push(PrivateMount::Bind { source, target, read_only: false });
        }
        builder
    }

    /// Gives the gate the user's caches, without a way to change them.
    fn add_caches(&mut self, parts: &RoomParts<'_>) {
        let Some(home) = parts.home else { return };
        let mut mounted: Vec<&str> = Vec::new();
        for name in CACHES {
            let target = home.join(name);
            let is_apart = |path: &Path| !path.starts_with(&target) && !target.starts_with(path);
            let can_mount = self.is_mounted
                && parts.support.overlays
                && target.is_dir()
                && is_apart(parts.state)
                && is_apart(parts.top)
                && !has_mounts_below(&self.mounted, &target);
            if can_mount {
                self.overlay(&target, &parts.caches.join(name.replace('/', "-")));
                mounted.push(name);
            }
        }
        for (cache, variable, directory) in CACHE_VARIABLES {
            if !mounted.contains(&cache) {
                // Not the directory of all caches: its entries are mounted, so a gate must not replace them.
                let own = parts.caches.join(directory);
                self.environment.push((variable.into(), own.clone().into()));
                self.write.push(own.clone());
                self.caches.push(own);
            }
        }
    }

    fn overlay(&mut self, target: &Path, own: &Path) {
        self.mounts.push(PrivateMount::Overlay {
            target: target.to_owned(),
            changes: own.join("changes"),
            work: own.join("work"),
        });
        self.write.push(target.to_owned());
    }
}

/// Returns the places that a gate can read although the working directory is hidden.
fn readable(parts: &RoomParts<'_>) -> Vec<PathBuf> {
    let objects = parts.objects.map(|(_, objects)| objects);
    [parts.state].into_iter().chain(objects).map(Path::to_owned).collect()
}

/// Returns a path in the form that git expects in a list of paths.
fn listed(path: &Path) -> OsString {
    // A list is separated by colons, and a path in double quotes is read like a string of C.
    if !path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b'"' | b'\\')) {
        return path.into();
    }
    let escaped = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"").into()
}

/// Returns the mount points that this process sees.
fn mount_points() -> Vec<PathBuf> {
    let text = fs::read_to_string(MOUNTS).unwrap_or_default();
    // The fifth field is the mount point. Unusual characters are octal, so such a point is not recognized.
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    points.take(MOUNTS_READ_MAX).map(PathBuf::from).collect()
}

/// Whether something is mounted below a directory. Without root, such a directory can't be covered by an overlay.
fn has_mounts_below(mounted: &[PathBuf], target: &Path) -> bool {
    mounted.iter().any(|point| point != target && point.starts_with(target))
}

/// Returns the box for one of several gates that run at the same time. Their changes of caches stay apart.
pub(crate) fn apart(confinement: &Confinement, hook: &str) -> Confinement {
    let mut confinement = confinement.clone();
    for mount in &mut confinement.mounts {
        if let PrivateMount::Overlay { changes, work, .. } = mount {
            let name = hex(hook.as_bytes());
            *changes = changes.with_file_name(format!("changes-{name}"));
            *work = work.with_file_name(format!("work-{name}"));
        }
    }
    confinement
}

/// Returns the directories that must exist before the room's box is used.
pub(crate) fn directories_of(confinement: &Confinement) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for mount in &confinement.mounts {
        match mount {
            PrivateMount::Overlay { changes, work, .. } => {
                directories.extend([changes.clone(), work.clone()]);
            }
            PrivateMount::Bind { source, read_only: false, .. } => directories.push(source.clone()),
            PrivateMount::Bind { .. } | PrivateMount::Hide { .. } => {}
        }
    }
    directories
}

/// Returns a value in which each path at or below `from` begins with `to`, or `None` if there is no such path.
fn replaced(value: &OsStr, from: &OsStr, to: &OsStr) -> Option<OsString> {
    let (text, from, to) = (value.as_bytes(), from.as_bytes(), to.as_bytes());
    let mut result = Vec::with_capacity(text.len());
    let (mut at, mut is_changed) = (0, false);
    while at < text.len() {
        let is_start = at == 0 || matches!(text[at - 1], b':' | b'=' | b' ' | b',' | b';' | b'"');
        let rest = &text[at..];
        let ends_there = rest
            .get(from.len())
            .is_none_or(|byte| matches!(byte, b'/' | b':' | b' ' | b',' | b';' | b'"'));
        if is_start && rest.starts_with(from) && ends_there {
            result.extend_from_slice(to);
            at += from.len();
            is_changed = true;
        } else {
            result.push(text[at]);
            at += 1;
        }
    }
    is_changed.then(|| OsString::from_vec(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'p>(support: RoomSupport, root: &'p Path) -> RoomParts<'p> {
        RoomParts {
            root,
            top: Path::new("/work/repo"),
            state: Path::new("/state/p"),
            home: None,
            files: Path::new("/state/p/rooms/0/files"),
            caches: Path::new("/state/p/rooms/0/caches"),
            temporary: Path::new("/state/p/rooms/0/tmp"),
            objects: Some((
                Path::new("/state/p/rooms/0/objects"),
                Path::new("/work/repo/.git/objects"),
            )),
            slot: 0,
            support,
        }
    }

    const ALL: RoomSupport = RoomSupport { confines: true, mounts: true, overlays: true };

    #[test]
    fn a_mounted_room_has_the_path_of_the_project() {
        let room = RoomPlace::new(parts(ALL, Path::new("/work/repo/svc")));
        assert_eq!(room.seen(), Path::new("/work/repo/svc"));
        assert_eq!(room.files(), Path::new("/state/p/rooms/0/files/svc"));
        assert_eq!(
            room.outside(Path::new("/work/repo/svc/a/b.xml")),
            Path::new("/state/p/rooms/0/files/svc/a/b.xml")
        );
        let write = room.confinement().unwrap().write.clone().unwrap();
        assert!(write.contains(&PathBuf::from("/work/repo")), "{write:?}");
        assert!(!write.iter().any(|path| path == Path::new("/state/p")), "{write:?}");
    }

    #[test]
    fn a_room_at_its_own_path_replaces_the_project_in_variables() {
        let support = RoomSupport { mounts: false, overlays: false, ..ALL };
        let room = RoomPlace::new(parts(support, Path::new("/work/repo")));
        assert_eq!(room.seen(), Path::new("/state/p/rooms/0/files"));
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), "/work/repo/.venv/bin:/usr/bin:/work/repository/bin".into()),
            ("OTHER".into(), "x".into()),
        ];
        room.adapt(&mut env);
        let objects = PathBuf::from("/work/repo/.git/objects");
        assert!(env.contains(&(GIT_OBJECTS.into(), objects.into())), "{env:?}");
        let files = "/state/p/rooms/0/files";
        let path = format!("{files}/.venv/bin:/usr/bin:/work/repository/bin");
        assert_eq!(env[0].1, OsString::from(path));
        assert_eq!(env[1].1, OsString::from("x"));
    }

    #[test]
    fn only_a_room_at_its_own_path_hides_the_working_directory() {
        let own_path = RoomSupport { mounts: false, overlays: false, ..ALL };
        let hidden = |parts: RoomParts<'_>| {
            let room = RoomPlace::new(parts);
            let read = room.confinement().map(|confinement| confinement.read.clone());
            (room.hidden().map(Path::to_owned), read.unwrap_or_default())
        };
        let root = Path::new("/work/repo/svc");
        let read = ["/state/p", "/work/repo/.git/objects"].map(PathBuf::from).to_vec();
        assert_eq!(hidden(parts(own_path, root)), (Some("/work/repo".into()), read));
        let no_box = RoomSupport { confines: false, ..own_path };
        // A checkout that is not the agent's has no working directory beside it.
        let checkout = RoomParts { files: Path::new("/work/repo"), ..parts(own_path, root) };
        for parts in [parts(ALL, root), parts(no_box, root), checkout] {
            assert_eq!(hidden(parts), (None, Vec::new()));
        }
    }

    #[test]
    fn a_path_with_special_characters_is_quoted_in_a_list_of_git() {
        let check = |path: &str, expected: &str| assert_eq!(listed(Path::new(path)), expected);
        check("/a b/objects", "/a b/objects");
        check("/a:b/objects", "\"/a:b/objects\"");
        check("/a\"b\\/objects", "\"/a\\\"b\\\\/objects\"");
    }
}
