//! Checks that the terminal is restored, no matter how the TUI ends.

use hookloop_testkit::eventually;

use crate::cli::DEADLINE;
use crate::screens::tmux::Tmux;
use crate::screens::{HOOKS, RUN, project};

#[test]
fn a_signal_ends_the_session_in_order() {
    for signal in ["TERM", "HUP", "INT"] {
        let project = project(HOOKS);
        let tmux = Tmux::new(&project, 80, 24);
        let modes = tmux.modes();
        tmux.line(RUN);
        tmux.see("at work on iteration 1");
        tmux.signal(signal);
        let seen = tmux.see("exit 130");
        assert!(seen.contains("cancelled after 1 iteration"), "{signal}: {seen}");
        tmux.assert_left(&modes);
        assert_eq!(project.event("session_ended")["data"]["outcome"], "cancelled");
    }
}

#[test]
fn ctrl_c_cancels_the_session_and_a_second_ctrl_c_exits_at_once() {
    let hooks = "hooks:\n  session_end:\n    - {name: slow, command: 'touch slow; sleep 60'}\n";
    let project = project(hooks);
    let tmux = Tmux::new(&project, 80, 24);
    let modes = tmux.modes();
    tmux.line(RUN);
    tmux.see("at work on iteration 1");
    tmux.keys(&["C-c"]);
    tmux.see("cancelled");
    eventually("the hook", DEADLINE, || project.root().join("slow").exists().then_some(()));
    assert!(tmux.has_screen());
    tmux.keys(&["C-c"]);
    tmux.see("exit 130");
    tmux.assert_left(&modes);
}

#[test]
fn a_session_continues_with_plain_output_after_closing_the_tui() {
    let project = project(HOOKS);
    let tmux = Tmux::new(&project, 80, 24);
    let modes = tmux.modes();
    tmux.line(RUN);
    tmux.see("at work on iteration 1");
    tmux.text("q");
    tmux.see("close the TUI");
    tmux.text("l");
    tmux.see_that("the shell's screen", |_| !tmux.has_screen());
    for file in ["fixed", "go-1"] {
        project.write(file, "");
    }
    let seen = tmux.see("exit 0");
    for part in ["the session continues", "the gate passes", "complete after 1 iteration"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    tmux.assert_left(&modes);
}

#[test]
fn the_tui_can_be_suspended_continued_and_resized() {
    let project = project(HOOKS);
    let tmux = Tmux::new(&project, 80, 24);
    let modes = tmux.modes();
    tmux.line("hookloop watch");
    tmux.see("No sessions yet");
    tmux.keys(&["C-z"]);
    tmux.see("Stopped");
    tmux.assert_left(&modes);
    tmux.line("fg");
    tmux.see("No sessions yet");
    // The TUI works at any size and adapts to it.
    for (width, height) in [(20, 5), (40, 10), (120, 40)] {
        tmux.resize(width, height);
        tmux.see_that("the header on another size", |seen| {
            seen.contains("no problems") && seen.lines().count() == usize::from(height)
        });
    }
    tmux.keys(&["C-c"]);
    tmux.assert_left(&modes);
}

#[test]
fn a_session_continues_after_its_terminal_is_lost() {
    let project = project(HOOKS);
    let tmux = Tmux::new(&project, 80, 24);
    // In a separate session, the process gets no SIGHUP and must detect the hangup itself.
    tmux.line(&format!("setsid --wait {RUN}"));
    tmux.see("at work on iteration 1");
    drop(tmux);
    for file in ["fixed", "go-1"] {
        project.write(file, "");
    }
    eventually("the end", DEADLINE, || project.events_of("session_ended").pop());
    assert_eq!(project.event("session_ended")["data"]["outcome"], "complete");
}
