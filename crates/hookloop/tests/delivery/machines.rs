//! Two machines with one log: one merges the submissions of the other, and continues its work.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hookloop_testbed::Server;
use hookloop_testkit::{TestProject, run_git};
use serde_json::Value;

use crate::nats::machine_on;

const CONFIG: &str = "delivery: {}
hooks:
  before_submit: [rebase_on_main, create_pr]
  before_merge:
    - {name: whole, command: 'test ! -f first.txt || cat second.txt third.txt'}
";

fn ok(machine: &TestProject, args: &[&str]) -> Vec<Value> {
    let output = machine.json_command(args).output().unwrap();
    // Sessions without a gate are complete, and not proven.
    let is_unproven = args[0] == "run" && output.status.code() == Some(6);
    assert!(output.status.success() || is_unproven, "{args:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    values.map(Result::unwrap).collect()
}

/// Returns a clone of the project on each machine; both use the log of one server.
fn machines(server: &Server, remote: &Path, delivery: &str) -> [TestProject; 2] {
    let machines = [machine_on(server, "shared"), machine_on(server, "shared")];
    let url = remote.display().to_string();
    run_git(remote.parent().unwrap(), &["init", "-q", "--bare", "-b", "main", &url]);
    for (number, machine) in machines.iter().enumerate() {
        let root = machine.root();
        let config = std::fs::read_to_string(root.join("hookloop.yaml")).unwrap();
        machine.write("hookloop.yaml", &format!("{config}{delivery}"));
        run_git(&root, &["init", "-q", "-b", "main"]);
        run_git(&root, &["config", "user.name", "t"]);
        run_git(&root, &["config", "user.email", "t@example.invalid"]);
        run_git(&root, &["remote", "add", "origin", &url]);
        match number {
            0 => {
                run_git(&root, &["add", "."]);
                run_git(&root, &["commit", "-qm", "start"]);
                run_git(&root, &["push", "-q", "origin", "main"]);
            }
            _ => {
                run_git(&root, &["fetch", "-q"]);
                run_git(&root, &["reset", "-q", "--hard", "origin/main"]);
            }
        }
        ok(machine, &["hooks", "trust", "--yes"]);
    }
    machines
}

fn work(machine: &TestProject, script: &str) {
    let agent = format!("command:cat > /dev/null; {script}; echo '<promise>COMPLETE</promise>'");
    ok(machine, &["run", "--tasks", "--agent", &agent]);
}

#[test]
fn submissions_of_one_machine_are_merged_and_continued_by_another() {
    let directory = tempfile::tempdir().unwrap();
    let (server, remote) = (Server::single(), directory.path().join("remote.git"));
    let [one, other] = machines(&server, &remote, CONFIG);
    ok(&one, &["task", "add", "Goal", "--id", "t1"]);
    work(&one, "echo first > first.txt");
    let fates = ok(&other, &["merge"]);
    assert_eq!(
        (fates[0]["task"].as_str(), fates[0]["result"].as_str()),
        (Some("t1"), Some("returned"))
    );
    // The other machine has the work of the first, and continues it.
    work(&other, "test -f first.txt && echo second > second.txt");
    let fates = ok(&one, &["merge"]);
    assert_eq!(fates[0]["result"], "returned", "{fates:?}");
    // The first machine still has its old worktree, and continues the work of the other.
    work(&one, "test -f second.txt && echo third > third.txt");
    let fates = ok(&other, &["merge"]);
    assert_eq!(fates[0]["result"], "merged", "{fates:?}");
    for (file, text) in [("first", "first"), ("second", "second"), ("third", "third")] {
        assert_eq!(run_git(&remote, &["show", &format!("main:{file}.txt")]), text);
    }
    assert_eq!(ok(&other, &["task", "show", "t1"])[0]["state"], "completed");
}

/// No step takes longer.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_push_of_a_killed_session_is_recognized_by_the_next_session() {
    let directory = tempfile::tempdir().unwrap();
    let (server, remote) = (Server::single(), directory.path().join("remote.git"));
    let [there, go] = ["there", "go"].map(|name| directory.path().join(name));
    let config = format!(
        "delivery: {{}}
hooks:
  before_submit:
    - create_pr
    - {{name: last, room: here, command: 'test -f {} || {{ touch {}; sleep 600; }}', timeout: 1h}}
",
        go.display(),
        there.display()
    );
    let [one, other] = machines(&server, &remote, &config);
    ok(&one, &["task", "add", "Goal", "--id", "t1"]);
    let agent = "command:echo one > file.txt; echo '<promise>COMPLETE</promise>'";
    let mut dies = one.json_command(&["run", "--tasks", "--agent", agent]);
    let mut dies = dies.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !there.exists() {
        assert!(begun.elapsed() < SOON, "the last hook did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    dies.kill().unwrap();
    dies.wait().unwrap();
    let pushed = run_git(&remote, &["rev-parse", "hookloop/t1"]);
    std::fs::write(&go, "").unwrap();
    ok(&other, &["task", "requeue", "t1", "--force"]);
    work(&other, "echo other > file.txt");
    assert_eq!(ok(&other, &["task", "show", "t1"])[0]["state"], "submitted");
    assert_ne!(run_git(&remote, &["rev-parse", "hookloop/t1"]), pushed);
    assert_eq!(run_git(&remote, &["show", "hookloop/t1:file.txt"]), "other");
}
