//! Conditions that make an iteration the last one: presets, rules, and commands that decide.

use super::commands::plain;
use super::{scripted, trusted_project};

#[test]
fn each_stop_when_preset_ends_a_session_at_its_condition() {
    let plain = "version: 1\n";
    let rules = "version: 1\nhooks:\n  validation:\n    - {name: there, file: done.txt}\n";
    let check = |config: &str, way: &str, turns: &str, code: i32, iterations: usize| {
        let project = trusted_project(config, &[]);
        let ran = scripted(
            &project,
            turns,
            &["--stop-when", way, "--max-iterations", "3", "--max-no-progress", "9"],
        );
        assert_eq!(ran.code, code, "{way} {turns}: {}", ran.stderr);
        assert_eq!(ran.count("iteration_started"), iterations, "{way} {turns}");
    };
    let promise = r#"[{"say": "a"}, {"say": "b\n<promise>COMPLETE</promise>"}]"#;
    let silent = r#"[{"say": "a"}]"#;
    let works = r#"[{"say": "a"}, {"say": "b", "write": {"done.txt": ""}}]"#;
    let blocked = r#"[{"say": "no key\n<promise>BLOCKED</promise>"}]"#;
    let escalated = r#"[{"say": "hm\n<promise>ESCALATE</promise>"}]"#;
    for way in ["default", "promise"] {
        check(plain, way, promise, 6, 2);
        check(plain, way, silent, 4, 3);
        check(plain, way, blocked, 3, 1);
        check(plain, way, escalated, 3, 1);
    }
    check(plain, "validation", promise, 4, 3);
    check(rules, "validation", works, 0, 2);
    check(rules, "default", works, 0, 2);
    check(rules, "promise", works, 4, 3);
    check(plain, "turn", silent, 6, 1);
    check(plain, "tasks", silent, 6, 1);
    // A promise that the rules contradict.
    check(rules, "default", r#"[{"say": "<promise>COMPLETE</promise>"}]"#, 4, 3);
    check(rules, "promise", r#"[{"say": "<promise>COMPLETE</promise>"}]"#, 4, 3);
}

#[test]
fn promises_in_prose_and_code_promise_nothing() {
    let project = trusted_project("version: 1\n", &[]);
    let turns = r#"[
        {"say": "I will print <promise>COMPLETE</promise> when I am done"},
        {"say": "```\n<promise>COMPLETE</promise>\n```"},
        {"say": "> <promise>COMPLETE</promise>"},
        {"say": "COMPLETE"}
    ]"#;
    let ran = scripted(&project, turns, &["--max-iterations", "4", "--max-no-progress", "9"]);
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
}

const GATED: &str = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: 'true'}\n";
const UNGATED: &str = "version: 1\n";

/// A promise counts on its own line anywhere in the message. At the end of the last line it counts
/// with gates.
#[test]
fn a_promise_counts_on_a_line_of_its_own_anywhere_and_with_gates_at_the_end() {
    let check = |say: &str, gated: i32, ungated: i32| {
        for (config, code) in [(GATED, gated), (UNGATED, ungated)] {
            let turns = serde_json::json!([{ "say": say }]).to_string();
            let ran = scripted(&trusted_project(config, &[]), &turns, &["--max-iterations", "1"]);
            assert_eq!(ran.code, code, "{config}{say}: {}", ran.stderr);
        }
    };
    check("<promise>COMPLETE</promise>\n\nSummary: all of it.", 0, 6);
    check("First.\n<promise>COMPLETE</promise>\nLast.", 0, 6);
    check("Tried.\n<promise>BLOCKED</promise>\nThe server is down.", 3, 3);
    check("All done. <promise>COMPLETE</promise>", 0, 4);
    check("All done. <promise>COMPLETE</promise>\nBye.", 4, 4);
}

