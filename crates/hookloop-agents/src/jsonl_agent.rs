//! Runs a turn of an agent that reports in lines of JSON on its output, and then exits.
//!
//! A turn is finished only if both its last line and its exit code say so.

use std::cell::RefCell;
use std::ffi::OsString;

use hookloop_config::clock::now;
use hookloop_core::promise::promises;
use hookloop_core::session::{AgentFault, TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::{ExecContext, kept, redacting};
use hookloop_process::{ExitReason, Job, JobResult, OutputFilter, OutputStream};
use serde_json::Value;

use super::faults::FailedTurn;
use super::{
    MESSAGE_MAX, REFUSED_MAX, TurnReport, TurnRequest, TurnUpdate, clipped, failure, limits,
    run_process, stderr_line,
};

/// A longer line is not read. The artifact has it.
const LINE_MAX: usize = 16 * 1024 * 1024;
const REFUSED_LENGTH_MAX: usize = 200;

/// The end of a turn as the agent reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReportedEnd {
    Finished,
    /// The agent reached its budget and stopped, as requested.
    Spent,
    Failed {
        error: String,
    },
    /// `until_ms` is in milliseconds since 1970, if the agent reported it.
    RateLimited {
        error: String,
        until_ms: Option<u64>,
    },
}

/// The agent's reports so far.
#[derive(Debug, Default)]
pub(super) struct JsonlReports {
    pub(super) conversation: Option<String>,
    /// The last text. At the end of the turn it is the final message.
    pub(super) message: String,
    pub(super) usage: Usage,
    /// The agent reported the cost of the turn.
    pub(super) has_cost: bool,
    pub(super) refused: Vec<String>,
    pub(super) end: Option<ReportedEnd>,
}

impl JsonlReports {
    pub(super) fn refuse(&mut self, what: &str) {
        if self.refused.len() < REFUSED_MAX {
            self.refused.push(clipped(what, REFUSED_LENGTH_MAX));
        }
    }

    /// Records a failure, or a rate limit of the agent's provider.
    pub(super) fn fail(&mut self, error: String) {
        let now_ms = now().0.cast_unsigned();
        self.end = Some(match limits::rate_limit(&error, now_ms) {
            Some(until_ms) => ReportedEnd::RateLimited { error, until_ms },
            None => ReportedEnd::Failed { error },
        });
    }
}

/// Returns a text field of an event; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The command of a turn.
pub(super) struct JsonlCommand {
    /// The known agent that runs, if it is one.
    pub(super) base: Option<&'static str>,
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// Reads the reports of one kind of agent.
pub(super) trait JsonlReader {
    /// Reads a line of standard output.
    fn event(
        &mut self,
        event: &Value,
        told: &mut JsonlReports,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    );
    /// Reads a line of standard error.
    fn aside(&mut self, _line: &str, _told: &mut JsonlReports) {}
}

/// Runs a turn and passes each line to `ear`.
pub(super) fn turn(
    start: JsonlCommand,
    runner: &ExecContext,
    order: &TurnRequest<'_>,
    updates: &mut dyn FnMut(TurnUpdate<'_>),
    ear: &mut dyn JsonlReader,
) -> TurnReport {
    let Some(redactor) = runner.redactor() else {
        return TurnReport::failed("the secrets of the environment are too many to look for");
    };
    let told = RefCell::new(JsonlReports::default());
    let hearing = RefCell::new((ear, updates));
    let filter = |stream: OutputStream| {
        let mut redact = redacting(runner);
        let (told, hearing) = (&told, &hearing);
        let mut lines = LineBuffer::default();
        let filter: OutputFilter<'_> = Box::new(move |piece, out| {
            let before = out.len();
            redact(piece, out);
            let mut hear = |line: &[u8]| {
                let (ear, updates) = &mut *hearing.borrow_mut();
                let told = &mut told.borrow_mut();
                match stream {
                    OutputStream::Stdout => {
                        if let Ok(event) = serde_json::from_slice(line) {
                            ear.event(&event, told, updates);
                        }
                    }
                    OutputStream::Stderr => ear.aside(&String::from_utf8_lossy(line), told),
                }
            };
            lines.push(&out[before..], &mut hear);
            // The last line may have no newline.
            if piece.is_empty() {
                lines.push(b"\n", &mut hear);
            }
        });
        filter
    };
    let artifacts = runner.fresh_artifacts();
    let job = Job {
        env: start.env,
        stdin: order.prompt.as_bytes().to_vec(),
        cancel: Some(order.cancel),
        artifacts: Some(artifacts.clone()),
        filter: Some(&filter),
        ..Job::new(start.argv, runner.root().to_owned(), order.timeout)
    };
    let ran = match run_process(runner, job) {
        Ok(ran) => ran,
        Err(error) => return TurnReport::failed(error.to_string()),
    };
    let told = told.into_inner();
    let fault = fault(&ran, start.base, told.end.as_ref());
    let message = redactor.text(told.message.trim());
    // The last report contains the usage.
    let is_partial = told.end.is_none();
    TurnReport {
        result: result(&ran, order, told.end),
        promises: promises(&message),
        message: clipped(&message, MESSAGE_MAX),
        usage: told.usage,
        is_partial,
        is_unpriced: !told.has_cost,
        stderr: stderr_line(&ran),
        fault,
        refused: told.refused,
        artifact: kept(&ran, &artifacts),
        conversation: told.conversation,
    }
}

