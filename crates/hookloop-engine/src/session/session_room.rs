//! The room of a session: a clean checkout of its files, in which its gates run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_core::checks::CheckCounts;
use hookloop_core::digest::{hex, sha256_hex};
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::options::AllowedAnswers;
use hookloop_core::session::facts::{BuildState, CopiedFile, GateRoom, RoomKind};
use hookloop_git::repo::CommitId;
use hookloop_git::room::{Room, RoomOptions, RoomTarget, Rooms, SetupState};
use hookloop_git::snapshot::{Snapshots, top_of};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::gate_room::{RoomParts, RoomPlace, RoomSupport, has_room};
use hookloop_hooks::runner::HookRunner;
use hookloop_process::{Cancel, MountSupport, SandboxSupport};

use super::proven::{ProofKey, ProvenGate, ProvenGates};
use super::room_entry::{EnteredRoom, RoomEntry, SessionRoom, tools_of};

/// The directory of a session with the copied files.
const COPIES: &str = "copies";
/// Largest file that is copied into a room.
const COPY_MAX: u64 = 64 * 1024 * 1024;
/// Maximum files that are searched for the inputs of a setup.
const SEARCHED_MAX: usize = 200_000;
/// Largest input of a setup.
const INPUT_MAX: u64 = 64 * 1024 * 1024;
/// Files that decide which packages a setup installs.
const INPUTS: [&str; 36] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    ".npmrc",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "uv.lock",
    "poetry.lock",
    "Pipfile",
    "Pipfile.lock",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "go.mod",
    "go.sum",
    "go.work",
    "Gemfile",
    "Gemfile.lock",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "gradle.lockfile",
    "mix.lock",
];

/// The circumstances in which a room is used.
#[derive(Debug)]
pub(crate) struct RoomContext<'c> {
    /// The runner at the working directory.
    pub(crate) runner: &'c HookRunner,
    pub(crate) snapshots: &'c Snapshots,
    /// The session's own directory, with the copied files.
    pub(crate) directory: &'c Path,
    /// The name of the session.
    pub(crate) session: &'c str,
    /// The commit that was checked out when the work began.
    pub(crate) base: Option<&'c CommitId>,
    pub(crate) cancel: &'c Cancel,
}

impl SessionRoom {
    /// Prepares the room for gates on the current files.
    pub(crate) fn enter(&mut self, context: &RoomContext<'_>, gates: &[Hook]) -> RoomEntry {
        self.place = None;
        match self.prepare(context, gates) {
            Ok(entered) => {
                self.entered = Some(entered.clone());
                RoomEntry::Ready(Box::new(entered))
            }
            Err(reason) => RoomEntry::Unable { reason },
        }
    }

    fn prepare(
        &mut self,
        context: &RoomContext<'_>,
        gates: &[Hook],
    ) -> Result<EnteredRoom, String> {
        let unable = |error: &dyn std::fmt::Display| format!("no room for the gates: {error}");
        let copies = copied_files(context.directory, gates)?;
        let exec: &ExecContext = context.runner;
        let mut room = match self.room.take() {
            Some(room) => room,
            None => {
                let rooms = Rooms::new(RoomOptions {
                    state: exec.state(),
                    environment: exec.environment(),
                    keepers: exec.keepers(),
                    cancel: context.cancel.clone(),
                });
                rooms.acquire(context.session).map_err(|error| unable(&error))?
            }
        };
        let root = exec.root().canonicalize().map_err(|error| unable(&error))?;
        let snapshot = context.snapshots.take().map_err(|error| unable(&error))?;
        let top = top_of(&snapshot).map_err(|error| unable(&error))?;
        let target = RoomTarget {
            tree: &snapshot.tree,
            base: context.base.or(snapshot.head.as_ref()),
            top: &top,
            nested: &snapshot.nested,
            snapshots: context.snapshots,
        };
        room.enter(&target).map_err(|error| unable(&error))?;
        for (path, content) in &copies {
            let below = root.strip_prefix(&top).unwrap_or(Path::new("")).join(path);
            room.copy_in(&below, content).map_err(|error| unable(&error))?;
        }
        let place = RoomPlace::new(RoomParts {
            root: &root,
            top: &top,
            state: exec.state(),
            home: home_of(exec).as_deref(),
            files: room.files(),
            caches: room.caches(),
            temporary: room.temporary(),
            objects: room.users_objects().map(|objects| (room.objects_mount(), objects)),
            slot: room.slot(),
            support: support(),
        });
        let record = GateRoom {
            kind: RoomKind::Clean,
            build: Some(build_state(&room)),
            boxed: place.is_boxed(),
            setup: None,
            copies: copies.iter().map(|(path, content)| copied(path, content)).collect(),
            wrote: Vec::new(),
        };
        (self.place, self.room) = (Some(Arc::new(place)), Some(room));
        Ok(EnteredRoom { tree: snapshot.tree, record })
    }

