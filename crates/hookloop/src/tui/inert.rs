//! Text from outside on a screen: nothing in it moves the cursor, turns the direction or hides something.

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthChar;

use crate::output::plain;

/// Marks on one character that are shown. No script needs more; some texts have hundreds.
const MARKS_MAX: usize = 3;
const TAB: &str = "    ";
/// The most of a line that is kept.
const LINE_MAX: usize = 4_000;

/// A line as it can be shown: colours are left out, all else that would act on a terminal is spelled out.
pub(crate) fn inert(line: &str) -> String {
    let cut = line.char_indices().nth(LINE_MAX).map_or(line, |(at, _)| &line[..at]);
    let text = strip_str(cut).to_string().replace('\t', TAB);
    few_marks(&plain(&text))
}

/// Of a line that was written over again and again, what was written last.
pub(crate) fn settled(line: &str) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.rsplit('\r').next().unwrap_or(line)
}

fn few_marks(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut marks = 0;
    let is_kept = |c: &char| {
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        marks <= MARKS_MAX
    };
    text.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        let check = |text: &str, expected: &str| assert_eq!(inert(text), expected);
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("a\tb\0", "a    b");
        check("\u{202e}gpj.exe", "\\u{202e}gpj.exe");
        check("漢字 Zoë", "漢字 Zoë");
        check(&format!("e{}x", "\u{301}".repeat(500)), "e\u{301}\u{301}\u{301}x");
        assert!(!inert("\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{1b}").contains('\u{1b}'));
        assert!(inert(&"x".repeat(100_000)).len() <= LINE_MAX);
    }

    #[test]
    fn of_a_bar_the_last_drawing_counts() {
        assert_eq!(settled("10%\r50%\r100%"), "100%");
        assert_eq!(settled("done\r"), "done");
    }
}
