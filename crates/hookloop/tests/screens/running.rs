//! A slow gate, on a terminal.

use crate::cli::Project;
use crate::screens::project;
use crate::screens::tmux::Tmux;

/// A gate that prints a line, and ends when the test creates its file.
const SLOW: &str = "hooks:
  stop:
    - {name: quick, command: 'true'}
    - {name: slow, room: here, command: 'echo one of two; until [ -e fixed ]; do sleep 0.05; done; echo two of two'}
";

#[test]
fn a_running_gate_is_on_the_last_line_of_run_and_on_the_screen() {
    let project = project(SLOW);
    project.write("go-1", "");
    let tmux = Tmux::new(&project, 110, 24);
    tmux.line("clear; CI=1 hookloop run 'Make it work' --agent command:./agent.sh --no-changes-ok; echo \"exit $?\"");
    let seen = tmux.see("last output: one of two");
    assert!(seen.contains("stop slow (2 of 2) runs, "), "{seen}");
    assert!(seen.contains("quick                    passed"), "{seen}");
    let watching = Tmux::named(&project, "watch", (110, 24));
    watching.line("hookloop watch");
    watching.see("1 running");
    watching.text("2");
    watching.keys(&["Enter"]);
    let seen = watching.see("── output of slow: echo one of two");
    assert!(seen.contains("▶ stop slow runs  one of two"), "{seen}");
    assert!(seen.contains("✓ stop quick passed"), "{seen}");
    project.write("fixed", "");
    watching.see("✓ stop slow passed");
    let seen = tmux.see("exit ");
    assert!(!seen.contains("last output"), "the line is removed: {seen}");
}

/// Ctrl-C skips the trial of one gate; `init` continues with the next.
#[test]
fn ctrl_c_skips_one_trial_of_init() {
    let project = Project::bare();
    project.write(
        "package.json",
        r#"{"scripts": {"test": "echo waits for a change; sleep 600", "lint": "true"}}"#,
    );
    let tmux = Tmux::new(&project, 110, 30);
    tmux.line("clear; hookloop init --yes; echo \"exit $?\"");
    let seen = tmux.see("last output: waits for a change");
    assert!(seen.contains("s, ctrl-c skips"), "{seen}");
    tmux.keys(&["C-c"]);
    let seen = tmux.see("exit ");
    assert!(seen.contains("skipped  tests  not tried: you pressed ctrl-c"), "{seen}");
    assert!(seen.contains("exit 0"), "{seen}");
}
