//! Tasks of other trackers: imported once, with their dependencies.

use serde_json::{Value, json};

use crate::cli::{Project, strings};

const BEADS: &str = r#"{"_type":"issue","id":"bd-1","title":"Store","description":"Where it is kept","design":"A file","status":"closed","priority":0,"issue_type":"feature","close_reason":"Done in March","created_at":"2026-03-01T10:00:00Z","closed_at":"2026-03-04T10:00:00Z","labels":["core"],"dependency_count":0}
{"id":"bd-2","title":"Index","status":"open","priority":1,"issue_type":"task","created_at":"2026-03-02T10:00:00Z","dependencies":[{"issue_id":"bd-2","depends_on_id":"bd-1","type":"blocks","created_at":"2026-03-02T10:00:00Z"},{"issue_id":"bd-2","depends_on_id":"bd-4","type":"parent-child","created_at":"2026-03-02T10:00:00Z"}],"assignee":"ada"}
{"id":"bd-2.1","title":"Index of names","status":"in_progress","priority":2,"issue_type":"task","dependencies":[{"issue_id":"bd-2.1","depends_on_id":"bd-2","type":"blocks","created_at":"2026-03-02T10:00:00Z"},{"issue_id":"bd-2.1","depends_on_id":"bd-1","type":"related","created_at":"2026-03-02T10:00:00Z"},{"issue_id":"bd-2.1","depends_on_id":"bd-gone","type":"blocks","created_at":"2026-03-02T10:00:00Z"}]}
{"id":"bd-4","title":"Search","status":"blocked","priority":2,"issue_type":"epic","novel":7}
{"id":"bd-5","title":"Later","status":"deferred","priority":4,"issue_type":"chore","defer_until":"2040-01-01T00:00:00Z"}
{"id":"bd-6","title":"Pinned note","status":"pinned","priority":2,"issue_type":"task"}
{"_type":"memory","key":"a","value":"b"}
"#;

fn row<'a>(report: &'a Value, what: &str) -> &'a Value {
    let rows = report["report"].as_array().unwrap();
    rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("{what}: {report:#}"))
}

#[test]
fn beads_issues_are_imported_once_with_their_dependencies() {
    let project = Project::new();
    project.files(&[(".beads/issues.jsonl", BEADS)]);
    let report = project.json(&["import", "beads"]);
    assert_eq!(report["tasks"], json!({"added": 5, "present": 0}), "{report:#}");
    let store = project.task("bd-1");
    assert_eq!(
        (&store["state"], &store["result"], &store["priority"]),
        (&json!("completed"), &json!("Done in March"), &json!(0))
    );
    assert!(store["description"].as_str().unwrap().contains("Design:\nA file"), "{store}");
    assert_eq!(store["completed_at"], "2026-03-04T10:00:00.000Z");
    let index = project.task("bd-2");
    assert_eq!(
        (&index["state"], &index["parent"], &index["type"]),
        (&json!("ready"), &json!("bd-4"), &json!("task"))
    );
    assert_eq!(strings(&index["depends_on"], "id"), ["bd-1"]);
    // An id that hookloop does not allow gets a replacement, which is the same each time.
    let names = strings(&index["dependents"], "id");
    assert!(names.len() == 1 && names[0].starts_with("bd-2_1-"), "{names:?}");
    assert_eq!(project.task("bd-4")["blocked"]["reason"], "blocked in Beads");
    assert_eq!(project.task("bd-5")["not_before"], "2040-01-01T00:00:00.000Z");
    for (what, fate) in [
        ("issues", "kept"),
        ("status in_progress", "changed"),
        ("dependencies of type related", "no_equivalent"),
        ("a dependency on bd-gone", "no_equivalent"),
        ("issues.assignee", "no_equivalent"),
        ("issues.novel", "no_equivalent"),
        ("issues that are pinned", "no_equivalent"),
        ("lines of type memory", "no_equivalent"),
    ] {
        assert_eq!(row(&report, what)["result"], fate, "{what}");
    }
    let events = project.events().len();
    let again = project.json(&["import", "beads"]);
    assert_eq!(again["tasks"], json!({"added": 0, "present": 5}), "{again:#}");
    assert_eq!(project.events().len(), events);

    // A changed issue does not change the task and is reported. A new issue is added.
    let more = BEADS.replace("\"Index\"", "\"Another index\"")
        + r#"{"id":"bd-7","title":"New","status":"open","priority":2}"#;
    project.files(&[(".beads/issues.jsonl", &more)]);
    let third = project.json(&["import", "beads"]);
    assert_eq!(third["tasks"], json!({"added": 1, "present": 5}), "{third:#}");
    assert_eq!(row(&third, "task bd-2")["result"], "no_equivalent");
    assert_eq!(project.task("bd-2")["goal"], "Index");
}

