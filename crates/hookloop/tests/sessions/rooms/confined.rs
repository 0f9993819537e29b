//! The box of a room: a gate runs code of the agent, and can write only to its room.

use std::fs;
use std::path::Path;

use super::{DONE, assert_complete, gate, judged};
use crate::sessions::trusted_project;

/// Tries to write outside of the room, and fails if it can. `/proc` names the directories of the processes above.
const ATTEMPTS: &str = r#"#!/bin/sh
attempt() { (echo attempt >> "$1") 2> /dev/null && echo "$1" >> leaks; }
parent=$PPID
grandparent=$(sed 's/.*) . //; s/ .*//' "/proc/$parent/stat")
attempt STATE/probe
attempt STATE/hookloop.db
attempt STATE/rooms/probe
for room in STATE/rooms/*; do attempt "$room/probe"; attempt "$room/room.json"; done
attempt "$HOME/.bashrc"
attempt "$HOME/probe"
for process in $parent $grandparent; do
  for directory in "/proc/$process/cwd" "/proc/$process/root$PWD"; do
    # A process of the gate itself leads to the room.
    [ "$directory" -ef . ] || attempt "$directory/probe"
  done
done
if [ -e leaks ]; then cat leaks >&2; exit 2; fi
"#;

#[test]
fn a_gate_can_write_only_to_its_room() {
    // The script has the path of the state, which `init` prints.
    let project = trusted_project(&gate("command: ./gate.sh"), &[]);
    let state = project.state_directory().to_owned();
    project.write("gate.sh", &ATTEMPTS.replace("STATE", state.to_str().unwrap()));
    project.git(&["add", "--all"]);
    project.git(&["commit", "--quiet", "--message=gate"]);
    project.trust();
    fs::write(project.home().join(".bashrc"), "# mine\n").unwrap();
    // The second gate finds the room of the first.
    for attempt in ["1", "2"] {
        // Another tree, so that the gate runs again.
        project.write("attempt", attempt);
        let (ran, receipt) = judged(&project, DONE);
        assert_complete(&ran);
        assert_eq!(receipt["room"]["boxed"], true);
        assert_eq!(receipt["reused_from"], serde_json::Value::Null);
    }
    assert_eq!(fs::read_to_string(project.home().join(".bashrc")).unwrap(), "# mine\n");
    for place in [project.root(), project.home(), state.clone(), state.join("rooms")] {
        assert!(!place.join("probe").exists(), "{}", place.display());
    }
    let rooms = project.json(&["rooms", "list"]);
    assert!(!rooms.as_array().unwrap().is_empty());
    for room in rooms.as_array().unwrap() {
        let path = Path::new(room["path"].as_str().unwrap());
        assert!(path.join("room.json").exists() && !path.join("probe").exists(), "{room}");
    }
    project.assert_intact();
}

#[test]
fn a_gate_can_write_temporary_files_and_caches() {
    let command = "command: 'echo 1 > \"$TMPDIR/file\" && \
                   cache=\"${XDG_CACHE_HOME:-$HOME/.cache}/tool\" && mkdir -p \"$cache\" && \
                   echo 1 > \"$cache/file\"'";
    let project = trusted_project(&gate(command), &[]);
    let cache = project.home().join(".cache");
    fs::create_dir_all(&cache).unwrap();
    let (ran, receipt) = judged(&project, DONE);
    assert_complete(&ran);
    assert_eq!(receipt["room"]["boxed"], true);
    assert!(!cache.join("tool").exists(), "the gate changed the user's cache");
}
