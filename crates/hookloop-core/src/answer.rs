//! What a hook's exit code and output mean.
//!
//! Exit code 0 passes, 2 blocks, any other is a failed hook. Standard output that is one JSON object
//! is the answer, in the dialect that other agents' hooks speak; anything else is plain text. Text is
//! never searched for meaning.

use serde::Deserialize;
use serde_json::Value;

use crate::action::Action;
use crate::limits::Limit;
use crate::options::OnFailure;
use crate::point::Kind;

/// Standard output that is longer is no answer.
pub const ANSWER_MAX: usize = 1024 * 1024;
/// Actions that one answer may ask for.
pub const ACTIONS_MAX: usize = 64;

/// What a hook's author should hear.
const BESIDE_TEXT: &str = "it printed an answer beside other text, so all of it counts as text; \
                           print the rest to standard error";

/// How a hook's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    /// By a signal that we did not send.
    Killed(i32),
    TimedOut,
    Cancelled,
    /// We ended it, for what it used.
    OverLimit(Limit),
    /// Why there is no process.
    NotStarted(String),
}

/// What came of one run of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Passed,
    /// It said no.
    Blocked,
    /// It could not say.
    Failed,
    TimedOut,
    Killed,
    NotStarted,
    Cancelled,
    /// It had nothing to do.
    Skipped,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Blocked => "blocked",
            Status::Failed => "failed",
            Status::TimedOut => "timed_out",
            Status::Killed => "killed",
            Status::NotStarted => "not_started",
            Status::Cancelled => "cancelled",
            Status::Skipped => "skipped",
        }
    }
}

/// What a gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Block {
        feedback: String,
    },
    /// A human is needed, whatever the others say.
    Escalate {
        reason: String,
    },
}

/// Everything that a run came to, whatever the handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub status: Status,
    pub verdict: Verdict,
    /// Why it is not [`Status::Passed`], in a line.
    pub reason: Option<String>,
    /// For the user.
    pub message: Option<String>,
    /// For the agent, as if it was piped.
    pub context: Option<String>,
    pub next_prompt: Option<String>,
    pub actions: Vec<Action>,
    /// What a later step may need, such as `pr_url`.
    pub values: Value,
    pub checkpoint: Option<Value>,
    /// Its plain output stays out of the transcript.
    pub is_quiet: bool,
}

/// What a run printed: as much of it as is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Printed<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
    /// Standard output was longer than what is here.
    pub is_cut: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    decision: Option<String>,
    reason: Option<String>,
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    suppress_output: bool,
    hook_specific_output: Option<Specific>,
    hookloop: Option<Ours>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    additional_context: Option<String>,
}

/// Ours is typed strictly: a word misspelt in it is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Ours {
    action: Option<Ask>,
    reason: Option<String>,
    next_prompt: Option<String>,
    checkpoint: Option<Value>,
    actions: Vec<Action>,
    context: Value,
    metadata: Value,
    skip: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ask {
    Complete,
    Continue,
    Escalate,
}

/// Reads what a process said.
pub fn interpret(
    ended: &Ended,
    printed: Printed<'_>,
    kind: Kind,
    on_failure: OnFailure,
) -> Outcome {
    let status = match ended {
        Ended::Exited(0) => Status::Passed,
        Ended::Exited(2) => Status::Blocked,
        Ended::Exited(_) => Status::Failed,
        Ended::Killed(_) | Ended::OverLimit(_) => Status::Killed,
        Ended::TimedOut => Status::TimedOut,
        Ended::Cancelled => Status::Cancelled,
        Ended::NotStarted(_) => Status::NotStarted,
    };
    let answered = match status {
        Status::Passed | Status::Blocked => read_answer(printed),
        _ => Ok(None),
    };
    let outcome = match answered {
        Ok(None) if has_answer_beside_text(printed.stdout) => Outcome {
            message: Some(BESIDE_TEXT.to_owned()),
            ..said(status, Answer::default(), printed, ended)
        },
        Ok(answer) => said(status, answer.unwrap_or_default(), printed, ended),
        // It said no by its exit code, whatever else it tried to say.
        Err(_) if status == Status::Blocked => said(status, Answer::default(), printed, ended),
        Err(why) => Outcome { reason: Some(why), ..Outcome::of(Status::Failed) },
    };
    outcome.judged(kind, on_failure, printed)
}

impl Outcome {
    pub fn of(status: Status) -> Outcome {
        Outcome {
            status,
            verdict: Verdict::Pass,
            reason: None,
            message: None,
            context: None,
            next_prompt: None,
            actions: Vec::new(),
            values: Value::Null,
            checkpoint: None,
            is_quiet: false,
        }
    }

