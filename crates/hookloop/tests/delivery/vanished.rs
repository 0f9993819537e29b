//! Worktrees that vanish or are replaced by a link: the agent never starts in any other directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hookloop_testkit::{SessionOutput, eventually, run_git};
use serde_json::Value;

use crate::delivery_project::DeliveryProject;
use crate::support::{builder, project_with};

/// No step takes longer.
const SOON: Duration = Duration::from_secs(60);

/// A hook runs at each point at which the working directory is checked.
const CONFIG: &str = "delivery: {}
hooks:
  stop:
    - {name: present, command: 'true'}
  pre_iteration:
    - {name: before, command: 'true'}
  post_iteration:
    - {name: after, command: 'true'}
";

fn project() -> DeliveryProject {
    DeliveryProject::new(CONFIG, &[("a.txt", "a\n"), ("b.txt", "b\n")])
}

/// Returns the checkout byte for byte: files and `.git`, except for hookloop's own parts of it.
fn checkout(project: &DeliveryProject) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = [
        ".git/objects",
        ".git/worktrees",
        ".git/refs/hookloop",
        ".git/refs/heads/hookloop",
        ".git/logs/refs/heads/hookloop",
        ".git/logs/refs/hookloop",
    ];
    let root = project.root();
    let mut found = BTreeMap::new();
    let mut due = vec![root.clone()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_owned();
            if ours.iter().any(|ours| name == Path::new(ours)) {
                continue;
            }
            if path.is_dir() {
                due.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    assert!(found.len() > 8, "{:?}", found.keys());
    found
}

fn recreated(ran: &SessionOutput) -> Vec<&Value> {
    ran.all("worktree_recreated")
}

/// Checks that each turn ran in the worktree of the task.
fn assert_all_in_worktree(project: &DeliveryProject, task: &str, turns: usize) {
    let places = fs::read_to_string(places(project)).unwrap();
    assert_eq!(places.lines().count(), turns, "{places}");
    for place in places.lines() {
        assert!(place.ends_with(&format!("/worktrees/{task}")), "{place}");
    }
}

fn places(project: &DeliveryProject) -> PathBuf {
    project.root().parent().unwrap().join("places")
}

/// Sets the agent's script for a turn, which first records its directory.
fn does(project: &DeliveryProject, task: &str, turn: u32, script: &str) {
    project.does(task, turn, &format!("pwd >> {}\n{script}\n", places(project).display()));
}

#[test]
fn a_deleted_worktree_is_recreated_and_the_checkout_is_unchanged() {
    let project = project();
    let before = checkout(&project);
    let main = project.git(&["rev-parse", "main"]);
    project.add("t1", &[]);
    for turn in [1, 2] {
        does(&project, "t1", turn, "echo lost > lost.txt; rm -rf \"$PWD\"");
    }
    does(&project, "t1", 3, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 3);
    let recreated = recreated(&ran);
    assert_eq!(recreated.len(), 2, "{recreated:?}");
    for event in recreated {
        assert_eq!((event["task"].as_str(), event["commit"].as_str()), (Some("t1"), Some(&*main)));
        assert!(event["reason"].as_str().unwrap().contains("/worktrees/t1"), "{event}");
    }
    for turn in [2, 3] {
        let prompt = project.prompt("t1", turn);
        assert!(prompt.contains("created again") && prompt.contains(&main), "{prompt}");
        assert!(prompt.contains("work since that commit is lost"), "{prompt}");
    }
    assert_eq!(ran.all("turn_ended")[0]["result"], "failed", "a claim about lost files is void");
    assert_eq!(project.state("t1"), "submitted");
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_recreated_worktree_has_the_commits_of_its_branch() {
    let project = project();
    project.add("t1", &[]);
    let commit = "echo kept > kept.txt; git add .; \
                  git -c user.name=a -c user.email=a@example.invalid commit -qm kept";
    does(&project, "t1", 1, &format!("{commit}; echo lost > lost.txt; rm -rf \"$PWD\""));
    does(&project, "t1", 2, "test -f kept.txt; test ! -f lost.txt; echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kept = project.git(&["rev-parse", "hookloop/t1~1"]);
    assert_eq!(recreated(&ran)[0]["commit"], kept);
    let files = project.at_remote(&["ls-tree", "--name-only", "hookloop/t1"]);
    assert!(files.contains("kept.txt") && files.contains("work.txt"), "{files}");
}

#[test]
fn a_repeatedly_deleted_worktree_needs_a_person() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    for turn in 1..=9 {
        does(&project, "t1", turn, "rm -rf \"$PWD\"");
    }
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(project.state("t1"), "blocked");
    let left = ran.all("session_task_released");
    let reason = left[0]["reason"].as_str().unwrap();
    assert!(reason.contains("its worktree was gone or damaged 4 times"), "{reason}");
}

#[test]
fn a_worktree_replaced_by_a_link_to_the_checkout_is_recreated() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    let root = project.root();
    let link = format!("d=\"$PWD\"; cd /; rm -rf \"$d\"; ln -s {} \"$d\"", root.display());
    does(&project, "t1", 1, &link);
    does(&project, "t1", 2, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 2);
    assert!(
        recreated(&ran)[0]["reason"].as_str().unwrap().contains("is a link to"),
        "{:?}",
        recreated(&ran)
    );
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_redirected_to_the_users_repository_is_repaired() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    let lead = format!("printf 'gitdir: {}/.git\\n' > .git", project.root().display());
    does(&project, "t1", 1, &format!("echo work > work.txt; {lead}"));
    // In the user's repository this would be a commit on main.
    does(
        &project,
        "t1",
        2,
        "git add .; git -c user.name=a -c user.email=a@example.invalid commit -qm own",
    );
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.all("turn_ended")[0]["result"], "failed");
    assert!(project.prompt("t1", 2).contains("does not lead to"), "{}", project.prompt("t1", 2));
    assert_eq!(recreated(&ran).len(), 0, "nothing was lost");
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
    assert_eq!(project.at_remote(&["log", "-1", "--format=%s", "hookloop/t1"]), "own");
}

