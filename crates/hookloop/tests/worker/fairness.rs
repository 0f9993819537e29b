//! Two projects of one worker, with a thousand tasks and with ten.

use std::fs;

use serde_json::json;

use crate::support::project_with;
use crate::worker::{Working, is};

const AGENT: &str =
    "command:cat > /dev/null; echo work >> work; echo '<promise>COMPLETE</promise>'";
const LARGE: usize = 1_000;
const SMALL: usize = 10;

#[test]
fn a_small_project_does_not_wait_for_a_large_one() {
    let large = project_with("version: 1\n");
    // Both projects belong to the same user.
    let small = large.root().with_file_name("small");
    fs::create_dir(&small).unwrap();
    fs::write(small.join("hookloop.yaml"), "version: 1\n").unwrap();
    for (directory, count) in [(large.root(), LARGE), (small.clone(), SMALL)] {
        let task = |number| json!({ "id": format!("t{number}"), "goal": "g" }).to_string();
        let tasks: Vec<String> = (0..count).map(task).collect();
        let file = directory.join("tasks.jsonl");
        fs::write(&file, tasks.join("\n")).unwrap();
        let (directory, file) = (directory.to_str().unwrap(), file.to_str().unwrap());
        large.json(&["-C", directory, "task", "import", file]);
    }
    let mut command = large.json_command(&["worker", "--jobs", "2", "--agent", AGENT]);
    command.arg(large.root()).arg(&small);
    let mut working = Working::start(command);
    let (mut done, mut taken) = (0, 0);
    while done < SMALL {
        let told = working.hear(|told| is(told, "claimed") || is(told, "ended"));
        taken += usize::from(is(&told, "claimed"));
        let is_small = told["project"].as_str().unwrap().starts_with("small");
        done += usize::from(is(&told, "ended") && is_small);
    }
    working.child.kill().unwrap();
    working.child.wait().unwrap();
    // The worker alternates between the projects.
    assert!(taken <= 2 * SMALL + 4, "{taken} tasks were claimed until the small one was done");
}
