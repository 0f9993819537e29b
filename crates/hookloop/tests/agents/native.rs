//! Real agents that a user starts directly, with hookloop in the agents' own hooks.

use std::fs;
use std::process::Output;

use hookloop_testbed::model::Turn;

use crate::agents::stage::{AgentProject, Who};

/// A configuration whose gate the installed hooks enforce.
const GATED: &str = "version: 1
hooks:
  session_start:
    - {name: hello, command: 'echo the-pending-words', pipe_output: true, timeout: 10s}
  stop:
    - name: answer
      room: here
      command: echo >> $HOME/judged; grep -qx 42 answer.txt || { echo 'the answer is wrong' >&2; exit 2; }
      timeout: 10s
";

/// A configuration whose gate never passes.
const HOPELESS: &str = "version: 1
hooks:
  stop:
    - {name: never, room: here, command: 'echo >> $HOME/judged; echo not today >&2; exit 2', timeout: 10s}
";

/// How often a gate that never passes is run: the first time, and the default number of retries.
const TIMES: usize = 6;

impl AgentProject {
    /// Returns a project with hookloop in the agent's hooks, by the command that users type.
    fn native(who: Who, config: &str, scope: &str) -> AgentProject {
        let stage = AgentProject::with(config, who, []);
        let done = stage.command(&["install", who.name(), scope, "--yes"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        if who == Who::Codex {
            // The user's answer to the question whether the folder is trusted.
            let config = stage.directory().join("codex/config.toml");
            let text = fs::read_to_string(&config).unwrap();
            let root = stage.project.root().canonicalize().unwrap();
            let trusted =
                format!("{text}[projects.\"{}\"]\ntrust_level = \"trusted\"\n", root.display());
            fs::write(config, trusted).unwrap();
        }
        stage
    }

    /// Runs the agent with the command line of its user.
    fn agent(&self, prompt: &str) -> Output {
        let args: &[&str] = match self.who {
            Who::Claude => &[
                "-p",
                prompt,
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "bypassPermissions",
            ],
            Who::Codex => &[
                "exec",
                "--dangerously-bypass-hook-trust",
                "--dangerously-bypass-approvals-and-sandbox",
                prompt,
            ],
            Who::Gemini => {
                &["-p", prompt, "--output-format", "stream-json", "--approval-mode", "yolo"]
            }
            other => panic!("{other:?} has no hooks"),
        };
        let output = self.by_hand(args);
        assert!(output.status.success(), "{output:?}");
        output
    }

    fn times_judged(&self) -> usize {
        fs::read_to_string(self.directory().join("home/judged")).unwrap_or_default().lines().count()
    }

    fn logged(&self, kind: &str) -> Vec<serde_json::Value> {
        let log = self.hookloop(&["log"]);
        log.events.into_iter().filter(|event| event["type"] == kind).collect()
    }
}

fn all_said(output: &Output) -> String {
    let of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    of(&output.stdout) + &of(&output.stderr)
}

/// A gate blocks, the agent gets the reason, fixes the cause and may stop; a receipt is recorded.
fn fixes_a_failed_gate(who: Who) {
    let stage = AgentProject::native(who, GATED, "--project");
    stage.model.extend([
        Turn::call("I try.", who.run("echo 41 > answer.txt")),
        Turn::say("I am done."),
        Turn::call("I fix it.", who.run("echo 42 > answer.txt")),
        Turn::say("Now I am done.\n<promise>COMPLETE</promise>"),
    ]);
    let output = stage.agent("Make the answer 42");
    let asked = stage.model.requests();
    assert_eq!(asked.len(), 4, "{}", all_said(&output));
    assert!(!asked[1].text().contains("the answer is wrong"));
    assert!(asked[2].text().contains("the answer is wrong"), "{}", asked[2].text());
    assert_eq!(stage.times_judged(), 2);
    let receipts = stage.logged("receipt_recorded");
    let last = &receipts.last().unwrap()["data"];
    assert_eq!((&last["gate"], &last["status"]), (&"answer".into(), &"passed".into()));
    stage.assert_nobody_left();
}

/// A gate never passes: hookloop's limit ends the retries, and the agent ends normally.
fn may_stop_after_the_gate_retries(who: Who) {
    let stage = AgentProject::native(who, HOPELESS, "--project");
    // A turn that changes nothing is not judged.
    stage.model.extend([Turn::call("I work.", who.run("echo 1 > work.txt"))]);
    // Gemini ends a turn of equal answers by itself.
    stage.model.extend((0..20).map(|at| Turn::say(&format!("I am done, for the {at}. time."))));
    let output = stage.agent("Do it");
    assert_eq!(stage.times_judged(), TIMES, "{}", all_said(&output));
    assert_eq!(stage.model.requests().len(), TIMES + 1);
    let sessions = stage.hookloop(&["sessions", "list"]);
    assert!(format!("{sessions:?}").contains("needs_human"), "{sessions:?}");
}

/// The first request to the model contains pending output and the task in progress.
fn receives_pending_output_and_the_current_task(who: Who) {
    let stage = AgentProject::native(who, GATED, "--project");
    stage.hookloop(&["task", "add", "Find the answer to everything", "--id", "answer"]);
    stage.hookloop(&["task", "start", "answer"]);
    fs::write(stage.path("answer.txt"), "42\n").unwrap();
    stage.model.extend([Turn::say("Done.")]);
    stage.agent("What is there to do?");
    let first = stage.model.requests()[0].text();
    assert!(first.contains("the-pending-words"), "{first}");
    assert!(first.contains("Find the answer to everything"), "{first}");
}

/// hookloop is broken: the agent may stop, and its user gets a message that no gate ran.
fn reports_that_gates_did_not_run_with_a_broken_config(who: Who) {
    let stage = AgentProject::native(who, HOPELESS, "--project");
    fs::write(stage.path("hookloop.yaml"), "version: 1\nhooks: 1\n").unwrap();
    stage.model.extend([Turn::say("Done.")]);
    let output = stage.agent("Do it");
    assert_eq!(stage.model.requests().len(), 1);
    // `codex exec` does not show the message; it reports only that its hook did not fail.
    let expected =
        if who == Who::Codex { "hook: Stop Completed" } else { "the stop gates did NOT run" };
    assert!(all_said(&output).contains(expected), "{}", all_said(&output));
    stage.assert_nobody_left();
}

/// `hookloop run` runs the gates itself: the agent's own hooks do not run them.
fn installed_hooks_do_not_run_gates_of_a_hookloop_session(who: Who) {
    let stage = AgentProject::native(who, GATED, "--user");
    stage.model.extend([
        stage.writes("answer.txt", "42\n"),
        Turn::say("Done.\n<promise>COMPLETE</promise>"),
    ]);
    let ran = stage.run(&["Make the answer 42", "--stop-when", "promise"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(stage.times_judged(), 1, "{ran:#?}");
    assert_eq!(stage.logged("session_started").len(), 1);
}

/// The agent finds the skill.
fn finds_the_installed_skill(who: Who) {
    let stage = AgentProject::native(who, "version: 1\n", "--project");
    stage.model.extend([Turn::say("Done.")]);
    stage.agent("Do it");
    let first = stage.model.requests()[0].text();
    assert!(first.contains("Rules of work in a project with hookloop.yaml"), "{first}");
}

macro_rules! native {
    ($name:ident, $who:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn fixes_a_failed_gate() {
                super::fixes_a_failed_gate($who);
            }

            #[test]
            fn may_stop_after_the_gate_retries() {
                super::may_stop_after_the_gate_retries($who);
            }

            #[test]
            fn receives_pending_output_and_the_current_task() {
                super::receives_pending_output_and_the_current_task($who);
            }

            #[test]
            fn reports_that_gates_did_not_run_with_a_broken_config() {
                super::reports_that_gates_did_not_run_with_a_broken_config($who);
            }

            #[test]
            fn installed_hooks_do_not_run_gates_of_a_hookloop_session() {
                super::installed_hooks_do_not_run_gates_of_a_hookloop_session($who);
            }

            #[test]
            fn finds_the_installed_skill() {
                super::finds_the_installed_skill($who);
            }
        }
    };
}

native! { native_claude, Who::Claude }
native! { native_codex, Who::Codex }
native! { native_gemini, Who::Gemini }
