//! The raw output of a hook: its interpretation, and its record in the log.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hookloop_core::checks;
use hookloop_core::event::HookRan;
use hookloop_core::excerpt::{LeftOut, first_chars};
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{
    ANSWER_MAX, AnswerRules, CapturedOutput, HookOutcome, HookVerdict, ProcessExit, interpret,
    looks_like_answer,
};
use hookloop_core::options::Length;
use hookloop_core::point::Point;
use hookloop_git::excerpt;
use hookloop_process::{ExitReason, JobResult, StoredOutput, StreamOutput};

use crate::hook_context::{QUIET_AFTER, WATCHER_HINT};
use crate::hook_run::HookRun;
use crate::{exec_context, resource_limits};

const REASON_MAX: usize = 2_000;
/// Limits of the output in the record of a failed hook: lines, and characters of each.
const TAIL_LINES: usize = 8;
const TAIL_LINE_MAX: usize = 200;

/// The raw output of a run of any kind of hook.
#[derive(Debug)]
pub(crate) struct RawHookOutput {
    pub ended: ProcessExit,
    pub duration: Duration,
    /// Standard output as shown, then the complete text if it is available.
    pub stdout: String,
    pub whole: Option<String>,
    pub stderr: String,
    /// Both streams in one text, or `None` for hooks without streams.
    pub both: Option<String>,
    /// Time without output before the run ended.
    pub quiet_for: Duration,
    /// The parts of the shown text that a note replaces.
    pub left_out: Vec<LeftOut>,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub artifact: Option<String>,
}

impl RawHookOutput {
    /// Converts the result of a process with its output in `artifacts`.
    pub(crate) fn of(ran: &JobResult, artifacts: &Path) -> RawHookOutput {
        let (stdout, stderr) = (&ran.output.stdout, &ran.output.stderr);
        let stdout_text = excerpt::of_output(stdout);
        let (stderr_text, stderr_rest) = excerpt::of_output_and_rest(stderr, usize::MAX);
        let (both, both_rest) = excerpt::of_output_and_rest(&ran.output.both, usize::MAX);
        let is_answer = looks_like_answer(&stdout_text);
        RawHookOutput {
            ended: match ran.exit {
                ExitReason::Exited(code) => ProcessExit::Exited(code),
                ExitReason::Signalled(signal) => ProcessExit::Killed(signal),
                ExitReason::TimedOut => ProcessExit::TimedOut,
                ExitReason::Cancelled => ProcessExit::Cancelled,
                ExitReason::OverLimit(limit) => {
                    ProcessExit::OverLimit(resource_limits::exceeded(limit))
                }
            },
            duration: ran.duration,
            stdout: stdout_text,
            whole: whole(stdout).map(|whole| String::from_utf8_lossy(&whole).into_owned()),
            stderr: stderr_text,
            both: Some(both),
            quiet_for: ran.output.quiet_for,
            left_out: if is_answer { stderr_rest } else { both_rest }.into_iter().collect(),
            stdout_bytes: stdout.bytes,
            stderr_bytes: stderr.bytes,
            artifact: exec_context::kept(ran, artifacts),
        }
    }
}

impl RawHookOutput {
    /// Returns the output for people and agents: both streams in order, without a JSON answer.
    fn printed(&self) -> String {
        match &self.both {
            _ if looks_like_answer(&self.stdout) => self.stderr.clone(),
            Some(both) => both.clone(),
            None => {
                let parts = [self.stdout.trim_end(), self.stderr.trim_end()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                parts.join("\n")
            }
        }
    }
}

/// Returns the complete output. Reads its file if an answer does not fit in memory.
fn whole(stdout: &StreamOutput) -> Option<Cow<'_, [u8]>> {
    match &stdout.stored {
        StoredOutput::Whole(path)
            if stdout.bytes <= ANSWER_MAX as u64
                && stdout.left_out_bytes() > 0
                && looks_like_answer(&excerpt::of_output(stdout)) =>
        {
            let unread = |error: &std::io::Error| {
                tracing::warn!(path = %path.display(), %error, "a hook's answer can't be read");
            };
            fs::read(path).inspect_err(unread).ok().map(Cow::Owned)
        }
        _ => stdout.whole(),
    }
}

/// Interprets a run and creates its record for the log.
pub(crate) fn judged(hook: &Hook, point: &Point, said: RawHookOutput, attempts: u32) -> HookRun {
    let printed = CapturedOutput {
        stdout: said.whole.as_deref().unwrap_or(&said.stdout),
        stderr: &said.stderr,
        is_cut: said.whole.is_none(),
    };
    let rules = AnswerRules {
        kind: point.kind(),
        on_failure: hook.options.on_failure,
        answers: hook.options.answers,
    };
    let mut outcome = interpret(&said.ended, printed, rules);
    if let Some(hint) = quiet_hint(&said) {
        outcome.reason = outcome.reason.map(|reason| format!("{reason}: {hint}"));
    }
    let printed = said.printed();
    let kept = |text: &String| first_chars(text, REASON_MAX);
    let ran = HookRan {
        hook_name: hook.name.clone(),
        point: point.name().to_owned(),
        status: outcome.status.into(),
        exit_code: match said.ended {
            ProcessExit::Exited(code) => Some(code),
            _ => None,
        },
        duration_ms: u64::try_from(said.duration.as_millis()).unwrap_or(u64::MAX),
        ended_at: Some(hookloop_config::clock::now()),
        attempts,
        reason: outcome.reason.as_ref().map(kept),
        message: outcome.message.as_ref().map(kept),
        stdout_bytes: said.stdout_bytes,
        stderr_bytes: said.stderr_bytes,
        artifact: said.artifact.clone(),
        base_tests: false,
        output_tail: output_tail(&outcome, &printed),
    };
    let RawHookOutput { stdout, stderr, left_out, .. } = said;
    HookRun {
        hook: hook.name.clone(),
        outcome,
        ran: Some(ran),
        stdout,
        stderr,
        printed,
        left_out,
        gap: None,
        checks: None,
        in_room: false,
    }
}

/// Returns a hint about a run that timed out after a long time without output.
fn quiet_hint(said: &RawHookOutput) -> Option<String> {
    let is_quiet = said.quiet_for >= QUIET_AFTER.min(said.duration / 2);
    (said.ended == ProcessExit::TimedOut && said.both.is_some() && is_quiet).then(|| {
        // Rounded down to whole seconds, from one second on.
        let ms = u64::try_from(said.quiet_for.as_millis()).unwrap_or(u64::MAX);
        let quiet = Length { ms: if ms < 1_000 { ms } else { ms - ms % 1_000 } };
        format!("it printed nothing for the last {quiet}; {WATCHER_HINT}")
    })
}

/// Returns the last output lines for the record of a blocking gate or a non-blocking failure.
///
/// A gate with a known test runner keeps none, because its verdict names the failing checks.
pub fn output_tail(outcome: &HookOutcome, printed: &str) -> Vec<String> {
    let is_kept = match outcome.verdict {
        HookVerdict::Pass => outcome.has_failed_openly(),
        HookVerdict::Block { .. } => checks::read(printed).is_none(),
        HookVerdict::Escalate { .. } => false,
    };
    if is_kept { last_lines(printed) } else { Vec::new() }
}

fn last_lines(printed: &str) -> Vec<String> {
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let clip = |line: &&str| first_chars(line.trim_end(), TAIL_LINE_MAX);
    lines[first..].iter().map(clip).collect()
}
