//! Promises in an agent's final message, the number of an iteration, and the text of prompts.

use hookloop_testkit::{SessionOutput, TestProject};

use super::{run, run_as_it_is, scripted, trusted_project};

const GATED: &str = "version: 1
hooks:
  stop:
    - {name: tests, command: 'grep -q 42 answer'}
";

/// An agent that stores each prompt, and changes a file.
const KEEPS_PROMPTS: &str = "#!/bin/sh
cat > prompt-$HOOKLOOP_ITERATION
echo $HOOKLOOP_ITERATION >> work
echo turn
";

fn id_of_last(project: &TestProject) -> String {
    project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned()
}

/// Returns one turn that writes the answer and prints this text.
fn one_turn(says: &str) -> String {
    serde_json::json!([{ "write": { "answer": "42\n" }, "say": says }]).to_string()
}

#[test]
fn a_promise_behind_text_in_the_last_line_is_a_claim_where_gates_judge_it() {
    let check = |says: &str| {
        let project = trusted_project(GATED, &[]);
        project.write("turns.json", &one_turn(says));
        let ran = run_as_it_is(&project, &["work", "--agent", "scripted:turns.json"]);
        assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{says}: {}", ran.stderr);
        assert_eq!(ran.verdicts(), ["pass"], "{says}");
        assert_eq!(ran.all("turn_ended")[0]["promises"], serde_json::json!(["COMPLETE"]));
    };
    check("Implementation complete. <promise>COMPLETE</promise>");
    check("Done.\n\n**<promise>COMPLETE</promise>**\n");
    check("Done.\n- <promise>COMPLETE</promise>");
    check("Done: `<promise>COMPLETE</promise>`");
}

#[test]
fn a_promise_that_is_quoted_misspelt_or_within_text_is_no_claim() {
    let check = |config: &str, says: &str, near_miss: &str| {
        let project = trusted_project(config, &[]);
        let ran = scripted(&project, &one_turn(says), &["--max-iterations", "1"]);
        assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{says}: {}", ran.stderr);
        assert_eq!(ran.count("gates_evaluated"), 0, "{says}");
        assert_eq!(ran.all("turn_ended")[0]["near_misses"][0]["kind"], near_miss, "{says}");
        let reason = ran.all("stop_evaluated")[0]["reason"].to_string();
        assert!(reason.contains("not a report"), "{reason}");
        let why = project.json(&["why", &id_of_last(&project)]).to_string();
        assert!(why.contains("reports nothing"), "{why}");
    };
    let ungated = "version: 1\n";
    check(ungated, "Implementation complete. <promise>COMPLETE</promise>", "in_text");
    check(GATED, "I will print <promise>COMPLETE</promise> when done", "in_text");
    check(GATED, "I will print <promise>COMPLETE</promise>\nwhen done", "in_text");
    check(GATED, "```\n<promise>COMPLETE</promise>\n```", "quoted");
    check(GATED, "<promise>complete</promise>", "misspelt");
    check(GATED, "<promise>DONE</promise>", "other_word");
}