/// Tests run code of the agent; if it replaces the worktree by a link, the next gate must not
/// follow it.
#[test]
fn no_gate_runs_in_a_worktree_that_another_gate_replaced_by_a_link() {
    let config = "delivery: {}
hooks:
  stop:
    - {name: tests, room: here, command: 'f=evil; test ! -f $f.sh || sh $f.sh'}
    - {name: second, room: here, command: 'touch gate-was-here'}
";
    let project =
        DeliveryProject::new(config, &[("a.txt", "a\n"), (".gitignore", "gate-was-here\n")]);
    let before = checkout(&project);
    project.add("t1", &[]);
    let evil =
        format!("d=\"$PWD\"; cd /; rm -rf \"$d\"; ln -s {} \"$d\"", project.root().display());
    project.does("t1", 1, &format!("cat > evil.sh <<'X'\n{evil}\nX\n"));
    project.does("t1", 2, "test ! -f evil.sh; echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(recreated(&ran).len(), 1);
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_task_without_its_branch_and_worktree_needs_a_person() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    does(&project, "t1", 1, "git update-ref -d refs/heads/hookloop/t1; rm -rf \"$PWD\"");
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 1);
    assert_eq!(project.state("t1"), "blocked");
    let left = ran.all("session_task_released");
    let reason = left[0]["reason"].as_str().unwrap();
    assert!(reason.contains("branch `hookloop/t1`"), "{reason}");
    // The command in the reason solves the problem.
    let (_, command) = reason.split_once("start again: ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    project.git(&words[1..]);
    project.json_values(&["task", "unblock", "t1"]);
    does(&project, "t1", 2, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_removed_with_git_is_recreated() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    does(&project, "t1", 1, "git worktree remove --force --force \"$PWD\"");
    does(&project, "t1", 2, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 2);
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_moved_by_the_agent_needs_a_person() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    let elsewhere = project.root().parent().unwrap().join("elsewhere");
    let moves = format!("git worktree move --force --force \"$PWD\" {}", elsewhere.display());
    does(&project, "t1", 1, &format!("echo work > work.txt; {moves}"));
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 1);
    assert_eq!(project.state("t1"), "blocked");
    assert_eq!(
        fs::read_to_string(elsewhere.join("work.txt")).unwrap(),
        "work\n",
        "nothing is lost"
    );
}

#[test]
fn a_worktrees_directory_replaced_by_a_link_needs_a_person() {
    let project = project();
    project.add("t1", &[]);
    // The link leads to a directory with a subdirectory of the task's name, which has a file of the
    // user.
    let target = project.root().join("mine");
    fs::create_dir_all(target.join("t1")).unwrap();
    fs::write(target.join("t1/precious"), "precious\n").unwrap();
    let before = checkout(&project);
    let lead =
        format!("cd ../..; mv worktrees worktrees.old; ln -s {} worktrees", target.display());
    does(&project, "t1", 1, &lead);
    let ran = project.run_tasks();
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&project, "t1", 1);
    assert_eq!(project.state("t1"), "blocked");
}

fn wait_for(path: &Path) {
    eventually(&path.display().to_string(), SOON, || path.exists());
}

fn worktree_of(project: &DeliveryProject) -> PathBuf {
    let places = fs::read_to_string(places(project)).unwrap();
    PathBuf::from(places.lines().next().unwrap())
}

/// Starts the program, kills it while its agent is in its first turn, and removes the worktree.
fn kill_and_remove(project: &DeliveryProject, args: &[&str]) {
    let there = project.root().parent().unwrap().join("there");
    does(project, "t1", 1, &format!("echo half > half.txt; touch {}; sleep 600", there.display()));
    let mut command = project.json_command(args);
    let mut killed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&there);
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::remove_dir_all(worktree_of(project)).unwrap();
}

