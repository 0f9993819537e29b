//! Diagnostics: the events that all crates report, filtered, redacted, and written to standard error or to a file.
//!
//! Without a subscriber an event costs one comparison. A one-shot command has a subscriber only on request.

mod file;
mod filter;
mod line;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use file::{DiagnosticsFile, FILE_NAME};
pub(crate) use filter::VerbosityArgs;
use hookloop_config::known_secrets;
use hookloop_config::variables::DIAGNOSTICS_VARIABLE;
use line::LineWriter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::CliResult;

/// The place of a command's diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagnosticsMode {
    /// Standard error, if the user asks for diagnostics.
    OnRequest,
    /// Standard error if the user asks for diagnostics, else warnings go to the file.
    LongRunning,
    /// The file: standard error belongs to a screen, or another program reads it.
    FileOnly,
}

/// The destination of a command's diagnostics, once they have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartedSink {
    Nothing,
    Stderr,
    File,
}

/// Starts the diagnostics of a command. `directory` returns the directory of the file.
pub(crate) fn start(
    args: VerbosityArgs,
    mode: DiagnosticsMode,
    directory: impl FnOnce() -> Option<PathBuf>,
) -> CliResult<StartedSink> {
    let asked = args.filter(std::env::var_os(DIAGNOSTICS_VARIABLE).as_deref())?;
    let is_on_stderr = asked.is_some() && mode != DiagnosticsMode::FileOnly;
    let (sink, started) = if is_on_stderr {
        (DiagnosticsSink::Stderr, StartedSink::Stderr)
    } else if mode == DiagnosticsMode::OnRequest {
        return Ok(StartedSink::Nothing);
    } else {
        // Without a state directory there is no place for diagnostics. The command itself reports that.
        let Some(directory) = directory() else { return Ok(StartedSink::Nothing) };
        let file = DiagnosticsFile::new(&directory);
        (DiagnosticsSink::File(Mutex::new(file)), StartedSink::File)
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(sink);
    let filter = asked.unwrap_or_else(filter::warnings);
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // A process has one command, so there is no other subscriber.
    let _ = subscriber.try_init();
    known_secrets::remember_environment(&std::env::vars_os().collect::<Vec<_>>());
    Ok(started)
}

/// Returns the path of the file with a project's diagnostics.
pub(crate) fn file_in(state: &Path) -> PathBuf {
    state.join(FILE_NAME)
}

/// The destination of the lines. Each line is one small synchronous write.
enum DiagnosticsSink {
    Stderr,
    File(Mutex<DiagnosticsFile>),
}

impl<'s> MakeWriter<'s> for DiagnosticsSink {
    type Writer = LineWriter<'s>;

    fn make_writer(&'s self) -> LineWriter<'s> {
        LineWriter::new(self)
    }
}
