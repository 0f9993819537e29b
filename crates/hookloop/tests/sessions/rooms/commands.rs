//! `rooms list`, `rooms clean`, `rooms shell`, and rooms in `gc` and `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hookloop_testkit::{ProgramOutput, TestProject};
use serde_json::{Value, json};

use super::{DONE, assert_complete, gate, judged};
use crate::sessions::{run, trusted_project};
use crate::support::PROGRAM;

/// Returns a project after a session with one gate, and the receipt of the gate.
fn after_session() -> (TestProject, Value) {
    let files = [(".gitignore", "secret\n"), ("secret", "1\n"), ("answer", "42\n")];
    let project = trusted_project(&gate("command: 'grep -qx 42 answer'"), &files);
    let (ran, receipt) = judged(&project, DONE);
    assert_complete(&ran);
    (project, receipt)
}

fn list(project: &TestProject) -> Vec<Value> {
    project.json(&["rooms", "list"]).as_array().unwrap().clone()
}

#[test]
fn rooms_are_listed_and_removed() {
    let (project, receipt) = after_session();
    let session = project.json(&["sessions", "list"])[0]["id"].clone();
    let rooms = list(&project);
    assert_eq!(rooms.len(), 1, "{rooms:?}");
    let room = &rooms[0];
    assert_eq!((&room["session"], &room["tree"]), (&session, &receipt["tree"]));
    assert_eq!(room["in_use"], false);
    assert!(room["bytes"].as_u64() > Some(0) && room["files"].as_u64() > Some(0), "{room}");
    assert!(room["last_used"].as_str().unwrap().ends_with('Z'), "{room}");
    let path = Path::new(room["path"].as_str().unwrap()).join("files/answer");
    assert_eq!(fs::read_to_string(&path).unwrap(), "42\n");
    let printed = project.ok(&["rooms", "list"]);
    assert!(printed.contains(session.as_str().unwrap()), "{printed}");

    let dry = project.json(&["rooms", "clean", "--dry-run"]);
    assert_eq!((&dry["dry_run"], &dry["removed"]), (&json!(true), &json!([room["slot"]])));
    assert!(path.exists(), "a dry run removed the room");
    project.fails(2, &["rooms", "clean"]);
    assert!(path.exists(), "the room was removed without a question");
    let removed = project.json(&["rooms", "clean", "--yes"]);
    assert_eq!(removed["removed"], json!([room["slot"]]));
    assert!(!path.exists());
    assert!(list(&project).is_empty());
    // The next gate gets a new room.
    project.write("new", "1\n");
    let (ran, _) = judged(&project, DONE);
    assert_complete(&ran);
    assert_eq!(list(&project).len(), 1);
}

/// After the first claim was refused, the session keeps its room for the second.
#[test]
fn the_room_of_a_running_session_is_in_use() {
    let agent = format!(
        "#!/bin/sh
cat > /dev/null
[ \"$HOOKLOOP_ITERATION\" = 1 ] || {{ '{PROGRAM}' rooms list --json > ../rooms.json; echo 42 > answer; }}
echo '<promise>COMPLETE</promise>'
"
    );
    let files = [("agent.sh", agent.as_str()), ("answer", "41\n")];
    let project = trusted_project(&gate("command: 'grep -qx 42 answer'"), &files);
    let ran = run(&project, &["x", "--agent", "command:./agent.sh"]);
    assert_complete(&ran);
    let text = fs::read_to_string(project.beside("rooms.json")).unwrap();
    let rooms: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rooms.as_array().unwrap().len(), 1, "{rooms}");
    assert_eq!(rooms[0]["in_use"], true);
    assert_eq!(list(&project)[0]["in_use"], false);
}

