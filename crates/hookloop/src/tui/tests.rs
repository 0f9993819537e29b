//! Tests of pictures and keys, without a terminal.
//!
//! Pictures are in `pictures/`. After an intended change, `HOOKLOOP_PICTURES=write` rewrites them: review the
//! difference.

mod gate_lines;
mod made_up;

use std::path::Path;
use std::sync::Arc;

use hookloop_core::event::EventBody;
use hookloop_core::session::{LimitDecision, SessionState};
use made_up::{at, changed_tests, news, overview, session, shown, tasks, undo_preview};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::data::{
    AgentOutput, OutputTail, ProblemMatter, ProjectOverview, ScreenNews, ScreenRequest,
    TaskContent, WhichTasks,
};
use super::dialog::ScreenDialog;
use super::draw::draw;
use super::pager::TextPager;
use super::state::{ScreenState, ScreenView};
use super::theme::ScreenTheme;
use crate::tui::message::{RetryQuestion, ScreenEffect, ScreenInput, ScreenParting};
use crate::undo_preview::UndoPreview;

fn state() -> ScreenState {
    let mut state = ScreenState::new(ScreenTheme { has_colours: false }, at(0));
    state.update(ScreenInput::News(news()));
    state
}

fn key(state: &mut ScreenState, code: KeyCode) -> Vec<ScreenEffect> {
    state.update(ScreenInput::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

/// Presses one key after the other; returns the effects of the last one, except `Look`.
fn press(state: &mut ScreenState, keys: &str) -> Vec<ScreenEffect> {
    let mut effects = Vec::new();
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '→' => KeyCode::Right,
            '←' => KeyCode::Left,
            '↑' => KeyCode::Up,
            '↓' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        effects = key(state, code);
    }
    effects.retain(|effect| !matches!(effect, ScreenEffect::Look(_)));
    effects
}

fn picture(state: &mut ScreenState, width: u16, height: u16) -> String {
    state.update(ScreenInput::Size { width, height });
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Holds what is seen against what was agreed on, on a small and a large terminal.
fn check(name: &str, state: &mut ScreenState) {
    for (width, height) in [(80, 24), (120, 40)] {
        let seen = picture(state, width, height);
        let file = format!("src/tui/pictures/{name}-{width}x{height}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var("HOOKLOOP_PICTURES").is_ok_and(|how| how == "write") {
            std::fs::write(&path, &seen).unwrap();
        }
        let agreed = std::fs::read_to_string(&path).unwrap();
        assert_eq!(seen, agreed, "{name} at {width}×{height}:\n{seen}");
    }
}

#[test]
fn the_first_view_is_the_list_of_problems() {
    let mut state = state();
    assert_eq!(state.view, ScreenView::Problems);
    check("problems", &mut state);
}

#[test]
fn the_list_of_sessions_is_drawn() {
    let mut state = state();
    press(&mut state, "2↓");
    check("sessions", &mut state);
}

#[test]
fn the_task_graph_is_drawn() {
    let mut state = state();
    press(&mut state, "3↓");
    check("tasks", &mut state);
}

#[test]
fn a_session_is_drawn_with_its_steps() {
    let mut state = state();
    press(&mut state, "2\n");
    state.update(ScreenInput::News(news()));
    check("session", &mut state);
    press(&mut state, "←↑");
    check("session-earlier", &mut state);
}

#[test]
fn the_question_at_the_retry_limit_is_drawn() {
    let mut state = running();
    check("retry", &mut state);
}

#[test]
fn a_pasted_message_is_shown_in_the_message_dialog() {
    let mut state = running();
    press(&mut state, "\u{1b}m");
    state.update(ScreenInput::Paste(
        "The files are latin-1.\nNot all of them: 漢字.rs is UTF-8".to_owned(),
    ));
    check("message", &mut state);
}

#[test]
fn help() {
    let mut state = state();
    press(&mut state, "?");
    check("help", &mut state);
}

/// The screen of a session that asks at the retry limit.
fn running() -> ScreenState {
    let mut state =
        ScreenState::new(ScreenTheme { has_colours: false }, at(0)).of_run("s7".parse().unwrap());
    state.update(ScreenInput::News(news()));
    let question =
        RetryQuestion { failing: vec!["tests::latin1".into(), "tests::empty".into()], retries: 2 };
    state.update(ScreenInput::Asked(Some(question)));
    state
}

#[test]
fn every_view_is_drawn_at_any_terminal_size() {
    for keys in ["1", "2", "3", "2\n", "?", "1m", "2\n m", "2q", "/x"] {
        for (width, height) in [(1, 1), (2, 2), (5, 3), (20, 5), (40, 8), (300, 100)] {
            let mut state = state();
            press(&mut state, keys);
            state.update(ScreenInput::News(news()));
            picture(&mut state, width, height);
        }
    }
    for (width, height) in [(1, 1), (2, 2), (5, 3), (20, 5), (40, 8), (300, 100)] {
        picture(&mut previewed(Ok(undo_preview())), width, height);
    }
    let mut state = running();
    state.pager = Some(TextPager::new("a".into(), &"long line ".repeat(50)));
    for (width, height) in [(1, 1), (20, 5), (80, 24)] {
        picture(&mut state, width, height);
    }
}

#[test]
fn only_data_of_the_visible_view_is_requested() {
    let mut state = ScreenState::new(ScreenTheme { has_colours: true }, at(0));
    let look = |effects: Vec<ScreenEffect>| match effects.into_iter().next_back() {
        Some(ScreenEffect::Look(request)) => request,
        other => panic!("{other:?}"),
    };
    let request = look(state.update(ScreenInput::News(news())));
    let matter = ProblemMatter::Problem("task:parser@41".parse().unwrap());
    assert_eq!(request, ScreenRequest { problem: Some(matter), ..ScreenRequest::default() });
    let request = look(key(&mut state, KeyCode::Char('3')));
    assert_eq!(
        request,
        ScreenRequest { tasks: Some(WhichTasks::Open), ..ScreenRequest::default() }
    );
    let request = look(key(&mut state, KeyCode::Char('c')));
    assert_eq!(request.tasks, Some(WhichTasks::All));
    // Its task is held by a session.
    let request = look(key(&mut state, KeyCode::Enter));
    assert_eq!(
        request,
        ScreenRequest { session: Some("s7".parse().unwrap()), ..ScreenRequest::default() }
    );
    assert_eq!(key(&mut state, KeyCode::Char('j')), []);
}

#[test]
fn changed_tests_are_shown_beside_those_of_the_base_and_can_be_allowed() {
    let mut news = news();
    news.facts = Some(Arc::new(changed_tests()));
    let mut state = state();
    state.update(ScreenInput::News(news));
    check("problems-tests", &mut state);
    assert_eq!(press(&mut state, "ay"), [ScreenEffect::Approve("task:parser@41".parse().unwrap())]);
}

#[test]
fn dismissals_and_approvals_ask_for_confirmation() {
    let mut state = state();
    assert_eq!(press(&mut state, "d"), []);
    assert_eq!(press(&mut state, "n"), []);
    assert_eq!(press(&mut state, "dy"), [ScreenEffect::Dismiss("task:parser@41".parse().unwrap())]);
    assert_eq!(press(&mut state, "ay"), [], "nothing is submitted");
    assert_eq!(press(&mut state, "↓ay"), [ScreenEffect::Approve("task:login@77".parse().unwrap())]);
    let answer = press(&mut state, "mlatin-1\n");
    assert_eq!(
        answer,
        [ScreenEffect::Answer { key: "task:login@77".parse().unwrap(), text: "latin-1".into() }]
    );
    assert_eq!(press(&mut state, "↓mx\n"), [], "a session that is over takes no answer");
}

#[test]
fn messages_and_pauses_go_to_the_selected_session() {
    let s7 = || "s7".parse().unwrap();
    let mut state = state();
    assert_eq!(press(&mut state, "2p"), [ScreenEffect::Pause(s7())]);
    let sent = press(&mut state, "mhello 漢\n");
    assert_eq!(sent, [ScreenEffect::Message { session: s7(), text: "hello 漢".into() }]);
    assert_eq!(press(&mut state, "m  \n"), [], "nothing is said");
    assert_eq!(press(&mut state, "mnever\u{1b}"), []);
    assert_eq!(press(&mut state, "↓p"), [], "it is over");
    assert_eq!(press(&mut state, "r"), []);
    assert!(state.told().unwrap().contains("can't be resumed"), "{:?}", state.told());
}

#[test]
fn a_complete_session_without_proof_has_no_check_mark() {
    let mut overview = overview();
    overview.sessions[2].row.proven = false;
    let mut state = state();
    state.update(ScreenInput::News(ScreenNews {
        overview: Some(Arc::new(overview)),
        ..ScreenNews::default()
    }));
    press(&mut state, "2");
    let seen = picture(&mut state, 80, 24);
    assert!(seen.contains("complete, not proven") && !seen.contains("✓ s2"), "{seen}");
}

#[test]
fn an_ended_session_shows_its_last_steps_and_the_keys_to_continue_it() {
    let mut shown = shown();
    for kind in ["session_ending", "session_ended"] {
        let data = r#"{"outcome": "needs_human", "reason": "no key"}"#;
        let body = EventBody::decode(kind, 1, data).unwrap();
        Arc::make_mut(&mut shown.timeline).apply(at(5), &body);
        Arc::make_mut(&mut shown.session).apply(&body);
    }
    shown.state = SessionState::NeedsHuman;
    let mut overview = overview();
    overview.sessions[0] = session("s7", "needs_human", Some("no key"));
    overview.problems[2].matter = ProblemMatter::Problem("session:s7@90".parse().unwrap());
    overview.problems[2].can_answer = true;
    let overview = Some(Arc::new(overview));
    let mut state = state();
    let news = ScreenNews { overview, shown: Some(Arc::new(shown)), ..news() };
    state.update(ScreenInput::News(news.clone()));
    press(&mut state, "2\n");
    state.update(ScreenInput::News(news));
    let seen = picture(&mut state, 100, 30);
    assert!(seen.contains("message from ada") && !seen.contains("no steps yet"), "{seen}");
    assert!(seen.contains("m answer  r resume") && !seen.contains("p pause"), "{seen}");
    let answer = press(&mut state, "mhere\n");
    let key = "session:s7@90".parse().unwrap();
    assert_eq!(answer, [ScreenEffect::Answer { key, text: "here".into() }]);
    let resumed = ScreenEffect::Part(ScreenParting::Resume("s7".parse().unwrap()));
    assert_eq!(press(&mut state, "ry"), [resumed]);
}

/// `x` ends an agent, so it asks first; only a session that runs can be stopped.
#[test]
fn stopping_a_running_session_asks_for_confirmation() {
    let mut state = state();
    assert_eq!(press(&mut state, "2x"), []);
    let seen = picture(&mut state, 100, 30);
    assert!(seen.contains("Stop session s7 now?"), "{seen}");
    assert_eq!(press(&mut state, "n"), []);
    assert_eq!(press(&mut state, "x\u{1b}"), []);
    assert_eq!(press(&mut state, "xy"), [ScreenEffect::Stop("s7".parse().unwrap())]);
    state.update(ScreenInput::Done(Ok(
        "session s7 is stopping; then: hookloop resume s7".to_owned()
    )));
    assert!(state.told().unwrap().contains("is stopping"), "{:?}", state.told());
    assert_eq!(press(&mut state, "↓x"), [], "it is over");
    assert!(state.told().unwrap().contains("is not running"), "{:?}", state.told());
    assert_eq!(press(&mut state, "3x"), [], "a list of tasks");
}

/// The state after `u` on the session s5, which is over, with these files to change.
fn previewed(preview: Result<UndoPreview, &str>) -> ScreenState {
    let mut state = state();
    assert_eq!(press(&mut state, "2↓u"), [ScreenEffect::PreviewUndo("s5".parse().unwrap())]);
    answer_preview(&mut state, preview);
    state
}

fn answer_preview(state: &mut ScreenState, preview: Result<UndoPreview, &str>) {
    let session = "s5".parse().unwrap();
    let preview = preview.map_err(str::to_owned);
    state.update(ScreenInput::UndoPreviewed { session, preview });
}

#[test]
fn an_undo_lists_the_files_and_asks_for_confirmation() {
    let mut state = previewed(Ok(undo_preview()));
    check("undo", &mut state);
    let undo = ScreenEffect::Undo { session: "s5".parse().unwrap(), digest: "d1".into() };
    assert_eq!(press(&mut state, "y"), [undo]);
    assert!(state.dialog.is_none());
    assert_eq!(press(&mut state, "q"), [], "the undo is not interrupted");
    assert!(state.told().unwrap().contains("not finished"), "{:?}", state.told());
    state.update(ScreenInput::Undone(Ok("40 files were restored".to_owned())));
    assert_eq!(state.told(), Some("40 files were restored"));
    assert_eq!(press(&mut state, "q"), [ScreenEffect::Part(ScreenParting::Left)]);
}

#[test]
fn any_key_but_y_cancels_an_undo() {
    for keys in ["n", "\n", "\u{1b}", "↓", "u", "Y"] {
        let mut state = previewed(Ok(undo_preview()));
        assert_eq!(press(&mut state, keys), [], "{keys:?}");
        assert!(state.dialog.is_none(), "{keys:?}");
        assert_eq!(press(&mut state, "y"), [], "{keys:?}");
    }
}

#[test]
fn a_running_session_cannot_be_undone() {
    let mut state = state();
    assert_eq!(press(&mut state, "2u"), []);
    assert!(state.told().unwrap().contains("is running: pause or stop it"), "{:?}", state.told());
    assert!(state.dialog.is_none());
}

/// The files are read on another thread, so the answer may come at any time.
#[test]
fn a_preview_of_an_undo_that_nobody_waits_for_opens_no_dialog() {
    let mut state = state();
    press(&mut state, "2↓u");
    let seen = picture(&mut state, 100, 30);
    assert!(seen.contains("reading the files of session s5"), "{seen}");
    assert_eq!(press(&mut state, "y"), [], "the key cancels");
    answer_preview(&mut state, Ok(undo_preview()));
    assert!(state.dialog.is_none());
    press(&mut state, "u\u{1b}?");
    answer_preview(&mut state, Err("no turn is kept"));
    assert_eq!(state.told(), None);
    assert!(matches!(state.dialog, Some(ScreenDialog::Help)));
}

#[test]
fn an_undo_that_fails_or_changes_nothing_is_reported() {
    let mut state = previewed(Err("no turn is kept"));
    assert_eq!(state.told(), Some("! no turn is kept"));
    assert!(state.dialog.is_none());
    let kept = UndoPreview { files: Vec::new(), file_count: 0, ..undo_preview() };
    state = previewed(Ok(kept.clone()));
    let told = state.told().unwrap();
    assert!(told.contains("2 files stay: a person may have changed them"), "{told}");
    state = previewed(Ok(UndoPreview { edited: Vec::new(), edited_count: 0, ..kept }));
    assert!(state.told().unwrap().contains("in that state already"), "{:?}", state.told());
    assert_eq!(press(&mut state, "y"), []);
    let mut state = previewed(Ok(undo_preview()));
    press(&mut state, "y");
    state.update(ScreenInput::Undone(Err("the disk is full".to_owned())));
    assert_eq!(state.told(), Some("! the disk is full"));
    assert_eq!(press(&mut state, "q"), [ScreenEffect::Part(ScreenParting::Left)]);
}

/// A path may have any character but a slash and a zero byte.
#[test]
fn control_characters_in_paths_of_an_undo_are_not_drawn() {
    let mut preview = undo_preview();
    preview.files[0].0 = "\u{1b}[2J\u{202e}evil\n".to_owned();
    preview.edited[0].path = "\u{7}evil\r".to_owned();
    preview.old_head = Some("0123456789abcdef".to_owned());
    let mut state = previewed(Ok(preview));
    let seen = picture(&mut state, 100, 30);
    assert!(!seen.contains(|c: char| c != '\n' && c.is_control()), "{seen:?}");
    assert!(!seen.contains('\u{202e}') && seen.matches("evil").count() == 2, "{seen}");
    assert!(seen.contains("The commit before these turns is 0123456789ab."), "{seen}");
}

#[test]
fn a_paused_session_is_resumed_unless_another_runs_here() {
    let mut overview = overview();
    overview.sessions = vec![session("s9", "paused", None)];
    let mut state = ScreenState::new(ScreenTheme { has_colours: false }, at(0));
    state.update(ScreenInput::News(ScreenNews {
        overview: Some(Arc::new(overview)),
        ..ScreenNews::default()
    }));
    assert_eq!(
        press(&mut state, "2ry"),
        [ScreenEffect::Part(ScreenParting::Resume("s9".parse().unwrap()))]
    );
    state.own = Some("s7".parse().unwrap());
    assert_eq!(press(&mut state, "r"), []);
    assert!(state.told().unwrap().contains("hookloop resume s9"), "{:?}", state.told());
}

#[test]
fn the_question_of_another_session_can_be_answered() {
    let mut overview = overview();
    let line = &mut overview.problems[0];
    line.matter = ProblemMatter::Problem("session:s8@3".parse().unwrap());
    line.title = "session s8 needs a decision: Make it work".to_owned();
    line.reason = "gates still fail after 2 retries: tests, lint".to_owned();
    line.asks = true;
    let told = |overview: &ProjectOverview| {
        ScreenInput::News(ScreenNews {
            overview: Some(Arc::new(overview.clone())),
            ..ScreenNews::default()
        })
    };
    let mut state = ScreenState::new(ScreenTheme { has_colours: false }, at(0));
    state.update(told(&overview));
    let settle = |answer| ScreenEffect::Settle { key: "session:s8@3".parse().unwrap(), answer };
    for (key, answer) in
        [("c", LimitDecision::Continue), ("a", LimitDecision::Accept), ("q", LimitDecision::Abort)]
    {
        assert_eq!(press(&mut state, &format!("!x{key}")), [settle(answer)]);
    }
    press(&mut state, "!");
    check("settle", &mut state);
    // Somebody else was quicker.
    overview.problems.clear();
    state.update(told(&overview));
    assert!(state.dialog.is_none());
    assert_eq!(press(&mut state, "!c"), []);
}

#[test]
fn the_retry_question_can_be_answered_after_visiting_other_views() {
    let mut state = running();
    assert_eq!(press(&mut state, "\u{1b}2!x"), []);
    assert_eq!(press(&mut state, "a"), [ScreenEffect::Decide(LimitDecision::Accept)]);
    assert_eq!(press(&mut state, "!a"), [], "it was answered");
    for (answer, decided) in [("c", LimitDecision::Continue), ("q", LimitDecision::Abort)] {
        assert_eq!(press(&mut running(), answer), [ScreenEffect::Decide(decided)]);
    }
    // The session ended, or the user pressed ctrl-c.
    let mut state = running();
    state.update(ScreenInput::Asked(None));
    assert!(state.dialog.is_none() && state.question.is_none());
}

#[test]
fn quitting_the_screen_ends_no_session_unasked() {
    assert_eq!(press(&mut state(), "q"), [ScreenEffect::Part(ScreenParting::Left)]);
    let mut state = running();
    assert_eq!(press(&mut state, "\u{1b}q"), []);
    assert_eq!(press(&mut state, "l"), [ScreenEffect::Part(ScreenParting::Left)]);
    assert_eq!(press(&mut state, "qe"), [ScreenEffect::Interrupt]);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(
        running().update(ScreenInput::Key(interrupt)).first(),
        Some(&ScreenEffect::Interrupt)
    );
    assert_eq!(
        self::state().update(ScreenInput::Key(interrupt)).first(),
        Some(&ScreenEffect::Part(ScreenParting::Left))
    );
}

#[test]
fn a_step_opens_its_artifact_in_the_pager() {
    let mut state = running();
    press(&mut state, "\u{1b}");
    let opened = press(&mut state, "←↑↑↑o");
    let [ScreenEffect::Open(leaf)] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!(
        (leaf.title.as_str(), leaf.artifact.as_deref()),
        ("stop tests: blocked", Some("/state/artifacts/1"))
    );
    state.update(ScreenInput::Opened(TextPager::new("stop tests".into(), "one\ntwo\nthree\n")));
    assert_eq!(press(&mut state, "/three\nn"), []);
    assert_eq!(press(&mut state, "o"), [ScreenEffect::Lend("one\ntwo\nthree\n".into())]);
    press(&mut state, "\u{1b}w");
    let seen = picture(&mut state, 80, 24);
    assert!(seen.contains("The files are latin-1."), "{seen}");
}

#[test]
fn a_list_is_filtered_until_escape_is_pressed() {
    let mut state = state();
    press(&mut state, "/encoding\n");
    assert_eq!(state.problem_list.count(), (1, 1));
    press(&mut state, "\u{1b}");
    assert_eq!(state.problem_list.count().1, 3);
    press(&mut state, "3/write");
    assert_eq!(state.task().map(|task| task.id.as_str()), Some("write"));
    let seen = picture(&mut state, 80, 24);
    assert!(seen.contains("◌ write created Write it up") && seen.contains("/write"), "{seen}");
}

#[test]
fn control_characters_in_titles_goals_and_output_are_not_drawn() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\0\u{9b}31m漢\u{301}\u{301}\u{301}\u{301}\u{301}\nsecond";
    let mut overview = overview();
    overview.project = evil.to_owned();
    overview.problems[0].title = evil.to_owned();
    overview.problems[0].reason = evil.to_owned();
    overview.sessions[0].row.work = evil.to_owned();
    let mut news = ScreenNews { overview: Some(Arc::new(overview)), ..news() };
    let mut tasks = tasks();
    tasks.lines[0].task.as_mut().unwrap().goal = evil.to_owned();
    news.tasks = Some(Arc::new(tasks));
    let mut shown = shown();
    let mut said = OutputTail::default();
    said.push(evil.as_bytes());
    shown.heard = AgentOutput::Here(said);
    news.shown = Some(Arc::new(shown));
    let mut state = ScreenState::new(ScreenTheme { has_colours: true }, at(0));
    for keys in ["1", "2", "3", "2\n"] {
        state.update(ScreenInput::News(news.clone()));
        press(&mut state, keys);
        state.update(ScreenInput::News(news.clone()));
        let seen = picture(&mut state, 120, 40);
        let acts =
            |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
        assert!(!seen.contains(acts), "{keys}: {seen:?}");
        assert!(seen.contains("evil") && !seen.contains(&"\u{301}".repeat(4)), "{keys}: {seen}");
    }
}

#[test]
fn nothing_is_coloured_on_a_terminal_without_colours() {
    let mut state = state();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(&state, frame)).unwrap();
    let has_colour = |terminal: &Terminal<TestBackend>| {
        let cells = terminal.backend().buffer().content();
        cells.iter().any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(!has_colour(&terminal));
    state.theme = ScreenTheme { has_colours: true };
    terminal.draw(|frame| draw(&state, frame)).unwrap();
    assert!(has_colour(&terminal));
}

#[test]
fn an_unreadable_log_is_reported_until_the_next_update() {
    let mut state = state();
    let trouble = Some("no server answers".to_owned());
    state.update(ScreenInput::News(ScreenNews { trouble, ..news() }));
    assert!(picture(&mut state, 120, 24).contains("! can't read the log: no server answers"));
    state.update(ScreenInput::News(news()));
    assert!(!picture(&mut state, 120, 24).contains("can't read"));
}

/// The processor time of this thread: other tests on the same processor do not count.
fn thread_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    std::time::Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

/// With ten thousand tasks and a thousand sessions, a key takes an unnoticeable time.
#[test]
fn keys_are_handled_fast_with_many_tasks_and_sessions() {
    let mut overview = overview();
    overview.sessions =
        (0..1_000).map(|number| session(&format!("s{number}"), "complete", None)).collect();
    let line = tasks().lines.remove(0);
    let lines = (0..10_000).map(|number| {
        let mut line = line.clone();
        line.task.as_mut().unwrap().id = format!("task-{number}");
        line
    });
    let tasks = TaskContent { lines: lines.collect(), cut: false };
    let mut state = ScreenState::new(ScreenTheme { has_colours: true }, at(0));
    let news = ScreenNews {
        overview: Some(Arc::new(overview)),
        tasks: Some(Arc::new(tasks)),
        ..ScreenNews::default()
    };
    state.update(ScreenInput::News(news));
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut times = Vec::new();
    for keys in ["3", "j", "G", "k", "/", "9", "9", "\n", "2", "G", "j"] {
        let began = thread_time();
        press(&mut state, keys);
        terminal.draw(|frame| draw(&state, frame)).unwrap();
        times.push(thread_time() - began);
    }
    let slowest = times.iter().max().unwrap();
    assert!(*slowest < std::time::Duration::from_millis(50), "{times:?}");
}

#[test]
fn a_running_gate_is_shown_with_its_time_command_and_output() {
    use hookloop_engine::session::now::{NowRecord, NowStep, RunningHook};
    let mut news = news();
    let mut shown = shown();
    let hook = RunningHook {
        name: "integration".to_owned(),
        command: "make integration".to_owned(),
        attempt: 1,
        since: at(23),
        until: at(-577),
        printed_at: Some(at(1)),
        lines: vec!["test 11 of 40 passes".to_owned(), "test 12 of 40 passes".to_owned()],
    };
    let point = "stop".to_owned();
    shown.now = Some(NowRecord {
        pid: 7,
        iteration: 2,
        task: None,
        step: NowStep::Hooks { point, count: 3, ended: 1 },
        since: at(60),
        until: None,
        lines: Vec::new(),
        hooks: vec![hook],
    });
    news.shown = Some(Arc::new(shown));
    let mut state = state();
    press(&mut state, "2\n");
    state.update(ScreenInput::News(news));
    check("session_gate", &mut state);
    let seen = picture(&mut state, 100, 30);
    assert!(seen.contains("stop integration (2 of 3) runs, 23 s of 10:00"), "{seen}");
    assert!(seen.contains("output of integration: make integration"), "{seen}");
    assert_eq!(seen.matches("test 12 of 40 passes").count(), 2, "{seen}");
}
