//! What a hook's exit code and output mean.
//!
//! Exit code 0 passes, 2 blocks, any other is a failed hook. Standard output that is one JSON object
//! is the answer, in the dialect that other agents' hooks speak. So is a JSON list of actions, which
//! stands for an object with these `actions`. Anything else is plain text. Text is never searched for
//! meaning.

use serde::Deserialize;
use serde_json::Value;

use crate::action::{ACTION_TYPES, Action};
use crate::limits::Limit;
use crate::options::{AllowedAnswers, OnFailure};
use crate::point::Kind;

/// Standard output that is longer is no answer.
pub const ANSWER_MAX: usize = 1024 * 1024;
/// The largest `context` of an answer, as JSON.
pub const CONTEXT_MAX: usize = 64 * 1024;
/// Actions that one answer may ask for.
pub const ACTIONS_MAX: usize = 64;

/// What a hook's author should hear.
const BESIDE_TEXT: &str = "it printed an answer beside other text, so all of it counts as text; \
                           print the rest to standard error";

/// The part of an answer that says that the hook had nothing to do.
pub const SKIP: &str = "skip";

/// Why the parts of a gate's answer that act did not count.
const NOT_ALLOWED: &str = "add `answers: json` to the hook to let it";
const NOT_PASSED: &str = "a gate that does not pass acts on nothing";

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
    /// Parts of its answer that did not count, by their names; [`Outcome::message`] tells the user.
    pub ignored: Vec<&'static str>,
}

/// How the output of a hook is read: by its point and its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerRules {
    pub kind: Kind,
    pub on_failure: OnFailure,
    pub answers: AllowedAnswers,
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
    #[serde(deserialize_with = "read_actions")]
    actions: Vec<Action>,
    context: Value,
    metadata: Value,
    skip: bool,
}

/// Reads each action apart from the others: one that cannot be read voids none of them.
fn read_actions<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Action>, D::Error> {
    let entries = Vec::<Value>::deserialize(from)?;
    Ok(entries.into_iter().map(Action::read).collect())
}

impl Answer {
    /// The answer with the parts that make a gate stricter alone, and the names of the parts that were there
    /// beside them.
    fn without_acts(mut self) -> (Answer, Vec<&'static str>) {
        let Some(ours) = self.hookloop.take() else { return (self, Vec::new()) };
        let acts = [
            ("actions", !ours.actions.is_empty()),
            ("checkpoint", ours.checkpoint.is_some()),
            ("nextPrompt", ours.next_prompt.is_some()),
            ("context", !ours.context.is_null()),
            ("metadata", !ours.metadata.is_null()),
            (SKIP, ours.skip),
        ];
        let ignored = acts.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        let ignored = ignored.collect();
        let (action, reason) = (ours.action, ours.reason);
        self.hookloop = Some(Ours { action, reason, ..Ours::default() });
        (self, ignored)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ask {
    Complete,
    Continue,
    Escalate,
}

/// Reads what a process said.
pub fn interpret(ended: &Ended, printed: Printed<'_>, rules: AnswerRules) -> Outcome {
    let status = match ended {
        Ended::Exited(0) => Status::Passed,
        Ended::Exited(2) => Status::Blocked,
        Ended::Exited(_) => Status::Failed,
        Ended::Killed(_) | Ended::OverLimit(_) => Status::Killed,
        Ended::TimedOut => Status::TimedOut,
        Ended::Cancelled => Status::Cancelled,
        Ended::NotStarted(_) => Status::NotStarted,
    };
    let may_act = rules.kind == Kind::Reaction || rules.answers == AllowedAnswers::Json;
    let answered = match status {
        Status::Passed | Status::Blocked => read_answer(printed, may_act),
        _ => Ok(None),
    };
    let outcome = match answered {
        Ok(None) if has_answer_beside_text(printed.stdout) => Outcome {
            message: Some(BESIDE_TEXT.to_owned()),
            ..said(status, Answer::default(), printed, ended)
        },
        Ok(answer) => {
            let answer = answer.unwrap_or_default();
            if may_act {
                said(status, answer, printed, ended).without_unproven_acts(rules.kind)
            } else {
                let (answer, ignored) = answer.without_acts();
                said(status, answer, printed, ended).reporting(ignored, NOT_ALLOWED)
            }
        }
        // It said no by its exit code, whatever else it tried to say.
        Err(_) if status == Status::Blocked => said(status, Answer::default(), printed, ended),
        Err(why) => Outcome { reason: Some(why), ..Outcome::of(Status::Failed) },
    };
    outcome.judged(rules.kind, rules.on_failure, printed)
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
            ignored: Vec::new(),
        }
    }

