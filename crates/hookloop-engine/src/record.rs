//! What a hook said, as it is judged and as the log keeps it.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hookloop_core::answer::{
    ANSWER_MAX, AnswerRules, Ended, Printed, interpret, looks_like_answer,
};
use hookloop_core::event::HookRan;
use hookloop_core::excerpt::LeftOut;
use hookloop_core::hook::Hook;
use hookloop_core::point::Point;

use crate::process::{How, Output, Ran, Stored};
use crate::run::HookRun;

const REASON_MAX: usize = 2_000;
/// Lines of a failed hook's output that its record keeps, and characters of each.
const TAIL_LINES: usize = 8;
const TAIL_LINE_MAX: usize = 200;

/// What came of one run, whatever ran.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ended: Ended,
    pub(crate) duration: Duration,
    /// Standard output for people, and all of it if that is kept.
    pub(crate) stdout: String,
    pub(crate) whole: Option<String>,
    pub(crate) stderr: String,
    /// The parts of both that they have a note of instead.
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    pub(crate) artifact: Option<String>,
}

impl Said {
    /// By a process whose output is in the directory `artifacts`.
    pub(crate) fn of(ran: &Ran, artifacts: &Path) -> Said {
        let (stdout, stderr) = (&ran.output.stdout, &ran.output.stderr);
        let has_file = |output: &Output| !matches!(output.stored, Stored::Nothing);
        let is_kept = has_file(stdout) || has_file(stderr);
        let (stdout_text, stdout_rest) = stdout.excerpt_and_rest(usize::MAX);
        let (stderr_text, stderr_rest) = stderr.excerpt_and_rest(usize::MAX);
        Said {
            ended: match ran.how {
                How::Exited(code) => Ended::Exited(code),
                How::Signalled(signal) => Ended::Killed(signal),
                How::TimedOut => Ended::TimedOut,
                How::Cancelled => Ended::Cancelled,
                How::OverLimit(limit) => Ended::OverLimit(limit),
            },
            duration: ran.duration,
            stdout: stdout_text,
            whole: whole(stdout).map(|whole| String::from_utf8_lossy(&whole).into_owned()),
            stderr: stderr_text,
            left_out: [stdout_rest, stderr_rest].into_iter().flatten().collect(),
            stdout_bytes: stdout.bytes,
            stderr_bytes: stderr.bytes,
            artifact: is_kept.then(|| artifacts.display().to_string()),
        }
    }
}

/// All of the output, from its file if it is an answer that memory has no room for.
fn whole(stdout: &Output) -> Option<Cow<'_, [u8]>> {
    match &stdout.stored {
        Stored::Whole(path)
            if stdout.bytes <= ANSWER_MAX as u64
                && stdout.left_out_bytes() > 0
                && looks_like_answer(&stdout.excerpt()) =>
        {
            fs::read(path).ok().map(Cow::Owned)
        }
        _ => stdout.whole(),
    }
}

/// What a run means, and what the log keeps of it.
pub(crate) fn judged(hook: &Hook, point: &Point, said: Said, attempts: u32) -> HookRun {
    let printed = Printed {
        stdout: said.whole.as_deref().unwrap_or(&said.stdout),
        stderr: &said.stderr,
        is_cut: said.whole.is_none(),
    };
    let rules = AnswerRules {
        kind: point.kind(),
        on_failure: hook.options.on_failure,
        answers: hook.options.answers,
    };
    let outcome = interpret(&said.ended, printed, rules);
    let kept = |text: &String| text.chars().take(REASON_MAX).collect::<String>();
    let ran = HookRan {
        hook_name: hook.name.clone(),
        point: point.name().to_owned(),
        status: outcome.status.name().to_owned(),
        exit_code: match said.ended {
            Ended::Exited(code) => Some(code),
            _ => None,
        },
        duration_ms: u64::try_from(said.duration.as_millis()).unwrap_or(u64::MAX),
        ended_at: Some(crate::project::now()),
        attempts,
        reason: outcome.reason.as_ref().map(kept),
        message: outcome.message.as_ref().map(kept),
        stdout_bytes: said.stdout_bytes,
        stderr_bytes: said.stderr_bytes,
        artifact: said.artifact.clone(),
        output_tail: if outcome.has_failed_openly() {
            output_tail(&said.stdout, &said.stderr)
        } else {
            Vec::new()
        },
    };
    let Said { stdout, stderr, left_out, .. } = said;
    HookRun {
        hook: hook.name.clone(),
        outcome,
        ran: Some(ran),
        stdout,
        stderr,
        left_out,
        gap: None,
    }
}

/// The last lines of a hook's output: standard output that is not an answer, then standard error.
pub(crate) fn output_tail(stdout: &str, stderr: &str) -> Vec<String> {
    let stdout = if looks_like_answer(stdout) { "" } else { stdout };
    let lines = stdout.lines().chain(stderr.lines()).filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let clip = |line: &&str| line.trim_end().chars().take(TAIL_LINE_MAX).collect();
    lines[first..].iter().map(clip).collect()
}
