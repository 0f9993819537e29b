//! Tests of the hook protocol.

use super::interpret::{BESIDE_TEXT, NOT_ALLOWED};
use super::*;
use crate::action::Action;
use crate::options::{AllowedAnswers, OnFailure};
use crate::point::PointKind;

fn gate(ended: ProcessExit, stdout: &str, stderr: &str) -> HookOutcome {
    let printed = CapturedOutput { stdout, stderr, is_cut: false };
    interpret(&ended, printed, GATE)
}

const GATE: AnswerRules = AnswerRules {
    kind: PointKind::Gate,
    on_failure: OnFailure::Closed,
    answers: AllowedAnswers::Stricter,
};
const OPEN: AnswerRules = AnswerRules { on_failure: OnFailure::Open, ..GATE };
const ACTING: AnswerRules = AnswerRules { answers: AllowedAnswers::Json, ..GATE };
const REACTION: AnswerRules = AnswerRules { kind: PointKind::Reaction, ..GATE };

fn block(feedback: &str) -> HookVerdict {
    HookVerdict::Block { feedback: feedback.to_owned() }
}

#[test]
fn exit_codes_of_a_gate_map_to_verdicts() {
    let check = |ended: ProcessExit, status: HookStatus, verdict: HookVerdict| {
        let outcome = gate(ended.clone(), "out", "err");
        assert_eq!((outcome.status, outcome.verdict), (status, verdict), "{ended:?}");
    };
    check(ProcessExit::Exited(0), HookStatus::Passed, HookVerdict::Pass);
    check(ProcessExit::Exited(2), HookStatus::Blocked, block("err\n\nout"));
    check(ProcessExit::Exited(1), HookStatus::Failed, block("exit code 1\n\nerr\n\nout"));
    check(ProcessExit::TimedOut, HookStatus::TimedOut, block("timed out\n\nerr\n\nout"));
    check(ProcessExit::Killed(9), HookStatus::Killed, block("killed by signal 9\n\nerr\n\nout"));
    let missing = ProcessExit::NotStarted("no such file".to_owned());
    check(missing, HookStatus::NotStarted, block("no such file\n\nerr\n\nout"));
}

#[test]
fn a_gate_that_was_not_run_does_not_pass() {
    let unable = |on_failure| {
        let reason = "it is not trusted".to_owned();
        HookOutcome::unable(HookStatus::NotStarted, reason, PointKind::Gate, on_failure).verdict
    };
    assert_eq!(unable(OnFailure::Closed), block("it is not trusted"));
    assert_eq!(unable(OnFailure::Open), HookVerdict::Pass);
}

#[test]
fn a_fail_open_gate_passes_failures_but_not_exit_code_2() {
    let printed = CapturedOutput { stdout: "", stderr: "no", is_cut: false };
    for ended in
        [ProcessExit::Exited(1), ProcessExit::TimedOut, ProcessExit::NotStarted("gone".to_owned())]
    {
        let outcome = interpret(&ended, printed, OPEN);
        assert_eq!(outcome.verdict, HookVerdict::Pass);
        assert_ne!(outcome.status, HookStatus::Passed);
    }
    let outcome = interpret(&ProcessExit::Exited(2), printed, OPEN);
    assert_eq!(outcome.verdict, block("no"));
}

#[test]
fn a_reaction_blocks_nothing() {
    let printed = CapturedOutput { stdout: "", stderr: "no", is_cut: false };
    let outcome = interpret(&ProcessExit::Exited(2), printed, REACTION);
    assert_eq!((outcome.status, outcome.verdict), (HookStatus::Failed, HookVerdict::Pass));
}