#[test]
fn resume_recreates_a_deleted_worktree() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    let agent = project.agent();
    kill_and_remove(&project, &["run", "--tasks", "--agent", &agent]);
    does(&project, "t1", 2, "test ! -f half.txt; echo work > work.txt");
    let ran = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(checkout(&project), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(recreated(&ran).len(), 1);
    assert_all_in_worktree(&project, "t1", 2);
    let prompt = project.prompt("t1", 2);
    assert!(prompt.contains("created again") && prompt.contains("is lost"), "{prompt}");
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_restarted_worker_recreates_a_deleted_worktree() {
    let project = project();
    let before = checkout(&project);
    project.add("t1", &[]);
    let agent = project.agent();
    kill_and_remove(&project, &["worker", "--name", "w", "--agent", &agent]);
    does(&project, "t1", 2, "test ! -f half.txt; echo work > work.txt");
    let args = ["worker", "--name", "w", "--agent", &agent, "--until-idle"];
    let output = project.json_command(&args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(checkout(&project), before);
    assert_all_in_worktree(&project, "t1", 2);
    assert_eq!(project.on_main("work.txt"), "work\n");
    let log = project.json_values(&["log", "--type", "worktree_recreated", "--all"]);
    assert_eq!(log.len(), 1, "{log:?}");
}

/// A completion that was claimed before the worktree vanished is not evaluated on the new worktree.
#[test]
fn a_completion_claim_is_void_after_its_worktree_is_lost() {
    let config = "delivery: {}
hooks:
  stop:
    - {name: slow, room: here, command: 'test ! -f half.txt || { touch ../../there; sleep 600; }', timeout: 1h}
";
    let project = DeliveryProject::new(config, &[("a.txt", "a\n")]);
    project.add("t1", &[]);
    does(&project, "t1", 1, "echo half > half.txt");
    does(&project, "t1", 2, "echo work > work.txt");
    let agent = project.agent();
    let mut command = project.json_command(&["run", "--tasks", "--agent", &agent]);
    let mut killed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&places(&project));
    let worktree = worktree_of(&project);
    wait_for(&worktree.join("../../there"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::remove_dir_all(&worktree).unwrap();
    let ran = SessionOutput::from(project.json_command(&["resume"]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(project.state("t1"), "submitted", "the task was completed without its work");
    assert_eq!(project.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

/// Without delivery the agent works in the project's directory, and nowhere else.
#[test]
fn a_replaced_project_directory_ends_the_session() {
    let again = "mkdir \"$d\"; touch \"$d/hookloop.yaml\"";
    let ways = [
        "rm -rf \"$d\"".to_owned(),
        format!("rm -rf \"$d\"; {again}"),
        format!("mv \"$d\" \"$d.old\"; {again}"),
        "mv \"$d\" \"$d.old\"; mkdir \"$d.other\"; ln -s \"$d.other\" \"$d\"".to_owned(),
    ];
    for replaces in ways {
        let project = project_with("version: 1\n");
        let count = project.root().parent().unwrap().join("count");
        let agent = format!(
            "command:cat > /dev/null; pwd >> {}; d=\"$PWD\"; cd /; {replaces}",
            count.display()
        );
        let mut command = project.json_command(&["run", "x", "--agent", &agent]);
        let ran = SessionOutput::from(command.output().unwrap());
        assert_eq!(ran.code, 3, "{replaces}: {}", ran.stderr);
        let ended = ran.all("session_ended");
        assert_eq!(ended[0]["outcome"], "needs_human", "{ended:?}");
        let reason = ended[0]["reason"].as_str().unwrap();
        assert!(reason.contains("not the one that the session began in"), "{reason}");
        assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 1, "{replaces}");
    }
}

/// A project in a subdirectory of its repository that no commit contains.
#[test]
fn an_uncommitted_project_directory_blocks_the_task() {
    let project = builder().config("version: 1\ndelivery: {}\n").initialized().build();
    let top = &project.root().parent().unwrap().to_owned();
    run_git(top, &["init", "-q", "-b", "main"]);
    for (name, value) in [("user.name", "t"), ("user.email", "t@example.invalid")] {
        run_git(top, &["config", name, value]);
    }
    run_git(top, &["commit", "-q", "--allow-empty", "-m", "start"]);
    run_git(top, &["switch", "-q", "-c", "mine"]);
    let run = |args: &[&str]| SessionOutput::from(project.json_command(args).output().unwrap());
    assert_eq!(run(&["task", "add", "goal", "--id", "t1"]).code, 0);
    let ran = run(&["run", "--tasks", "--agent", "command:cat > /dev/null; touch ran"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(!project.root().join("ran").exists(), "the agent was started in the checkout");
    let left = ran.all("session_task_released");
    assert_eq!(left[0]["result"], "blocked", "{left:?}");
}
