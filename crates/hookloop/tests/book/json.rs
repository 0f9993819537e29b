//! Checks the page of JSON output: the listed fields are the printed ones.

use std::collections::BTreeSet;

use hookloop_testkit::json_lines;
use serde_json::Value;

use crate::cli::{Project, fields};
use crate::documents::{names, rows};

/// Returns the output of each command, or the first object of its output.
fn printed() -> Vec<(&'static str, Value)> {
    let bare = Project::bare();
    let init = bare.json(&["init", "--yes"]);
    let project = Project::new();
    let added = project.json(&["task", "add", "A", "--id", "a"]);
    project.write("tasks.jsonl", "{\"goal\": \"B\", \"id\": \"b\", \"depends_on\": [\"a\"]}\n");
    let imported = project.json(&["task", "import", "tasks.jsonl"]);
    let shown = project.json(&["task", "show", "a"]);
    project.json(&["task", "block", "a", "--reason", "Why"]);
    project.write("turns.json", r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#);
    let run = ["run", "Do it", "--agent", "scripted:turns.json", "--no-changes-ok", "--json"];
    let ran = project.run(&run);
    assert_eq!(ran.code, 6, "complete, and no gate proved it: {ran:?}");
    let ran = json_lines(&ran.stdout);
    let schedule = ["schedule", "add", "s", "--cron", "0 3 * * *", "--goal", "G"];
    let first = |args: &[&str]| project.json(args)[0].clone();
    let session = first(&["sessions", "list"]);
    let session_detail = project.json(&["sessions", "show", session["id"].as_str().unwrap()]);
    vec![
        ("init", init),
        ("status", project.json(&["status"])),
        ("task list", first(&["task", "list"])),
        ("task show", shown),
        ("task add", added),
        ("task graph", project.json(&["task", "graph"])),
        ("task import", imported),
        ("schedule add", project.json(&schedule)),
        ("hooks list", first(&["hooks", "list"])),
        ("sessions list", session),
        ("sessions show", session_detail),
        ("why", project.json(&["why", "a"])),
        ("log", ran[0].clone()),
        ("inbox list", first(&["inbox", "list"])),
        ("inbox show", project.json(&["inbox", "show", "a"])),
        ("usage", project.json(&["usage"])),
        ("fleet status", project.json(&["fleet", "status"])),
        ("policy", project.json(&["policy"])),
        ("verify", project.json(&["verify"])),
        ("rebuild", project.json(&["rebuild"])),
    ]
}

#[test]
fn every_field_that_is_listed_is_printed() {
    let page = rows("docs/reference/json.md", "", 0);
    let printed = printed();
    assert_eq!(page.len(), printed.len());
    let of = |wanted: &str| {
        let row = page.iter().find(|row| names(&row[0]).iter().any(|name| name == wanted));
        let row = row.unwrap_or_else(|| panic!("`{wanted}` is not listed"));
        names(&row[1]).into_iter().collect::<BTreeSet<String>>()
    };
    let mut wrong = Vec::new();
    for (command, value) in printed {
        let mut listed = of(command);
        match command {
            "task show" | "task add" => listed.extend(of("task list")),
            "inbox show" => listed.extend(of("inbox list")),
            "sessions show" => listed.extend(of("sessions list")),
            _ => {}
        }
        let found: BTreeSet<String> = fields(&value).into_iter().map(str::to_owned).collect();
        if listed != found {
            wrong.push(format!("{command}: {listed:?} is listed, {found:?} is printed"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
