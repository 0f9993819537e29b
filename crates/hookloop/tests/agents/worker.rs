//! Real agents as unattended workers: two of them on one project, from tasks to the merged base.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use hookloop_testbed::model::{Model, Turn};
use hookloop_testkit::{git_output, run_git};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agents::stage::{AgentProject, Who};

/// Each task writes a file with the task's name.
const CONFIG: &str = "version: 1
delivery: {}
hooks:
  stop:
    - {name: written, command: 'test -s \"$HOOKLOOP_TASK_ID.txt\" || { echo the file is missing >&2; exit 2; }', timeout: 20s}
  before_merge:
    - {name: whole, command: 'test -s README.txt', timeout: 20s}
";
const DONE: &str = "Done.\n<promise>COMPLETE</promise>";

/// Returns a project with a remote. The project's model is for Codex; Claude Code has one of its
/// own.
fn stage() -> AgentProject {
    let stage = AgentProject::with(CONFIG, Who::Codex, []);
    stage.configure("version: 1\nagents:\n  claude: {allowed_tools: [Bash]}\n");
    let (project, root) = (stage.project.root(), stage.directory());
    fs::write(project.join("README.txt"), "what this is\n").unwrap();
    for (name, value) in [("user.name", "t"), ("user.email", "t@example.invalid")] {
        run_git(&project, &["config", name, value]);
    }
    run_git(&project, &["add", "."]);
    run_git(&project, &["commit", "-qm", "more"]);
    run_git(&project, &["branch", "-M", "main"]);
    let remote = root.join("remote.git").display().to_string();
    run_git(&root, &["init", "-q", "--bare", "-b", "main", &remote]);
    run_git(&project, &["remote", "add", "origin", &remote]);
    run_git(&project, &["push", "-q", "origin", "main"]);
    assert_eq!(stage.hookloop(&["hooks", "trust", "--yes"]).code, 0);
    stage
}

fn start(stage: &AgentProject, who: Who, model: &Model) -> Child {
    let name = who.name();
    let args = ["worker", "--agent", name, "--name", &format!("with-{name}"), "--label", name];
    let mut command = stage.command(&args);
    command.env("ANTHROPIC_BASE_URL", model.url());
    // The output of a worker does not affect its work.
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    command.spawn().unwrap()
}

fn state(stage: &AgentProject, task: &str) -> Value {
    stage.hookloop(&["task", "show", task]).events[0]["state"].clone()
}

#[test]
fn claude_and_codex_work_on_one_project_at_once() {
    let stage = stage();
    let of_claude = Model::start([
        // The gate checks this claim.
        Turn::say(DONE),
        Turn::call("I write.", Who::Claude.run("echo first > a1.txt")),
        Turn::say(DONE),
        Turn::call("I write.", Who::Claude.run("echo second > a2.txt")),
        Turn::say(DONE),
    ]);
    stage.model.extend([
        Turn::call("I write.", Who::Codex.run("echo third > c1.txt")),
        Turn::say(DONE),
        Turn::call("I write.", Who::Codex.run("cat a1.txt > c2.txt")),
        Turn::say(DONE),
    ]);
    for (task, label) in [("a1", "claude"), ("a2", "claude"), ("c1", "codex"), ("c2", "codex")] {
        let mut args = vec!["task", "add", "Write the file", "--id", task, "--label", label];
        if task == "c2" {
            args.extend(["--depends-on", "a1"]);
        }
        assert_eq!(stage.hookloop(&args).code, 0);
    }
    let before = run_git(&stage.project.root(), &["status", "--porcelain=v2", "--branch"]);
    let mut workers = [Who::Claude, Who::Codex].map(|who| start(&stage, who, &of_claude));
    let tasks = ["a1", "a2", "c1", "c2"];
    stage.eventually("all is merged", || {
        tasks.iter().all(|task| state(&stage, task) == "completed")
    });
    for worker in &mut workers {
        kill_process(Pid::from_child(worker), Signal::TERM).unwrap();
        assert!(worker.wait().unwrap().success());
    }
    let remote = stage.directory().join("remote.git");
    let on_main = |task: &str| git_output(&remote, &["show", &format!("main:{task}.txt")]);
    assert_eq!(tasks.map(on_main), ["first\n", "second\n", "third\n", "first\n"]);
    assert_eq!(run_git(&stage.project.root(), &["status", "--porcelain=v2", "--branch"]), before);
    for task in tasks {
        assert_record(&stage, &remote, task);
    }
    let blocked = of_claude.requests().iter().any(|asked| asked.text().contains("file is missing"));
    assert!(blocked, "the agent did not get the gate's feedback");
    stage.assert_nobody_left();
}

/// Checks the agent, the gate with its tree, the submission and the merge of a task against git.
fn assert_record(stage: &AgentProject, remote: &Path, task: &str) {
    let who = if task.starts_with('a') { "claude" } else { "codex" };
    let why = stage.hookloop(&["why", task]);
    let lines: Vec<&str> = why.events[0]["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let after = |start: &str| {
        let found = lines.iter().find_map(|line| line.split_once(start));
        let rest = found.unwrap_or_else(|| panic!("no `{start}` of {task}: {lines:#?}")).1;
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_eq!(after(" of worker "), format!("with-{who}"));
    assert_eq!(after(" claimed the task: "), who);
    let head = after(&format!("submitted hookloop/{task} at "));
    let tree = run_git(remote, &["rev-parse", &format!("{head}^{{tree}}")]);
    let passed = lines.iter().filter_map(|line| line.strip_prefix("gate written passed on "));
    let mut passed = passed.filter_map(|rest| rest.split_whitespace().next());
    assert_eq!(passed.next_back(), Some(tree.trim()), "{lines:#?}");
    let merged = after("merged as ");
    let ancestors = run_git(remote, &["log", "--format=%H", "main"]);
    assert!(ancestors.lines().any(|commit| commit.starts_with(&merged)), "{lines:#?}");
}
