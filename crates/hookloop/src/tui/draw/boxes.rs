//! Boxes above a view: help, questions, typed texts.

use hookloop_core::session::SessionState;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::{put_all, said, undo, wrapped};
use crate::present;
use crate::tui::dialog::ScreenDialog;
use crate::tui::keys::{can_resume, is_open};
use crate::tui::state::{ScreenState, ScreenView};
use crate::tui::theme::{BOLD, DIM, PLAIN};

/// The widest box.
const WIDTH_MAX: u16 = 76;
/// Lines of the frame of a box.
const FRAME: u16 = 2;
/// Lines of text that can be seen at once while it is typed.
const TYPED_MAX: u16 = 8;

type Keys = (&'static str, &'static str);

const EVERYWHERE: &[Keys] = &[
    ("1-4 tab", "switch view"),
    ("↑↓ jk", "move"),
    ("enter", "open"),
    ("esc", "back"),
    ("/", "filter a list, search a text"),
    ("m", "send a message to the agent; answer a problem"),
    ("p r x", "pause, resume, stop a session"),
    ("u", "undo the file changes of a session"),
    ("a d", "approve submitted work; dismiss a problem"),
    ("!", "decide about a session at its retry limit"),
    ("←→ hl", "switch iteration"),
    ("o", "show the whole output; again: in $PAGER"),
    ("w", "show pending output for the next prompt"),
    ("c", "show completed tasks"),
    ("ctrl-c", "end the session that runs here; again: at once"),
    ("ctrl-z", "suspend; return with fg"),
    ("q", "quit"),
];

/// The keys of the view that is shown, the most useful first.
pub(super) fn keys(state: &ScreenState) -> Vec<Keys> {
    if state.pager.is_some() {
        return vec![
            ("↑↓", "scroll"),
            ("←→", "sideways"),
            ("/", "search"),
            ("n N", "next"),
            ("o", "$PAGER"),
            ("esc", "back"),
        ];
    }
    let mut keys = match state.view {
        ScreenView::Problems => {
            let line = state.problem();
            let can = |what: bool, keys: Keys| what.then_some(keys);
            let mut keys = vec![("enter", "open")];
            keys.extend(can(state.asking().is_some(), ("!", "decide")));
            keys.extend(can(line.is_some_and(|line| line.can_answer), ("m", "answer")));
            keys.extend(can(line.is_some_and(|line| state.can_approve(line)), ("a", "approve")));
            keys.extend(can(line.is_some(), ("d", "dismiss")));
            keys.extend(can(line.is_some_and(|line| line.can_resume), ("r", "resume")));
            keys
        }
        ScreenView::Sessions => {
            let mut keys = vec![("enter", "open")];
            keys.extend(of_session(state));
            keys.push(("/", "filter"));
            keys
        }
        ScreenView::Tasks => vec![("enter", "open"), ("c", "completed"), ("/", "filter")],
        ScreenView::Session => {
            let mut keys = vec![("←→", "iteration"), ("↑↓", "step"), ("o", "output")];
            keys.extend(of_session(state));
            let shown = state.shown.as_ref();
            let has_pending = shown.is_some_and(|shown| !shown.session.pending.is_empty());
            keys.extend(has_pending.then_some(("w", "pending")));
            keys
        }
    };
    keys.extend([("?", "help"), ("q", "quit")]);
    keys
}

/// The keys that act on the selected session in its state.
fn of_session(state: &ScreenState) -> Vec<Keys> {
    let Some((id, session)) = state.subject() else { return Vec::new() };
    let mut keys = Vec::new();
    if is_open(session) {
        keys.push(("m", "message"));
    } else if state.question_of(&id).is_some() {
        keys.push(("m", "answer"));
    }
    if session == SessionState::Running {
        keys.push(("p", "pause"));
    }
    if can_resume(session) {
        keys.push(("r", "resume"));
    }
    if session != SessionState::Running {
        keys.push(("u", "undo"));
    }
    keys
}

