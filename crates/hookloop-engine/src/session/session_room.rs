//! The room of a session: a clean checkout of its files, in which its gates run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookloop_core::checks::CheckCounts;
use hookloop_core::digest::{hex, sha256_hex};
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::options::AllowedAnswers;
use hookloop_core::point::Point;
use hookloop_core::rule::Rule;
use hookloop_core::session::facts::{BuildState, CopiedFile, GateRoom, NestedTree, RoomKind};
use hookloop_git::repo::{CommitId, RepoError};
use hookloop_git::room::{Room, RoomOptions, RoomTarget, Rooms, SetupState};
use hookloop_git::snapshot::{Snapshots, top_of};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::gate_room::{RoomParts, RoomPlace, RoomSupport, has_room};
use hookloop_hooks::runner::HookRunner;
use hookloop_process::{Cancel, MountSupport, SandboxSupport};

use super::proven::{ProofKey, ProvenGate, ProvenGates};
use super::room_entry::{
    EnteredRoom, RoomContent, RoomEntry, SessionRoom, environment_of, tools_of,
};

/// The directory of a session with the copied files.
const COPIES: &str = "copies";
/// Largest file that is copied into a room.
const COPY_MAX: u64 = 64 * 1024 * 1024;
/// Maximum files that are searched for the inputs of a setup.
const SEARCHED_MAX: usize = 200_000;
/// The most links out of the repository that a receipt names.
const OUTSIDE_MAX: usize = 20;
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
    ///
    /// With a tree, the room has these files instead of the current ones.
    pub(crate) fn enter(
        &mut self,
        context: &RoomContext<'_>,
        gates: &[Hook],
        tree: Option<&str>,
    ) -> RoomEntry {
        self.place = None;
        match self.prepare(context, gates, tree) {
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
        tree: Option<&str>,
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
        let mut snapshot = context.snapshots.take().map_err(|error| unable(&error))?;
        if let Some(tree) = tree {
            tree.clone_into(&mut snapshot.tree);
        }
        let top = top_of(&snapshot).map_err(|error| unable(&error))?;
        let below = root.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let records = copies.iter().map(|(path, content)| copied(path, content)).collect();
        let content = RoomContent {
            base: context.base.or(snapshot.head.as_ref()).cloned(),
            top: top.clone(),
            copies: copies.into_iter().map(|(path, bytes)| (below.join(path), bytes)).collect(),
            snapshot,
        };
        content.put_into(&mut room, context.snapshots).map_err(|error| unable(&error))?;
        let tree_files = match gates.iter().any(reads_tree) {
            true => room.tree_files().map_err(|error| unable(&error))?,
            false => Vec::new(),
        };
        let in_project = tree_files.iter().filter_map(|path| path.strip_prefix(&below).ok());
        let tree_files = in_project.map(Path::to_owned).collect();
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
        })
        .with_tree_files(tree_files);
        let outside = room.links_outside(&top, OUTSIDE_MAX).map_err(|error| unable(&error))?;
        let record = GateRoom {
            kind: RoomKind::Clean,
            boxed: place.is_boxed(),
            copies: records,
            nested: room.unnamed_trees().into_iter().map(nested_tree).collect(),
            uncommitted: named(&room.uncommitted()),
            outside: named(&outside),
            ..GateRoom::here()
        };
        let tree = content.snapshot.tree.clone();
        (self.place, self.room) = (Some(Arc::new(place)), Some(room));
        (self.content, self.is_used) = (Some(content), false);
        (self.gates, self.setup_damage) = (gates.to_vec(), None);
        Ok(EnteredRoom { tree, record })
    }

    /// Gives the room its files again if a command ran there, and returns how many files were changed.
    ///
    /// Without this, a gate could change the files on which the next gate runs. Files that git ignores stay. If the
    /// result of the setup was changed, the error is that of [`SessionRoom::take_setup_damage`].
    pub(crate) fn restore(&mut self, snapshots: &Snapshots) -> Result<usize, String> {
        let (Some(room), Some(content)) = (&mut self.room, &self.content) else { return Ok(0) };
        if let Some(damage) = &self.setup_damage {
            return Err(damage.clone());
        }
        if self.place.is_none() || !std::mem::take(&mut self.is_used) {
            return Ok(0);
        }
        let unable = |error: RepoError| format!("the files of the room can't be restored: {error}");
        room.note_pause();
        let count = content.put_into(room, snapshots).map_err(unable)?;
        let has_setup = self.entered.as_ref().is_some_and(|entered| entered.record.setup.is_some());
        if !has_setup {
            return Ok(count);
        }
        match room.setup_damage().map_err(unable)? {
            None => Ok(count),
            Some(path) => {
                let damage = format!("a gate changed {}, which the setup had left", path.display());
                self.setup_damage = Some(damage.clone());
                Err(damage)
            }
        }
    }

    /// Returns why the last hooks did not start, if a gate before them changed the result of the setup.
    pub(super) fn take_setup_damage(&mut self) -> Option<String> {
        self.setup_damage.take()
    }

    /// Restores the files of the room before a hook runs there.
    pub(crate) fn before_hook(
        &mut self,
        point: &Point,
        snapshots: Option<&Snapshots>,
    ) -> Result<(), String> {
        if !has_room_point(point) {
            return Ok(());
        }
        // The result of a setup is recorded before files are restored.
        if let Some(snapshots) = snapshots.filter(|_| *point != Point::Setup) {
            self.restore(snapshots)?;
        }
        self.is_used = true;
        Ok(())
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

    /// Removes files that earlier runs left in the room, and the result of a setup that ran on another tree. The files of
    /// the tree are restored.
    pub(super) fn make_cold(&mut self, snapshots: Option<&Snapshots>) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let is_own = room.has_setup_of_its_trees().map_err(|error| error.to_string())?;
        let removed = if is_own { room.make_cold() } else { room.discard_setup() };
        removed.map_err(|error| error.to_string())?;
        if let (Some(content), Some(snapshots)) = (&self.content, snapshots) {
            room.note_pause();
            content.put_into(room, snapshots).map_err(|error| error.to_string())?;
            self.is_used = false;
        }
        Ok(())
    }

    /// Removes the result of a setup that a gate changed. Files that gates left stay.
    pub(super) fn discard_setup_files(&mut self) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        room.discard_setup_files().map_err(|error| error.to_string())
    }

    /// Removes the result of an earlier setup.
    pub(super) fn discard_setup(&mut self) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        room.discard_setup().map_err(|error| error.to_string())
    }

    /// Records whether files of a run on refused work may be in the room, or the result of a setup on another tree.
    ///
    /// None without a room.
    pub(super) fn note_build(&mut self) -> Result<Option<BuildState>, String> {
        let (Some(room), Some(entered)) = (&self.room, &mut self.entered) else { return Ok(None) };
        let is_own = room.has_setup_of_its_trees().map_err(|error| error.to_string())?;
        let is_cold = is_own && !room.is_touched_by_refused();
        entered.record.build = Some(if is_cold { BuildState::Cold } else { BuildState::Warm });
        Ok(entered.record.build)
    }

    /// Returns the digest of the setup, and whether its result is in the room.
    pub(crate) fn setup_state(
        &mut self,
        runner: &HookRunner,
        setup: &[Hook],
    ) -> Result<(String, bool), String> {
        let place = self.place.as_ref().ok_or("there is no room")?;
        let copies = self.entered.as_ref().map_or(&[][..], |entered| &entered.record.copies);
        let digest = setup_digest(runner, place.files(), (setup, copies))?;
        let Some(room) = &self.room else { return Ok((digest, false)) };
        let state = room.setup_state(&digest).map_err(|error| error.to_string())?;
        match &state {
            SetupState::Damaged { path } => {
                let path = path.display();
                tracing::info!(%path, "the result of the setup changed, so the setup runs again");
            }
            SetupState::Old => {
                tracing::info!("the setup ran on other files, so it runs again");
            }
            SetupState::Ready | SetupState::NotDone => {}
        }
        if let Some(entered) = &mut self.entered {
            entered.record.setup = Some(digest.clone());
        }
        Ok((digest, matches!(state, SetupState::Ready)))
    }

    /// Records that the setup has run.
    pub(crate) fn note_setup(
        &mut self,
        digest: &str,
        snapshots: Option<&Snapshots>,
    ) -> Result<(), String> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let mut note = || {
            room.note_setup(digest)?;
            let (Some(content), Some(snapshots)) = (&self.content, snapshots) else {
                return Ok(());
            };
            // Files of the setup in the place of files of the tree are no part of its result.
            room.note_pause();
            content.put_into(room, snapshots)?;
            match room.setup_damage()? {
                None => Ok(()),
                Some(_) => room.note_setup(digest),
            }
        };
        note().map_err(|error: RepoError| error.to_string())
    }

    /// Returns the earlier proof of a gate on the tree in the room.
    pub(super) fn find_proof(
        &self,
        runner: &HookRunner,
        (gate, session): (&Hook, &str),
        must_be_cold: bool,
    ) -> Option<ProvenGate> {
        let key = self.proof_key(runner, gate)?;
        let found = ProvenGates::of(runner.state()).find(&key)?;
        // A gate that passed among build files of refused work proves nothing for another session.
        let is_own = !must_be_cold && found.session == session;
        (found.build == BuildState::Cold || is_own).then_some(found)
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
        // The files behind such links may change without the tree.
        if !entered.record.outside.is_empty() {
            return None;
        }
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
            base: self.content.as_ref()?.base.as_ref().map(ToString::to_string),
            setup: entered.record.setup.clone(),
            copies: entered.record.copies.clone(),
            tools: tools_of(runner, gate),
            environment: Some(environment_of(runner, gate)),
            refs: self.room.as_ref()?.refs_digest().map(str::to_owned),
            nested: entered.record.nested.clone(),
            earlier: self.earlier_gates(runner, gate)?,
        })
    }

    /// Returns the digests of the gates that run in the room before this one, and may leave files there. None if one is
    /// unknown.
    fn earlier_gates(&self, runner: &HookRunner, gate: &Hook) -> Option<Vec<String>> {
        let before = self.gates.iter().take_while(|earlier| earlier.name != gate.name);
        let with_files = before.filter(|earlier| leaves_files(earlier));
        let facts = |earlier: &Hook| {
            let digest = runner.digest_of(earlier)?;
            Some(format!("{digest} {}", tools_of(runner, earlier).unwrap_or_default()))
        };
        with_files.map(facts).collect()
    }
}

