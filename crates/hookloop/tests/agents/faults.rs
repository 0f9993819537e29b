//! Messages for users when an agent fails: no key, wrong key, too old, missing, rate-limited,
//! crashed.
//!
//! Each message names the cause and the next step. A fault that would occur again is not retried.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_testbed::model::Turn;
use rustix::process::{Pid, Signal, kill_process};

use crate::agents::stage::{AgentProject, UNPROVEN, Who, installed};

const NEEDS_HUMAN: i32 = 3;
/// The errors of OpenAI for a request without a key, and for one with a wrong key.
const NO_KEY: &str = "You didn't provide an API key.";
const WRONG_KEY: &str = "Incorrect API key provided: key-of-nobody.";
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];

/// The text output of a session, and its exit code.
struct Transcript {
    code: i32,
    text: String,
}

impl Transcript {
    fn of(mut command: Command) -> Transcript {
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        Transcript { code: output.status.code().unwrap_or(-1), text: text.concat() }
    }

    #[track_caller]
    fn assert(&self, who: Who, code: i32, parts: &[&str]) {
        let shown = format!("== {} exit {}\n{}", who.name(), self.code, self.text);
        assert_eq!(self.code, code, "{shown}");
        for part in parts {
            assert!(self.text.contains(part), "`{part}` is missing: {shown}");
        }
    }

    fn turns(&self) -> usize {
        self.text.lines().filter(|line| line.starts_with("iteration ")).count()
    }
}

/// Returns `hookloop run` with text output.
fn lines(stage: &AgentProject, args: &[&str]) -> Command {
    let all = ["run", "Write a.txt", "--agent", stage.who.name(), "--no-changes-ok"];
    plain(stage, &[&all[..], &["--stop-when", "turn"], args].concat())
}

/// Returns a command without `--json`, in the environment of the project.
fn plain(stage: &AgentProject, args: &[&str]) -> Command {
    let mut command = stage.project.hookloop(args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

fn refusals(status: u16, words: &str) -> Vec<Turn> {
    (0..20).map(|_| Turn::refuse(status, words)).collect()
}

/// Returns the command with which the user of an agent logs in.
fn login(who: Who) -> &'static str {
    match who {
        Who::Claude => "claude auth login",
        Who::Codex => "codex login",
        Who::Opencode => "opencode auth login",
        _ => "gemini",
    }
}

fn package(who: Who) -> &'static str {
    match who {
        Who::Claude => "@anthropic-ai/claude-code@latest",
        Who::Codex => "@openai/codex@latest",
        Who::Opencode => "opencode-ai@latest",
        _ => "@google/gemini-cli@latest",
    }
}

fn has_no_key(who: Who) {
    let stage = AgentProject::new(who, refusals(401, NO_KEY));
    if who == Who::Codex {
        fs::write(stage.directory().join("codex/config.toml"), "model = \"gpt-5.5\"\n").unwrap();
    }
    let mut command = lines(&stage, &[]);
    for key in KEYS {
        command.env_remove(key);
    }
    let transcript = Transcript::of(command);
    match who {
        // These agents are asked for their login state before the first turn.
        Who::Claude | Who::Codex => {
            let cause = format!("{} is not logged in", who.name());
            transcript.assert(who, 1, &[&cause, login(who)]);
            assert_eq!(transcript.turns(), 0);
            assert!(stage.model.requests().is_empty(), "the model was asked");
        }
        _ => {
            let doubt = format!("the login of {} could not be checked", who.name());
            let parts = [doubt.as_str(), "is not logged in, or its key is rejected", login(who)];
            transcript.assert(who, NEEDS_HUMAN, &parts);
            assert_eq!(transcript.turns(), 1, "{}", transcript.text);
        }
    }
}

fn has_a_wrong_key(who: Who) {
    let stage = AgentProject::new(who, refusals(401, WRONG_KEY));
    let transcript = Transcript::of(lines(&stage, &[]));
    let parts = ["is not logged in, or its key is rejected", "Incorrect API key", login(who)];
    transcript.assert(who, NEEDS_HUMAN, &parts);
    assert_eq!(transcript.turns(), 1, "the turn is not retried");
    // Later commands show the same message.
    let sessions = Transcript::of(plain(&stage, &["sessions", "list"]));
    let id = sessions.text.split_whitespace().find(|word| word.len() == 12).unwrap().to_owned();
    for command in [&["why", &id][..], &["sessions", "show", &id], &["inbox", "show", &id]] {
        let shown = Transcript::of(plain(&stage, command));
        assert!(shown.text.contains("Incorrect API key"), "{command:?}: {}", shown.text);
        assert!(shown.text.contains(login(who)), "{command:?}: {}", shown.text);
    }
}