#[test]
fn a_near_miss_of_a_promise_is_reported_in_the_next_prompt() {
    let agent = "#!/bin/sh
cat > prompt-$HOOKLOOP_ITERATION
echo 42 > answer
if [ $HOOKLOOP_ITERATION = 1 ]; then
  printf 'Done.\\n\\n<promise>Complete</promise>\\n'
else
  printf 'Done.\\n\\n<promise>COMPLETE</promise>\\n'
fi
";
    let project = trusted_project(GATED, &[("agent.sh", agent)]);
    let ran = run(&project, &["x", "--agent", "command:./agent.sh"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    assert_eq!(ran.count("iteration_started"), 2);
    let (first, second) = (project.read("prompt-1"), project.read("prompt-2"));
    let told = "the tag for COMPLETE is not exactly `<promise>COMPLETE</promise>`";
    assert!(!first.contains(told), "{first}");
    assert!(second.contains(told), "{second}");
}

#[test]
fn gates_run_once_before_a_session_without_a_claim_ends_for_no_progress() {
    let check = |answer: &str, reason: &str, passed: bool| {
        let project = trusted_project(GATED, &[("answer", "0\n")]);
        let turns = serde_json::json!([{ "write": { "answer": answer }, "say": "I am done." }]);
        let ran = scripted(&project, &turns.to_string(), &["--max-no-progress", "2"]);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
        let checked = ran.all("unclaimed_work_checked");
        assert_eq!(checked.len(), 1);
        assert_eq!((&checked[0]["passed"], &checked[0]["changed"]), (&passed.into(), &true.into()));
        let ended = ran.all("session_ended")[0];
        assert_eq!(ended["proven"], false);
        assert!(ended["reason"].as_str().unwrap().contains(reason), "{ended}");
        let why = project.json(&["why", &id_of_last(&project)]).to_string();
        assert!(why.contains(reason), "{why}");
    };
    check("42\n", "all gates pass on the files as they are, but the agent did not report", true);
    check("41\n", "gates fail on the files as they are: tests", false);
}

#[test]
fn gates_that_evaluated_a_claim_do_not_run_again_for_no_progress() {
    let project = trusted_project(GATED, &[("answer", "41\n")]);
    let turns = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &["--max-no-progress", "2"]);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert_eq!(ran.count("unclaimed_work_checked"), 0);
}

#[test]
fn pre_iteration_hooks_have_the_iteration_number_of_the_prompt() {
    let config = "version: 1
hooks:
  pre_iteration:
    - {name: template, command: 'echo template-{{iteration}}', pipe_output: true}
    - {name: variable, command: 'echo variable-$HOOKLOOP_ITERATION', pipe_output: true}
    - {name: input, command: ./input.sh, pipe_output: true}
    - {name: condition, command: 'echo condition-2', when: 'iteration == 2', pipe_output: true}
  post_iteration:
    - {name: after, command: 'echo {{iteration}} >> after'}
";
    let input = "#!/bin/sh
sed 's/.*\"iteration\": *\\([0-9]*\\).*/input-\\1/'
";
    let project = trusted_project(config, &[("agent.sh", KEEPS_PROMPTS), ("input.sh", input)]);
    let ran = run(&project, &["do it", "--agent", "command:./agent.sh", "--max-iterations", "2"]);
    assert_eq!((ran.code, ran.outcome()), (4, "limit"), "{}", ran.stderr);
    for number in [1, 2] {
        let prompt = project.read(&format!("prompt-{number}"));
        for way in ["template", "variable", "input"] {
            assert!(prompt.contains(&format!("{way}-{number}\n")), "{way}: {prompt}");
        }
        assert_eq!(prompt.contains("condition-2"), number == 2, "{prompt}");
    }
    assert_eq!(project.read("after"), "1\n2\n");
}

/// Returns the bytes and lines that the note reports as omitted, and those before and after the
/// note.
fn counts(text: &str) -> ((usize, usize), (usize, usize)) {
    let (head, rest) = text.split_once("[… ").unwrap();
    let (note, tail) = rest.split_once(" left out …]\n").unwrap();
    let (bytes, lines) = note.split_once(" bytes (").unwrap();
    let number = |text: &str| -> usize { text.replace(',', "").parse().unwrap() };
    let left_out = (number(bytes), number(lines.strip_suffix(" lines)").unwrap()));
    let is_number =
        |line: &&str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    let of_output = |part: &str| -> (usize, usize) {
        let lines: Vec<&str> = part.lines().filter(is_number).collect();
        (lines.iter().map(|line| line.len() + 1).sum(), lines.len())
    };
    let (head, tail) = (of_output(head), of_output(tail));
    (left_out, (head.0 + tail.0, head.1 + tail.1))
}

#[test]
fn omitted_hook_output_is_counted_in_bytes_and_whole_lines() {
    let config = "version: 1
hooks:
  post_iteration:
    - {name: much, command: 'seq 1000000 1099999', pipe_output: true}
  stop:
    - {name: tests, command: 'seq 1000000 1099999; exit 2'}
";
    let project = trusted_project(config, &[]);
    let turns = r#"[{"write": {"f": "1"}, "say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, turns, &["--max-iterations", "1"]);
    assert_eq!(ran.outcome(), "limit", "{}", ran.stderr);
    let piped = ran.all("output_piped");
    for point in ["post_iteration", "stop"] {
        let mut of_point = piped.iter().filter(|piped| piped["point"] == point);
        let piped = of_point.find(|piped| piped["channel"] != "instruction").unwrap();
        let text = piped["text"].as_str().unwrap();
        let ((bytes, lines), (kept, kept_lines)) = counts(text);
        // A trimmed line end does not count as output.
        assert!((799_999..=800_001).contains(&(bytes + kept)), "{point}: {bytes} + {kept}");
        assert!((99_999..=100_000).contains(&(lines + kept_lines)), "{point}: {lines}");
        let is_whole = |line: &&str| line.len() == 7 || !line.starts_with("10");
        assert!(text.lines().all(|line| is_whole(&line)), "{point}: whole lines");
    }
}

/// A gate that always fails, and an agent that stores its prompts and claims to be done.
const FAILING: &str = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: ./gate.sh}\n";
const FAILS: &str = "#!/bin/sh\necho FAIL-42\nexit 1\n";
const KEEPER: &str = "#!/bin/sh\necho x >> ../turns\ncat > ../prompt-$(wc -l < ../turns)\n\
                      date +%N > work\necho '<promise>COMPLETE</promise>'\n";
