//! `run` on a terminal, from start to end.

use hookloop_testkit::eventually;

use crate::cli::DEADLINE;
use crate::screens::tmux::Tmux;
use crate::screens::{HOOKS, RUN, project};

#[test]
fn a_session_is_messaged_paused_resumed_and_decided_in_the_tui() {
    let project = project(HOOKS);
    let tmux = Tmux::new(&project, 80, 24);
    let modes = tmux.modes();
    tmux.line(RUN);
    // The screen shows the live output of the agent, and the hooks of its iteration with their
    // times.
    let seen = tmux.see("at work on iteration 1");
    assert!(tmux.has_screen());
    for part in ["1 running", "iteration 1", "pre_iteration context passed", "4 Session"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    // A message with wide characters, and a paste with an escape sequence.
    tmux.text("m");
    tmux.see("Message to the agent");
    tmux.text("use 漢字: ");
    tmux.paste("one\ntwo\u{1b}[31m");
    tmux.see("two[31m");
    tmux.keys(&["Enter"]);
    let piped = eventually("the message", DEADLINE, || {
        project
            .events_of("output_piped")
            .into_iter()
            .find(|event| event["data"]["point"] == "message")
    });
    assert_eq!(piped["data"]["text"], "use 漢字: one\ntwo[31m");
    tmux.see("pending for the next prompt");
    // A pause takes effect at the end of the turn.
    tmux.text("p");
    tmux.see("pause requested");
    project.write("go-1", "");
    let seen = tmux.see("exit 5");
    assert!(
        seen.contains("paused after 1 iteration") && seen.contains("hookloop resume"),
        "{seen}"
    );
    tmux.assert_left(&modes);
    // A paused session is in the inbox, and can be resumed in this terminal.
    tmux.line("clear; hookloop watch");
    tmux.see("is paused");
    tmux.text("r");
    tmux.see("in this terminal?");
    tmux.text("y");
    tmux.see("at work on iteration 2");
    let prompt = std::fs::read_to_string(project.root().join("prompt-2")).unwrap();
    assert!(prompt.contains("use 漢字: one"), "{prompt}");
    // The gates have failed as often as the retry limit allows.
    project.write("go-2", "");
    let seen = tmux.see("Decision needed");
    assert!(seen.contains("Retry limit reached after 1 retry"), "{seen}");
    project.write("fixed", "");
    tmux.text("c");
    tmux.see("at work on iteration 3");
    project.write("go-3", "");
    let seen = tmux.see("complete after 3 iterations");
    assert!(seen.contains("receipt: tests passed"), "{seen}");
    // After the end, only the last iteration stays on the terminal.
    assert!(seen.contains("iteration 3 of 100") && seen.contains("the gate passes"), "{seen}");
    assert!(!seen.contains("iteration 2 of 100"), "{seen}");
    tmux.assert_left(&modes);
    assert_eq!(project.event("decision_made")["data"]["answer"], "continue");
}

#[test]
fn the_output_of_a_hook_is_shown_searched_and_paged() {
    let project = project(HOOKS);
    project.write("go-1", "");
    project.write("pager.sh", "cat > paged; echo paged here; read -r key < /dev/tty");
    let tmux = Tmux::new(&project, 80, 24);
    tmux.line(&format!("export PAGER='sh pager.sh'; {RUN}"));
    tmux.see("at work on iteration 2");
    tmux.keys(&["Left"]);
    tmux.see("back to the latest");
    tmux.keys(&["Up", "Up", "Up", "Up", "o"]);
    let seen = tmux.see("stop tests: blocked");
    assert!(seen.contains("two tests fail") && seen.contains("stdout"), "{seen}");
    tmux.text("/TESTS FAIL");
    tmux.keys(&["Enter"]);
    tmux.text("n");
    // The user's pager opens the output. Ctrl-C is for the pager.
    tmux.text("o");
    tmux.see("paged here");
    assert!(!tmux.has_screen());
    let paged = std::fs::read_to_string(project.root().join("paged")).unwrap();
    assert!(paged.contains("two tests fail"), "{paged}");
    tmux.keys(&["C-c"]);
    tmux.see("stop tests: blocked");
    assert!(tmux.has_screen());
    for (width, height) in [(30, 6), (100, 30)] {
        tmux.resize(width, height);
        tmux.see_that("another size", |seen| {
            seen.contains("stop tests: blocked") && seen.lines().count() == usize::from(height)
        });
    }
    for file in ["fixed", "go-2"] {
        project.write(file, "");
    }
    tmux.see("complete after 2 iterations");
}

#[test]
fn run_prints_plain_lines_in_ci_dumb_terminals_and_with_plain() {
    let project = project(HOOKS);
    for file in ["go-1", "fixed"] {
        project.write(file, "");
    }
    let tmux = Tmux::new(&project, 80, 24);
    for before in ["CI=true", "TERM=dumb", ""] {
        let run =
            if before.is_empty() { RUN.replace("run ", "run --plain ") } else { RUN.to_owned() };
        tmux.line(&format!("clear; {before} {run}"));
        let seen = tmux.see("exit 0");
        assert!(seen.contains("done when") && seen.contains("pre_iteration"), "{before}: {seen}");
    }
    let refused = project.fails(2, &["watch"]);
    assert!(
        refused.contains("needs a terminal") && refused.contains("hookloop log --follow"),
        "{refused}"
    );
}