#[test]
fn contradicting_promises_are_recorded_and_reported() {
    let check = |config: &str, say: &str, code: i32, both: &str, promises: serde_json::Value| {
        let project = trusted_project(config, &[]);
        let turns = serde_json::json!([{ "say": say, "write": {"work": "1"} }]).to_string();
        let ran = scripted(&project, &turns, &[]);
        assert_eq!(ran.code, code, "{say}: {}", ran.stderr);
        let decided = ran.all("stop_evaluated");
        assert_eq!(decided[0]["contradicting"], promises, "{say}");
        let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
        let why = project.json(&["why", &id]);
        let reasons = why["reasons"].as_array().unwrap();
        let is_told = |reason: &serde_json::Value| reason.as_str().unwrap().contains(both);
        assert!(reasons.iter().any(is_told), "{say}: {why}");
        let args = ["run", "again", "--agent", "scripted:turns.json", "--plain"];
        let (_, screen, _) = plain(&project, &args);
        let told = screen.lines().find(|line| line.contains(both)).unwrap_or(&screen);
        assert!(told.trim_start().starts_with("warning: "), "{say}: {told}");
    };
    let first = "<promise>COMPLETE</promise>\nor not:\n<promise>BLOCKED</promise>";
    let both = "the agent reported COMPLETE and BLOCKED in one turn";
    let words = serde_json::json!(["COMPLETE", "BLOCKED"]);
    check(GATED, first, 0, both, words.clone());
    check(UNGATED, first, 3, both, words.clone());
    check(GATED, "<promise>COMPLETE</promise>\nNo. <promise>BLOCKED</promise>", 0, both, words);
    let last = "<promise>BLOCKED</promise>\nWhich one?\n<promise>ESCALATE</promise>";
    let both = "the agent reported ESCALATE and BLOCKED in one turn";
    check(GATED, last, 3, both, serde_json::json!(["BLOCKED", "ESCALATE"]));
    // The same promise twice is not a contradiction.
    let twice = r#"[{"say": "<promise>COMPLETE</promise>\nYes.\n<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&trusted_project(UNGATED, &[]), twice, &[]);
    assert_eq!((ran.code, ran.all("stop_evaluated")[0].get("contradicting")), (6, None));
}