const KEEPER_AT_LIMIT: [&str; 4] = ["--agent", "command:./agent.sh", "--gate-retries", "1"];

#[test]
fn a_session_resumed_at_its_retry_limit_has_the_gate_output_in_its_prompt() {
    let project = trusted_project(FAILING, &[("agent.sh", KEEPER), ("gate.sh", FAILS)]);
    let ran = run_as_it_is(&project, &[&["Fix"][..], &KEEPER_AT_LIMIT].concat());
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    let args = ["resume", "--answer", "look again", "--max-iterations", "3"];
    let resumed = SessionOutput::from(project.json_command(&args).output().unwrap());
    assert_eq!(resumed.count("iteration_started"), 1, "{}", resumed.stderr);
    let prompt = project.read("../prompt-3");
    assert!(prompt.contains("FAIL-42"), "{prompt}");
    assert!(prompt.contains("look again"), "{prompt}");
}

#[test]
fn a_task_continued_at_the_retry_limit_has_the_gate_output_in_its_prompt() {
    // The same session continues, or another one claims the task.
    for continued in ["resume", "run"] {
        let project = trusted_project(FAILING, &[("agent.sh", KEEPER), ("gate.sh", FAILS)]);
        project.json(&["task", "add", "Fix", "--id", "fix"]);
        let tasks = [&["--tasks"][..], &KEEPER_AT_LIMIT].concat();
        let ran = run_as_it_is(&project, &tasks);
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        project.json(&["inbox", "answer", "fix", "look again"]);
        let more = match continued {
            "resume" => vec!["resume", "--max-iterations", "3"],
            _ => [&["run"][..], &tasks, &["--max-iterations", "1"]].concat(),
        };
        let more = SessionOutput::from(project.json_command(&more).output().unwrap());
        assert_eq!(more.count("iteration_started"), 1, "{continued}: {}", more.stderr);
        let prompt = project.read("../prompt-3");
        assert!(prompt.contains("FAIL-42"), "{continued}: {prompt}");
        assert!(prompt.contains("look again"), "{continued}: {prompt}");
    }
}

#[test]
fn a_tasks_prompt_has_no_gate_output_of_another_task() {
    let gate = "#!/bin/sh\n[ $HOOKLOOP_TASK_ID = b ] || { echo FAIL-42; exit 1; }\n";
    let project = trusted_project(FAILING, &[("agent.sh", KEEPER), ("gate.sh", gate)]);
    project.json(&["task", "add", "First", "--id", "a", "--priority", "0"]);
    project.json(&["task", "add", "Second", "--id", "b", "--priority", "1"]);
    let ran = run_as_it_is(&project, &[&["--tasks"][..], &KEEPER_AT_LIMIT].concat());
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let prompt = project.read("../prompt-3");
    assert!(prompt.contains("Second") && !prompt.contains("FAIL-42"), "{prompt}");
}

#[test]
fn new_hook_output_replaces_output_that_only_failed_turns_received() {
    let config = "version: 1
hooks:
  pre_iteration:
    - {name: state, command: ./state.sh, pipe_output: true}
  stop:
    - {name: tests, command: 'true'}
";
    let state = "#!/bin/sh\necho x >> ../count\necho STATE-$(wc -l < ../count)\n";
    let agent = "#!/bin/sh\ncat > ../prompt\necho turn >> ../turns\n[ $(wc -l < ../turns) -ge 3 ] || exit 1\n\
                 echo x > work\necho '<promise>COMPLETE</promise>'\n";
    let project = trusted_project(config, &[("agent.sh", agent), ("state.sh", state)]);
    let ran = run_as_it_is(&project, &["x", "--agent", "command:./agent.sh"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let prompt = project.read("../prompt");
    assert_eq!(prompt.matches("STATE-").count(), 1, "{prompt}");
    assert!(prompt.contains("STATE-3"), "{prompt}");
}