/// Whether a gate may leave files in the room for the gates after it.
pub(super) fn leaves_files(gate: &Hook) -> bool {
    has_room(gate) && !matches!(gate.handler, HookHandler::Rule(_))
}

/// Whether the result of a gate may depend on files that gates before it left in the room.
pub(super) fn uses_files_of_gates(gate: &Hook) -> bool {
    leaves_files(gate) || matches!(gate.handler, HookHandler::Rule(Rule::Coverage(_)))
}

fn nested_tree((path, tree): (PathBuf, String)) -> NestedTree {
    NestedTree { path: path.display().to_string(), tree }
}

fn named(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// Whether a gate is a rule that needs the names of the tree's files.
fn reads_tree(gate: &Hook) -> bool {
    matches!(gate.handler, HookHandler::Rule(Rule::Pattern(_) | Rule::Coverage(_)))
}

/// Whether hooks at this point of a session run in a room.
pub(super) fn has_room_point(point: &Point) -> bool {
    matches!(point, Point::Setup | Point::Validation | Point::Stop | Point::BeforeSubmit)
}

/// Returns a digest of everything that decides the result of a setup, apart from the files of the work.
fn setup_digest(
    runner: &HookRunner,
    files: &Path,
    (setup, copies): (&[Hook], &[CopiedFile]),
) -> Result<String, String> {
    let copies = copies.iter().map(|copy| format!("{} {}", copy.path, copy.sha256));
    let mut parts: Vec<String> = copies.collect();
    for hook in setup {
        let digest = runner.digest_of(hook).ok_or("the setup may not run")?;
        let tools = tools_of(runner, hook).unwrap_or_default();
        parts.push(format!("{} {digest} {tools} {}", hook.name, environment_of(runner, hook)));
        for (name, content) in inputs_of(hook, files)? {
            parts.push(format!("{name} {}", sha256_hex(&content)));
        }
    }
    Ok(sha256_hex(parts.join("\n").as_bytes()))
}

impl RoomContent {
    /// Puts the files into a room, and returns how many were written or removed.
    fn put_into(&self, room: &mut Room, snapshots: &Snapshots) -> Result<usize, RepoError> {
        let change = room.enter(&RoomTarget {
            tree: &self.snapshot.tree,
            base: self.base.as_ref(),
            top: &self.top,
            nested: &self.snapshot.nested,
            snapshots,
        })?;
        for (path, content) in &self.copies {
            room.copy_in(path, content)?;
        }
        Ok(change.written_files + change.removed_files)
    }
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
