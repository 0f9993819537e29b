//! Export and import of tasks as JSON lines.

use hookloop_testkit::json_lines;
use serde_json::{Value, json};

use crate::cli::{Project, strings};

/// Checks that an import is refused with `part` in the message, and that no task is added.
fn check_refused(input: &str, part: &str) {
    let project = Project::new();
    project.add("There", &["--id", "there"]);
    project.write("tasks.jsonl", input);
    let error = project.fails(2, &["task", "import", "tasks.jsonl"]);
    assert!(error.contains(part), "{error}");
    assert_eq!(project.goals(), ["There"], "{part}: something was added");
}

/// Returns a project with tasks in every state, with dependencies, texts and a parent.
fn varied() -> Project {
    let project = Project::new();
    let all = ["--label", "x", "--label", "y", "--deliverable", "d", "--type", "chore"];
    project.add("Done \"quoted\" ✓", &[&["--id", "done", "-d", "More\ntext"], &all[..]].concat());
    project.ok(&["task", "complete", "done", "--result", "r", "--artifact", "f"]);
    project.add("Active", &["--id", "active", "--priority", "0", "--parent", "done"]);
    project.ok(&["task", "start", "active"]);
    project.add("Blocked", &["--id", "blocked", "--depends-on", "done"]);
    project.ok(&["task", "block", "blocked", "--reason", "Why", "--needs", "What"]);
    project.add("Waits", &["--id", "waits", "--depends-on", "active", "--depends-on", "blocked"]);
    project.add("Ready", &["--id", "ready", "--priority", "9"]);
    project
}

/// Returns an export without times, because an import sets its own.
fn timeless(export: &str) -> Vec<Value> {
    let mut tasks = json_lines(export);
    for task in &mut tasks {
        for field in ["created_at", "started_at", "completed_at"] {
            task.as_object_mut().unwrap().remove(field);
        }
    }
    tasks
}

#[test]
fn exported_tasks_are_imported_unchanged() {
    let source = varied();
    let exported = source.ok(&["task", "export"]);
    let copy = Project::new();
    let run = copy.run_with_input(&["task", "import", "-"], &exported);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Added 5 tasks\n"), "{run:?}");
    let again = copy.ok(&["task", "export"]);
    assert_eq!(timeless(&again), timeless(&exported));
    assert_eq!(copy.state_of("waits"), "created");
    copy.ok(&["verify"]);
}

#[test]
fn an_imported_completed_task_runs_no_hooks() {
    let project = Project::new();
    project.write(
        "tasks.jsonl",
        "{\"id\": \"a\", \"goal\": \"A\", \"labels\": [\"agent\"], \"state\": \"completed\"}\n",
    );
    project.ok(&["task", "import", "tasks.jsonl"]);
    assert_eq!(project.goals(), ["A"]);
    assert_eq!(project.events_of("agent_metrics"), [] as [Value; 0]);
}

#[test]
fn an_import_accepts_tasks_in_any_order_and_skips_existing_tasks() {
    let project = Project::new();
    let input = "{\"id\": \"c\", \"goal\": \"C\", \"depends_on\": [\"b\", \"a\"]}\n\
                 \n\
                 {\"id\": \"b\", \"goal\": \"B\", \"depends_on\": [\"a\"]}\n\
                 {\"id\": \"a\", \"goal\": \"A\"}";
    project.write("tasks.jsonl", input);
    let imported = project.json(&["task", "import", "tasks.jsonl"]);
    assert_eq!(imported, json!({"added": 3, "present": 0}));
    assert_eq!(strings(&project.json(&["task", "ready"]), "id"), ["a"]);
    assert_eq!(strings(&project.task("c")["depends_on"], "id").len(), 2);
    let events = project.events().len();
    let printed = project.ok(&["task", "import", "tasks.jsonl"]);
    assert_eq!(printed, "Added 0 tasks, 3 already exist\n");
    assert_eq!(project.events().len(), events);
}

#[test]
fn an_imported_task_may_depend_on_an_existing_task() {
    let project = Project::new();
    project.add("There", &["--id", "there"]);
    project.write("tasks.jsonl", "{\"goal\": \"New\", \"depends_on\": [\"there\"]}\n");
    project.ok(&["task", "import", "tasks.jsonl"]);
    assert_eq!(project.task("there")["dependents"][0]["goal"], "New");
}

#[test]
fn cycles_in_an_input_are_named() {
    let edge = |id: &str, on: &str| json!({"id": id, "goal": "G", "depends_on": [on]}).to_string();
    let cycle = [edge("x", "a"), edge("a", "c"), edge("b", "a"), edge("c", "b")].join("\n");
    check_refused(&cycle, "the input has a cycle: a → c → b → a");
    check_refused(&edge("a", "a"), "the input has a cycle: a → a");
}

#[test]
fn mistakes_in_an_input_are_named_with_their_line() {
    let first = "{\"id\": \"a\", \"goal\": \"A\"}\n\n";
    let check = |line: &str, part: &str| check_refused(&format!("{first}{line}\n"), part);
    check("{\"goal\": \"B\", \"depends_on\": [\"no-such\"]}", "line 3: ");
    check(
        "{\"id\": \"b\", \"goal\": \"B\", \"depends_on\": [\"no-such\"]}",
        "`b` depends on `no-such`",
    );
    check("{\"id\": \"a\", \"goal\": \"B\"}", "line 3: `a` is defined a second time");
    check("{", "line 3: EOF");
    check("[]", "line 3: ");
    check("{\"id\": \"b\"}", "line 3: missing field `goal`");
    check("{\"goal\": \"B\", \"gaol\": 1}", "line 3: unknown field `gaol`");
    check("{\"goal\": \" \"}", "line 3: a task needs a goal");
    check("{\"goal\": \"B\", \"priority\": 10}", "line 3: priority 10");
    check("{\"id\": \"b c\", \"goal\": \"B\"}", "line 3: `b c` is not a task id");
    check("{\"id\": \"there\", \"goal\": \"B\"}", "line 3: task `there` exists already");
}

#[test]
fn a_mistake_at_the_end_of_a_long_input_adds_nothing() {
    let good: String =
        (0..2_000).map(|n| format!("{{\"id\": \"t{n}\", \"goal\": \"G\"}}\n")).collect();
    check_refused(&format!("{good}{{\"goal\": \"\"}}\n"), "line 2001: ");
}

#[test]
fn importing_a_missing_file_is_a_usage_error() {
    let error = Project::new().fails(2, &["task", "import", "no-such.jsonl"]);
    assert!(error.contains("no-such.jsonl: No such file"), "{error}");
}
