//! Hooks of sessions: their variables, the exit code that does not block, and the output about
//! retries.

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project};

const COMPLETE: &str = "<promise>COMPLETE</promise>";

fn run(project: &Project, args: &[&str], turns: &Value) -> ProgramOutput {
    let script = project.home().join("turns.json");
    std::fs::write(&script, turns.to_string()).unwrap();
    let agent = format!("scripted:{}", script.display());
    project.run(&[&["run", "--agent", &agent], args].concat())
}

#[test]
fn variables_of_session_hooks_have_their_values() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: done, command: 'echo {{task_id}}: {{task_content}} >> values'}\n  \
         on_error:\n    - {name: failed, command: 'echo {{session}}: {{error}} >> values'}\n",
    );
    project.trust();
    project.add("Write $(it)", &["--id", "t1"]);
    let turns = json!([{"fail": "the network is down"}, {"write": {"work": "1"}, "say": COMPLETE}]);
    let ran = run(&project, &["--tasks", "--name", "night"], &turns);
    assert_eq!(ran.code, 6, "{ran:?}");
    let values = std::fs::read_to_string(project.root().join("values")).unwrap();
    assert_eq!(values, "night: the network is down\nt1: Write $(it)\n");
}

#[test]
fn an_imported_stop_hook_with_exit_code_1_lets_the_agent_complete() {
    let project = Project::bare();
    let hook = json!([{"hooks": [{"type": "command", "command": "echo noted; exit 1"}]}]);
    project.write("settings.json", &json!({"hooks": {"Stop": hook}}).to_string());
    project.ok(&["import", "claude", "settings.json"]);
    project.trust();
    let ran = run(&project, &["X"], &json!([{"write": {"work": "1"}, "say": "done"}]));
    // The session completes at the end of the first turn. A failed gate does not prove the work.
    assert_eq!(ran.code, 6, "{ran:?}");
    assert_eq!(project.event("turn_ended")["data"]["turn"], "work");
    assert!(ran.stdout.contains("exit code 1"), "{ran:?}");
}

#[test]
fn a_person_sees_each_retry_and_its_reason() {
    let project = Project::with_config(
        "loop: {stop_when: turn}\nlimits: {gate_retries: 2}\nhooks:\n  stop:\n    - {name: tests, command: 'exit 2'}\n",
    );
    project.trust();
    let turn = |n: u32| json!({"write": {"work": n.to_string()}, "say": "done"});
    let ran = run(&project, &["X"], &json!([turn(1), turn(2), turn(3)]));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stdout.matches("sent back: gate tests failed").count(), 3, "{ran:?}");
    assert!(ran.stdout.contains("2 retries"), "{ran:?}");
}

#[test]
fn a_gate_sends_the_agent_back_five_times_by_default() {
    let project = Project::with_config(
        "loop: {stop_when: turn}\nhooks:\n  stop:\n    - {name: tests, command: 'exit 2'}\n",
    );
    project.trust();
    let turns: Vec<Value> =
        (0..9).map(|n| json!({"write": {"work": n.to_string()}, "say": "done"})).collect();
    let ran = run(&project, &["X"], &json!(turns));
    // The first run, and five retries.
    assert_eq!((ran.code, project.events_of("gates_evaluated").len()), (3, 6), "{ran:?}");
}
