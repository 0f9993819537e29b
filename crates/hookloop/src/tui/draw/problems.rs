//! The problems, and the details of the selected one.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{cell, choose, put, put_all, said, wrapped};
use crate::present;
use crate::tui::data::{ProblemLine, ProjectOverview};
use crate::tui::state::ScreenState;
use crate::tui::steps::ago;
use crate::tui::theme::{BOLD, DIM, PLAIN};

/// Lines of a reason and of a detail that are shown.
const REASON_MAX: usize = 4;
const DETAIL_MAX: usize = 12;

pub(super) fn draw(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    let Some(overview) = &state.overview else { return };
    let Some(chosen) = state.problem() else {
        put_all(frame, area, nothing(state, overview));
        return;
    };
    let halves = [Constraint::Fill(2), Constraint::Length(1), Constraint::Fill(3)];
    let [list, rule, detail] = Layout::vertical(halves).areas(area);
    let lines = state.problem_list.window(usize::from(list.height));
    for (row, (place, is_chosen)) in list.rows().zip(lines) {
        let Some(line) = overview.problems.get(place) else { continue };
        put(frame, row, problem(state, line, usize::from(area.width)));
        if is_chosen {
            choose(frame, row);
        }
    }
    put(frame, rule, counts(state, overview));
    put_all(frame, detail, facts(state, chosen, usize::from(area.width)));
}

fn nothing(state: &ScreenState, overview: &ProjectOverview) -> Vec<Line<'static>> {
    let text = if state.filter().is_empty() {
        "The inbox is empty.".to_owned()
    } else {
        format!("No problem matches `{}`.", state.filter())
    };
    let mut lines = vec![Line::from(said(&text, BOLD))];
    if overview.sessions.is_empty() {
        lines.push(Line::from(Span::styled(
            "No sessions yet. Start one: hookloop run \"…\" --agent claude",
            DIM,
        )));
    }
    lines
}

fn problem(state: &ScreenState, line: &ProblemLine, width: usize) -> Line<'static> {
    let age = ago(state.now.millis_since(line.since));
    let title = cell(&line.title, width.saturating_sub(8));
    Line::from(vec![
        Span::styled("! ", state.theme.bad()),
        Span::styled(format!("{age:>4} "), DIM),
        Span::styled(title, PLAIN),
    ])
}

fn counts(state: &ScreenState, overview: &ProjectOverview) -> Line<'static> {
    let (at, all) = state.problem_list.count();
    let mut text = format!("── {at} of {all} ");
    let more = overview.problem_count.saturating_sub(overview.problems.len() as u64);
    if more > 0 {
        text.push_str(&format!("and {more} more: hookloop inbox list "));
    }
    if overview.stuck > 0 {
        let stuck = u32::try_from(overview.stuck).unwrap_or(u32::MAX);
        let waits = present::counted(stuck, "task waits", "tasks wait");
        text.push_str(&format!("── {waits} for blocked tasks "));
    }
    if !state.filter().is_empty() {
        text.push_str(&format!("── filter: {} ", state.filter()));
    }
    Line::from(said(&text, DIM))
}

fn facts(state: &ScreenState, line: &ProblemLine, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(said(&line.title, BOLD))];
    lines.extend(paragraph(&line.reason, width, REASON_MAX));
    let Some(facts) = state.facts_of(&line.matter) else { return lines };
    // The commands come first: a small screen cuts the end off.
    for next in &facts.next {
        lines.push(Line::from(vec![Span::styled("  run: ", DIM), said(next, PLAIN)]));
    }
    for group in &facts.changes {
        lines.extend(paragraph(&group.heading, width, REASON_MAX));
        for change in &group.changes {
            lines.push(Line::from(vec![Span::raw("  "), said(&change.name, BOLD)]));
            for row in &change.rows {
                let text = row.text(width.saturating_sub(4));
                let style = if row.is_changed { PLAIN } else { DIM };
                lines.push(Line::from(vec![Span::raw("    "), said(&text, style)]));
            }
        }
    }
    for detail in &facts.details {
        lines.extend(paragraph(detail, width, DETAIL_MAX));
    }
    lines
}

fn paragraph(text: &str, width: usize, most: usize) -> Vec<Line<'static>> {
    let lines = wrapped(text, width.saturating_sub(2), most).into_iter();
    lines.map(|line| Line::from(format!("  {line}"))).collect()
}
