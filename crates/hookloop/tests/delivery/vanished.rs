//! Worktrees that vanish, or that are led elsewhere: the agent is never started in any other directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hookloop_testkit::eventually;
use serde_json::Value;

use crate::support::project_with;
use crate::yard::{Ran, Yard, git};

/// Nothing in here takes longer.
const SOON: Duration = Duration::from_secs(60);

/// A hook runs at each point at which the working directory was looked for.
const CONFIG: &str = "delivery: {}
hooks:
  stop:
    - {name: present, command: 'true'}
  pre_iteration:
    - {name: before, command: 'true'}
  post_iteration:
    - {name: after, command: 'true'}
";

fn yard() -> Yard {
    Yard::new(CONFIG, &[("a.txt", "a\n"), ("b.txt", "b\n")])
}

/// The checkout, byte for byte: files and all of `.git` but for what hookloop has there.
fn checkout(yard: &Yard) -> BTreeMap<PathBuf, Vec<u8>> {
    let ours = [
        ".git/objects",
        ".git/worktrees",
        ".git/refs/hookloop",
        ".git/refs/heads/hookloop",
        ".git/logs/refs/heads/hookloop",
        ".git/logs/refs/hookloop",
    ];
    let project = yard.project();
    let mut found = BTreeMap::new();
    let mut due = vec![project.clone()];
    while let Some(directory) = due.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&project).unwrap().to_owned();
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

fn recreated(ran: &Ran) -> Vec<&Value> {
    ran.all("worktree_recreated")
}

/// That each turn was taken in the worktree of the task.
fn assert_all_in_worktree(yard: &Yard, task: &str, turns: usize) {
    let places = fs::read_to_string(places(yard)).unwrap();
    assert_eq!(places.lines().count(), turns, "{places}");
    for place in places.lines() {
        assert!(place.ends_with(&format!("/worktrees/{task}")), "{place}");
    }
}

fn places(yard: &Yard) -> PathBuf {
    yard.project().parent().unwrap().join("places")
}

/// What the agent does in a turn, after it has noted where it is.
fn does(yard: &Yard, task: &str, turn: u32, script: &str) {
    yard.does(task, turn, &format!("pwd >> {}\n{script}\n", places(yard).display()));
}