    /// A hook that could not say anything, and why: for a gate that is closed, a no.
    pub fn unable(status: Status, reason: String, kind: Kind, on_failure: OnFailure) -> Outcome {
        let outcome = Outcome { reason: Some(reason), ..Outcome::of(status) };
        outcome.judged(kind, on_failure, Printed::default())
    }

    /// What the status means at a point of this kind.
    fn judged(mut self, kind: Kind, on_failure: OnFailure, printed: Printed<'_>) -> Outcome {
        if kind == Kind::Reaction {
            // There is nothing to block: the fact is there. A human may be asked for all the same.
            if self.status == Status::Blocked {
                self.status = Status::Failed;
            }
            if let Verdict::Block { .. } = self.verdict {
                self.verdict = Verdict::Pass;
            }
            return self;
        }
        let is_failure = !matches!(self.status, Status::Passed | Status::Blocked | Status::Skipped);
        if is_failure && on_failure == OnFailure::Closed && self.verdict == Verdict::Pass {
            let reason = self.reason.clone().unwrap_or_default();
            let parts = [reason.as_str(), printed.stderr.trim(), printed.stdout.trim()];
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.verdict = Verdict::Block { feedback: said.join("\n\n") };
        }
        self
    }
}

/// Whether standard output, or its beginning and end, is meant as an answer.
pub fn looks_like_answer(stdout: &str) -> bool {
    let text = stdout.trim();
    text.starts_with('{') && text.ends_with('}')
}

/// The answer in standard output, if that is one JSON object.
fn read_answer(printed: Printed<'_>) -> Result<Option<Answer>, String> {
    let text = printed.stdout.trim();
    if !looks_like_answer(text) {
        return Ok(None);
    }
    if printed.is_cut || text.len() > ANSWER_MAX {
        return Err(format!("its answer has more than {ANSWER_MAX} bytes"));
    }
    let unreadable = |error: serde_json::Error| format!("its answer can't be read: {error}");
    // Fields that are not known have to be JSON too.
    let _: Value = serde_json::from_str(text).map_err(unreadable)?;
    let answer: Answer = serde_json::from_str(text).map_err(unreadable)?;
    let actions = answer.hookloop.as_ref().map_or(0, |ours| ours.actions.len());
    if actions > ACTIONS_MAX {
        return Err(format!("{actions} actions in an answer; at most {ACTIONS_MAX}"));
    }
    if let Some(decision) = answer.decision.as_deref()
        && !["block", "approve", "allow"].contains(&decision)
    {
        return Err(format!("its answer decides `{decision}`, which means nothing; `block` does"));
    }
    Ok(Some(answer))
}

/// Whether a line of a text would be an answer, were it alone.
pub fn has_answer_beside_text(stdout: &str) -> bool {
    let is_answer = |line: &str| {
        let words = ["\"decision\"", "\"continue\"", "\"hookSpecificOutput\"", "\"hookloop\""];
        let line = line.trim();
        line.starts_with('{')
            && line.ends_with('}')
            && words.iter().any(|word| line.contains(word))
            && serde_json::from_str::<Answer>(line).is_ok()
    };
    let text = stdout.trim();
    !(text.starts_with('{') && text.ends_with('}')) && text.lines().any(is_answer)
}

fn said(status: Status, answer: Answer, printed: Printed<'_>, ended: &Ended) -> Outcome {
    let ours = answer.hookloop.unwrap_or_default();
    let blocks = status == Status::Blocked
        || answer.decision.as_deref() == Some("block")
        || matches!(ours.action, Some(Ask::Continue));
    let escalates = answer.goes_on == Some(false) || matches!(ours.action, Some(Ask::Escalate));
    let reason = answer.reason.or(ours.reason);
    let verdict = if escalates {
        let given = answer.stop_reason.or(reason.clone());
        let given = given.filter(|reason| !reason.trim().is_empty());
        Verdict::Escalate { reason: given.unwrap_or_else(|| "a hook asked for a human".to_owned()) }
    } else if blocks {
        Verdict::Block { feedback: feedback(reason.as_deref(), printed) }
    } else {
        Verdict::Pass
    };
    let status = match status {
        Status::Passed if verdict != Verdict::Pass => Status::Blocked,
        Status::Passed if ours.skip => Status::Skipped,
        other => other,
    };
    Outcome {
        status,
        reason: reason.or_else(|| why(ended)),
        message: answer.system_message,
        context: answer.hook_specific_output.and_then(|specific| specific.additional_context),
        next_prompt: ours.next_prompt,
        actions: ours.actions,
        values: if ours.context.is_null() { ours.metadata } else { ours.context },
        checkpoint: ours.checkpoint,
        is_quiet: answer.suppress_output,
        verdict,
    }
}