    /// Prepares a box around a checkout that is not the agent's, with the caches of a room.
    pub(crate) fn box_checkout(
        &mut self,
        exec: &ExecContext,
        (top, project): (&Path, &Path),
        (session, cancel): (&str, &Cancel),
    ) -> Result<(), String> {
        let rooms = Rooms::new(RoomOptions {
            state: exec.state(),
            environment: exec.environment(),
            keepers: exec.keepers(),
            cancel: cancel.clone(),
        });
        let room = rooms.acquire(session).map_err(|error| error.to_string())?;
        for directory in [room.caches(), room.temporary()] {
            fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        }
        let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
        let (top, project) = (real(top)?, real(project)?);
        let place = RoomPlace::new(RoomParts {
            root: &project,
            top: &top,
            state: exec.state(),
            home: home_of(exec).as_deref(),
            files: &top,
            caches: room.caches(),
            temporary: room.temporary(),
            objects: None,
            slot: room.slot(),
            support: support(),
        });
        (self.place, self.room) = (Some(Arc::new(place)), Some(room));
        Ok(())
    }

    /// Ends the use of the room by gates. The session keeps the room.
    pub(crate) fn leave(&mut self, was_refused: bool) {
        (self.place, self.entered) = (None, None);
        if let Some(room) = &mut self.room
            && let Err(error) = room.note_run(was_refused)
        {
            // Without the note the next run can't be sure of the room, so it gets another one.
            tracing::warn!(%error, "the state of the room is not kept");
            self.room = None;
        }
    }

    /// Removes files that earlier runs left in the room.
    pub(super) fn make_cold(&mut self) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        room.make_cold().map_err(|error| error.to_string())
    }

    /// Whether files of a run on refused work may be in the room.
    pub(super) fn is_touched(&self) -> bool {
        self.room.as_ref().is_some_and(Room::is_touched_by_refused)
    }

    /// Returns the digest of the setup, and whether its result is in the room.
    pub(crate) fn setup_state(
        &mut self,
        runner: &HookRunner,
        setup: &[Hook],
    ) -> Result<(String, bool), String> {
        let place = self.place.as_ref().ok_or("there is no room")?;
        let digest = setup_digest(runner, place.files(), setup)?;
        let Some(room) = &self.room else { return Ok((digest, false)) };
        let state = room.setup_state(&digest).map_err(|error| error.to_string())?;
        if let SetupState::Damaged { path } = &state {
            let path = path.display();
            tracing::info!(%path, "the result of the setup changed, so the setup runs again");
        }
        if let Some(entered) = &mut self.entered {
            entered.record.setup = Some(digest.clone());
        }
        Ok((digest, matches!(state, SetupState::Ready)))
    }

    /// Records that the setup has run.
    pub(crate) fn note_setup(&mut self, digest: &str) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        room.note_setup(digest).map_err(|error| error.to_string())
    }

    /// Returns the earlier proof of a gate on the tree in the room.
    pub(super) fn find_proof(
        &self,
        runner: &HookRunner,
        gate: &Hook,
        must_be_cold: bool,
    ) -> Option<ProvenGate> {
        let key = self.proof_key(runner, gate)?;
        let found = ProvenGates::of(runner.state()).find(&key)?;
        (!must_be_cold || found.build == BuildState::Cold).then_some(found)
    }

    /// Keeps the proofs of gates that passed on the tree in the room.
    pub(super) fn keep_proofs(
        &self,
        runner: &HookRunner,
        session: &str,
        gates: &[(Hook, Option<CheckCounts>)],
    ) {
        let Some(entered) = &self.entered else { return };
        let proven = |(gate, checks): &(Hook, Option<CheckCounts>)| {
            Some(ProvenGate {
                key: self.proof_key(runner, gate)?,
                build: entered.record.build?,
                session: session.to_owned(),
                checks: *checks,
            })
        };
        let passed: Vec<ProvenGate> = gates.iter().filter_map(proven).collect();
        if !passed.is_empty() {
            ProvenGates::of(runner.state()).add(passed);
        }
    }

    /// Returns the facts by which a gate's proof holds again. `None` for a gate that must run each time.
    fn proof_key(&self, runner: &HookRunner, gate: &Hook) -> Option<ProofKey> {
        let entered = self.entered.as_ref()?;
        let is_constant = match &gate.handler {
            HookHandler::Command(CommandText::Shell(line)) => !line.contains("{{"),
            HookHandler::Command(CommandText::Exec(args)) => {
                !args.iter().any(|arg| arg.contains("{{"))
            }
            _ => false,
        };
        let is_reusable = is_constant
            && has_room(gate)
            && gate.options.when.is_none()
            && gate.options.answers == AllowedAnswers::Stricter;
        Some(ProofKey {
            tree: entered.tree.clone(),
            gate: gate.name.clone(),
            digest: runner.digest_of(gate).filter(|_| is_reusable)?,
            setup: entered.record.setup.clone(),
            copies: entered.record.copies.clone(),
            tools: tools_of(runner, gate),
        })
    }
}

