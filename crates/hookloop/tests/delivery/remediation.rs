//! The number of turns that a failing delivery hook may cost.

use crate::delivery_project::DeliveryProject;

/// Returns how many turns the agent took for a task.
fn turns(project: &DeliveryProject, task: &str) -> usize {
    (1..).take_while(|turn| !project.prompt(task, *turn).is_empty()).count()
}

fn reason(project: &DeliveryProject, task: &str) -> String {
    project.task(task)["blocked"]["reason"].as_str().unwrap_or_default().to_owned()
}

fn one_task(before_submit: &str, limits: &str) -> DeliveryProject {
    let config = format!(
        "delivery: {{}}\n{limits}hooks:\n  before_submit:\n{before_submit}    - create_pr\n"
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    project
}

/// No agent can fix a hook that can't run.
#[test]
fn a_submit_hook_that_cannot_run_needs_a_person_without_another_turn() {
    for (hook, why) in [
        ("    - run_tests\n", "run_tests"),
        ("    - {name: check, command: 'no-such-program-here --now'}\n", "127"),
        ("    - {name: check, command: ./not-there.sh}\n", "not-there.sh"),
        ("    - {name: check, command: 'true', when: \"pr_url != ''\"}\n", "`pr_url` has no value"),
    ] {
        let project = one_task(hook, "");
        let ran = project.run_tasks();
        assert_eq!(ran.code, 3, "{hook} {}", ran.stderr);
        assert_eq!(ran.submitted(), ["escalate"], "{hook}");
        assert_eq!((project.state("t1").as_str(), turns(&project, "t1")), ("blocked", 1), "{hook}");
        let reason = ran.all("submission_evaluated")[0]["reason"].as_str().unwrap();
        assert!(reason.contains("can't run here") && reason.contains(why), "{hook} {reason}");
    }
}

/// A failure that differs each time ends at the remediation limit of the task.
#[test]
fn max_remediations_limits_the_turns_for_changing_failures() {
    let hook = "    - {name: moody, room: here, command: 'echo . >> $HOME/runs; echo failure $(wc -l < $HOME/runs); exit 2'}\n";
    let project = one_task(hook, "limits: {max_remediations: 2}\n");
    let ran = project.run_session(&["--tasks", "--max-no-progress", "50"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(ran.submitted(), ["block", "block", "escalate"]);
    assert_eq!((project.state("t1").as_str(), turns(&project, "t1")), ("blocked", 3));
    let reason = ran.all("submission_evaluated")[2]["reason"].as_str().unwrap();
    assert!(
        reason.contains("after 2 remediation turns: ") && reason.contains("failure 3"),
        "{reason}"
    );
}

#[test]
fn the_same_failure_after_a_remediation_turn_needs_a_person() {
    let hook = "    - {name: never, command: 'echo took $(date +%N)ms; echo nope; exit 2'}\n";
    let project = one_task(hook, "");
    // The agent changes files, which makes no difference to the hook.
    project.does("t1", 2, "echo more >> work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.submitted(), ["block", "escalate"], "{}", ran.stderr);
    assert_eq!((project.state("t1").as_str(), turns(&project, "t1")), ("blocked", 2));
    let reason = ran.all("submission_evaluated")[1]["reason"].as_str().unwrap();
    assert!(reason.contains("`never` fails in the same way after a remediation turn"), "{reason}");
}

/// A merge and a submission count towards the same limit.
#[test]
fn failed_merges_count_towards_max_remediations() {
    let config = "delivery: {}
limits: {max_remediations: 1}
hooks:
  before_submit:
    - {name: once, room: here, command: 'test -f $HOME/asked || { touch $HOME/asked; echo first; exit 2; }'}
    - create_pr
  before_merge:
    - {name: gate, command: 'test ! -f work.txt || { echo second; exit 2; }'}
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.submitted(), ["block", "pass"], "{}", ran.stderr);
    let (fate, why) = project.merge().remove("t1").unwrap();
    assert_eq!(fate, "blocked", "{why}");
    assert!(why.contains("`gate` still fails after 1 remediation turn"), "{why}");
    // After a person has unblocked the task, its count starts again.
    project.json_values(&["task", "unblock", "t1"]);
    assert_eq!(project.run_tasks().submitted(), ["pass"]);
    assert_eq!(project.merge()["t1"].0, "returned");
}

#[test]
fn a_merge_gate_that_fails_twice_in_the_same_way_needs_a_person() {
    let config = "delivery: {}
hooks:
  before_merge:
    - {name: gate, command: 'test ! -f work.txt || { echo never; exit 2; }'}
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    project.does("t1", 2, "echo more >> work.txt");
    project.run_tasks();
    assert_eq!(project.merge()["t1"].0, "returned");
    project.run_tasks();
    let (fate, why) = project.merge().remove("t1").unwrap();
    assert_eq!(fate, "blocked", "{why}");
    assert!(why.contains("fails in the same way"), "{why}");
    assert_eq!((project.state("t1").as_str(), turns(&project, "t1")), ("blocked", 2));
    assert!(reason(&project, "t1").contains("never"), "{}", project.task("t1"));
}

/// Tasks that change the same lines are merged without any configured hook.
#[test]
fn conflicting_tasks_are_rebased_by_default_and_both_are_merged() {
    let config = "delivery: {}\nhooks:\n  stop:\n    - {name: whole, command: 'test -s a.txt'}\n";
    let project = DeliveryProject::new(config, &[("a.txt", "one\ntwo\nthree\n")]);
    for (task, word) in [("t1", "first"), ("t2", "second")] {
        project.add(task, &[]);
        project.does(task, 1, &format!("printf 'one\\n{word}\\nthree\\n' > a.txt"));
    }
    let ran = project.run_tasks();
    assert_eq!(
        ran.hooks_at("before_submit")[..2],
        ["rebase_on_main", "create_pr"],
        "{}",
        ran.stderr
    );
    let fates = project.merge();
    assert_eq!(fates["t1"].0, "merged", "{fates:?}");
    assert_eq!(fates["t2"].0, "returned", "{fates:?}");
    project.does("t2", 3, "printf 'one\\nfirst and second\\nthree\\n' > a.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.submitted().last(), Some(&"pass"), "{}", ran.stderr);
    assert_eq!(project.merge()["t2"].0, "merged");
    assert_eq!(project.on_main("a.txt"), "one\nfirst and second\nthree\n");
}

/// The step `merge` passes if the task was merged, and reports that.
#[test]
fn the_merge_step_reports_whether_the_task_was_merged() {
    let config = "delivery: {}
hooks:
  before_submit: [create_pr]
  after_submit: [merge]
  before_merge:
    - {name: green, command: 'test ! -f bad.txt || { echo bad file; exit 2; }'}
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo good > good.txt");
    let ran = project.run_tasks();
    let merges = |ran: &hookloop_testkit::SessionOutput| -> Vec<(String, String, String)> {
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let runs = ran.all("hook_ran").into_iter().filter(|run| run["hook_name"] == "merge");
        runs.map(|run| (word(&run["status"]), word(&run["reason"]), word(&run["message"])))
            .collect()
    };
    let found = merges(&ran);
    assert_eq!(found[0].0, "passed", "{found:?} {}", ran.stderr);
    assert!(found[0].2.contains("t1 merged as "), "{found:?}");
    project.add("t2", &[]);
    project.does("t2", 1, "echo bad > bad.txt");
    project.does("t2", 2, "rm bad.txt; echo good > good2.txt");
    let ran = project.run_session(&["--task", "t2"]);
    let found = merges(&ran);
    assert_eq!(found[0].0, "failed", "{found:?} {}", ran.stderr);
    assert!(found[0].1.contains("t2 went back: green"), "{found:?}");
}

/// A gate whose program is missing is not a fault of the base, and no agent gets a turn for it.
#[test]
fn a_merge_gate_with_a_missing_program_needs_a_person() {
    let config = "delivery: {}\nhooks:\n  before_merge:\n    - {name: gate, command: 'no-such-program-here --now'}\n";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    project.run_tasks();
    let output = project.json_command(&["merge"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("`gate` can't run here"), "{text}");
    assert!(text.contains("`no-such-program-here` was not found (exit code 127)"), "{text}");
    assert!(!text.contains("by itself"), "{text}");
    assert_eq!((project.state("t1").as_str(), turns(&project, "t1")), ("submitted", 1));
}

/// Work that breaks its own gate goes back to the agent, because the gate runs without that work.
#[test]
fn work_that_removes_the_program_of_a_gate_is_returned() {
    let config = "delivery: {}\nhooks:\n  before_merge:\n    - {name: gate, command: 'test -e work.txt || exit 0; no-such-program-here'}\n";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    project.run_tasks();
    assert_eq!(project.merge()["t1"].0, "returned");
}