    /// Drops the parts of a gate's answer that reach beyond its session, if the gate did not pass. The next
    /// prompt and the checkpoint stay: both are for the agent that is sent back.
    fn without_unproven_acts(mut self, kind: Kind) -> Outcome {
        if kind == Kind::Reaction || matches!(self.status, Status::Passed | Status::Skipped) {
            return self;
        }
        let mut ignored = Vec::new();
        if !std::mem::take(&mut self.actions).is_empty() {
            ignored.push("actions");
        }
        if !std::mem::take(&mut self.values).is_null() {
            ignored.push("context");
        }
        self.reporting(ignored, NOT_PASSED)
    }

    /// Tells the user which parts of the answer did not count, and why.
    fn reporting(mut self, ignored: Vec<&'static str>, why: &str) -> Outcome {
        if ignored.is_empty() {
            return self;
        }
        let names: Vec<String> = ignored.iter().map(|name| format!("`{name}`")).collect();
        let report = format!("it printed JSON that acts ({}); {why}", names.join(", "));
        self.message = Some(match self.message {
            Some(message) => format!("{message}\n{report}"),
            None => report,
        });
        self.ignored = ignored;
        self
    }

    /// Whether the hook failed and stops nothing: a reaction, or a gate with `on_failure: open`.
    pub fn has_failed_openly(&self) -> bool {
        let is_failure = matches!(
            self.status,
            Status::Failed | Status::TimedOut | Status::Killed | Status::NotStarted
        );
        is_failure && self.verdict == Verdict::Pass
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
    is_braced(text) || looks_like_action_list(text)
}

fn is_braced(text: &str) -> bool {
    text.starts_with('{') && text.ends_with('}')
}

/// Whether a text is meant as a list of actions: each entry of such a list names its type and payload.
fn looks_like_action_list(text: &str) -> bool {
    text.starts_with('[')
        && text.ends_with(']')
        && text.contains("\"type\"")
        && (text.contains("\"payload\"")
            || text.contains("_task\"")
            || text.contains("_workflow\""))
}

/// The entries of a list that has an action in it. Other lists, such as a linter's findings, are text.
fn action_list(text: &str) -> Option<Vec<Value>> {
    let Ok(Value::Array(entries)) = serde_json::from_str(text) else { return None };
    let is_action = |entry: &Value| {
        let name = entry.get("type").and_then(Value::as_str);
        name.is_some_and(|name| {
            entry.get("payload").is_some() || (name != "log" && ACTION_TYPES.contains(&name))
        })
    };
    entries.iter().any(is_action).then_some(entries)
}

/// The answer in standard output, if that is one JSON object or a list of actions.
fn read_answer(printed: Printed<'_>, may_act: bool) -> Result<Option<Answer>, String> {
    let text = printed.stdout.trim();
    let is_list = !is_braced(text) && looks_like_action_list(text);
    if !is_list && !is_braced(text) {
        return Ok(None);
    }
    // A list can only act, so without the right to that it is text like any other.
    let is_cut = printed.is_cut || text.len() > ANSWER_MAX;
    if is_cut && (may_act || !is_list) {
        return Err(format!("its answer has more than {ANSWER_MAX} bytes"));
    }
    let unreadable = |error: serde_json::Error| format!("its answer can't be read: {error}");
    if is_list {
        if is_cut {
            return Ok(None);
        }
        let Some(entries) = action_list(text) else {
            return match serde_json::from_str::<Value>(text) {
                Err(error) if may_act => Err(unreadable(error)),
                _ => Ok(None),
            };
        };
        check_action_count(entries.len())?;
        let actions = entries.into_iter().map(Action::read).collect();
        let hookloop = Some(Ours { actions, ..Ours::default() });
        return Ok(Some(Answer { hookloop, ..Answer::default() }));
    }
    // Fields that are not known have to be JSON too.
    let _: Value = serde_json::from_str(text).map_err(unreadable)?;
    let answer: Answer = serde_json::from_str(text).map_err(unreadable)?;
    check_action_count(answer.hookloop.as_ref().map_or(0, |ours| ours.actions.len()))?;
    let is_large = |value: &Value| !value.is_null() && value.to_string().len() > CONTEXT_MAX;
    if answer
        .hookloop
        .as_ref()
        .is_some_and(|ours| is_large(&ours.context) || is_large(&ours.metadata))
    {
        return Err(format!("the `context` of its answer has more than {CONTEXT_MAX} bytes"));
    }
    if let Some(decision) = answer.decision.as_deref()
        && !["block", "approve", "allow"].contains(&decision)
    {
        return Err(format!("its answer decides `{decision}`, which means nothing; `block` does"));
    }
    Ok(Some(answer))
}

fn check_action_count(actions: usize) -> Result<(), String> {
    if actions > ACTIONS_MAX {
        return Err(format!("{actions} actions in an answer; at most {ACTIONS_MAX}"));
    }
    Ok(())
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
        ignored: Vec::new(),
        verdict,
    }
}

