//! The room that a session holds, and the tools of its gates.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use hookloop_core::digest::sha256_hex;
use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::session::facts::GateRoom;
use hookloop_git::room::Room;
use hookloop_hooks::gate_room::RoomPlace;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::find_program;

/// The room that a session holds.
#[derive(Debug, Default)]
pub(crate) struct SessionRoom {
    pub(super) room: Option<Room>,
    pub(crate) place: Option<Arc<RoomPlace>>,
    pub(super) entered: Option<EnteredRoom>,
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

/// Returns a digest of the program that a gate starts: its path, size and time, and the system.
pub(super) fn tools_of(runner: &HookRunner, gate: &Hook) -> Option<String> {
    let HookHandler::Command(command) = &gate.handler else { return None };
    let word = match command {
        CommandText::Exec(args) => args.first()?.as_str(),
        CommandText::Shell(line) => line.split_whitespace().find(|word| !word.contains('='))?,
    };
    let program = find_program(word, runner.path());
    let program = program.and_then(|path| path.canonicalize().ok());
    let facts = match program.as_ref().and_then(|path| fs::metadata(path).ok().zip(Some(path))) {
        Some((data, path)) => {
            format!("{} {} {}.{}", path.display(), data.len(), data.mtime(), data.mtime_nsec())
        }
        None => word.to_owned(),
    };
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    Some(sha256_hex(format!("{facts}\n{system}").as_bytes()))
}
