//! The TUI with many sessions and tasks.
#![expect(clippy::print_stdout, reason = "figures, for who asks for them")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hookloop_config::paths::ProjectPaths;
use hookloop_core::session::{ConversationPolicy, SessionWork};
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project as Engine;
use hookloop_engine::session::checkout::CheckoutUse;
use hookloop_engine::session::open::{self, SessionRequest};

use crate::cli::Project;
use crate::screens::project;
use crate::screens::tmux::Tmux;

const TASKS: usize = 10_000;
const SESSIONS: usize = 1_000;
/// For the build that tests use; a release build takes a fraction of this time.
const OPENS_WITHIN: Duration = Duration::from_secs(5);

fn engine(project: &Project) -> Engine {
    let state = project.home().join(".local/state/hookloop");
    let place = ProjectPaths::find(&project.root(), &state).unwrap();
    Engine::open(&place, "tester", &LaunchContext::default()).unwrap()
}

fn add_tasks(project: &Project) {
    let mut lines = String::new();
    for number in 0..TASKS {
        let needs = match number % 4 {
            0 => String::new(),
            _ => format!(r#", "depends_on": ["t{}"]"#, number - 1),
        };
        writeln!(lines, r#"{{"id": "t{number}", "goal": "Goal number {number}"{needs}}}"#).unwrap();
    }
    let file = project.write("tasks.jsonl", &lines);
    project.ok(&["task", "import", file.to_str().unwrap()]);
}

fn add_sessions(project: &Project) {
    let engine = engine(project);
    engine.store().begin_bulk().unwrap();
    for number in 0..SESSIONS {
        let request = SessionRequest {
            name: Some(format!("session-{number}")),
            work: SessionWork::Prompt(format!("Work number {number}")),
            agent: "command:true".to_owned(),
            fallback: None,
            conversation: ConversationPolicy::default(),
            promises: Vec::new(),
            model: None,
            permissions: None,
            stop_when: None,
            at_retry_limit: None,
            limits: engine.rules().limits.session,
            machine: "elsewhere".to_owned(),
            no_changes_ok: true,
            may_change: Vec::new(),
            worker: None,
            checkout: CheckoutUse::Shared,
        };
        open::start(&engine, engine.runner().unwrap(), request).unwrap();
    }
    engine.store().finish_bulk().unwrap();
}

#[test]
fn the_tui_opens_a_large_project_and_answers_keys_in_time() {
    let project = project("");
    add_tasks(&project);
    add_sessions(&project);
    let tmux = Tmux::new(&project, 120, 40);
    let began = Instant::now();
    tmux.line("hookloop watch");
    tmux.see(&format!("1 of {SESSIONS}"));
    let opened = began.elapsed();
    tmux.text("3");
    let began = Instant::now();
    tmux.see(&format!("1 of {TASKS}"));
    let tasks = began.elapsed();
    let began = Instant::now();
    tmux.text("G");
    tmux.see(&format!("{TASKS} of {TASKS}"));
    let answered = began.elapsed();
    println!("opened in {opened:?}, tasks in {tasks:?}, a key in {answered:?}");
    assert!(opened < OPENS_WITHIN && tasks < OPENS_WITHIN, "{opened:?} {tasks:?}");
    // The time includes handling the key, drawing, and tmux, which the test polls every few
    // milliseconds.
    assert!(answered < Duration::from_millis(500), "{answered:?}");
    tmux.text("/number 9999");
    tmux.see("1 of 1");
}

/// Measures the events per second that a writer stores, with and without a TUI that watches.
#[test]
#[ignore = "a figure: run it alone on a quiet machine"]
fn a_flood_is_followed_and_not_held_up() {
    let rate = |is_watched: bool| {
        let project = project("");
        let tmux = Tmux::new(&project, 120, 40);
        if is_watched {
            tmux.line("hookloop watch");
            tmux.see("No sessions yet");
            tmux.text("3");
            tmux.see("No open tasks");
        }
        let engine = engine(&project);
        let (began, mut count) = (Instant::now(), 0_u32);
        let mut answers = Vec::new();
        while began.elapsed() < Duration::from_secs(10) {
            let command = hookloop_core::command::Command::AddTask {
                id: engine.new_task_id(),
                spec: hookloop_core::task::TaskSpec {
                    goal: format!("Goal {count}"),
                    ..Default::default()
                },
                depends_on: Vec::new(),
            };
            engine.execute(&command).unwrap();
            count += 1;
            if is_watched && count.is_multiple_of(500) {
                let asked = Instant::now();
                tmux.text("?");
                tmux.see("Keys");
                answers.push(asked.elapsed());
                tmux.keys(&["Escape"]);
            }
        }
        let waited: Duration = answers.iter().sum();
        let seconds = (began.elapsed() - waited).as_secs_f64();
        println!(
            "watched {is_watched}: {:.0} commands/s, keys {answers:?}",
            f64::from(count) / seconds
        );
        f64::from(count) / seconds
    };
    let (alone, watched) = (rate(false), rate(true));
    println!("watched / alone: {:.2}", watched / alone);
}
