//! The live transcript of a turn: the agent's output and tool calls, in a file of the session's
//! directory.
//!
//! Other processes of this machine show it. It is a best effort, because the log has the final
//! record.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hookloop_agents::TurnUpdate;
use hookloop_core::id::SessionId;
use hookloop_core::session::Session;
use hookloop_hooks::exec_context::ExecContext;

use super::session_directory::{directory, remove_if_there};

const NAME: &str = "said-";
/// Maximum size of the file. When it is full, it starts again, because only recent output matters.
const BYTES_MAX: u64 = 256 * 1024;
/// Prefix of a line about a tool call.
pub(crate) const TOOL: &str = "→ ";

/// Returns the file name of the current turn. It can be derived from the session's events.
fn name(session: &Session) -> String {
    format!("{NAME}{}-{}", session.run, session.turns)
}

/// Writes the live transcript.
#[derive(Debug)]
pub(super) struct TranscriptWriter {
    file: Option<File>,
    bytes: u64,
    is_in_line: bool,
}

impl TranscriptWriter {
    /// Starts the transcript of a new turn, and removes that of the previous one.
    pub(super) fn begin(directory: &Path, session: &Session) -> TranscriptWriter {
        forget(directory);
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true).mode(0o600);
        let file = options.open(directory.join(name(session))).ok();
        TranscriptWriter { file, bytes: 0, is_in_line: false }
    }

    pub(super) fn hear(&mut self, update: TurnUpdate<'_>) {
        match update {
            TurnUpdate::Output(text) => self.write(text),
            TurnUpdate::Text(text) => self.write_line("", text),
            TurnUpdate::Tool(what) => self.write_line(TOOL, what),
            TurnUpdate::Usage(_) => {}
        }
    }

    fn write_line(&mut self, before: &str, text: &str) {
        let start = if self.is_in_line { "\n" } else { "" };
        self.write(format!("{start}{before}{text}\n").as_bytes());
    }

    fn write(&mut self, text: &[u8]) {
        let Some(last) = text.last() else { return };
        self.is_in_line = *last != b'\n';
        let Some(file) = &mut self.file else { return };
        // Of a larger chunk, only the end is written.
        let most = usize::try_from(BYTES_MAX).unwrap_or(usize::MAX);
        let text = &text[text.len().saturating_sub(most)..];
        let is_full = self.bytes + text.len() as u64 > BYTES_MAX;
        let begun = match is_full {
            true => file.set_len(0).and_then(|()| file.rewind()),
            false => Ok(()),
        };
        self.bytes = if is_full { 0 } else { self.bytes } + text.len() as u64;
        if begun.and_then(|()| file.write_all(text)).is_err() {
            self.file = None;
        }
    }
}

/// Removes the transcripts of earlier turns.
pub(super) fn forget(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            remove_if_there(&entry.path());
        }
    }
}

/// Reads the live transcript as it grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptReader {
    path: PathBuf,
    at: u64,
}

impl TranscriptReader {
    /// Follows the current turn of `session`, if it runs on this machine.
    pub fn new(runner: &ExecContext, id: &SessionId, session: &Session) -> TranscriptReader {
        TranscriptReader { path: directory(runner, id).join(name(session)), at: 0 }
    }

    /// Whether this still is the current turn.
    pub fn is_of(&self, session: &Session) -> bool {
        self.path.file_name().is_some_and(|known| known == name(session).as_str())
    }

    /// Returns the output since the last call, or none if there is no file.
    pub fn more(&mut self) -> Option<Vec<u8>> {
        let mut file = File::open(&self.path).ok()?;
        let length = file.metadata().ok()?.len();
        // The file was started again.
        if length < self.at {
            self.at = 0;
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(self.at)).ok()?;
        file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
        self.at += text.len() as u64;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session() -> Session {
        let plan = json!({"name": "s", "work": {"prompt": "p"}, "agent": "a", "stop_when": ["default"],
            "at_retry_limit": "needs_human", "limits": {"max_iterations": 1, "max_duration_ms": 1, "turn_timeout_ms": 1, "max_errors": 1,
            "gate_retries": 1, "max_no_progress": 1, "max_tokens": 1, "max_cost_micros": 1}, "hooks": "h", "fence": "f", "machine": "m"});
        Session::new(serde_json::from_value(plan).unwrap())
    }

    fn hearing(directory: &Path, session: &Session) -> TranscriptReader {
        TranscriptReader { path: directory.join(name(session)), at: 0 }
    }

    #[test]
    fn transcript_updates_are_read_once_in_order_as_lines() {
        let directory = tempfile::tempdir().unwrap();
        let session = session();
        let mut hearing = hearing(directory.path(), &session);
        assert_eq!(hearing.more(), None);
        let mut said = TranscriptWriter::begin(directory.path(), &session);
        said.hear(TurnUpdate::Output(b"half"));
        assert_eq!(hearing.more().unwrap(), b"half");
        said.hear(TurnUpdate::Tool("Bash: ls"));
        said.hear(TurnUpdate::Text("done"));
        assert_eq!(hearing.more().unwrap(), "\n→ Bash: ls\ndone\n".as_bytes());
        assert_eq!(hearing.more().unwrap(), b"");
    }

    #[test]
    fn each_turn_has_its_own_transcript_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut session = session();
        TranscriptWriter::begin(directory.path(), &session).hear(TurnUpdate::Text("one"));
        let first = hearing(directory.path(), &session);
        session.turns += 1;
        assert!(!first.is_of(&session));
        TranscriptWriter::begin(directory.path(), &session).hear(TurnUpdate::Text("two"));
        assert_eq!(hearing(directory.path(), &session).more().unwrap(), b"two\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        forget(directory.path());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_live_transcript_keeps_only_the_latest_output() {
        let directory = tempfile::tempdir().unwrap();
        let session = session();
        let mut said = TranscriptWriter::begin(directory.path(), &session);
        let mut hearing = hearing(directory.path(), &session);
        let piece = vec![b'x'; 100_000];
        for _ in 0..5 {
            said.hear(TurnUpdate::Output(&piece));
            hearing.more().unwrap();
        }
        said.hear(TurnUpdate::Output(&vec![b'y'; 1_000_000]));
        let length = fs::metadata(directory.path().join(name(&session))).unwrap().len();
        assert!(length <= BYTES_MAX, "{length}");
        said.hear(TurnUpdate::Text("the end"));
        assert!(hearing.more().unwrap().ends_with(b"the end\n"));
    }
}
