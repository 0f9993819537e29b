//! A long text, and where in it one is.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{put, said};
use crate::tui::pager::TextPager;
use crate::tui::state::ScreenState;
use crate::tui::theme::{BOLD, CHOSEN, DIM, PLAIN};

pub(super) fn draw(_state: &ScreenState, pager: &TextPager, frame: &mut Frame<'_>, area: Rect) {
    let rows = [Constraint::Length(1), Constraint::Fill(1)];
    let [title, text] = Layout::vertical(rows).areas(area);
    let from = pager.top;
    let all = pager.lines.len();
    let to = (from + usize::from(text.height)).min(all);
    let place = format!("  lines {} to {to} of {all}", (from + 1).min(all));
    put(frame, title, Line::from(vec![said(&pager.title, BOLD), Span::styled(place, DIM)]));
    let wanted = pager.sought.to_lowercase();
    for (row, line) in text.rows().zip(pager.lines.iter().skip(from)) {
        let shown: String = line.chars().skip(pager.left).collect();
        put(frame, row, marked(&shown, &wanted));
    }
}

/// A line in which what is sought stands out.
fn marked(line: &str, wanted: &str) -> Line<'static> {
    let lower = line.to_lowercase();
    // A letter whose small form has another length would shift the marks.
    if wanted.is_empty() || lower.len() != line.len() {
        return Line::from(line.to_owned());
    }
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(found) = lower[from..].find(wanted) {
        let start = from + found;
        let end = from + found + wanted.len();
        let (Some(before), Some(hit)) = (line.get(from..start), line.get(start..end)) else {
            break;
        };
        spans
            .extend([Span::styled(before.to_owned(), PLAIN), Span::styled(hit.to_owned(), CHOSEN)]);
        from = end;
    }
    spans.push(Span::styled(line.get(from..).unwrap_or_default().to_owned(), PLAIN));
    Line::from(spans)
}