/// A person decides, and gets both promises and the agent's text.
#[test]
fn contradicting_promises_without_a_gate_need_a_human() {
    let turns = r#"[{"say": "<promise>COMPLETE</promise>\n\nThe key is missing.\n<promise>ESCALATE</promise>"}]"#;
    let ran = scripted(&trusted_project(UNGATED, &[]), turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let reason = ran.all("session_ended")[0]["reason"].as_str().unwrap();
    let told = "the agent reported COMPLETE and ESCALATE in one turn, and there is no gate to judge the work: The key is missing.";
    assert_eq!(reason, told);
}

/// Stores its input, and decides by the results of the rules.
const TDD: &str = r#"#!/bin/sh
cat > context.json
if grep -q '"ruleName":"tests_pass","passed":true' context.json; then
  echo '{"hookloop": {"action": "complete", "reason": "All tests pass"}}'
else
  echo '{"hookloop": {"action": "continue", "reason": "Tests still failing", "nextPrompt": "Fix failing tests and run again"}}'
fi
"#;

#[test]
fn a_stop_when_command_decides_when_a_tdd_loop_ends() {
    let config = "version: 1
hooks:
  validation:
    - {name: tests_pass, command: './test.sh'}
  stop_when:
    - {name: tdd, command: './tdd.sh', answers: json}
";
    let project = trusted_project(
        config,
        &[
            ("tdd.sh", TDD),
            ("test.sh", "#!/bin/sh\ngrep -q 42 answer 2>/dev/null || exit 2\n"),
            (".gitignore", "context.json\n"),
        ],
    );
    let turns = r#"[{"say": "thinking"}, {"write": {"answer": "42"}, "say": "wrote it"}]"#;
    let ran = scripted(&project, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let decided = ran.all("stop_evaluated");
    assert_eq!(decided[0]["reason"], "Tests still failing");
    assert_eq!((&decided[1]["decision"], &decided[1]["by"]), (&"complete".into(), &"tdd".into()));
    let told: Vec<_> = ran.all("output_piped");
    assert!(told.iter().any(|item| item["text"] == "Fix failing tests and run again"), "{told:?}");
    let context: serde_json::Value = serde_json::from_str(&project.read("context.json")).unwrap();
    assert_eq!(context["hookloop"]["iteration"], 2);
    assert_eq!(context["hookloop"]["files_modified"][0], "answer");
    assert_eq!(context["last_assistant_message"], "wrote it");
    let transcript = std::fs::read_to_string(context["transcript_path"].as_str().unwrap()).unwrap();
    let lines: Vec<serde_json::Value> =
        transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "two turns");
    assert_eq!(lines[3]["message"]["content"][0]["text"], "wrote it");
}

#[test]
fn security_remediation_gives_up_after_ten_iterations() {
    let decide = r#"#!/bin/sh
n=$HOOKLOOP_ITERATION
if [ -f fixed ] && [ -f clean ]; then echo '{"hookloop": {"action": "complete", "reason": "All vulnerabilities remediated"}}'
elif [ "$n" -ge 10 ]; then echo '{"hookloop": {"action": "escalate", "reason": "complex vulnerabilities may require manual review"}}'
else echo '{"hookloop": {"action": "continue", "reason": "Vulnerabilities remain"}}'; fi
"#;
    let config = "version: 1
hooks:
  validation:
    - {name: vulns_fixed, file: fixed}
    - {name: sast_clean, file: clean}
  stop_when:
    - {name: security, command: ./decide.sh}
";
    let project = trusted_project(config, &[("decide.sh", decide)]);
    let turns: Vec<String> =
        (0..12).map(|n| format!(r#"{{"write": {{"f": "{n}"}}, "say": "tried"}}"#)).collect();
    let ran = scripted(&project, &format!("[{}]", turns.join(",")), &[]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("iteration_started"), 10);
    let project = trusted_project(config, &[("decide.sh", decide)]);
    let turns = r#"[{"write": {"fixed": ""}}, {"write": {"clean": ""}}]"#;
    assert_eq!(scripted(&project, turns, &[]).outcome(), "complete");
}

#[test]
fn a_checkpoint_is_recorded_and_in_the_next_prompt() {
    let decide = r#"#!/bin/sh
cat >/dev/null
if [ "$HOOKLOOP_ITERATION" = 2 ]; then
  echo '{"hookloop": {"action": "continue", "reason": "Halfway checkpoint", "checkpoint": {"executionPhase": "midpoint", "executionStep": 2, "agentContext": {"milestone": "halfway"}}}}'
else
  echo '{"hookloop": {"action": "continue", "reason": "Iteration in progress"}}'
fi
"#;
    let config = "version: 1\nhooks:\n  stop_when:\n    - {name: half, command: ./decide.sh, answers: json}\n";
    let agent = "#!/bin/sh\ncat > prompt-$HOOKLOOP_ITERATION\n";
    let project = trusted_project(config, &[("decide.sh", decide), ("agent.sh", agent)]);
    let ran =
        super::run(&project, &["x", "--agent", "command:./agent.sh", "--max-iterations", "3"]);
    let made = ran.all("checkpoint_made");
    assert_eq!(made.len(), 1, "{}", ran.stderr);
    assert_eq!(made[0]["data"]["agentContext"]["milestone"], "halfway");
    assert_eq!(ran.count("output_piped"), 0, "a reason is not a prompt");
    assert!(!project.read("prompt-2").contains("halfway"));
    assert!(project.read("prompt-3").contains("halfway"));
}

#[test]
fn stop_conditions_run_in_order_and_an_error_needs_a_human() {
    let check = |first: &str, second: &str, code: i32, by: &str| {
        let config = format!(
            "version: 1
hooks:
  stop_when:
    - {{name: first, command: '{first}'}}
    - {{name: second, command: '{second}'}}
"
        );
        let project = trusted_project(&config, &[]);
        let ran = scripted(&project, r#"[{"say": "x"}]"#, &["--max-iterations", "1"]);
        assert_eq!(ran.code, code, "{first} {second}: {}", ran.stderr);
        assert_eq!(ran.all("stop_evaluated")[0]["by"], by, "{first} {second}");
    };
    check("exit 0", "exit 3", 6, "first");
    check("exit 2", "exit 0", 6, "second");
    check("exit 2", "exit 2", 4, "second");
    check("exit 2", "exit 3", 3, "second");
    check("exit 3", "exit 0", 3, "first");
}

#[test]
fn rules_look_at_the_files_as_they_are_now() {
    let config = "version: 1
hooks:
  validation:
    - {name: notes, file: NOTES.md}
    - {name: changelog, changed: CHANGELOG.md}
    - {name: no-todo, pattern: {path: 'src/**', text: 'TODO', absent: true}}
    - {name: covered, coverage: {report: lcov.info, at_least: 80}, room: here}
    - {name: small, diff: {max_files: 9, max_lines: 50}}
";
    let project = trusted_project(
        config,
        &[("src/a.rs", "// TODO\n"), ("CHANGELOG.md", "old\n"), ("lcov.info", "LF:10\nLH:1\n")],
    );
    let turns = r##"[
        {"write": {"NOTES.md": "n"}, "say": "1"},
        {"write": {"CHANGELOG.md": "new\n"}, "say": "2"},
        {"write": {"src/a.rs": "done\n"}, "say": "3"},
        {"write": {"lcov.info": "LF:10\nLH:8\n"}, "say": "4"}
    ]"##;
    let ran = scripted(&project, turns, &[]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    let failing: Vec<usize> = ran
        .all("stop_evaluated")
        .iter()
        .map(|decided| decided["failing"].as_array().unwrap().len())
        .collect();
    assert_eq!(failing, [3, 2, 1, 0]);
    // The rules that decided passed on this tree, so they did not run again.
    let runs = ran.all("hook_ran").iter().filter(|run| run["hook_name"] == "covered").count();
    assert_eq!(runs, 4);
    project.write("big", &"x\n".repeat(60));
    let ran = scripted(
        &project,
        r#"[{"write": {"big2": "x\nx\n"}, "say": "x"}]"#,
        &["--max-iterations", "1"],
    );
    let decided = ran.all("stop_evaluated");
    let failing = decided[0]["failing"].to_string();
    assert!(!failing.contains("small"), "earlier changes are counted: {failing}");
}
