//! An external session keeps the scripts that it started with, and no reply tells the agent how to
//! trust others.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cli::Project;
use crate::native::asking::{hook, of};

const CONFIG: &str = "hooks:
  session_start: [{name: hello, command: echo hello, pipe_output: true}]
  stop: [{name: gate, command: ./gate.sh}]
";
const RED: &str = "#!/bin/sh\necho the old gate >&2\nexit 2\n";
const GREEN: &str = "#!/bin/sh\nexit 0\n";
/// Each agent with its name for the end of a turn, and its value for a refusal.
const AGENTS: [(&str, &str, &str); 3] =
    [("claude", "Stop", "block"), ("codex", "Stop", "block"), ("gemini", "AfterAgent", "deny")];
/// Commands that only a person may run.
const OF_PEOPLE: [&str; 4] = ["hooks trust", "agents trust", "--trust", "--with-changed-hooks"];

fn project() -> Project {
    let project = Project::with_config(CONFIG);
    write(&project, RED);
    project.trust();
    project
}

fn write(project: &Project, script: &str) {
    let path = project.write("gate.sh", script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the reply to the agent.
fn reply(project: &Project, agent: &str, event: &str) -> Value {
    let run = hook(project, event, &of(project, agent, event));
    assert!(run.code == 0 && run.stderr.is_empty(), "{agent} {event}: {run:?}");
    match run.stdout.as_str() {
        "" => Value::Null,
        printed => serde_json::from_str(printed).unwrap(),
    }
}

#[test]
fn an_external_session_runs_the_scripts_that_it_began_with() {
    for (agent, stop, refusal) in AGENTS {
        let project = project();
        reply(&project, agent, "SessionStart");
        project.write("work.txt", agent);
        assert_eq!(reply(&project, agent, stop)["decision"], refusal, "{agent}");
        for trusts in [false, true] {
            write(&project, GREEN);
            if trusts {
                project.trust();
            }
            let answer = reply(&project, agent, stop);
            assert_eq!(answer["decision"], refusal, "{agent} {trusts}: {answer}");
            assert!(answer["reason"].as_str().unwrap().contains("the old gate"), "{answer}");
        }
        assert_eq!(project.events_of("trust_drift_detected").len(), 1, "{agent}: recorded once");
        let drift = project.event("trust_drift_detected");
        assert!(drift["data"]["changed"][0].as_str().unwrap().ends_with("gate.sh"), "{drift}");
        // The next session uses the current scripts.
        reply(&project, agent, "SessionEnd");
        assert_eq!(
            reply(&project, agent, stop),
            json!({ "systemMessage": "hookloop: proven by gate" })
        );
    }
}

/// A change of a project.
type ProjectChange = fn(&Project);

/// Returns changes that may happen before an agent's hook runs.
fn changes() -> Vec<(&'static str, ProjectChange)> {
    fn config(project: &Project, yaml: &str) {
        project.configure(yaml);
    }
    vec![
        ("nothing", |_| {}),
        ("an edited script", |project| write(project, GREEN)),
        ("an edited and trusted script", |project| {
            write(project, GREEN);
            project.trust();
        }),
        ("a deleted script", |project| fs::remove_file(project.root().join("gate.sh")).unwrap()),
        ("another command", |project| {
            config(project, "hooks: {stop: [{name: gate, command: 'true'}]}\n")
        }),
        ("no hooks", |project| config(project, "hooks: {}\n")),
        ("a broken file", |project| config(project, "hooks: 1\n")),
        ("nothing trusted", |project| {
            fs::remove_file(project.state().join("trust.json")).unwrap();
        }),
        ("a broken record of trust", |project| {
            fs::write(project.state().join("trust.json"), "{").unwrap();
        }),
        ("no copies", |project| {
            write(project, GREEN);
            // The directory may not exist yet.
            let _ = fs::remove_dir_all(project.state().join("trusted"));
        }),
    ]
}

/// The field of a reply that the user sees and the model does not.
const FOR_THE_USER: &str = "systemMessage";

#[test]
fn no_hook_reply_contains_a_trust_command_for_the_agent() {
    let mut told = 0;
    for (agent, stop, _) in AGENTS {
        for (what, change) in changes() {
            for begins_before in [true, false] {
                let project = project();
                if begins_before {
                    reply(&project, agent, "SessionStart");
                }
                change(&project);
                for event in ["SessionStart", stop, stop] {
                    let mut answer = reply(&project, agent, event);
                    if let Some(object) = answer.as_object_mut() {
                        object.remove(FOR_THE_USER);
                    }
                    let read = answer.to_string();
                    for command in OF_PEOPLE {
                        assert!(!read.contains(command), "{agent}, {what}, {event}: {read}");
                    }
                    told += usize::from(!answer.is_null());
                }
            }
        }
    }
    assert!(told > 100, "{told} replies");
}

/// Checks that the field for the user names the command that trusts.
#[test]
fn the_message_to_the_user_contains_the_trust_command() {
    for (agent, stop, _) in AGENTS {
        let project = Project::with_config(CONFIG);
        write(&project, RED);
        let answer = reply(&project, agent, stop);
        let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(fields, [FOR_THE_USER], "{agent}");
        assert!(
            answer[FOR_THE_USER].as_str().unwrap().contains("hookloop hooks trust"),
            "{answer}"
        );
    }
}

#[test]
fn the_skill_names_no_command_that_trusts() {
    let project = project();
    for agent in ["claude", "codex", "gemini"] {
        project.ok(&["install", agent, "--yes"]);
        let skill = project.root().join(format!(".{agent}/skills/hookloop/SKILL.md"));
        let skill = fs::read_to_string(skill).unwrap();
        assert!(OF_PEOPLE.iter().all(|command| !skill.contains(command)), "{agent}: {skill}");
    }
}