fn setup_digest(runner: &HookRunner, files: &Path, setup: &[Hook]) -> Result<String, String> {
    let mut parts: Vec<String> = Vec::new();
    for hook in setup {
        let digest = runner.digest_of(hook).ok_or("the setup may not run")?;
        parts.push(format!("{} {digest}", hook.name));
        for (name, content) in inputs_of(hook, files)? {
            parts.push(format!("{name} {}", sha256_hex(&content)));
        }
    }
    Ok(sha256_hex(parts.join("\n").as_bytes()))
}

/// Returns the bytes that the session copied when it began.
fn copied_files(directory: &Path, gates: &[Hook]) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let mut copies = Vec::new();
    for path in copied_paths(gates.iter()) {
        let file = directory.join(COPIES).join(hex(path.as_bytes()));
        let content = fs::read(&file).map_err(|_| {
            format!("`{path}` of `room: copy` was not there when the session began")
        })?;
        copies.push((PathBuf::from(path), content));
    }
    Ok(copies)
}

/// Copies the ignored files that gates need into a session's directory, when the session begins.
pub(crate) fn remember_copies(root: &Path, directory: &Path, hooks: &[Hook]) {
    let copies = directory.join(COPIES);
    for path in copied_paths(hooks.iter()) {
        let (from, to) = (root.join(path), copies.join(hex(path.as_bytes())));
        if to.exists() {
            continue;
        }
        if let Err(error) = copy_file(&from, &to) {
            // The gates that need the file report it.
            tracing::warn!(%path, %error, "a file for rooms is not copied");
        }
    }
}

fn copy_file(from: &Path, to: &Path) -> std::io::Result<()> {
    let size = fs::metadata(from)?.len();
    if size > COPY_MAX {
        return Err(std::io::Error::other(format!("larger than {COPY_MAX} bytes")));
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(to, fs::read(from)?)
}

/// Returns the paths that gates want copied, each once.
fn copied_paths<'h>(hooks: impl Iterator<Item = &'h Hook>) -> BTreeSet<&'h str> {
    hooks.flat_map(|hook| &hook.options.room.copy).map(String::as_str).collect()
}

fn copied(path: &Path, content: &[u8]) -> CopiedFile {
    CopiedFile { path: path.display().to_string(), sha256: sha256_hex(content) }
}

fn build_state(room: &Room) -> BuildState {
    if room.is_touched_by_refused() { BuildState::Warm } else { BuildState::Cold }
}

fn home_of(exec: &ExecContext) -> Option<PathBuf> {
    let home = exec.environment().iter().find(|(name, _)| name == "HOME");
    home.and_then(|(_, home)| Path::new(home).canonicalize().ok())
}

/// Returns the features of this system for the box of a room.
fn support() -> RoomSupport {
    let MountSupport { mounts, overlays } = SandboxSupport::mounts_of_this_system();
    let confines = SandboxSupport::of_this_system().gap().is_none();
    RoomSupport { confines, mounts, overlays }
}

/// Returns the inputs of a setup with their content. Names are relative to the project.
fn inputs_of(hook: &Hook, files: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let directory = hook.options.cwd.as_deref().map_or(files.to_owned(), |cwd| files.join(cwd));
    let names: Vec<PathBuf> = if hook.options.inputs.is_empty() {
        let places = [files, directory.as_path()];
        let found = places.iter().flat_map(|place| INPUTS.iter().map(|name| place.join(name)));
        found.filter(|path| path.is_file()).collect()
    } else {
        found_inputs(&hook.options.inputs, files)?
    };
    let mut inputs: Vec<(String, Vec<u8>)> = Vec::new();
    for path in names.into_iter().collect::<BTreeSet<_>>() {
        let name = path.strip_prefix(files).unwrap_or(&path).display().to_string();
        let size = fs::symlink_metadata(&path).map_err(|error| format!("{name}: {error}"))?.len();
        if size > INPUT_MAX {
            return Err(format!("{name}: an input of a setup has at most {INPUT_MAX} bytes"));
        }
        inputs.push((name.clone(), fs::read(&path).map_err(|error| format!("{name}: {error}"))?));
    }
    Ok(inputs)
}

/// Returns the files that the patterns of a setup name.
fn found_inputs(patterns: &[String], files: &Path) -> Result<Vec<PathBuf>, String> {
    let globs: Vec<_> = patterns
        .iter()
        .map(|pattern| hookloop_config::patterns::glob(pattern))
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (count, entry) in hookloop_git::files::walk(files).flatten().enumerate() {
        if count > SEARCHED_MAX {
            return Err(format!("more than {SEARCHED_MAX} files would be searched for inputs"));
        }
        let name = entry.path().strip_prefix(files).unwrap_or(entry.path());
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && globs.iter().any(|glob| glob.is_match(name)) {
            found.push(entry.path().to_owned());
        }
    }
    Ok(found)
}