/// Returns the fault that no further turn removes, if the turn failed for one.
fn fault(
    ran: &JobResult,
    base: Option<&'static str>,
    end: Option<&ReportedEnd>,
) -> Option<AgentFault> {
    let stderr = excerpt::of_output(&ran.output.stderr);
    let error = match (ran.exit, end) {
        (ExitReason::Exited(_), Some(ReportedEnd::Failed { error })) => error,
        (ExitReason::Exited(_), None) => "",
        _ => return None,
    };
    FailedTurn { base, error, stderr: &stderr }.fault()
}

fn result(ran: &JobResult, order: &TurnRequest<'_>, end: Option<ReportedEnd>) -> TurnResult {
    match (ran.exit, end) {
        (ExitReason::Cancelled, _) => TurnResult::Cancelled,
        (ExitReason::Exited(0), Some(ReportedEnd::Finished)) => TurnResult::Finished,
        (ExitReason::Exited(_), Some(ReportedEnd::Spent)) => TurnResult::Cancelled,
        (ExitReason::Exited(0), None) => {
            failure(ran, "the agent ended without a word about how its turn ended".to_owned())
        }
        (ExitReason::Exited(_), Some(ReportedEnd::Failed { error })) => {
            TurnResult::Failed { error }
        }
        (ExitReason::Exited(_), Some(ReportedEnd::RateLimited { error, until_ms })) => {
            TurnResult::RateLimited { error, until_ms }
        }
        _ => failure(ran, super::why(ran.exit, order)),
    }
}

/// Splits a stream of bytes into lines.
#[derive(Default)]
struct LineBuffer {
    begun: Vec<u8>,
    /// The current line is too long.
    is_skipped: bool,
}

impl LineBuffer {
    fn push(&mut self, piece: &[u8], mut line: impl FnMut(&[u8])) {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (last, after) = rest.split_at(end);
            rest = &after[1..];
            self.add(last);
            if !std::mem::take(&mut self.is_skipped) {
                line(&self.begun);
            }
            self.begun.clear();
        }
        self.add(rest);
    }

    fn add(&mut self, part: &[u8]) {
        if self.begun.len() + part.len() > LINE_MAX {
            self.is_skipped = true;
            self.begun.clear();
        }
        if !self.is_skipped {
            self.begun.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_from_pieces_of_any_size() {
        let text = b"{\"a\":1}\n\n{\"b\":2}\nrest";
        for size in 1..text.len() {
            let (mut lines, mut seen) = (LineBuffer::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece, |line| seen.push(String::from_utf8(line.to_vec()).unwrap()));
            }
            assert_eq!(seen, ["{\"a\":1}", "", "{\"b\":2}"], "pieces of {size}");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_the_next_line_is_read() {
        let (mut lines, mut seen) = (LineBuffer::default(), Vec::new());
        let long = vec![b'x'; LINE_MAX / 2 + 1];
        for piece in [long.as_slice(), &long, b"\nnext\n"] {
            lines.push(piece, |line| seen.push(line.len()));
        }
        assert_eq!(seen, [4]);
    }
}
