//! Checks each command of the command line: an agent may not run the commands reserved for a
//! person.

use std::collections::BTreeSet;

use crate::authority::stage::{Actor, AuthorityProject};

/// The actors that may run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Everybody,
    Person,
}
use Allowed::{Everybody, Person};

/// Every command with its arguments as these tests run it: `PATH: arguments`.
const ROWS: [(&str, &str, Allowed); 96] = [
    ("init", "-C other --yes", Everybody),
    ("demo", "", Everybody),
    ("run", "'nested' --agent command:true --max-iterations 1", Person),
    ("resume", "", Person),
    ("watch", "", Everybody),
    ("pause", "", Person),
    ("stop", "", Person),
    ("undo", "--yes", Person),
    ("restore", "1 -- file", Person),
    ("message", "go", Person),
    ("sessions list", "", Everybody),
    ("sessions show", "nothing", Everybody),
    ("sessions trace", "nothing", Everybody),
    ("merge", "", Person),
    ("worker", "--agent command:true --until-idle", Person),
    ("fleet status", "", Everybody),
    ("fleet pause", "", Person),
    ("fleet stop", "", Person),
    ("fleet resume", "", Person),
    ("fleet drain", "nobody", Person),
    ("fleet budget", "--none", Person),
    ("worktrees list", "", Everybody),
    ("worktrees clean", "", Person),
    ("inbox list", "", Everybody),
    ("inbox show", "blocked", Everybody),
    ("inbox answer", "blocked 'go on'", Person),
    ("inbox approve", "blocked", Person),
    ("inbox abort", "blocked", Person),
    ("inbox dismiss", "blocked", Person),
    ("inbox notify", "", Person),
    ("inbox test", "nothing", Person),
    ("why", "blocked", Everybody),
    ("checks", "", Everybody),
    ("usage", "", Everybody),
    ("task add", "'One more'", Everybody),
    ("task show", "open", Everybody),
    ("task list", "", Everybody),
    ("task ready", "", Everybody),
    ("task start", "nothing", Everybody),
    ("task claim", "nothing", Everybody),
    ("task heartbeat", "held --epoch 1", Everybody),
    ("task release", "nothing", Everybody),
    ("task requeue", "held --force", Person),
    ("task take-over", "nothing", Everybody),
    ("task complete", "held --force", Person),
    ("task block", "held --reason x --force", Person),
    ("task unblock", "blocked", Person),
    ("task delete", "open --release", Person),
    ("task note", "open 'a note'", Everybody),
    ("task dep add", "open --on blocked", Everybody),
    ("task dep remove", "waiting --on open", Person),
    ("task import", "/dev/null", Person),
    ("task export", "", Everybody),
    ("task graph", "open", Everybody),
    ("schedule add", "hourly --cron '0 * * * *' --goal More", Person),
    ("schedule list", "", Everybody),
    ("schedule show", "nightly", Everybody),
    ("schedule pause", "nightly", Person),
    ("schedule resume", "nightly", Person),
    ("schedule remove", "nightly", Person),
    ("schedule run", "nightly", Person),
    ("hooks list", "", Everybody),
    ("hooks show", "green", Everybody),
    ("hooks explain", "stop", Everybody),
    ("hooks trust", "--yes", Person),
    ("hooks run", "green", Everybody),
    ("hooks enable", "green", Person),
    ("hooks disable", "green", Person),
    ("rooms list", "", Everybody),
    ("rooms clean", "--yes", Person),
    ("rooms shell", "", Person),
    ("agents list", "", Everybody),
    ("agents trust", "--yes", Person),
    ("install", "claude --yes", Person),
    ("uninstall", "claude", Person),
    ("hook", "Stop --agent claude", Everybody),
    ("mcp", "", Everybody),
    ("serve", "--port 0", Person),
    ("log", "", Everybody),
    ("dispatch", "", Person),
    ("nats up", "", Everybody),
    ("nats down", "", Everybody),
    ("nats key", "a.key", Everybody),
    ("nats permissions", "--role worker", Everybody),
    ("status", "", Everybody),
    ("import claude", "nothing.json", Person),
    ("import codemie", "nothing.json", Person),
    ("import iteratr", "nothing.yml", Person),
    ("import lefthook", "nothing.yml", Person),
    ("import octopoid", "nothing.yaml", Person),
    ("import ralph", "nothing.yml", Person),
    ("import beads", "nothing.jsonl", Person),
    ("import task-copilot", "nothing.json", Person),
    ("import vibe-kanban", "nothing.csv", Person),
    ("import automation-hooks", "nothing.json", Person),
    ("policy", "", Everybody),
];
/// Commands that only read and do not depend on the state of a project.
const LAST: [(&str, &str, Allowed); 9] = [
    ("doctor", "", Everybody),
    ("verify", "", Everybody),
    ("verify", "--accept-foreign", Person),
    ("rebuild", "", Person),
    ("gc", "", Person),
    ("schema", "", Everybody),
    ("completions", "bash", Everybody),
    ("man", "", Everybody),
    ("reference", "cli", Everybody),
];

fn rows() -> impl Iterator<Item = (&'static str, &'static str, Allowed)> {
    ROWS.into_iter().chain(LAST)
}

fn lines() -> Vec<String> {
    rows().map(|(path, arguments, _)| format!("hookloop {path} {arguments}")).collect()
}