#[test]
fn importing_tasks_without_a_project_is_refused() {
    let project = Project::bare();
    project.files(&[(".beads/issues.jsonl", BEADS)]);
    let error = project.fails(2, &["import", "beads"]);
    assert!(error.contains("run `hookloop init"), "{error}");
}

#[test]
fn a_cycle_is_refused_before_anything_is_added() {
    let project = Project::new();
    let issue = |id: &str, on: &str| {
        json!({"id": id, "title": id, "status": "open", "priority": 1, "dependencies":
            [{"issue_id": id, "depends_on_id": on, "type": "blocks"}]})
        .to_string()
    };
    project.files(&[("issues.jsonl", &format!("{}\n{}\n", issue("a", "b"), issue("b", "a")))]);
    let error = project.fails(2, &["import", "beads"]);
    assert!(error.contains("cycle"), "{error}");
    assert_eq!(project.goals(), [""; 0]);
}

#[test]
fn vibe_kanban_issues_are_imported_from_csv_and_json() {
    let project = Project::new();
    let csv = "Issue ID,Title,Description,Status,Priority,Project,Assignee(s),Creator,Created,Updated,Start Date,Due Date,Completed,Parent Issue
VK-1,\"Write, then read\",\"Two
lines\",Done,Urgent,web,ada,bob,2026-03-01T10:00:00+00:00,2026-03-01T10:00:00+00:00,,2026-04-01,2026-03-02T10:00:00+00:00,
VK-2,Second,,In progress,Low,web,,bob,2026-03-01T10:00:00+00:00,2026-03-01T10:00:00+00:00,,,,VK-1
VK-3,Third,,Cancelled,,web,,bob,2026-03-01T10:00:00+00:00,2026-03-01T10:00:00+00:00,,,,
";
    project.files(&[("issues.csv", csv)]);
    let report = project.json(&["import", "vibe-kanban"]);
    assert_eq!(report["tasks"], json!({"added": 2, "present": 0}), "{report:#}");
    let first = project.task("VK-1");
    assert_eq!(
        (&first["goal"], &first["state"], &first["priority"]),
        (&json!("Write, then read"), &json!("completed"), &json!(0))
    );
    assert_eq!((&first["description"], &first["labels"]), (&json!("Two\nlines"), &json!(["web"])));
    assert_eq!(
        (&project.task("VK-2")["parent"], &project.task("VK-2")["state"]),
        (&json!("VK-1"), &json!("ready"))
    );
    assert_eq!(row(&report, "issues that are Cancelled")["result"], "no_equivalent");
    assert_eq!(row(&report, "issues.Due Date")["result"], "no_equivalent");

    let list = json!({"success": true, "data": [
        {"id": "6f1c2a52-0000-4000-8000-000000000001", "project_id": "p", "title": "By list", "description": null,
         "status": "inreview", "parent_workspace_id": null, "created_at": "2026-03-01T10:00:00Z", "updated_at": "x"},
    ]});
    project.files(&[("tasks.json", &list.to_string())]);
    let report = project.json(&["import", "vibe-kanban", "tasks.json"]);
    assert_eq!(report["tasks"]["added"], 1, "{report:#}");
    assert_eq!(row(&report, "status inreview")["result"], "changed");
}

