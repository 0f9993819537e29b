//! The first commands of a new user, exactly as written.

use crate::cli::Project;

const LINES: &str = r#"
set -eu
hookloop init --yes > /dev/null
A=$(hookloop task add "Research graph patterns" --label agent --label research --priority 1 --deliverable "Research doc" --json | jq -r .id)
B=$(hookloop task add "Write it up" --depends-on "$A" --json | jq -r .id)
echo "A is $A"
echo "ready:" $(hookloop task ready --json | jq -r '.[].id')
hookloop task start "$A" > /dev/null && hookloop task complete "$A" --result "Research complete" > /dev/null
echo "goals:" $(hookloop task ready --json | jq -r '.[].goal' | sort | tr '\n' '|')
echo "types:" $(hookloop log --json | jq -r .type)
hookloop task dep add "$A" --on "$B" 2> refusal && exit 3 || echo "refused: $?"
grep -q "cycle: $A → $B → $A" refusal
hookloop verify > /dev/null && hookloop rebuild > /dev/null
echo "end"
"#;

#[test]
fn the_first_commands_of_a_new_user_work_as_written() {
    let run = Project::bare().shell(LINES);
    assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    let id = lines[0].strip_prefix("A is ").unwrap();
    assert_eq!(lines[1], format!("ready: {id}"));
    assert_eq!(lines[2], "goals: Review: Research graph patterns|Write it up|");
    assert_eq!(
        lines[3],
        "types: task_created task_created dependency_added task_started task_completed \
         task_created dependency_satisfied agent_metrics"
    );
    assert_eq!(lines[4..], ["refused: 1", "end"]);
}

#[test]
fn init_reports_the_written_file_and_keeps_an_existing_file() {
    let project = Project::bare();
    let first = project.ok(&["init", "--yes"]);
    assert!(first.starts_with("Wrote ") && first.contains("hookloop run"), "{first}");
    project.configure("limits: {cascade: {depth: 3}}\n");
    let second = project.ok(&["init"]);
    assert!(second.starts_with("Kept "), "{second}");
    let text = std::fs::read_to_string(project.root().join("hookloop.yaml")).unwrap();
    assert!(text.contains("depth: 3"), "init changed the file: {text}");
}

#[test]
fn init_without_anyone_to_ask_writes_nothing() {
    let project = Project::bare();
    let error = project.fails(1, &["init"]);
    assert!(error.contains("was not written: there is no terminal to ask on"), "{error}");
    assert!(error.contains("run `hookloop init --yes"), "{error}");
    assert_eq!(std::fs::read_dir(project.root()).unwrap().count(), 0);
}

#[test]
fn nothing_of_the_state_is_in_the_project() {
    let project = Project::new();
    project.add("Goal", &[]);
    let names = std::fs::read_dir(project.root()).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["hookloop.yaml"]);
}

#[test]
fn commands_work_below_the_project_and_from_elsewhere() {
    let project = Project::new();
    project.add("Goal", &[]);
    std::fs::create_dir_all(project.root().join("src/deep")).unwrap();
    let mut below = project.hookloop(&["task", "list"]);
    let below = below.current_dir(project.root().join("src/deep")).output().unwrap();
    let root = project.root();
    let mut elsewhere = project.hookloop(&["-C", root.to_str().unwrap(), "task", "list"]);
    let elsewhere = elsewhere.current_dir("/").output().unwrap();
    for output in [&below, &elsewhere] {
        assert!(String::from_utf8_lossy(&output.stdout).contains("Goal"), "{output:?}");
    }
}

#[test]
fn completions_are_printed_for_each_shell() {
    let project = Project::bare();
    for shell in ["bash", "zsh", "fish"] {
        assert!(project.ok(&["completions", shell]).contains("hookloop"), "{shell}");
    }
    let run = project.shell("hookloop completions bash | bash -n");
    assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
}

/// `--help` after a command line is answered only if the words before it are valid.
const HINTS: &str = r#"
set -u
hookloop init --yes > /dev/null
hookloop task add Ready --id ready > /dev/null
hookloop task add Waits --id waits --depends-on ready > /dev/null
hookloop task add Late --id late --not-before 2100-01-01T00:00:00Z > /dev/null
hookloop task add Active --id active > /dev/null && hookloop task start active > /dev/null
hookloop task add Blocked --id blocked > /dev/null && hookloop task start blocked > /dev/null
hookloop task block blocked --reason "no key" > /dev/null
hookloop task add Done --id completed > /dev/null && hookloop task start completed > /dev/null
hookloop task complete completed > /dev/null
echo '[{"say": "Done. <promise>COMPLETE</promise>"}]' > turns.json
hookloop run "Do it" --agent scripted:turns.json > /dev/null 2>&1
session=$(hookloop sessions list --json | jq -r '.[0].id')
for id in ready waits late active blocked completed "$session"; do
    next=$(hookloop why "$id" --json | jq -r .next)
    eval "$next --help" > /dev/null 2> refusal || { echo "$id: $next"; cat refusal; }
    echo "$(hookloop why "$id" --json | jq -r .state): tried"
done
"#;

#[test]
fn every_command_that_why_proposes_is_understood() {
    let run = Project::bare().shell(HINTS);
    assert_eq!(run.code, 0, "{run:?}");
    let expected = ["ready", "created", "created", "active", "blocked", "completed", "needs_human"];
    let expected: Vec<String> = expected.iter().map(|state| format!("{state}: tried")).collect();
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), expected, "{run:?}");
}
