//! The room that a session holds, and the tools of its gates.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use hookloop_core::digest::sha256_hex;
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::session::facts::GateRoom;
use hookloop_git::repo::CommitId;
use hookloop_git::room::Room;
use hookloop_git::snapshot::Snapshot;
use hookloop_hooks::gate_room::RoomPlace;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::find_program;

/// The most words of a command that are looked up as programs.
const WORDS_MAX: usize = 1_000;
/// The most directories with programs that are looked at.
const DIRECTORIES_MAX: usize = 1_000;
/// Names of variables for a terminal, a login or the start of a process. A gate's result does not depend on them.
const VOLATILE: &str = "_ COLORTERM COLUMNS DBUS_SESSION_BUS_ADDRESS GPG_TTY INVOCATION_ID JOURNAL_STREAM LINES OLDPWD PWD \
    SHLVL STY TERM TMPDIR TRACEPARENT VTE_VERSION WINDOWID XDG_SESSION_ID";
/// Beginnings of such names, and of those that agents give their commands.
const VOLATILE_STARTS: &str = "AI_AGENT CLAUDE CODEX_ GEMINI_ HOOKLOOP_ OPENCODE SSH_ TERM_ TMUX";

/// The room that a session holds.
#[derive(Debug, Default)]
pub(crate) struct SessionRoom {
    pub(super) room: Option<Room>,
    pub(crate) place: Option<Arc<RoomPlace>>,
    pub(super) entered: Option<EnteredRoom>,
    /// The files that the room got, to restore them between gates.
    pub(super) content: Option<RoomContent>,
    /// Whether a command ran in the room since it got its files.
    pub(super) is_used: bool,
    /// The gates for which the room was prepared, in their order.
    pub(super) gates: Vec<Hook>,
    /// Set when a gate changed the result of the setup: no further gate starts until the setup has run again.
    pub(super) setup_damage: Option<String>,
}

/// The files of a room.
#[derive(Debug)]
pub(super) struct RoomContent {
    pub(super) snapshot: Snapshot,
    pub(super) base: Option<CommitId>,
    pub(super) top: PathBuf,
    /// The copied files, by their path from the top directory.
    pub(super) copies: Vec<(PathBuf, Vec<u8>)>,
}

/// The tree in the room, and the facts for receipts.
#[derive(Clone, Debug)]
pub struct EnteredRoom {
    pub tree: String,
    pub record: GateRoom,
}

/// The directory for the gates of a claim.
#[derive(Clone, Debug)]
pub enum RoomEntry {
    /// No gate runs in a room.
    Here,
    /// The room has the current files.
    Ready(Box<EnteredRoom>),
    /// The room can't be prepared.
    Unable { reason: String },
}

/// Returns a digest of the programs that a gate's command names, with their sizes and times, and of the system.
pub(super) fn tools_of(runner: &HookRunner, gate: &Hook) -> Option<String> {
    let HookHandler::Command(command) = &gate.handler else { return None };
    let words: Vec<&str> = match command {
        CommandText::Exec(args) => args.iter().map(String::as_str).collect(),
        CommandText::Shell(line) => line.split(is_shell_separator).collect(),
    };
    let is_name = |word: &&str| !word.is_empty() && !word.starts_with('-');
    let named = words.into_iter().filter(is_name).take(WORDS_MAX);
    let mut facts: Vec<String> = named.filter_map(|word| program_facts(runner, word)).collect();
    facts.sort_unstable();
    facts.dedup();
    facts.push(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    Some(sha256_hex(facts.join("\n").as_bytes()))
}

fn is_shell_separator(c: char) -> bool {
    c.is_whitespace() || ";&|()<>{}`\"'$=".contains(c)
}

fn program_facts(runner: &HookRunner, word: &str) -> Option<String> {
    let path = find_program(word, runner.path())?.canonicalize().ok()?;
    let data = fs::metadata(&path).ok()?;
    let time = format!("{}.{}", data.mtime(), data.mtime_nsec());
    Some(format!("{} {} {time}", path.display(), data.len()))
}

/// Returns a digest of the environment that a hook gets, and of the directories in which programs are searched.
///
/// A variable that the hook's `env` names is part of it in any case.
pub(super) fn environment_of(runner: &HookRunner, hook: &Hook) -> String {
    let is_volatile = |name: &str| {
        if hook.options.env.iter().any(|entry| entry.name() == name) {
            return false;
        }
        VOLATILE.split_whitespace().any(|other| other == name)
            || VOLATILE_STARTS.split_whitespace().any(|start| name.starts_with(start))
    };
    let variables = runner.environment().iter();
    let lasting = variables.filter(|(name, _)| !name.to_str().is_some_and(is_volatile));
    let mut facts: Vec<Vec<u8>> = lasting
        .map(|(name, value)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat())
        .collect();
    facts.sort_unstable();
    for directory in std::env::split_paths(runner.path()).take(DIRECTORIES_MAX) {
        let time = fs::metadata(&directory).map(|data| (data.mtime(), data.mtime_nsec())).ok();
        facts.push(format!("{} {time:?}", directory.display()).into_bytes());
    }
    sha256_hex(facts.join(&b'\0'))
}