/// Returns all commands that the printed reference lists, and the hidden one.
fn all_commands(stage: &AuthorityProject) -> BTreeSet<String> {
    let printed = stage.command(&["reference", "cli"]).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let heading = |line: &str| {
        let (marks, name) = line.split_once(" hookloop ")?;
        let is_heading = marks.len() > 1 && marks.chars().all(|c| c == '#');
        is_heading.then(|| name.to_owned())
    };
    let all: Vec<String> = printed.lines().filter_map(heading).collect();
    let is_leaf = |name: &&String| !all.iter().any(|other| other.starts_with(&format!("{name} ")));
    // The reference does not list this command.
    let hidden = ["reference".to_owned()];
    all.iter().filter(is_leaf).cloned().chain(hidden).collect()
}

#[test]
fn every_command_is_covered_by_the_authority_table() {
    let known: BTreeSet<String> = rows().map(|(path, ..)| path.to_owned()).collect();
    assert_eq!(known, all_commands(&AuthorityProject::new()));
}

#[test]
fn a_person_may_run_every_command() {
    let stage = AuthorityProject::new();
    // `serve` runs until it is stopped, so it gets a time limit.
    let lines: Vec<String> = lines()
        .into_iter()
        .map(|line| line.replace("hookloop serve", "timeout 1 hookloop serve"))
        .collect();
    for ((path, ..), probed) in rows().zip(stage.probe(Actor::Person, &lines)) {
        assert!(!probed.is_refused(), "{path}: {}", probed.told);
        assert!(!probed.told.contains("Usage:"), "{path} was not understood: {}", probed.told);
    }
}

/// Runs every command as one actor and checks that only the expected ones are refused.
fn check(actor: Actor) {
    let stage = AuthorityProject::new();
    let before = stage.guarded();
    for ((path, _, allowed), probed) in rows().zip(stage.probe(actor, &lines())) {
        assert_eq!(probed.is_refused(), allowed == Person, "{actor:?} {path}: {}", probed.told);
        if allowed == Person {
            assert_eq!(probed.code, 1, "{actor:?} {path}: {}", probed.told);
        }
    }
    let after = stage.guarded();
    // For a hook, the probe is the reaction's own script, so its trust record changes.
    let is_same = |name: &str| before[name] == after[name];
    let reacts = matches!(actor, Actor::Hook | Actor::DispatchedHook);
    for name in before.as_object().unwrap().keys() {
        let expected = reacts && name == "trust" || is_same(name);
        assert!(expected, "{actor:?} changed {name}: {} {}", before[name], after[name]);
    }
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_a_session_agent() {
    check(Actor::SessionAgent);
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_a_worker_agent() {
    check(Actor::WorkerAgent);
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_a_hook() {
    check(Actor::Hook);
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_a_dispatched_hook() {
    check(Actor::DispatchedHook);
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_an_external_session() {
    check(Actor::External);
}

#[test]
fn commands_reserved_for_a_person_are_refused_to_an_mcp_external_session() {
    check(Actor::ExternalByTools);
}

/// Checks that a refusal does not reveal whether its object exists.
#[test]
fn a_refusal_does_not_reveal_whether_the_object_exists() {
    let stage = AuthorityProject::new();
    let lines: Vec<String> = ["held", "nothing-like-it"]
        .iter()
        .flat_map(|id| {
            [
                format!("hookloop task complete {id} --force"),
                format!("hookloop task delete {id}"),
                format!("hookloop task unblock {id}"),
                format!("hookloop inbox approve {id}"),
                format!("hookloop hooks disable {id}"),
            ]
        })
        .collect();
    let probed = stage.probe(Actor::SessionAgent, &lines);
    for (there, not_there) in probed.iter().zip(&probed[lines.len() / 2..]) {
        assert!(there.is_refused());
        assert_eq!((there.code, &there.told), (not_there.code, &not_there.told));
    }
}

/// Checks that an epoch printed by an error or by `task show` does not give a claim.
#[test]
fn an_epoch_without_the_claim_does_not_let_an_agent_change_a_task() {
    let stage = AuthorityProject::new();
    let lines: Vec<String> = ["complete mine", "release mine", "block mine --reason x"]
        .iter()
        .map(|what| format!("hookloop task {what} --epoch 1"))
        .collect();
    for probed in stage.probe(Actor::WorkerAgent, &lines) {
        assert!(probed.is_refused() && probed.code == 1, "{probed:?}");
    }
}

/// A message from a person resets the counters. A message from the agent is refused.
#[test]
fn an_agent_does_not_reset_the_limits_of_its_session() {
    let stage = AuthorityProject::new();
    let script = "cat >/dev/null; date +%N > work; hookloop message go; hookloop resume; true";
    std::fs::write(stage.file("agent.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
    let agent = "command:sh agent.sh; echo '<promise>COMPLETE</promise>'";
    let limits = ["--max-iterations", "20", "--gate-retries", "2"];
    let output =
        stage.command(&[&["run", "x", "--agent", agent], &limits[..]].concat()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let begun = printed.lines().filter(|line| line.contains("\"iteration_started\"")).count();
    // The first iteration, and one for each retry.
    assert_eq!(begun, 3, "{printed}");
    assert_eq!(output.status.code(), Some(3), "{printed}");
}