#[test]
fn gc_removes_rooms_by_age_and_size() {
    let config = gate("command: 'head -c 3000000 /dev/zero > large'");
    let project = trusted_project(&config, &[]);
    let (ran, _) = judged(&project, DONE);
    assert_complete(&ran);
    let kept = project.json(&["gc"]);
    assert_eq!(kept["rooms_removed"], 0, "the room is new: {kept}");
    let dry = project.json(&["gc", "--dry-run", "--rooms-max-size", "1MB"]);
    assert_eq!(dry["rooms_removed"], 1, "{dry}");
    assert_eq!(list(&project).len(), 1);
    let removed = project.json(&["gc", "--rooms-unused-for", "0d"]);
    assert_eq!(removed["rooms_removed"], 1, "{removed}");
    assert!(removed["room_bytes"].as_u64() > Some(0), "{removed}");
    assert!(list(&project).is_empty());
}

#[test]
fn doctor_reports_the_box_of_rooms_and_their_disk_use() {
    let (project, _) = after_session();
    let run = project.run(&["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let message = |group: &str| {
        let found =
            findings.iter().find(|found| found["about"] == "rooms" && found["group"] == group);
        found.unwrap_or_else(|| panic!("{findings:#?}"))["message"].as_str().unwrap().to_owned()
    };
    assert!(message("machine").starts_with("gates can write only to their room"));
    assert!(message("state").starts_with("1, 0 in use, "), "{}", message("state"));
}

#[test]
fn a_shell_in_a_room_needs_a_terminal() {
    let (project, _) = after_session();
    let error = project.fails(2, &["rooms", "shell"]);
    assert!(error.contains("needs a terminal"), "{error}");
}

/// Prints the view of the room, tries to write outside of it, and ends with 7.
const SHELL: &str = "#!/bin/sh
echo \"at $(pwd)\"
echo \"answer $(cat answer)\"
[ -e secret ] && echo ignored file
(echo attempt >> \"$HOME/.bashrc\") 2> /dev/null && echo home written
echo changed > answer && echo \"hook $HOOKLOOP_HOOK, slot $HOOKLOOP_SLOT\"
exit 7
";

/// Runs hookloop on a terminal, with [`SHELL`] as the user's shell.
fn on_terminal(project: &TestProject, args: &str) -> ProgramOutput {
    let shell = project.beside("shell.sh");
    fs::write(&shell, SHELL).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    // `script` itself uses the variable, too.
    let line = format!("SHELL='{}' '{PROGRAM}' {args}", shell.display());
    let mut command = project.command("script");
    command.args(["-qec", &line, "/dev/null"]);
    command.output().unwrap().into()
}

#[test]
fn a_shell_in_a_room_has_the_files_and_the_box_of_a_gate() {
    let (project, _) = after_session();
    // The room gets the current files, not those of the last claim.
    project.write("answer", "43\n");
    let ran = on_terminal(&project, "rooms shell tests");
    let printed = ran.stdout.replace("\r\n", "\n");
    assert_eq!(ran.code, 7, "{printed}");
    let root = project.root().canonicalize().unwrap();
    assert!(printed.contains(&format!("at {}\n", root.display())), "{printed}");
    assert!(printed.contains("answer 43\n"), "{printed}");
    assert!(printed.contains("hook tests, slot 1\n"), "{printed}");
    assert!(!printed.contains("ignored file"), "{printed}");
    assert!(!printed.contains("home written"), "{printed}");
    assert_eq!(project.read("answer"), "43\n", "the shell wrote to the working directory");
    assert!(!project.home().join(".bashrc").exists());
    // The next gate does not see the change.
    project.write("answer", "42\n");
    project.write("new", "1\n");
    let (ran, receipt) = judged(&project, DONE);
    assert_complete(&ran);
    assert_eq!(receipt["reused_from"], Value::Null);
}

#[test]
fn a_shell_needs_a_gate_with_a_room() {
    let (project, _) = after_session();
    let ran = on_terminal(&project, "rooms shell none");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("there is no gate `none`"), "{}", ran.stdout);
    let config = gate("command: 'grep -qx 42 answer', room: here");
    project.write("hookloop.yaml", &config);
    project.trust();
    let ran = on_terminal(&project, "rooms shell");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("no gate of this project runs in a room"), "{}", ran.stdout);
}