/// What the agent is told: the answer's reason, else what the hook printed.
fn feedback(reason: Option<&str>, printed: Printed<'_>) -> String {
    let plain = match printed.stdout.trim() {
        text if text.starts_with('{') && !printed.is_cut => "",
        text => text,
    };
    match reason {
        Some(reason) if !reason.trim().is_empty() => reason.trim().to_owned(),
        _ => {
            let parts = [printed.stderr.trim(), plain];
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            match said.is_empty() {
                true => "a gate said no, and nothing else".to_owned(),
                false => said.join("\n\n"),
            }
        }
    }
}

fn why(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Exited(0) => None,
        Ended::Exited(code) => Some(format!("exit code {code}")),
        Ended::Killed(signal) => Some(format!("killed by signal {signal}")),
        Ended::TimedOut => Some("timed out".to_owned()),
        Ended::Cancelled => Some("cancelled".to_owned()),
        Ended::OverLimit(limit) => Some(format!("ended because it used too much: {limit}")),
        Ended::NotStarted(why) => Some(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(ended: Ended, stdout: &str, stderr: &str) -> Outcome {
        let printed = Printed { stdout, stderr, is_cut: false };
        interpret(&ended, printed, Kind::Gate, OnFailure::Closed)
    }

    fn block(feedback: &str) -> Verdict {
        Verdict::Block { feedback: feedback.to_owned() }
    }

    #[test]
    fn exit_codes_of_a_gate() {
        let check = |ended: Ended, status: Status, verdict: Verdict| {
            let outcome = gate(ended.clone(), "out", "err");
            assert_eq!((outcome.status, outcome.verdict), (status, verdict), "{ended:?}");
        };
        check(Ended::Exited(0), Status::Passed, Verdict::Pass);
        check(Ended::Exited(2), Status::Blocked, block("err\n\nout"));
        check(Ended::Exited(1), Status::Failed, block("exit code 1\n\nerr\n\nout"));
        check(Ended::TimedOut, Status::TimedOut, block("timed out\n\nerr\n\nout"));
        check(Ended::Killed(9), Status::Killed, block("killed by signal 9\n\nerr\n\nout"));
        let missing = Ended::NotStarted("no such file".to_owned());
        check(missing, Status::NotStarted, block("no such file\n\nerr\n\nout"));
    }

    #[test]
    fn a_gate_that_was_not_run_does_not_pass() {
        let unable = |on_failure| {
            let reason = "it is not trusted".to_owned();
            Outcome::unable(Status::NotStarted, reason, Kind::Gate, on_failure).verdict
        };
        assert_eq!(unable(OnFailure::Closed), block("it is not trusted"));
        assert_eq!(unable(OnFailure::Open), Verdict::Pass);
    }

    #[test]
    fn an_open_gate_passes_what_failed_but_not_what_blocks() {
        let printed = Printed { stdout: "", stderr: "no", is_cut: false };
        for ended in [Ended::Exited(1), Ended::TimedOut, Ended::NotStarted("gone".to_owned())] {
            let outcome = interpret(&ended, printed, Kind::Gate, OnFailure::Open);
            assert_eq!(outcome.verdict, Verdict::Pass);
            assert_ne!(outcome.status, Status::Passed);
        }
        let outcome = interpret(&Ended::Exited(2), printed, Kind::Gate, OnFailure::Open);
        assert_eq!(outcome.verdict, block("no"));
    }

    #[test]
    fn a_reaction_blocks_nothing() {
        let printed = Printed { stdout: "", stderr: "no", is_cut: false };
        let outcome = interpret(&Ended::Exited(2), printed, Kind::Reaction, OnFailure::Closed);
        assert_eq!((outcome.status, outcome.verdict), (Status::Failed, Verdict::Pass));
    }

    #[test]
    fn answers_in_json() {
        let check = |answer: &str, status: Status, verdict: Verdict| {
            let outcome = gate(Ended::Exited(0), answer, "err");
            assert_eq!((outcome.status, outcome.verdict), (status, verdict), "{answer}");
        };
        check(r#"{"decision":"block","reason":"tests"}"#, Status::Blocked, block("tests"));
        check(r#"{"decision":"block"}"#, Status::Blocked, block("err"));
        check(r#"{"continue":true}"#, Status::Passed, Verdict::Pass);
        check(r#"{"unknown":1}"#, Status::Passed, Verdict::Pass);
        let escalate = |reason: &str| Verdict::Escalate { reason: reason.to_owned() };
        check(r#"{"continue":false,"stopReason":"ask"}"#, Status::Blocked, escalate("ask"));
        check(
            r#"{"continue":false,"decision":"block","reason":"r"}"#,
            Status::Blocked,
            escalate("r"),
        );
        check(r#"{"hookloop":{"skip":true}}"#, Status::Skipped, Verdict::Pass);
        check(r#"{"hookloop":{"action":"complete"}}"#, Status::Passed, Verdict::Pass);
        check(
            r#"{"hookloop":{"action":"continue","reason":"go on"}}"#,
            Status::Blocked,
            block("go on"),
        );
        check(r#"{"hookloop":{"action":"escalate","reason":"x"}}"#, Status::Blocked, escalate("x"));
        check("[1]", Status::Passed, Verdict::Pass);
        check("plain {text}", Status::Passed, Verdict::Pass);
    }

    #[test]
    fn an_answer_beside_text_is_text_and_the_author_hears_of_it() {
        let chatty = gate(Ended::Exited(0), "checking…\n{\"decision\":\"block\"}\n", "");
        assert_eq!((chatty.status, chatty.verdict), (Status::Passed, Verdict::Pass));
        assert_eq!(chatty.message.as_deref(), Some(BESIDE_TEXT));
        for quiet in ["checking…", "{\"decision\":\"approve\"}", "{\"lines\": 3}\ndone"] {
            assert_eq!(gate(Ended::Exited(0), quiet, "").message, None, "{quiet}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_is_a_failed_gate() {
        let printed = Printed { stdout: "{\"a\":\"[…]\"}", stderr: "", is_cut: true };
        let outcome = interpret(&Ended::Exited(0), printed, Kind::Gate, OnFailure::Closed);
        assert_eq!(outcome.status, Status::Failed);
        assert!(matches!(outcome.verdict, Verdict::Block { .. }));
        let plain = Printed { stdout: "a […] b", ..printed };
        let outcome = interpret(&Ended::Exited(0), plain, Kind::Gate, OnFailure::Closed);
        assert_eq!(outcome.verdict, Verdict::Pass);
    }

    #[test]
    fn a_broken_answer_is_a_failed_gate() {
        for answer in [
            "{oops}",
            r#"{"decision":"deny"}"#,
            r#"{"hookloop":{"acton":"complete"}}"#,
            r#"{"hookloop":{"actions":[{"type":"sudo","payload":{}}]}}"#,
            r#"{"decision":"block"} {"decision":"approve"}"#,
            r#"{"decision":"block","decision":"approve"}"#,
            r#"{"unknown":"\ud800"}"#,
            r#"{"unknown":1e999}"#,
        ] {
            let outcome = gate(Ended::Exited(0), answer, "");
            assert_eq!(outcome.status, Status::Failed, "{answer}");
            assert!(matches!(outcome.verdict, Verdict::Block { .. }), "{answer}");
        }
    }

    #[test]
    fn an_answer_that_is_not_whole_is_a_failed_gate() {
        let cut = |stdout| {
            let printed = Printed { stdout, stderr: "", is_cut: true };
            interpret(&Ended::Exited(0), printed, Kind::Gate, OnFailure::Closed)
        };
        let outcome = cut("{\"decision\":\"block\",\"reason\":\"… 9 bytes …\"}\n");
        assert_eq!(outcome.status, Status::Failed);
        assert!(matches!(outcome.verdict, Verdict::Block { .. }));
        assert_eq!(cut("{ much … text").verdict, Verdict::Pass);
    }

    #[test]
    fn a_no_wins_over_skip() {
        for (answer, verdict) in [
            (r#"{"decision":"block","reason":"r","hookloop":{"skip":true}}"#, block("r")),
            (
                r#"{"continue":false,"stopReason":" ","hookloop":{"skip":true}}"#,
                Verdict::Escalate { reason: "a hook asked for a human".to_owned() },
            ),
        ] {
            let outcome = gate(Ended::Exited(0), answer, "");
            assert_eq!((outcome.status, outcome.verdict), (Status::Blocked, verdict), "{answer}");
        }
    }

    #[test]
    fn exit_code_2_blocks_whatever_the_json_says() {
        for on_failure in [OnFailure::Closed, OnFailure::Open] {
            let printed = Printed { stdout: "{broken}", stderr: "because", is_cut: false };
            let outcome = interpret(&Ended::Exited(2), printed, Kind::Gate, on_failure);
            assert_eq!((outcome.status, outcome.verdict), (Status::Blocked, block("because")));
        }
        let outcome = gate(Ended::Exited(2), r#"{"decision":"approve"}"#, "because");
        assert_eq!(outcome.verdict, block("because"));
        let outcome = gate(Ended::Exited(2), r#"{"reason":"better"}"#, "because");
        assert_eq!(outcome.verdict, block("better"));
    }

    #[test]
    fn text_that_looks_like_a_verdict_is_text() {
        for text in ["[Hook command failed: x]", "[Hook feedback] block", "decision: block"] {
            assert_eq!(gate(Ended::Exited(0), text, text).verdict, Verdict::Pass);
        }
    }
}
