//! Delivery with real agents: an agent resolves a real conflict with its own tools, and it is
//! merged.

use std::fs;

use hookloop_testbed::model::Turn;
use hookloop_testkit::{git_output, run_git};

use crate::agents::stage::{AgentProject, Who};

/// The base moves while the agent works on the task; the resolved work is merged at once.
const CONFIG: &str = "version: 1
delivery: {}
hooks:
  before_submit:
    - {name: meanwhile, room: here, command: sh meanwhile.sh, timeout: 20s}
    - rebase_on_main
    - create_pr
  after_submit: [merge]
  before_merge:
    - {name: whole, command: \"! grep -q '<<<<' poem.txt\"}
";

fn stage(who: Who) -> AgentProject {
    let stage = AgentProject::with(CONFIG, who, []);
    stage.configure("version: 1\nagents:\n  claude: {allowed_tools: [Bash]}\n");
    let (project, root) = (stage.project.root(), stage.directory());
    fs::write(project.join("poem.txt"), "one\ntwo\nthree\n").unwrap();
    for (name, value) in [("user.name", "t"), ("user.email", "t@example.invalid")] {
        run_git(&project, &["config", name, value]);
    }
    let remote = root.join("remote.git").display().to_string();
    // Once, another user changes the same line.
    let script = format!(
        "test ! -d $HOME/somebody || exit 0\ngit clone -q {remote} $HOME/somebody\ncd $HOME/somebody\n\
         printf 'one\\ntheirs\\nthree\\n' > poem.txt\ngit -c user.name=s -c user.email=s@example.invalid commit -qam theirs\n\
         git push -q origin HEAD:main\n"
    );
    fs::write(project.join("meanwhile.sh"), script).unwrap();
    run_git(&project, &["add", "."]);
    run_git(&project, &["commit", "-qm", "a poem"]);
    run_git(&project, &["branch", "-M", "main"]);
    run_git(&root, &["init", "-q", "--bare", "-b", "main", &remote]);
    run_git(&project, &["remote", "add", "origin", &remote]);
    run_git(&project, &["push", "-q", "origin", "main"]);
    assert_eq!(stage.hookloop(&["hooks", "trust", "--yes"]).code, 0);
    stage
}

fn resolves_a_conflict(who: Who) {
    let stage = stage(who);
    let done = "Done.\n<promise>COMPLETE</promise>";
    stage.model.extend([
        Turn::call("I write.", who.run("printf 'one\\nmine\\nthree\\n' > poem.txt")),
        Turn::say(done),
        Turn::call(
            "I resolve it.",
            who.run("printf 'one\\nmine and theirs\\nthree\\n' > poem.txt"),
        ),
        Turn::say(done),
    ]);
    assert_eq!(stage.hookloop(&["task", "add", "Write the second line", "--id", "line"]).code, 0);
    let before = run_git(&stage.project.root(), &["status", "--porcelain=v2", "--branch"]);
    let ran = stage.hookloop(&["run", "--tasks", "--agent", who.name(), "--max-errors", "1"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let verdicts: Vec<_> = ran
        .all("submission_evaluated")
        .iter()
        .map(|one| one["verdict"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((verdicts[0].as_str(), verdicts.last().unwrap().as_str()), ("block", "pass"));
    // The agent got both sides of the conflict, in the same conversation.
    let asked = stage.model.requests();
    let told = asked[2].text();
    for part in ["poem.txt", "mine", "theirs", "<<<<<<<"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("I write."), "it is another conversation: {told}");
    let remote = stage.directory().join("remote.git");
    let poem = git_output(&remote, &["show", "main:poem.txt"]);
    assert_eq!(poem, "one\nmine and theirs\nthree\n");
    assert_eq!(run_git(&stage.project.root(), &["status", "--porcelain=v2", "--branch"]), before);
    assert_eq!(fs::read_to_string(stage.path("poem.txt")).unwrap(), "one\ntwo\nthree\n");
    let shown = stage.hookloop(&["task", "show", "line"]);
    assert_eq!(shown.events[0]["state"], "completed");
    stage.assert_nobody_left();
}

#[test]
fn codex_resolves_a_conflict() {
    resolves_a_conflict(Who::Codex);
}

#[test]
fn claude_resolves_a_conflict() {
    resolves_a_conflict(Who::Claude);
}
