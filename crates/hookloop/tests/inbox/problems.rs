//! The list of problems: its entries, and events that are no problem.

use serde_json::json;

use crate::cli::{Project, fields, strings};
use crate::inbox::{blocked, key, keys};

#[test]
fn a_task_that_is_blocked_again_is_a_new_problem() {
    let project = Project::new();
    assert_eq!(project.json(&["inbox", "list"]), json!([]));
    blocked(&project, "a", "Parse it", "which encoding?");
    let first = key(&project);
    let version = project.event("task_blocked")["seq"].as_u64().unwrap();
    assert_eq!(first, format!("task:a@{version}"));
    let listed = &project.json(&["inbox", "list"])[0];
    let expected =
        ["by", "dismissed", "key", "reason", "session", "since", "task", "title", "type"];
    assert_eq!(fields(listed), expected.into());
    assert_eq!(listed["title"], "task a is blocked: Parse it");
    assert_eq!((&listed["reason"], &listed["task"]), (&json!("which encoding?"), &json!("a")));
    assert_eq!(project.json(&["status"])["problems"], 1);
    assert!(project.ok(&["status"]).contains("1  waiting for you: hookloop inbox list"));
    // Neither a note on the task nor a rebuilt view makes it another problem.
    project.ok(&["task", "note", "a", "I am looking"]);
    assert_eq!(project.json(&["rebuild"])["equal"], true);
    assert_eq!(key(&project), first);
    project.ok(&["task", "unblock", "a"]);
    assert_eq!(keys(&project), [""; 0]);
    project.ok(&["task", "block", "a", "--reason", "which one?"]);
    assert_ne!(key(&project), first);
    project.ok(&["task", "delete", "a"]);
    assert_eq!((keys(&project).len(), &project.json(&["status"])["problems"]), (0, &json!(0)));
}

#[test]
fn problems_are_listed_oldest_first_and_found_by_a_unique_prefix() {
    let project = Project::new();
    for id in ["alpha", "alpine", "al", "beta"] {
        blocked(&project, id, "Goal", "why");
    }
    let tasks = strings(&project.json(&["inbox", "list"]), "task");
    assert_eq!(tasks, ["alpha", "alpine", "al", "beta"]);
    let shown = |text: &str| project.json(&["inbox", "show", text])["task"].clone();
    for (text, task) in
        [("b", "beta"), ("task:b", "beta"), ("alp", ""), ("al", "al"), ("task:alph", "alpha")]
    {
        match task {
            "" => {
                let why = project.fails(1, &["inbox", "show", text]);
                assert!(
                    why.contains("could be task:alpha@") && why.contains("task:alpine@"),
                    "{why}"
                );
            }
            task => assert_eq!(shown(text), task, "{text}"),
        }
    }
    let why = project.fails(1, &["inbox", "show", "gamma"]);
    assert!(why.contains("run `hookloop inbox list"), "{why}");
}

/// An agent that prints the content of a file, and stores its prompts.
pub(crate) const AGENT: &str = "command:cat >> prompts.txt; cat says.txt";

#[test]
fn a_stuck_session_is_a_problem_unless_its_task_is() {
    let project = Project::with_config("limits: {max_iterations: 1}\n");
    project.write("says.txt", "I can't.\n<promise>BLOCKED</promise>\n");
    let ran = project.run(&["run", "Do it", "--agent", AGENT]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let stuck = key(&project);
    assert!(stuck.starts_with("session:"), "{stuck}");
    let shown = project.json(&["inbox", "show", &stuck]);
    assert_eq!(shown["type"], "session_ended");
    assert!(shown["title"].as_str().unwrap().ends_with("did not finish: Do it"), "{shown}");
    let details = shown["details"].to_string();
    assert!(details.contains("I can't."), "{details}");
    let expected = [
        "by",
        "details",
        "dismissed",
        "effects",
        "key",
        "type",
        "next",
        "reason",
        "record",
        "session",
        "since",
        "task",
        "title",
    ];
    assert_eq!(fields(&shown), expected.into());
    project.ok(&["inbox", "dismiss", &stuck]);
    // A reached limit is a problem, too.
    project.write("says.txt", "working\n");
    assert_eq!(project.run(&["run", "Do more", "--agent", AGENT]).code, 4);
    let shown = project.json(&["inbox", "show", &key(&project)]);
    assert_eq!(shown["reason"], "its limit of iterations was reached");
    project.ok(&["inbox", "dismiss", &key(&project)]);
    // If a task is blocked, its session is not a second problem.
    project.write("says.txt", "<promise>BLOCKED</promise>\n");
    project.add("Goal", &["--id", "t"]);
    assert_eq!(project.run(&["run", "--tasks", "--agent", AGENT]).code, 3);
    let found = key(&project);
    assert!(found.starts_with("task:t@"), "{found}");
    let session = project.json(&["inbox", "show", "t"])["session"].clone();
    assert!(session.is_string(), "the session that blocked the task is shown");
    assert_eq!(project.json(&["rebuild"])["equal"], true);
}

#[test]
fn an_exhausted_budget_is_one_problem_for_many_sessions() {
    let limits = |tokens: u32| {
        format!(
            "limits: {{budget: {{tokens: {tokens}, period: total}}, reserve_per_turn: {{tokens: 900}}}}\n"
        )
    };
    let project = Project::with_config(&limits(1000));
    let turns = r#"[{"say": "a", "usage": {"input_tokens": 990}}, {"say": "b"}]"#;
    project.write("turns.json", turns);
    for work in ["one", "two"] {
        assert_eq!(project.run(&["run", work, "--agent", "scripted:turns.json"]).code, 4);
    }
    let found = key(&project);
    assert!(found.starts_with("budget@"), "{found}");
    let why = project.fails(1, &["inbox", "answer", "budget", "spend less"]);
    assert!(why.contains("run `hookloop usage"), "{why}");
    // With a larger budget, a session begins a turn.
    project.configure(&limits(100_000));
    project.run(&["run", "three", "--agent", "scripted:turns.json"]);
    assert!(!keys(&project).contains(&found));
}
