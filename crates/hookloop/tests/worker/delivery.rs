//! Unattended work: from an added task to a merged branch.

use crate::delivery_project::{DeliveryProject, GREEN};
use crate::worker::{Working, is};

#[test]
fn tasks_are_worked_on_at_once_in_worktrees_submitted_and_merged() {
    let config = format!(
        "delivery: {{}}\nhooks:\n  stop:\n    - {{name: proven, command: 'true'}}\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    );
    let project = DeliveryProject::new(&config, &[("a.txt", "a\n")]);
    let before = project.users();
    for number in 1..=6 {
        let id = format!("t{number}");
        project.add(&id, &[]);
        project.does(&id, 1, &format!("sleep 0.3; echo {number} > {id}.txt"));
    }
    project.add("last", &["--depends-on", "t1"]);
    project.does("last", 1, "cat t1.txt > last.txt");
    let agent = project.agent();
    let args = ["worker", "--agent", &agent, "--jobs", "3", "--until-idle"];
    let said = Working::start(project.json_command(&args)).end();
    let merged = said.iter().filter(|told| is(told, "merge_result") && told["result"] == "merged");
    assert_eq!(merged.count(), 7, "{said:?}");
    for number in 1..=6 {
        assert_eq!(project.on_main(&format!("t{number}.txt")), format!("{number}\n"));
        assert_eq!(project.state(&format!("t{number}")), "completed");
    }
    assert_eq!(project.on_main("last.txt"), "1\n", "based on its dependency");
    assert_eq!(project.users(), before);
    // `why` explains each result.
    let why = project.json_values(&["why", "t1"]).remove(0).to_string();
    for part in [" of worker ", "gate proven passed on ", "submitted hookloop/t1 at ", "merged as "]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
}