/// Writes a program to a directory that is searched first.
fn program(stage: &AgentProject, name: &str, text: &str) -> PathBuf {
    let bin = stage.directory().join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join(name), text).unwrap();
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

fn with_path(mut command: Command, first: &Path) -> Command {
    let rest = installed().join("node_modules/.bin");
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", first.display(), rest.display());
    command.env("PATH", path);
    command
}

fn is_too_old(who: Who) {
    let stage = AgentProject::new(who, []);
    let (old, needed) = match who {
        Who::Claude => ("2.1.197 (Claude Code)", "2.1.259"),
        Who::Codex => ("codex-cli 0.121.0", "0.122.0"),
        Who::Opencode => ("0.15.31", "1.0.0"),
        _ => ("0.32.1", "0.33.0"),
    };
    let script =
        format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '{old}'; exit; }}\ntouch started\n");
    let bin = program(&stage, who.name(), &script);
    let transcript = Transcript::of(with_path(lines(&stage, &[]), &bin));
    let cause = format!("is too old: hookloop needs {needed} or newer");
    let step = format!("npm install -g {}", package(who));
    transcript.assert(who, 1, &[&cause, &step]);
    assert!(!stage.path("started").exists(), "the agent was started");
    let doctor = Transcript::of(with_path(plain(&stage, &["doctor"]), &bin));
    assert!(doctor.text.contains(&cause) && doctor.text.contains(&step), "{}", doctor.text);
    // An upgrade is noticed at once: the version is checked again.
    program(&stage, who.name(), &script.replace(old, "99.0.0"));
    let transcript = Transcript::of(with_path(lines(&stage, &["--max-errors", "1"]), &bin));
    assert!(stage.path("started").exists(), "{}", transcript.text);
}

fn is_missing(who: Who) {
    let stage = AgentProject::new(who, []);
    let mut command = lines(&stage, &[]);
    command.env("PATH", "/usr/bin:/bin");
    let step = format!("npm install -g {}", package(who));
    Transcript::of(command).assert(who, 2, &["there is no program", &step]);
}

fn is_rate_limited(who: Who) {
    let wait = Turn::refuse(429, "Rate limit reached. Please try again in 1s.");
    let stage = AgentProject::new(who, [wait, Turn::say("Done.")]);
    if who == Who::Codex {
        // Codex passes on the status alone, so the session waits for a minute: longer than it may
        // run here.
        let transcript = Transcript::of(lines(&stage, &["--max-duration", "4s"]));
        let parts = ["rate limit", "gives no end", "429 Too Many Requests"];
        return transcript.assert(who, 4, &parts);
    }
    let transcript = Transcript::of(lines(&stage, &["--max-iterations", "1"]));
    // opencode waits by itself, and reports nothing.
    let parts: &[&str] = match who {
        Who::Opencode => &["complete after 1 iteration"],
        _ => &["rate limit, the next turn begins after", "complete after 1 iteration"],
    };
    transcript.assert(who, UNPROVEN, parts);
}

fn crashes_in_the_middle(who: Who) {
    let stage = AgentProject::new(who, [Turn::Silence]);
    let child = lines(&stage, &["--max-errors", "1"]).spawn().unwrap();
    stage.eventually("the model is asked", || !stage.model.requests().is_empty());
    let own = child.id().to_string();
    for process in stage.processes() {
        let pid = process.split([' ', '/']).find(|word| word.parse::<i32>().is_ok()).unwrap();
        if pid != own && !process.contains("__keeper") {
            let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
        }
    }
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    let transcript = Transcript { code: output.status.code().unwrap_or(-1), text: text.concat() };
    transcript.assert(
        who,
        4,
        &["agent failed after", "stopped at its limit of errors", "hookloop why"],
    );
    let names_cause = ["signal 9", "exit code 137"].iter().any(|how| transcript.text.contains(how));
    assert!(names_cause, "{}", transcript.text);
}

macro_rules! faults {
    ($module:ident, $who:expr) => {
        mod $module {
            use super::Who;

            #[test]
            fn has_no_key() {
                super::has_no_key($who);
            }

            #[test]
            fn has_a_wrong_key() {
                super::has_a_wrong_key($who);
            }

            #[test]
            fn is_too_old() {
                super::is_too_old($who);
            }

            #[test]
            fn is_missing() {
                super::is_missing($who);
            }

            #[test]
            fn is_rate_limited() {
                super::is_rate_limited($who);
            }

            #[test]
            fn crashes_in_the_middle() {
                super::crashes_in_the_middle($who);
            }
        }
    };
}