#[test]
fn an_agent_that_deletes_its_worktree_twice_does_not_reach_the_checkout() {
    let yard = yard();
    let before = checkout(&yard);
    let main = yard.git(&["rev-parse", "main"]);
    yard.add("t1", &[]);
    for turn in [1, 2] {
        does(&yard, "t1", turn, "echo lost > lost.txt; rm -rf \"$PWD\"");
    }
    does(&yard, "t1", 3, "echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 3);
    let recreated = recreated(&ran);
    assert_eq!(recreated.len(), 2, "{recreated:?}");
    for event in recreated {
        assert_eq!((event["task"].as_str(), event["commit"].as_str()), (Some("t1"), Some(&*main)));
        assert!(event["reason"].as_str().unwrap().contains("/worktrees/t1"), "{event}");
    }
    for turn in [2, 3] {
        let prompt = yard.prompt("t1", turn);
        assert!(prompt.contains("made anew") && prompt.contains(&main), "{prompt}");
        assert!(prompt.contains("work since that commit is lost"), "{prompt}");
    }
    assert_eq!(ran.all("turn_ended")[0]["result"], "failed", "a claim about lost files is void");
    assert_eq!(yard.state("t1"), "submitted");
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn commits_on_the_branch_outlive_the_worktree() {
    let yard = yard();
    yard.add("t1", &[]);
    let commit = "echo kept > kept.txt; git add .; \
                  git -c user.name=a -c user.email=a@example.invalid commit -qm kept";
    does(&yard, "t1", 1, &format!("{commit}; echo lost > lost.txt; rm -rf \"$PWD\""));
    does(&yard, "t1", 2, "test -f kept.txt; test ! -f lost.txt; echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kept = yard.git(&["rev-parse", "hookloop/t1~1"]);
    assert_eq!(recreated(&ran)[0]["commit"], kept);
    let files = yard.at_remote(&["ls-tree", "--name-only", "hookloop/t1"]);
    assert!(files.contains("kept.txt") && files.contains("work.txt"), "{files}");
}

#[test]
fn a_worktree_that_vanishes_again_and_again_is_a_persons_decision() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    for turn in 1..=9 {
        does(&yard, "t1", turn, "rm -rf \"$PWD\"");
    }
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(yard.state("t1"), "blocked");
    let left = ran.all("task_left");
    let reason = left[0]["reason"].as_str().unwrap();
    assert!(reason.contains("its worktree was gone or damaged 4 times"), "{reason}");
}

#[test]
fn a_worktree_that_is_replaced_by_a_link_to_the_checkout_is_made_anew() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let project = yard.project();
    let link = format!("d=\"$PWD\"; cd /; rm -rf \"$d\"; ln -s {} \"$d\"", project.display());
    does(&yard, "t1", 1, &link);
    does(&yard, "t1", 2, "echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 2);
    assert!(
        recreated(&ran)[0]["reason"].as_str().unwrap().contains("is a link to"),
        "{:?}",
        recreated(&ran)
    );
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_that_is_led_to_the_users_repository_is_led_back() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let lead = format!("printf 'gitdir: {}/.git\\n' > .git", yard.project().display());
    does(&yard, "t1", 1, &format!("echo work > work.txt; {lead}"));
    // In the user's repository this would be a commit on main.
    does(
        &yard,
        "t1",
        2,
        "git add .; git -c user.name=a -c user.email=a@example.invalid commit -qm own",
    );
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.all("turn_ended")[0]["result"], "failed");
    assert!(yard.prompt("t1", 2).contains("does not lead to"), "{}", yard.prompt("t1", 2));
    assert_eq!(recreated(&ran).len(), 0, "nothing was lost");
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
    assert_eq!(yard.at_remote(&["log", "-1", "--format=%s", "hookloop/t1"]), "own");
}

/// Tests run what the agent wrote: what they do to the worktree must not lead the next gate elsewhere.
#[test]
fn a_gate_is_not_run_in_a_worktree_that_another_gate_led_elsewhere() {
    let config = "delivery: {}
hooks:
  stop:
    - {name: tests, command: 'f=evil; test ! -f $f.sh || sh $f.sh'}
    - {name: second, command: 'touch gate-was-here'}
";
    let yard = Yard::new(config, &[("a.txt", "a\n"), (".gitignore", "gate-was-here\n")]);
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let evil =
        format!("d=\"$PWD\"; cd /; rm -rf \"$d\"; ln -s {} \"$d\"", yard.project().display());
    yard.does("t1", 1, &format!("cat > evil.sh <<'X'\n{evil}\nX\n"));
    yard.does("t1", 2, "test ! -f evil.sh; echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(recreated(&ran).len(), 1);
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_task_whose_branch_is_gone_with_its_worktree_is_a_persons_decision() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    does(&yard, "t1", 1, "git update-ref -d refs/heads/hookloop/t1; rm -rf \"$PWD\"");
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 1);
    assert_eq!(yard.state("t1"), "blocked");
    let left = ran.all("task_left");
    let reason = left[0]["reason"].as_str().unwrap();
    assert!(reason.contains("branch `hookloop/t1`"), "{reason}");
    // The command that the reason names is one that helps.
    let (_, command) = reason.split_once("begin anew: ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    yard.git(&words[1..]);
    yard.ok(&["task", "unblock", "t1"]);
    does(&yard, "t1", 2, "echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_that_the_agent_removed_by_git_is_made_anew() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    does(&yard, "t1", 1, "git worktree remove --force --force \"$PWD\"");
    does(&yard, "t1", 2, "echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 2);
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worktree_that_the_agent_moved_is_a_persons_decision() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let elsewhere = yard.project().parent().unwrap().join("elsewhere");
    let moves = format!("git worktree move --force --force \"$PWD\" {}", elsewhere.display());
    does(&yard, "t1", 1, &format!("echo work > work.txt; {moves}"));
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 1);
    assert_eq!(yard.state("t1"), "blocked");
    assert_eq!(
        fs::read_to_string(elsewhere.join("work.txt")).unwrap(),
        "work\n",
        "nothing is lost"
    );
}

#[test]
fn all_worktrees_behind_a_link_are_a_persons_decision() {
    let yard = yard();
    yard.add("t1", &[]);
    // Where the link leads there is a directory of the task's name, with something of the user's.
    let target = yard.project().join("mine");
    fs::create_dir_all(target.join("t1")).unwrap();
    fs::write(target.join("t1/precious"), "precious\n").unwrap();
    let before = checkout(&yard);
    let lead =
        format!("cd ../..; mv worktrees worktrees.old; ln -s {} worktrees", target.display());
    does(&yard, "t1", 1, &lead);
    let ran = yard.tasks();
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_all_in_worktree(&yard, "t1", 1);
    assert_eq!(yard.state("t1"), "blocked");
}

fn wait_for(path: &Path) {
    eventually(&path.display().to_string(), SOON, || path.exists());
}

fn worktree_of(yard: &Yard) -> PathBuf {
    let places = fs::read_to_string(places(yard)).unwrap();
    PathBuf::from(places.lines().next().unwrap())
}

/// Starts the program, and kills it while its agent is in its first turn. Removes the worktree then.
fn kill_and_remove(yard: &Yard, args: &[&str]) {
    let there = yard.project().parent().unwrap().join("there");
    does(yard, "t1", 1, &format!("echo half > half.txt; touch {}; sleep 600", there.display()));
    let mut command = yard.command(args);
    let mut killed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&there);
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::remove_dir_all(worktree_of(yard)).unwrap();
}

#[test]
fn a_worktree_that_vanished_between_a_kill_and_a_resume_is_made_anew() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let agent = yard.agent();
    kill_and_remove(&yard, &["run", "--tasks", "--agent", &agent]);
    does(&yard, "t1", 2, "test ! -f half.txt; echo work > work.txt");
    let ran = Ran::of(yard.command(&["resume"]));
    assert_eq!(checkout(&yard), before);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(recreated(&ran).len(), 1);
    assert_all_in_worktree(&yard, "t1", 2);
    let prompt = yard.prompt("t1", 2);
    assert!(prompt.contains("made anew") && prompt.contains("is lost"), "{prompt}");
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

#[test]
fn a_worker_that_takes_over_a_vanished_worktree_makes_it_anew() {
    let yard = yard();
    let before = checkout(&yard);
    yard.add("t1", &[]);
    let agent = yard.agent();
    kill_and_remove(&yard, &["worker", "--name", "w", "--agent", &agent]);
    does(&yard, "t1", 2, "test ! -f half.txt; echo work > work.txt");
    let args = ["worker", "--name", "w", "--agent", &agent, "--until-idle"];
    let output = yard.command(&args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(checkout(&yard), before);
    assert_all_in_worktree(&yard, "t1", 2);
    assert_eq!(yard.on_main("work.txt"), "work\n");
    let log = yard.ok(&["log", "--type", "worktree_recreated", "--all"]);
    assert_eq!(log.len(), 1, "{log:?}");
}

/// A claim that was made before the worktree vanished is not judged on what is made anew.
#[test]
fn a_claim_about_lost_work_is_void() {
    let config = "delivery: {}
hooks:
  stop:
    - {name: slow, command: 'test ! -f half.txt || { touch ../../there; sleep 600; }', timeout: 1h}
";
    let yard = Yard::new(config, &[("a.txt", "a\n")]);
    yard.add("t1", &[]);
    does(&yard, "t1", 1, "echo half > half.txt");
    does(&yard, "t1", 2, "echo work > work.txt");
    let agent = yard.agent();
    let mut command = yard.command(&["run", "--tasks", "--agent", &agent]);
    let mut killed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&places(&yard));
    let worktree = worktree_of(&yard);
    wait_for(&worktree.join("../../there"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::remove_dir_all(&worktree).unwrap();
    let ran = Ran::of(yard.command(&["resume"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(yard.state("t1"), "submitted", "it was not completed without its work");
    assert_eq!(yard.at_remote(&["show", "hookloop/t1:work.txt"]), "work");
}

/// Without delivery the agent works in the project's directory, and nowhere else.
#[test]
fn a_project_directory_that_is_replaced_ends_the_session() {
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
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let ran = Ran::of(command);
        assert_eq!(ran.code, 3, "{replaces}: {}", ran.stderr);
        let ended = ran.all("session_ended");
        assert_eq!(ended[0]["outcome"], "needs_human", "{ended:?}");
        let reason = ended[0]["reason"].as_str().unwrap();
        assert!(reason.contains("not the one that the session began in"), "{reason}");
        assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), 1, "{replaces}");
    }
}

/// A project below the top of its repository, in a directory that no commit has.
#[test]
fn a_project_that_is_not_in_the_commit_is_no_place_to_work_in() {
    let project = project_with("version: 1\ndelivery: {}\n");
    let project = project.root();
    let top = project.parent().unwrap();
    git(top, &["init", "-q", "-b", "main"]);
    for (name, value) in [("user.name", "t"), ("user.email", "t@example.invalid")] {
        git(top, &["config", name, value]);
    }
    git(top, &["commit", "-q", "--allow-empty", "-m", "start"]);
    git(top, &["switch", "-q", "-c", "mine"]);
    let run = |args: &[&str]| {
        let mut command = project.json_command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        Ran::of(command)
    };
    assert_eq!(run(&["task", "add", "goal", "--id", "t1"]).code, 0);
    let ran = run(&["run", "--tasks", "--agent", "command:cat > /dev/null; touch ran"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(!project.join("ran").exists(), "the agent was started in the checkout");
    let left = ran.all("task_left");
    assert_eq!(left[0]["how"], "blocked", "{left:?}");
}
