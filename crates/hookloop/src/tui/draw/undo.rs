//! The files that an undo would change, in the lines of a box.

use ratatui::text::{Line, Span};

use super::said;
use crate::tui::theme::{BOLD, DIM, PLAIN};
use crate::undo_preview::UndoPreview;

/// Columns of the word before a path.
const WORD: usize = 8;

/// Returns the lines above the choice, so that all of them and the choice fit into `height` lines.
pub(super) fn lines(preview: &UndoPreview, height: usize) -> Vec<Line<'static>> {
    let kept = preview.kept();
    let commits = preview.commits();
    // The heading, a blank line and the choice.
    let fixed = 3 + usize::from(kept.is_some()) + usize::from(commits.is_some());
    let room = height.saturating_sub(fixed);
    // Two lists share the room; the first one gets most of it, if both are long.
    let rest = (room / 3).max(room.saturating_sub(preview.file_count));
    let kept_room = preview.edited_count.min(rest);
    let mut lines = vec![Line::from(said(&preview.heading(), BOLD))];
    let files = preview.files.iter().map(|(path, effect)| file(effect.name(), path, ""));
    lines.extend(bounded(files, preview.file_count, room - kept_room));
    lines.extend(kept.map(|text| Line::from(said(&text, BOLD))));
    let edited = preview.edited.iter().map(|edited| file("keep", &edited.path, edited.reason));
    lines.extend(bounded(edited, preview.edited_count, kept_room));
    lines.extend(commits.map(|text| Line::from(said(&text, DIM))));
    lines.push(Line::default());
    lines
}

fn file(word: &str, path: &str, reason: &str) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("{word:<WORD$}"), DIM),
        said(path, PLAIN),
        Span::styled(format!("  {reason}"), DIM),
    ])
}

/// Returns the first of `count` lines, and the number of the others if not all fit.
fn bounded(
    lines: impl ExactSizeIterator<Item = Line<'static>>,
    count: usize,
    room: usize,
) -> impl Iterator<Item = Line<'static>> {
    let fitting = if count <= room { count } else { room.saturating_sub(1) };
    let shown = fitting.min(lines.len());
    let more = Some(count - shown).filter(|more| *more > 0 && room > 0);
    let more = more.map(|more| Line::from(Span::styled(format!("and {more} more"), DIM)));
    lines.take(shown).chain(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_does_not_fit_ends_with_the_number_of_the_others() {
        let check = |listed: usize, count: usize, room: usize, expected: &str| {
            let lines: Vec<Line<'_>> = (0..listed).map(|n| Line::from(n.to_string())).collect();
            let shown = bounded(lines.into_iter(), count, room);
            let shown: Vec<String> = shown.map(|line| line.to_string()).collect();
            assert_eq!(shown.join(","), expected, "{listed} of {count} in {room} lines");
        };
        check(3, 3, 3, "0,1,2");
        check(3, 3, 2, "0,and 2 more");
        check(3, 3, 1, "and 3 more");
        check(3, 3, 0, "");
        check(2, 9, 20, "0,1,and 7 more");
        check(0, 0, 5, "");
    }
}