faults! { claude, Who::Claude }
faults! { codex, Who::Codex }
faults! { opencode, Who::Opencode }
faults! { gemini, Who::Gemini }

/// An agent that rejects its command line ends the session at its first turn; the error names the
/// option.
#[test]
fn a_rejected_command_line_is_not_retried() {
    let stage = AgentProject::new(Who::Codex, []);
    stage.configure("version: 1\nagents:\n  codex: {args: [--no-such-option]}\n");
    let transcript = Transcript::of(lines(&stage, &[]));
    let parts =
        ["codex rejects its command line", "unexpected argument '--no-such-option'", "args:"];
    transcript.assert(Who::Codex, NEEDS_HUMAN, &parts);
    assert_eq!(transcript.turns(), 1, "{}", transcript.text);
}

/// The fallback agent takes over at once from one whose key is rejected.
#[test]
fn a_rejected_key_switches_to_the_fallback_agent_at_once() {
    let config = "version: 1\nloop: {agent: claude, fallback: codex, fallback_after: 3}\n";
    let stage =
        AgentProject::with(config, Who::Claude, [Turn::refuse(401, WRONG_KEY), Turn::say("Here.")]);
    let ran = stage.hookloop(&["run", "Say something", "--stop-when", "turn", "--no-changes-ok"]);
    let agents: Vec<_> = ran.turns().iter().map(|turn| turn["agent"].clone()).collect();
    assert_eq!((ran.code, agents), (UNPROVEN, vec!["claude".into(), "codex".into()]), "{ran:#?}");
    assert_eq!(ran.turns()[0]["fault"]["cause"], "login", "{ran:#?}");
}

/// Codex reports tokens and no cost: the cost is unknown, not zero, and turns are limited instead.
#[test]
fn unknown_cost_is_shown_as_unknown_and_unpriced_turns_are_limited() {
    let stage = AgentProject::new(Who::Codex, (0..4).map(|_| Turn::say("More to do.")));
    let args = ["--stop-when", "promise", "--max-cost", "1", "--max-unpriced-turns", "2"];
    let run = ["run", "Go on", "--agent", "codex", "--no-changes-ok"];
    let transcript = Transcript::of(plain(&stage, &[&run[..], &args].concat()));
    let parts = [
        "codex reports no cost, so the limit of $1.00 can't apply",
        "110 tokens, cost unknown",
        "stopped at its limit of cost after 2 iterations",
        "the cost of 2 turns is unknown",
    ];
    transcript.assert(Who::Codex, 4, &parts);
    assert!(!transcript.text.contains("$0.00"), "{}", transcript.text);
    let usage = stage.hookloop(&["usage"]).events[0].clone();
    assert!(usage["total"]["cost_micros"].is_null(), "{usage}");
    assert_eq!(usage["total"]["unpriced_turns"], 2, "{usage}");
    let sessions = stage.hookloop(&["sessions", "list"]).events[0].clone();
    assert!(sessions[0]["cost_micros"].is_null(), "{sessions}");
}

/// A price in the user's file turns the tokens of an agent into cost, which the cost limit then
/// bounds.
#[test]
fn a_configured_price_turns_tokens_into_cost() {
    let stage = AgentProject::new(Who::Codex, (0..4).map(|_| Turn::say("More to do.")));
    stage.configure("version: 1\nprices:\n  codex: {input: 1000, output: 10000}\n");
    // A request has 100 tokens of input and 10 of output: $0.10 and $0.10.
    let args = ["--stop-when", "promise", "--max-cost", "0.3", "--no-changes-ok"];
    let ran = stage.hookloop(&[&["run", "Go on", "--agent", "codex"][..], &args].concat());
    assert_eq!(ran.all("session_ended")[0]["limit"], "cost", "{ran:#?}");
    let costs: Vec<_> =
        ran.turns().iter().map(|turn| turn["usage"]["cost_micros"].clone()).collect();
    assert_eq!(costs, [200_000, 200_000], "{ran:#?}");
}

/// opencode reports the last request of a turn; hookloop counts all of them.
#[test]
fn all_requests_of_an_opencode_turn_count() {
    let stage = AgentProject::new(Who::Opencode, []);
    stage.model.extend([
        stage.writes("a.txt", "hello\n"),
        stage.writes("b.txt", "hello\n"),
        Turn::say("Done."),
    ]);
    let ran = stage.run(&["Write two files"]);
    let usage = &ran.turn()["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&300.into(), &30.into()),
        "{ran:#?}"
    );
}
