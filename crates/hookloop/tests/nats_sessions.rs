//! Sessions of a project whose log is on a server: other machines see them, send messages to them,
//! and take them over.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use hookloop_testbed::Server;
use hookloop_testkit::{TestProject, eventually};
use serde_json::Value;

use crate::nats::machine_on;

/// Time limit of every wait.
const SOON: Duration = Duration::from_secs(30);
/// An agent that ends its turn when the test creates a file.
const WAITS: &str = "cat > prompt-$HOOKLOOP_ITERATION; touch began-$HOOKLOOP_ITERATION
while [ ! -f go-$HOOKLOOP_ITERATION ]; do sleep 0.02; done
if [ \"$HOOKLOOP_ITERATION\" = 3 ]; then echo '<promise>COMPLETE</promise>'; fi
";

fn kinds(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_listed_messaged_and_resumed_from_another_machine() {
    let server = Server::single();
    let (here, there) = (machine_on(&server, "shared"), machine_on(&server, "shared"));
    for machine in [&here, &there] {
        machine.write("agent.sh", WAITS);
    }
    let began = |machine: &TestProject, number: u32| -> PathBuf {
        machine.root().join(format!("began-{number}"))
    };
    let args = ["run", "work", "--agent", "command:sh agent.sh", "--max-no-progress", "50"];
    let session = here.json_command(&args).spawn().unwrap();
    eventually("the first turn", SOON, || began(&here, 1).exists());
    let list = there.json(&["sessions", "list"]);
    let id = list[0]["id"].as_str().unwrap().to_owned();
    there.json(&["message", "from far away"]);
    here.write("go-1", "");
    eventually("the second turn", SOON, || began(&here, 2).exists());
    let prompt = std::fs::read_to_string(here.root().join("prompt-2")).unwrap();
    assert!(prompt.contains("from far away"), "{prompt}");
    there.json(&["pause"]);
    here.write("go-2", "");
    let paused = session.wait_with_output().unwrap();
    assert_eq!(paused.status.code(), Some(5), "{paused:?}");
    // Another machine resumes the session.
    there.write("go-3", "");
    let resumed = there.json_command(&["resume", &id]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(6), "there is no gate: {resumed:?}");
    assert!(kinds(&resumed).contains(&"session_ended".to_owned()));
    assert_eq!(here.json(&["sessions", "list"])[0]["state"], "complete");
    for machine in [&here, &there] {
        assert_eq!(machine.json(&["rebuild"])["equal"], true);
    }
}
