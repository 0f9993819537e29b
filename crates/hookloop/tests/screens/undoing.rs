//! The undo of a session in the TUI.

use hookloop_testkit::SCRIPTED_AGENT;

use crate::cli::Project;
use crate::screens::tmux::Tmux;

const TURNS: &str = r#"[
    {"write": {"changed.txt": "after\n", "new.txt": "after\n"}, "say": "<promise>COMPLETE</promise>"}
]"#;
const RESTORED: &str = "2 files were restored; to take this back: hookloop undo --back";

#[test]
fn a_session_is_undone_after_its_files_are_listed() {
    let project = Project::with_config("");
    project.ok(&["init", "--yes"]);
    project.write("changed.txt", "before\n");
    project.write_turns(TURNS);
    let ran = project.run(&["run", "Change files", "--agent", SCRIPTED_AGENT]);
    assert_eq!(project.read("changed.txt"), "after\n", "{ran:?}");
    let tmux = Tmux::new(&project, 100, 30);
    tmux.line("hookloop watch");
    tmux.see("1 Problems");
    tmux.text("2");
    tmux.see("u undo");
    tmux.text("u");
    let seen = tmux.see("undo of turn 1: 2 files change");
    assert!(seen.contains("change  changed.txt") && seen.contains("delete  new.txt"), "{seen}");
    tmux.text("n");
    tmux.see_that("the list of sessions", |seen| !seen.contains("2 files change"));
    assert_eq!(project.read("changed.txt"), "after\n");
    tmux.text("u");
    tmux.see("undo of turn 1: 2 files change");
    tmux.text("y");
    tmux.see(RESTORED);
    assert_eq!(project.read("changed.txt"), "before\n");
    assert!(!project.root().join("new.txt").exists());
    tmux.text("u");
    tmux.see("nothing to undo");
    tmux.text("q");
    tmux.see_that("the shell's screen", |_| !tmux.has_screen());
}