#[test]
fn json_answers_of_a_gate_map_to_verdicts() {
    let check = |answer: &str, status: HookStatus, verdict: HookVerdict| {
        let outcome = gate(ProcessExit::Exited(0), answer, "err");
        assert_eq!((outcome.status, outcome.verdict), (status, verdict), "{answer}");
    };
    check(r#"{"decision":"block","reason":"tests"}"#, HookStatus::Blocked, block("tests"));
    check(r#"{"decision":"block"}"#, HookStatus::Blocked, block("err"));
    check(r#"{"continue":true}"#, HookStatus::Passed, HookVerdict::Pass);
    check(r#"{"unknown":1}"#, HookStatus::Passed, HookVerdict::Pass);
    let escalate = |reason: &str| HookVerdict::Escalate { reason: reason.to_owned() };
    check(r#"{"continue":false,"stopReason":"ask"}"#, HookStatus::Blocked, escalate("ask"));
    check(
        r#"{"continue":false,"decision":"block","reason":"r"}"#,
        HookStatus::Blocked,
        escalate("r"),
    );
    check(r#"{"hookloop":{"skip":true}}"#, HookStatus::Passed, HookVerdict::Pass);
    check(r#"{"hookloop":{"action":"complete"}}"#, HookStatus::Passed, HookVerdict::Pass);
    check(
        r#"{"hookloop":{"action":"continue","reason":"go on"}}"#,
        HookStatus::Blocked,
        block("go on"),
    );
    check(r#"{"hookloop":{"action":"escalate","reason":"x"}}"#, HookStatus::Blocked, escalate("x"));
    check("[1]", HookStatus::Passed, HookVerdict::Pass);
    check("plain {text}", HookStatus::Passed, HookVerdict::Pass);
}

#[test]
fn json_mixed_with_text_is_ignored_with_a_warning() {
    let chatty = gate(ProcessExit::Exited(0), "checking…\n{\"decision\":\"block\"}\n", "");
    assert_eq!((chatty.status, chatty.verdict), (HookStatus::Passed, HookVerdict::Pass));
    assert_eq!(chatty.message.as_deref(), Some(BESIDE_TEXT));
    for quiet in ["checking…", "{\"decision\":\"approve\"}", "{\"lines\": 3}\ndone"] {
        assert_eq!(gate(ProcessExit::Exited(0), quiet, "").message, None, "{quiet}");
    }
}

#[test]
fn truncated_json_output_fails_the_gate() {
    let printed = CapturedOutput { stdout: "{\"a\":\"[…]\"}", stderr: "", is_cut: true };
    let outcome = interpret(&ProcessExit::Exited(0), printed, GATE);
    assert_eq!(outcome.status, HookStatus::Failed);
    assert!(matches!(outcome.verdict, HookVerdict::Block { .. }));
    let plain = CapturedOutput { stdout: "a […] b", ..printed };
    let outcome = interpret(&ProcessExit::Exited(0), plain, GATE);
    assert_eq!(outcome.verdict, HookVerdict::Pass);
}

#[test]
fn an_invalid_hook_answer_fails_the_gate() {
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
        let outcome = gate(ProcessExit::Exited(0), answer, "");
        assert_eq!(outcome.status, HookStatus::Failed, "{answer}");
        assert!(matches!(outcome.verdict, HookVerdict::Block { .. }), "{answer}");
    }
}

#[test]
fn a_printed_list_of_actions_is_read_as_the_hooks_answer() {
    let list = r#"[{"type":"create_task","payload":{"goal":"g"}},{"type":"sudo","payload":{}},
        {"type":"log","payload":{}}]"#;
    let printed = CapturedOutput { stdout: list, stderr: "", is_cut: false };
    for rules in [REACTION, ACTING] {
        let outcome = interpret(&ProcessExit::Exited(0), printed, rules);
        let names: Vec<&str> = outcome.actions.iter().map(Action::name).collect();
        assert_eq!(
            (outcome.status, names),
            (HookStatus::Passed, vec!["create_task", "sudo", "log"])
        );
        assert!(matches!(outcome.actions[1], Action::Unreadable(_)));
    }
    let held = interpret(&ProcessExit::Exited(0), printed, GATE);
    assert_eq!((held.actions.len(), held.ignored), (0, vec!["actions"]));
}

#[test]
fn a_printed_list_without_actions_is_plain_text() {
    for text in [
        "[]",
        "[1, 2]",
        r#"[{"type":"error","line":3}]"#,
        r#"[{"type":"log","text":"loaded"}]"#,
        "[INFO] \"type\" \"payload\"",
    ] {
        for rules in [REACTION, GATE] {
            let printed = CapturedOutput { stdout: text, stderr: "", is_cut: false };
            let outcome = interpret(&ProcessExit::Exited(0), printed, rules);
            assert_eq!(outcome, HookOutcome::of(HookStatus::Passed), "{text}");
        }
    }
}

#[test]
fn a_broken_or_too_long_action_list_fails_a_hook_that_may_act() {
    let broken = r#"[{"type":"create_task","payload":{"goal":}}]"#;
    let many = format!("[{}]", vec![r#"{"type":"log","payload":{}}"#; ACTIONS_MAX + 1].join(","));
    for text in [broken, &many] {
        let printed = CapturedOutput { stdout: text, stderr: "", is_cut: false };
        let outcome = interpret(&ProcessExit::Exited(0), printed, REACTION);
        assert_eq!(outcome.status, HookStatus::Failed, "{text}");
        assert!(outcome.reason.is_some());
    }
    let printed = CapturedOutput { stdout: broken, stderr: "", is_cut: false };
    assert_eq!(interpret(&ProcessExit::Exited(0), printed, GATE).status, HookStatus::Passed);
}

#[test]
fn a_truncated_block_decision_fails_the_gate() {
    let cut = |stdout| {
        let printed = CapturedOutput { stdout, stderr: "", is_cut: true };
        interpret(&ProcessExit::Exited(0), printed, GATE)
    };
    let outcome = cut("{\"decision\":\"block\",\"reason\":\"… 9 bytes …\"}\n");
    assert_eq!(outcome.status, HookStatus::Failed);
    assert!(matches!(outcome.verdict, HookVerdict::Block { .. }));
    assert_eq!(cut("{ much … text").verdict, HookVerdict::Pass);
}

#[test]
fn block_and_escalate_take_precedence_over_skip() {
    for (answer, verdict) in [
        (r#"{"decision":"block","reason":"r","hookloop":{"skip":true}}"#, block("r")),
        (
            r#"{"continue":false,"stopReason":" ","hookloop":{"skip":true}}"#,
            HookVerdict::Escalate { reason: "a hook asked for a human".to_owned() },
        ),
    ] {
        for rules in [GATE, ACTING] {
            let printed = CapturedOutput { stdout: answer, stderr: "", is_cut: false };
            let outcome = interpret(&ProcessExit::Exited(0), printed, rules);
            assert_eq!((outcome.status, &outcome.verdict), (HookStatus::Blocked, &verdict));
        }
    }
}

#[test]
fn exit_code_2_blocks_regardless_of_the_json_answer() {
    for on_failure in [OnFailure::Closed, OnFailure::Open] {
        let printed = CapturedOutput { stdout: "{broken}", stderr: "because", is_cut: false };
        let rules = AnswerRules { on_failure, ..GATE };
        let outcome = interpret(&ProcessExit::Exited(2), printed, rules);
        assert_eq!((outcome.status, outcome.verdict), (HookStatus::Blocked, block("because")));
    }
    let outcome = gate(ProcessExit::Exited(2), r#"{"decision":"approve"}"#, "because");
    assert_eq!(outcome.verdict, block("because"));
    let outcome = gate(ProcessExit::Exited(2), r#"{"reason":"better"}"#, "because");
    assert_eq!(outcome.verdict, block("better"));
}

#[test]
fn text_that_looks_like_a_verdict_is_text() {
    for text in ["[Hook command failed: x]", "[Hook feedback] block", "decision: block"] {
        assert_eq!(gate(ProcessExit::Exited(0), text, text).verdict, HookVerdict::Pass);
    }
}

/// Every acting part, with its effect on an outcome.
const ACTS: [(&str, &str); 6] = [
    ("actions", r#""actions":[{"type":"create_task","payload":{"goal":"g"}}]"#),
    ("checkpoint", r#""checkpoint":{"a":1}"#),
    ("nextPrompt", r#""nextPrompt":"p""#),
    ("context", r#""context":{"pr_url":"u"}"#),
    ("metadata", r#""metadata":{"m":1}"#),
    ("skip", r#""skip":true"#),
];

#[test]
fn json_of_a_gate_has_effects_only_where_its_definition_allows_them() {
    for (name, part) in ACTS {
        let stdout = format!("{{\"hookloop\":{{{part}}}}}");
        let printed = CapturedOutput { stdout: &stdout, stderr: "", is_cut: false };
        let outcome = interpret(&ProcessExit::Exited(0), printed, GATE);
        assert_eq!(outcome.ignored, [name]);
        let message = outcome.message.clone().unwrap_or_default();
        assert!(message.contains(&format!("`{name}`")) && message.contains(NOT_ALLOWED));
        let silent = HookOutcome { message: None, ignored: Vec::new(), ..outcome };
        assert_eq!(silent, HookOutcome::of(HookStatus::Passed), "{name}");
        for rules in [ACTING, REACTION] {
            let outcome = interpret(&ProcessExit::Exited(0), printed, rules);
            assert_eq!((&outcome.message, &outcome.ignored), (&None, &Vec::new()), "{name}");
            assert_ne!(outcome, HookOutcome::of(HookStatus::Passed), "{name}");
        }
    }
}

#[test]
fn actions_of_a_gate_that_does_not_pass_are_ignored() {
    let all: Vec<&str> = ACTS.iter().map(|(_, part)| *part).collect();
    let asked = format!("{{\"decision\":\"block\",\"hookloop\":{{{}}}}}", all.join(","));
    let exited = format!("{{\"hookloop\":{{{}}}}}", all.join(","));
    let escalated = format!("{{\"continue\":false,\"hookloop\":{{{}}}}}", all.join(","));
    for (code, stdout) in [(0, &asked), (2, &exited), (0, &escalated), (1, &exited)] {
        let printed = CapturedOutput { stdout, stderr: "", is_cut: false };
        for rules in [GATE, ACTING, OPEN, AnswerRules { answers: AllowedAnswers::Json, ..OPEN }] {
            let outcome = interpret(&ProcessExit::Exited(code), printed, rules);
            assert!(outcome.actions.is_empty() && outcome.values.is_null(), "{code} {stdout}");
            assert!(
                !matches!(outcome.status, HookStatus::Passed | HookStatus::Skipped),
                "{stdout}"
            );
            let is_for_agent = code != 1 && rules.answers == AllowedAnswers::Json;
            assert_eq!(outcome.next_prompt.is_some(), is_for_agent, "{code} {stdout}");
            assert_eq!(outcome.checkpoint.is_some(), is_for_agent, "{code} {stdout}");
        }
    }
}

#[test]
fn a_message_for_the_user_is_kept_beside_the_report() {
    let answer = r#"{"systemMessage":"hello","hookloop":{"skip":true}}"#;
    let message = gate(ProcessExit::Exited(0), answer, "").message.unwrap_or_default();
    assert!(message.starts_with("hello\n") && message.contains("`skip`"), "{message}");
}