#[test]
fn ralph_plans_stories_and_tasks_are_imported_as_tasks() {
    let project = Project::new();
    project.files(&[
        ("fix_plan.md", "# Plan\n\n## Parser\n- [x] Read numbers\n- [ ] Read strings\n  - [ ] with escapes\n- a note\n"),
        ("prd.json", &json!({"project": "P", "branchName": "b", "description": "A product", "userStories": [
            {"id": "US-001", "title": "Log in", "description": "As a user", "acceptanceCriteria": ["A form", "A session"],
             "priority": 1, "passes": false, "notes": ""},
            {"id": "US-002", "title": "Log out", "priority": 2, "passes": true, "novel": 1},
        ]}).to_string()),
        (".ralph/agent/tasks.jsonl", "{\"id\":\"task-1-a\",\"title\":\"One\",\"status\":\"open\",\"priority\":1,\"blocked_by\":[],\"created\":\"2026-03-01T10:00:00Z\"}\n{\"id\":\"task-2-b\",\"title\":\"Two\",\"status\":\"open\",\"priority\":5,\"blocked_by\":[\"task-1-a\"],\"created\":\"2026-03-01T10:00:00Z\"}\n"),
    ]);
    let report = project.json(&["import", "ralph"]);
    assert_eq!(report["tasks"], json!({"added": 7, "present": 0}), "{report:#}");
    let story = project.task("US-001");
    assert_eq!(
        (&story["deliverables"], &story["priority"]),
        (&json!(["A form", "A session"]), &json!(0))
    );
    assert_eq!(project.state_of("US-002"), "completed");
    assert_eq!(
        (project.state_of("task-1-a"), project.state_of("task-2-b")),
        ("ready".to_owned(), "created".to_owned())
    );
    let goals = project.goals();
    for goal in ["Read numbers", "Read strings", "with escapes"] {
        assert!(goals.iter().any(|known| known == goal), "{goals:?}");
    }
    assert_eq!(row(&report, "userStories.novel")["result"], "no_equivalent");
    assert_eq!(project.json(&["import", "ralph"])["tasks"], json!({"added": 0, "present": 7}));
}

#[test]
fn octopoid_tasks_are_imported_from_files_and_lists() {
    let project = Project::new();
    project.files(&[
        ("TASK-abc.md", "# [TASK-abc] Build it\n\nROLE: implement\nPRIORITY: P0\nBRANCH: main\nBLOCKED_BY: TASK-def\n\n## Context\n\nSoon.\n\n- [ ] It works\n"),
        ("tasks.json", &json!({"tasks": [{"id": "TASK-def", "title": "Design it", "queue": "done", "priority": "P1", "type": "product", "branch": "x"}]}).to_string()),
    ]);
    let report = project.json(&["import", "octopoid", "TASK-abc.md", "tasks.json"]);
    assert_eq!(report["tasks"]["added"], 2, "{report:#}");
    let task = project.task("TASK-abc");
    assert_eq!(
        (&task["priority"], &task["labels"], &task["deliverables"]),
        (&json!(0), &json!(["implement"]), &json!(["It works"]))
    );
    assert_eq!(strings(&task["depends_on"], "id"), ["TASK-def"]);
    assert_eq!(project.task("TASK-def")["type"], "product");
    assert_eq!(row(&report, "BRANCH")["result"], "no_equivalent");
}

/// Texts beyond the limits of tasks are truncated, which is reported. Control characters are
/// escaped.
#[test]
fn imported_texts_are_truncated_to_the_limits_of_tasks() {
    let project = Project::new();
    let issue = json!({"id": "x/../y z", "title": format!("\u{1b}[31m{}", "é".repeat(4_000)), "description": "d".repeat(70_000),
        "labels": (0..100).map(|n| n.to_string()).collect::<Vec<_>>(), "status": "open", "priority": 99});
    project.files(&[("issues.jsonl", &issue.to_string())]);
    let said = project.ok(&["import", "beads"]);
    assert!(!said.contains('\u{1b}') && said.contains("cut off after"), "{said}");
    let task = &project.json(&["task", "list"])[0];
    assert_eq!((task["labels"].as_array().unwrap().len(), &task["priority"]), (64, &json!(9)));
    assert!(task["goal"].as_str().unwrap().len() <= 4096);
}