pub(super) fn draw(state: &ScreenState, dialog: &ScreenDialog, frame: &mut Frame<'_>, area: Rect) {
    match dialog {
        ScreenDialog::Help => {
            let line = |(keys, what): &Keys| {
                Line::from(vec![Span::styled(format!("{keys:<9}"), BOLD), Span::raw(*what)])
            };
            show(frame, area, "Keys", EVERYWHERE.iter().map(line).collect());
        }
        ScreenDialog::Sure { question, .. } => {
            let mut lines = text(question, area);
            lines.extend([Line::default(), choices(&[("y", "yes"), ("n", "no")])]);
            show(frame, area, "Confirm", lines);
        }
        ScreenDialog::Say { to, editor } => typed(frame, area, &to.title(), editor),
        ScreenDialog::Retry => retry(state, frame, area),
        ScreenDialog::Settle { reason, .. } => what_now(frame, area, text(reason, area)),
        ScreenDialog::Leave => {
            let mut lines = text("The session runs in this program.", area);
            lines.extend([
                Line::default(),
                choices(&[("l", "close the TUI: the session continues with plain lines")]),
                choices(&[("e", "end the session, as ctrl-c does")]),
                choices(&[("esc", "cancel")]),
            ]);
            show(frame, area, "Quit", lines);
        }
        ScreenDialog::UndoReading(id) => {
            let mut lines = text(&format!("reading the files of session {id} …"), area);
            lines.extend([Line::default(), choices(&[("any key", "cancel")])]);
            show(frame, area, "Undo", lines);
        }
        ScreenDialog::Undo(preview) => {
            let mut lines = undo::lines(preview, usize::from(area.height.saturating_sub(FRAME)));
            lines.push(choices(&[("y", "undo these changes"), ("any other key", "cancel")]));
            show(frame, area, &format!("Undo session {}", preview.session), lines);
        }
    }
}

fn retry(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    let Some(question) = &state.question else { return };
    let retries = present::counted(question.retries, "retry", "retries");
    let mut lines = text(&format!("Retry limit reached after {retries}."), area);
    lines.extend(text(&format!("Still failing: {}", present::some(&question.failing)), area));
    what_now(frame, area, lines);
}

fn what_now(frame: &mut Frame<'_>, area: Rect, mut lines: Vec<Line<'static>>) {
    lines.extend([
        Line::default(),
        choices(&[("c", "continue with all retries")]),
        choices(&[("a", "accept without passing gates")]),
        choices(&[("q", "stop the session")]),
        choices(&[("esc", "decide later; ! asks again")]),
    ]);
    show(frame, area, "Decision needed", lines);
}

fn choices(choices: &[(&'static str, &'static str)]) -> Line<'static> {
    let span = |(key, what): &(&'static str, &'static str)| {
        [Span::styled(format!("[{key}]"), BOLD), Span::raw(format!(" {what}  "))]
    };
    Line::from(choices.iter().flat_map(span).collect::<Vec<_>>())
}

fn text(text: &str, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width.min(WIDTH_MAX).saturating_sub(4));
    wrapped(text, width, usize::from(area.height)).into_iter().map(Line::from).collect()
}

/// Draws the frame of a box in the middle, and returns the area inside of it.
fn framed(frame: &mut Frame<'_>, area: Rect, title: &str, height: u16) -> Rect {
    let width = area.width.min(WIDTH_MAX);
    let height = area.height.min(height.saturating_add(FRAME));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered().title(said(&format!(" {title} "), BOLD));
    let inside = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    Rect { x: inside.x + inside.width.min(1), width: inside.width.saturating_sub(2), ..inside }
}

fn show(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inside = framed(frame, area, title, height);
    put_all(frame, inside, lines);
}

fn typed(frame: &mut Frame<'_>, area: Rect, title: &str, editor: &crate::tui::editor::TextEditor) {
    let width = usize::from(area.width.min(WIDTH_MAX).saturating_sub(4));
    let (lines, (row, column)) = editor.wrapped(width);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(TYPED_MAX);
    let inside = framed(frame, area, title, height + 2);
    let room = usize::from(inside.height.saturating_sub(2)).max(1);
    // The line of the cursor is among those that are shown.
    let top = (row + 1).saturating_sub(room);
    let shown = lines.iter().skip(top).take(room).map(|line| Line::from(said(line, PLAIN)));
    put_all(frame, inside, shown);
    let hint =
        Rect { y: inside.bottom().saturating_sub(1), height: inside.height.min(1), ..inside };
    let keys = "enter sends, alt-enter adds a line, esc cancels";
    put_all(frame, hint, [Line::from(Span::styled(keys, DIM))]);
    let x = inside.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
    let y = inside.y.saturating_add(u16::try_from(row - top).unwrap_or(u16::MAX));
    if inside.height > 0 && inside.width > 0 {
        frame.set_cursor_position((x.min(inside.right() - 1), y.min(inside.bottom() - 1)));
    }
}
