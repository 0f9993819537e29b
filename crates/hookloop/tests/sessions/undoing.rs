//! `undo` and `restore`: files after a session are those before it, and the work of a person stays.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use hookloop_testkit::{SCRIPTED_AGENT, TestProject};

use super::{scripted, trusted_project};

const CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: tests, command: 'true'}
";
/// Two turns; the second works with shell commands.
const TURNS: &str = r#"[
    {"write": {"src/lib.rs": "one\n", "new/file": "new\n"}, "say": "Working."},
    {"run": "echo two > src/lib.rs; rm notes; chmod +x run.sh; git add -A; git -c user.name=a -c user.email=a@b commit -qm agent",
     "say": "Done.\n<promise>COMPLETE</promise>"}
]"#;
/// Files of the project whose undo is killed.
const KILLED_FILES: usize = 300;
/// Kills of one undo, at later and later moments.
const KILLS: u64 = 12;

/// Returns a project with uncommitted work of the user, after a session with [`TURNS`].
fn after_session() -> TestProject {
    let files = [("src/lib.rs", "zero\n"), ("run.sh", "true\n"), ("other", "1\n")];
    let project = trusted_project(CONFIG, &files);
    project.write("notes", "not committed\n");
    let ran = scripted(&project, TURNS, &["--name", "try"]);
    assert_eq!((ran.code, ran.outcome()), (0, "complete"), "{}", ran.stderr);
    project
}

/// Returns the names and contents of all files outside of `.git`.
fn files(project: &TestProject) -> BTreeMap<String, Vec<u8>> {
    let list = project.shell("find . -path ./.git -prune -o -type f -print").stdout;
    list.lines()
        .map(|name| (name.to_owned(), fs::read(project.root().join(name)).unwrap()))
        .collect()
}

#[test]
fn an_undo_restores_the_files_as_they_were_before_the_session() {
    let project = after_session();
    let after = files(&project);
    let said = project.ok(&["undo", "--yes"]);
    for line in ["create  notes", "delete  new/file", "change  src/lib.rs", "change  run.sh"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(project.read("notes"), "not committed\n");
    assert_eq!(project.read("src/lib.rs"), "zero\n");
    assert!(!project.root().join("new").exists());
    // The commit of the agent stays. Without it, nothing differs but the user's own file.
    assert!(said.contains("git reset --soft"), "{said}");
    project.git(&["reset", "--quiet", "--soft", "HEAD~1"]);
    project.git(&["reset", "--quiet"]);
    assert_eq!(project.git(&["status", "--porcelain"]).trim(), "?? notes\n?? turns.json");
    project.ok(&["undo", "--back", "--yes"]);
    assert_eq!(files(&project), after);
    let events = project.json_lines(&["log", "--session", "try"]);
    let restored = events.iter().filter(|event| event["type"] == "files_restored");
    assert_eq!(restored.count(), 2);
}

#[test]
fn single_turns_and_files_can_be_restored() {
    let project = after_session();
    project.ok(&["undo", "2", "--yes"]);
    assert_eq!(project.read("src/lib.rs"), "one\n");
    assert_eq!(project.read("new/file"), "new\n");
    project.ok(&["restore", "2", "--", "src/lib.rs"]);
    assert_eq!(project.read("src/lib.rs"), "two\n");
    project.ok(&["restore", "0", "--", "src"]);
    assert_eq!(project.read("src/lib.rs"), "zero\n");
    let said = project.fails(1, &["undo", "7", "--yes"]);
    assert!(said.contains("no kept files of turn 7"), "{said}");
    let said = project.fails(1, &["restore", "1", "--", "/etc/passwd"]);
    assert!(said.contains("outside of"), "{said}");
}

#[test]
fn the_work_of_a_person_is_not_overwritten() {
    let project = after_session();
    project.write("src/lib.rs", "by a person\n");
    project.write("other", "by a person\n");
    let said = project.fails(1, &["undo", "--yes"]);
    assert!(said.contains("src/lib.rs") && !said.contains("other"), "{said}");
    assert!(project.root().join("new/file").exists(), "nothing changed");
    project.ok(&["undo", "--yes", "--skip-edited"]);
    assert_eq!(project.read("src/lib.rs"), "by a person\n");
    assert_eq!(project.read("other"), "by a person\n");
    assert!(!project.root().join("new").exists());
    let said = project.fails(1, &["restore", "1", "--", "src/lib.rs"]);
    assert!(said.contains("work of a person"), "{said}");
    // Overwritten on request, and brought back, it is still the work of a person.
    project.ok(&["undo", "--yes", "--overwrite"]);
    assert_eq!(project.read("src/lib.rs"), "zero\n");
    project.ok(&["undo", "--back", "--yes"]);
    assert_eq!(project.read("src/lib.rs"), "by a person\n");
    project.fails(1, &["undo", "--yes"]);
}

#[test]
fn an_undo_needs_an_answer_and_a_dry_run_changes_nothing() {
    let project = after_session();
    let after = files(&project);
    let said = project.fails(2, &["undo"]);
    assert!(said.contains("hookloop undo --yes"), "{said}");
    project.ok(&["undo", "--dry-run"]);
    let preview = project.json(&["undo", "--dry-run"]);
    assert_eq!(preview["files"].as_array().unwrap().len(), 4);
    assert_eq!(files(&project), after);
}

#[test]
fn an_undo_that_is_killed_is_finished_by_the_next_one() {
    let project = trusted_project(CONFIG, &[]);
    for number in 0..KILLED_FILES {
        project.write(&format!("dir/{number}"), &format!("old {number}\n"));
    }
    let turns = r#"[{"run": "for i in $(seq 0 299); do echo new > dir/$i; done; rm dir/7; echo x > made",
        "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    project.write_turns(turns);
    let before = files(&project);
    let ran = scripted(&project, turns, &["--name", "try"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let after = files(&project);
    for kill in 0..KILLS {
        let mut undo = project.hookloop(&["undo", "--yes"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40 + kill * 30));
        undo.kill().unwrap();
        undo.wait().unwrap();
        // Finishes the plan if there is one, else begins again.
        for _ in 0..2 {
            project.ok(&["undo", "--yes"]);
        }
        assert_eq!(files(&project), before, "kill {kill}");
        project.ok(&["restore", "1", "--yes", "--overwrite", "--", "."]);
        assert_eq!(files(&project), after, "kill {kill}");
    }
}

#[test]
fn a_turn_that_deletes_everything_can_be_undone() {
    let project = trusted_project(CONFIG, &[("src/lib.rs", "zero\n")]);
    project.write("notes", "not committed\n");
    project.write_turns(r#"[{"run": "rm -rf ./*", "say": "Oops."}]"#);
    let before = files(&project);
    let ran = project.run(&["run", "work", "--agent", SCRIPTED_AGENT, "--max-iterations", "1"]);
    assert_ne!(ran.code, 0);
    assert_eq!(files(&project).len(), 0);
    let said = project.ok(&["undo", "--yes"]);
    assert!(said.contains("hookloop.yaml was gone"), "{said}");
    assert_eq!(files(&project), before);
}