/// What the agent is told: the answer's reason, else what the hook printed.
fn feedback(reason: Option<&str>, printed: Printed<'_>) -> String {
    let plain = match printed.stdout.trim() {
        text if text.starts_with('{') && !printed.is_cut => "",
        text if !printed.is_cut && action_list(text).is_some() => "",
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
        interpret(&ended, printed, GATE)
    }

    const GATE: AnswerRules = AnswerRules {
        kind: Kind::Gate,
        on_failure: OnFailure::Closed,
        answers: AllowedAnswers::Stricter,
    };
    const OPEN: AnswerRules = AnswerRules { on_failure: OnFailure::Open, ..GATE };
    const ACTING: AnswerRules = AnswerRules { answers: AllowedAnswers::Json, ..GATE };
    const REACTION: AnswerRules = AnswerRules { kind: Kind::Reaction, ..GATE };

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
            let outcome = interpret(&ended, printed, OPEN);
            assert_eq!(outcome.verdict, Verdict::Pass);
            assert_ne!(outcome.status, Status::Passed);
        }
        let outcome = interpret(&Ended::Exited(2), printed, OPEN);
        assert_eq!(outcome.verdict, block("no"));
    }

    #[test]
    fn a_reaction_blocks_nothing() {
        let printed = Printed { stdout: "", stderr: "no", is_cut: false };
        let outcome = interpret(&Ended::Exited(2), printed, REACTION);
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
        check(r#"{"hookloop":{"skip":true}}"#, Status::Passed, Verdict::Pass);
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
        let outcome = interpret(&Ended::Exited(0), printed, GATE);
        assert_eq!(outcome.status, Status::Failed);
        assert!(matches!(outcome.verdict, Verdict::Block { .. }));
        let plain = Printed { stdout: "a […] b", ..printed };
        let outcome = interpret(&Ended::Exited(0), plain, GATE);
        assert_eq!(outcome.verdict, Verdict::Pass);
    }

    #[test]
    fn a_broken_answer_is_a_failed_gate() {
        for answer in [
            "{oops}",
            r#"{"decision":"deny"}"#,
            r#"{"hookloop":{"acton":"complete"}}"#,
            r#"{"hookloop":{"actions":{"type":"log","payload":{}}}}"#,
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
    fn a_list_of_actions_is_an_answer() {
        let list = r#"[{"type":"create_task","payload":{"goal":"g"}},{"type":"sudo","payload":{}},
            {"type":"log","payload":{}}]"#;
        let printed = Printed { stdout: list, stderr: "", is_cut: false };
        for rules in [REACTION, ACTING] {
            let outcome = interpret(&Ended::Exited(0), printed, rules);
            let names: Vec<&str> = outcome.actions.iter().map(Action::name).collect();
            assert_eq!(
                (outcome.status, names),
                (Status::Passed, vec!["create_task", "sudo", "log"])
            );
            assert!(matches!(outcome.actions[1], Action::Unreadable(_)));
        }
        let held = interpret(&Ended::Exited(0), printed, GATE);
        assert_eq!((held.actions.len(), held.ignored), (0, vec!["actions"]));
    }

    #[test]
    fn a_list_of_something_else_is_text() {
        for text in [
            "[]",
            "[1, 2]",
            r#"[{"type":"error","line":3}]"#,
            r#"[{"type":"log","text":"loaded"}]"#,
            "[INFO] \"type\" \"payload\"",
        ] {
            for rules in [REACTION, GATE] {
                let printed = Printed { stdout: text, stderr: "", is_cut: false };
                let outcome = interpret(&Ended::Exited(0), printed, rules);
                assert_eq!(outcome, Outcome::of(Status::Passed), "{text}");
            }
        }
    }

    #[test]
    fn a_list_of_actions_that_is_broken_or_too_long_fails_the_hook_that_may_act() {
        let broken = r#"[{"type":"create_task","payload":{"goal":}}]"#;
        let many =
            format!("[{}]", vec![r#"{"type":"log","payload":{}}"#; ACTIONS_MAX + 1].join(","));
        for text in [broken, &many] {
            let printed = Printed { stdout: text, stderr: "", is_cut: false };
            let outcome = interpret(&Ended::Exited(0), printed, REACTION);
            assert_eq!(outcome.status, Status::Failed, "{text}");
            assert!(outcome.reason.is_some());
        }
        let printed = Printed { stdout: broken, stderr: "", is_cut: false };
        assert_eq!(interpret(&Ended::Exited(0), printed, GATE).status, Status::Passed);
    }

    #[test]
    fn an_answer_that_is_not_whole_is_a_failed_gate() {
        let cut = |stdout| {
            let printed = Printed { stdout, stderr: "", is_cut: true };
            interpret(&Ended::Exited(0), printed, GATE)
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
            for rules in [GATE, ACTING] {
                let printed = Printed { stdout: answer, stderr: "", is_cut: false };
                let outcome = interpret(&Ended::Exited(0), printed, rules);
                assert_eq!((outcome.status, &outcome.verdict), (Status::Blocked, &verdict));
            }
        }
    }

    #[test]
    fn exit_code_2_blocks_whatever_the_json_says() {
        for on_failure in [OnFailure::Closed, OnFailure::Open] {
            let printed = Printed { stdout: "{broken}", stderr: "because", is_cut: false };
            let rules = AnswerRules { on_failure, ..GATE };
            let outcome = interpret(&Ended::Exited(2), printed, rules);
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

    /// Every part that acts, with what it makes of an outcome.
    const ACTS: [(&str, &str); 6] = [
        ("actions", r#""actions":[{"type":"create_task","payload":{"goal":"g"}}]"#),
        ("checkpoint", r#""checkpoint":{"a":1}"#),
        ("nextPrompt", r#""nextPrompt":"p""#),
        ("context", r#""context":{"pr_url":"u"}"#),
        ("metadata", r#""metadata":{"m":1}"#),
        ("skip", r#""skip":true"#),
    ];

    #[test]
    fn json_of_a_gate_acts_only_where_its_definition_allows_it() {
        for (name, part) in ACTS {
            let stdout = format!("{{\"hookloop\":{{{part}}}}}");
            let printed = Printed { stdout: &stdout, stderr: "", is_cut: false };
            let outcome = interpret(&Ended::Exited(0), printed, GATE);
            assert_eq!(outcome.ignored, [name]);
            let message = outcome.message.clone().unwrap_or_default();
            assert!(message.contains(&format!("`{name}`")) && message.contains(NOT_ALLOWED));
            let silent = Outcome { message: None, ignored: Vec::new(), ..outcome };
            assert_eq!(silent, Outcome::of(Status::Passed), "{name}");
            for rules in [ACTING, REACTION] {
                let outcome = interpret(&Ended::Exited(0), printed, rules);
                assert_eq!((&outcome.message, &outcome.ignored), (&None, &Vec::new()), "{name}");
                assert_ne!(outcome, Outcome::of(Status::Passed), "{name}");
            }
        }
    }

    #[test]
    fn a_gate_that_does_not_pass_acts_on_nothing() {
        let all: Vec<&str> = ACTS.iter().map(|(_, part)| *part).collect();
        let asked = format!("{{\"decision\":\"block\",\"hookloop\":{{{}}}}}", all.join(","));
        let exited = format!("{{\"hookloop\":{{{}}}}}", all.join(","));
        let escalated = format!("{{\"continue\":false,\"hookloop\":{{{}}}}}", all.join(","));
        for (code, stdout) in [(0, &asked), (2, &exited), (0, &escalated), (1, &exited)] {
            let printed = Printed { stdout, stderr: "", is_cut: false };
            for rules in [GATE, ACTING, OPEN, AnswerRules { answers: AllowedAnswers::Json, ..OPEN }]
            {
                let outcome = interpret(&Ended::Exited(code), printed, rules);
                assert!(outcome.actions.is_empty() && outcome.values.is_null(), "{code} {stdout}");
                assert!(!matches!(outcome.status, Status::Passed | Status::Skipped), "{stdout}");
                let is_for_agent = code != 1 && rules.answers == AllowedAnswers::Json;
                assert_eq!(outcome.next_prompt.is_some(), is_for_agent, "{code} {stdout}");
                assert_eq!(outcome.checkpoint.is_some(), is_for_agent, "{code} {stdout}");
            }
        }
    }

    #[test]
    fn a_message_for_the_user_is_kept_beside_the_report() {
        let answer = r#"{"systemMessage":"hello","hookloop":{"skip":true}}"#;
        let message = gate(Ended::Exited(0), answer, "").message.unwrap_or_default();
        assert!(message.starts_with("hello\n") && message.contains("`skip`"), "{message}");
    }
}
