//! The latest sessions.

use hookloop_core::session::plan::{CompactCount, Dollars};
use hookloop_engine::store::SessionRow;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{cell, choose, put, said};
use crate::tui::data::SessionLine;
use crate::tui::state::ScreenState;
use crate::tui::steps::ago;
use crate::tui::theme::{BOLD, DIM, PLAIN, sign, state_name};

/// Widths of the columns, each with the space after it.
const ID: usize = 14;
const STATE: usize = 21;
const TURNS: usize = 5;
const AGE: usize = 5;
const COST: usize = 10;
/// Narrower screens leave out usage and agent.
const WIDE: u16 = 100;
const AGENT: usize = 16;

pub(super) fn draw(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    let Some(overview) = &state.overview else { return };
    if state.session_list.is_empty() {
        let text = if state.filter().is_empty() {
            "No sessions yet. Start one: hookloop run \"…\" --agent claude".to_owned()
        } else {
            format!("No session matches `{}`.", state.filter())
        };
        put(frame, area, Line::from(said(&text, BOLD)));
        return;
    }
    let rows = [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [heading, list, rule] = Layout::vertical(rows).areas(area);
    put(frame, heading, self::heading(area.width));
    let lines = state.session_list.window(usize::from(list.height));
    for (row, (place, is_chosen)) in list.rows().zip(lines) {
        let Some(line) = overview.sessions.get(place) else { continue };
        put(frame, row, session(state, line, area.width));
        if is_chosen {
            choose(frame, row);
        }
    }
    let (at, all) = state.session_list.count();
    let filter = if state.filter().is_empty() {
        String::new()
    } else {
        format!("── filter: {} ", state.filter())
    };
    put(frame, rule, Line::from(said(&format!("── {at} of {all} {filter}"), DIM)));
}

fn heading(width: u16) -> Line<'static> {
    let mut text = format!("  {:<ID$}{:<STATE$}{:<TURNS$}{:<AGE$}", "ID", "STATE", "ITER", "AGE");
    if width >= WIDE {
        text.push_str(&format!("{:<AGENT$}{:<COST$}{:<COST$}", "AGENT", "TOKENS", "COST"));
    }
    text.push_str("WORK");
    Line::from(Span::styled(text, DIM))
}

/// The known cost of a session, in a narrow column.
fn cost_cell(row: &SessionRow) -> String {
    match (row.cost().known_micros(), row.unpriced_turns) {
        (None, _) => "unknown".to_owned(),
        (Some(micros), 0) => Dollars(micros).to_string(),
        (Some(micros), _) => format!("{}+", Dollars(micros)),
    }
}

fn session(state: &ScreenState, line: &SessionLine, width: u16) -> Line<'static> {
    let row = &line.row;
    let is_unproven = line.is_unproven();
    let style = state.theme.session(line.state, is_unproven);
    let age = ago(state.now.millis_since(row.started_at));
    let mut spans = vec![
        Span::styled(format!("{} ", sign(line.state, is_unproven)), style),
        Span::raw(cell(row.id.as_str(), ID - 1) + " "),
        Span::styled(cell(state_name(line.state, is_unproven), STATE - 1) + " ", style),
        Span::raw(cell(&row.iteration.to_string(), TURNS)),
        Span::styled(cell(&age, AGE), DIM),
    ];
    if width >= WIDE {
        spans.push(Span::raw(cell(&row.agent, AGENT - 1) + " "));
        spans.push(Span::raw(cell(&CompactCount(row.tokens).to_string(), COST)));
        spans.push(Span::raw(cell(&cost_cell(row), COST)));
    }
    if let Some(reason) = &row.reason {
        spans.push(super::first(&format!("{reason}: "), state.theme.bad()));
    }
    spans.push(super::first(&row.work, PLAIN));
    Line::from(spans)
}
