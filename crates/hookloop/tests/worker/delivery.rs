//! From a task that was added to work that is merged, and nobody looks.

use crate::worker::{Working, is};
use crate::yard::{GREEN, Yard};

#[test]
fn tasks_are_worked_on_at_once_in_worktrees_submitted_and_merged() {
    let config = format!(
        "delivery: {{}}\nhooks:\n  stop:\n    - {{name: proven, command: 'true'}}\n  before_merge:\n    - {{name: green, command: \"{GREEN}\"}}\n"
    );
    let yard = Yard::new(&config, &[("a.txt", "a\n")]);
    let before = yard.users();
    for number in 1..=6 {
        let id = format!("t{number}");
        yard.add(&id, &[]);
        yard.does(&id, 1, &format!("sleep 0.3; echo {number} > {id}.txt"));
    }
    yard.add("last", &["--depends-on", "t1"]);
    yard.does("last", 1, "cat t1.txt > last.txt");
    let agent = yard.agent();
    let args = ["worker", "--agent", &agent, "--jobs", "3", "--until-idle"];
    let said = Working::start(yard.command(&args)).end();
    let merged = said.iter().filter(|told| is(told, "arrived") && told["fate"] == "merged");
    assert_eq!(merged.count(), 7, "{said:?}");
    for number in 1..=6 {
        assert_eq!(yard.on_main(&format!("t{number}.txt")), format!("{number}\n"));
        assert_eq!(yard.state(&format!("t{number}")), "completed");
    }
    assert_eq!(yard.on_main("last.txt"), "1\n", "it began on what it depends on");
    assert_eq!(yard.users(), before);
    // Of each it is known why.
    let why = yard.ok(&["why", "t1"]).remove(0).to_string();
    for part in [" of worker ", "gate proven passed on ", "submitted hookloop/t1 at ", "merged as "]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
}
