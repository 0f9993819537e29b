//! Runs every command with `--json`: its output has the form that the page about JSON describes.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::cli::Project;
use crate::documents::{names, root};

/// Commands with their arguments, in an order in which most of them succeed.
const ROWS: &[(&str, &str)] = &[
    ("init", "-C ../other --yes"),
    ("status", ""),
    ("doctor", ""),
    ("policy", ""),
    ("task add", "First --id first"),
    ("task add", "Second --id second --depends-on first"),
    ("task list", ""),
    ("task ready", ""),
    ("task show", "first"),
    ("task graph", ""),
    ("task export", ""),
    ("task note", "first text"),
    ("task dep remove", "second --on first"),
    ("task dep add", "second --on first"),
    ("task block", "first --reason why"),
    ("inbox list", ""),
    ("inbox show", "first"),
    ("inbox dismiss", "first"),
    ("inbox answer", "first text"),
    ("inbox approve", "first"),
    ("inbox abort", "first"),
    ("why", "first"),
    ("task unblock", "first"),
    ("task claim", "first"),
    ("task heartbeat", "first --epoch 1"),
    ("task release", "first --epoch 1"),
    ("task take-over", "second"),
    ("task start", "first"),
    ("task requeue", "first --force"),
    ("task complete", "first"),
    ("task delete", "second"),
    ("task import", "tasks.jsonl"),
    ("schedule add", "nightly --cron @daily --goal Goal"),
    ("schedule list", ""),
    ("schedule show", "nightly"),
    ("schedule pause", "nightly"),
    ("schedule resume", "nightly"),
    ("schedule run", "nightly"),
    ("schedule remove", "nightly"),
    ("hooks list", ""),
    ("hooks show", "green"),
    ("hooks explain", "stop"),
    ("hooks trust", "--yes"),
    ("hooks run", "green"),
    ("hooks disable", "green"),
    ("hooks enable", "green"),
    ("agents list", ""),
    ("agents trust", "--yes"),
    ("install", "claude --yes"),
    ("uninstall", "claude --yes"),
    ("run", "Work --agent scripted:turns.json --name first --no-changes-ok"),
    ("resume", "first"),
    ("pause", ""),
    ("stop", ""),
    ("undo", "--dry-run"),
    ("restore", "1 --dry-run -- file"),
    ("message", "text"),
    ("sessions list", ""),
    ("sessions show", "first"),
    ("sessions trace", "first"),
    ("checks", ""),
    ("demo", ""),
    ("merge", ""),
    ("worker", "--agent scripted:turns.json --until-idle"),
    ("worktrees list", ""),
    ("worktrees clean", ""),
    ("rooms list", ""),
    ("rooms shell", ""),
    ("rooms clean", "--yes"),
    ("usage", ""),
    ("log", ""),
    ("dispatch", ""),
    ("inbox notify", ""),
    ("inbox test", "none"),
    ("fleet status", ""),
    ("fleet pause", ""),
    ("fleet resume", ""),
    ("fleet stop", ""),
    ("fleet drain", "none"),
    ("fleet budget", "--none"),
    ("nats key", "worker.key"),
    ("nats permissions", "--role worker"),
    ("nats down", ""),
    ("import claude", "none"),
    ("import codemie", "none"),
    ("import iteratr", "none"),
    ("import lefthook", "none"),
    ("import octopoid", "none"),
    ("import ralph", "none"),
    ("import beads", "none"),
    ("import vibe-kanban", "none"),
    ("import task-copilot", "none"),
    ("import automation-hooks", "none"),
    ("verify", ""),
    ("rebuild", ""),
    ("gc", ""),
    ("schema", ""),
    ("completions", "bash"),
    ("man", ""),
    ("man", "--dir pages"),
    ("reference", "cli"),
    ("help", ""),
    ("watch", ""),
];
/// Commands that run until they are stopped, or answer an agent in its own format.
const SERVERS: [&str; 4] = ["serve", "mcp", "hook", "nats up"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputForm {
    Nothing,
    OneValue,
    Lines,
    Text,
}

fn form(output: &str) -> OutputForm {
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    match output.lines().count() {
        0 => OutputForm::Nothing,
        1 if is_json(output) => OutputForm::OneValue,
        _ if output.lines().all(is_json) => OutputForm::Lines,
        _ => OutputForm::Text,
    }
}

/// The exceptions from one value per command, as a page lists them.
struct FormExceptions {
    lines: BTreeSet<String>,
    nothing: BTreeSet<String>,
    text: BTreeSet<String>,
}

impl FormExceptions {
    fn of_the_reference() -> FormExceptions {
        let page = fs::read_to_string(root().join("docs/reference/json.md")).unwrap();
        let (_, list) = page.split_once("There are exceptions:").unwrap();
        let (list, _) = list.split_once("\n\nField names").unwrap();
        let items: Vec<BTreeSet<String>> =
            list.split("\n- ").skip(1).map(|item| names(item).into_iter().collect()).collect();
        let [lines, nothing, text, error] = <[_; 4]>::try_from(items).unwrap();
        assert!(error.contains("watch"), "{error:?}");
        FormExceptions { lines, nothing, text }
    }

    /// Returns whether a command may have this form.
    fn allows(&self, path: &str, args: &str, found: OutputForm) -> bool {
        if self.text.contains(path) && !args.contains("--dir") {
            true
        } else if self.nothing.contains(path) {
            found == OutputForm::Nothing
        } else if self.lines.contains(path) {
            found != OutputForm::Text
        } else {
            found == OutputForm::OneValue
        }
    }
}

/// Returns the commands without subcommands that the reference lists.
fn listed_commands(project: &Project) -> BTreeSet<String> {
    let reference = project.ok(&["reference", "cli"]);
    let heading = |line: &str| {
        let (marks, path) = line.split_once(" hookloop ")?;
        let is_heading = marks.starts_with("##") && marks.chars().all(|c| c == '#');
        is_heading.then(|| path.to_owned())
    };
    let all: BTreeSet<String> = reference.lines().filter_map(heading).collect();
    let is_leaf = |path: &&String| !all.iter().any(|other| other.starts_with(&format!("{path} ")));
    all.iter().filter(is_leaf).cloned().collect()
}

#[test]
fn every_command_prints_json_in_the_form_of_the_page() {
    let project = Project::with_config("hooks: {stop: [{name: green, command: 'true'}]}\n");
    project.trust();
    project.write("turns.json", r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#);
    project.write("tasks.jsonl", "{\"goal\": \"Third\"}\n");
    fs::create_dir(project.beside("other")).unwrap();
    let exceptions = FormExceptions::of_the_reference();
    let mut wrong = Vec::new();
    let mut successes = 0;
    for (path, args) in ROWS {
        let words = path.split(' ').chain(["--json"]).chain(args.split_whitespace());
        let run = project.run(&words.collect::<Vec<_>>());
        successes += usize::from(run.code == 0);
        let found = form(&run.stdout);
        // A command that fails before it has a result prints its error.
        let is_refusal = run.code != 0 && found == OutputForm::Nothing;
        let is_error = run.stderr.starts_with("{\"error\":");
        if is_refusal {
            if form(&run.stderr) != OutputForm::OneValue || !is_error {
                wrong.push(format!("{path} {args}: the error is {}", run.stderr));
            }
        } else if !exceptions.allows(path, args, found) {
            wrong.push(format!("{path} {args}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(successes > 60, "only {successes} commands succeed");
    let run: BTreeSet<String> = ROWS.iter().map(|(path, _)| (*path).to_owned()).collect();
    let servers: BTreeSet<String> = SERVERS.map(str::to_owned).into();
    let known = listed_commands(&project);
    let missing: Vec<&String> =
        known.iter().filter(|path| !run.contains(*path) && !servers.contains(*path)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_about_the_log_has_the_same_exceptions_for_json() {
    let page = fs::read_to_string(root().join("docs/log.md")).unwrap();
    let (_, list) = page.split_once("- Most commands print one value.\n- ").unwrap();
    let (list, _) = list.split_once("\n- ").unwrap();
    let listed: BTreeSet<String> = names(list).into_iter().collect();
    assert_eq!(listed, FormExceptions::of_the_reference().lines);
}
