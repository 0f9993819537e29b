//! Draws a state. Pure: the same state gives the same picture.

mod boxes;
mod problems;
mod reading;
mod session;
mod sessions;
mod tasks;
mod undo;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::state::{ScreenState, ScreenView};
use super::theme::{BOLD, CHOSEN, DIM, PLAIN};
use crate::sanitize::screen_line;

pub(super) fn draw(state: &ScreenState, frame: &mut Frame<'_>) {
    let rows =
        [Constraint::Length(1), Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [header, names, body, footer] = Layout::vertical(rows).areas(frame.area());
    put(frame, header, self::header(state));
    put(frame, names, self::names(state));
    let body =
        Rect { y: body.y + body.height.min(1), height: body.height.saturating_sub(1), ..body };
    match (&state.pager, state.view) {
        (Some(pager), _) => reading::draw(state, pager, frame, body),
        (None, ScreenView::Problems) => problems::draw(state, frame, body),
        (None, ScreenView::Sessions) => sessions::draw(state, frame, body),
        (None, ScreenView::Tasks) => tasks::draw(state, frame, body),
        (None, ScreenView::Session) => session::draw(state, frame, body),
    }
    self::footer(state, frame, footer);
    if let Some(dialog) = &state.dialog {
        boxes::draw(state, dialog, frame, body);
    }
}

/// Draws a line in the first row of an area.
fn put(frame: &mut Frame<'_>, area: Rect, line: Line<'_>) {
    frame.render_widget(line, area.intersection(frame.area()));
}

/// Draws lines from the top of an area; lines that do not fit are left out.
fn put_all<'l>(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'l>>) {
    for (row, line) in area.rows().zip(lines) {
        put(frame, row, line);
    }
}

/// Marks a row as the chosen one, over its whole width.
fn choose(frame: &mut Frame<'_>, row: Rect) {
    frame.buffer_mut().set_style(row, CHOSEN);
}

/// Returns text from outside, sanitized.
fn said(text: &str, style: Style) -> Span<'static> {
    Span::styled(screen_line(text), style)
}

/// Returns the first line of a text from outside, sanitized.
fn first(text: &str, style: Style) -> Span<'static> {
    said(text.lines().next().unwrap_or_default(), style)
}

/// Truncates or pads a text to a width.
fn cell(text: &str, width: usize) -> String {
    let text = screen_line(text);
    let cut = crate::output::cut(&text, width);
    let missing = width.saturating_sub(cut.width());
    format!("{cut}{}", " ".repeat(missing))
}

/// Wraps a text to `width` columns, between words if possible.
fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut open = String::new();
        for word in screen_line(line).split(' ') {
            let is_long = open.width() + 1 + word.width() > width;
            if is_long && !open.is_empty() {
                lines.push(std::mem::take(&mut open));
            }
            if !open.is_empty() {
                open.push(' ');
            }
            open.push_str(word);
        }
        lines.push(open);
        if lines.len() >= most {
            break;
        }
    }
    lines.truncate(most);
    lines
}

fn header(state: &ScreenState) -> Line<'static> {
    let Some(overview) = &state.overview else {
        return Line::from(vec![
            Span::styled("hookloop", BOLD),
            Span::styled("  reading the log …", DIM),
        ]);
    };
    let problems = overview.problem_count;
    let running = overview.running;
    let problem_style = if problems == 0 { DIM } else { state.theme.bad() };
    let problems = match problems {
        0 => "no problems".to_owned(),
        1 => "! 1 problem".to_owned(),
        count => format!("! {count} problems"),
    };
    let running_style = if running == 0 { DIM } else { state.theme.busy() };
    let mut spans = vec![
        said(&overview.project, BOLD),
        Span::raw("  "),
        Span::styled(problems, problem_style),
        Span::raw("  "),
        Span::styled(format!("▶ {running} running"), running_style),
        Span::raw("  "),
        Span::raw(match overview.cost_today.known_micros() {
            Some(_) => format!("{} today", overview.cost_today),
            None => "cost unknown today".to_owned(),
        }),
    ];
    if let Some(trouble) = &state.trouble {
        spans.extend([
            Span::raw("  "),
            first(&format!("! can't read the log: {trouble}"), state.theme.bad()),
        ]);
    }
    Line::from(spans)
}

fn names(state: &ScreenState) -> Line<'static> {
    let mut spans = Vec::new();
    for (place, view) in ScreenView::ALL.into_iter().enumerate() {
        let style = if view == state.view { CHOSEN } else { PLAIN };
        spans.push(Span::styled(format!(" {} {} ", place + 1, view.name()), style));
    }
    if state.question.is_some() || state.asking().is_some() {
        spans.extend([
            Span::raw("  "),
            Span::styled("! decision needed: press !", state.theme.bad()),
        ]);
    }
    Line::from(spans)
}

/// Draws the last row: the typed text, a message, or the keys.
fn footer(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    if let Some(seeking) = &state.seeking {
        let (lines, (row, column)) = seeking.editor.wrapped(usize::MAX);
        let line = lines.get(row).cloned().unwrap_or_default();
        put(frame, area, Line::from(vec![Span::styled("/", BOLD), said(&line, PLAIN)]));
        let x = area.x.saturating_add(u16::try_from(column + 1).unwrap_or(u16::MAX));
        frame.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
        return;
    }
    if let Some(told) = state.told() {
        let style = if told.starts_with('!') { state.theme.bad() } else { BOLD };
        put(frame, area, Line::from(first(told, style)));
        return;
    }
    let mut spans = Vec::new();
    for (keys, what) in boxes::keys(state) {
        spans.extend([Span::styled(keys, BOLD), Span::styled(format!(" {what}  "), DIM)]);
    }
    put(frame, area, Line::from(spans));
}
