//! Makes text from outside safe to print: it can't move the cursor, change the direction or hide text.

use std::borrow::Cow;

use anstream::adapter::strip_str;
use hookloop_core::redact::without_colours;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Combining marks that one character keeps. No script needs more; some texts have hundreds.
const MARKS_MAX: usize = 3;
const TAB: &str = "    ";
/// Columns between two tab stops in the output of hooks.
const TAB_STOP: usize = 8;
/// Characters that are kept of a line.
const LINE_MAX: usize = 4_000;

/// Returns a line for the screen: without colours, and with other control characters escaped.
pub(crate) fn screen_line(line: &str) -> String {
    let cut = line.char_indices().nth(LINE_MAX).map_or(line, |(at, _)| &line[..at]);
    let text = strip_str(cut).to_string().replace('\t', TAB);
    few_marks(&plain(&text))
}

/// Returns the last text of a line that was overwritten with carriage returns, such as a progress bar.
pub(crate) fn last_overwrite(line: &str) -> &str {
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

/// Returns `text` on one line, with control characters and deceptive characters escaped.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let spelled =
        |c: char| if is_harmful(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(spelled).collect())
}

/// Like [`plain_output`] for each line; lines after the first are indented by `indent` columns.
pub(crate) fn plain_lines(text: &str, indent: usize) -> String {
    let lines: Vec<String> = text.lines().map(plain_output).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Returns a line of a hook's output like [`plain`], without colours, and with spaces for tabs.
pub(crate) fn plain_output(line: &str) -> String {
    let mut shown = String::new();
    for (index, part) in without_colours(line).split('\t').enumerate() {
        if index > 0 {
            let column = shown.width() % TAB_STOP;
            shown.push_str(&" ".repeat(TAB_STOP - column));
        }
        shown.push_str(&plain(part));
    }
    shown
}

/// Whether a character is a control, changes the direction of text, or has no width.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_printed_as_escapes() {
        assert_eq!(plain("a\u{1b}[31m\rb\nc"), "a\\u{1b}[31m\\rb\\nc");
        assert_eq!(plain_lines("a\u{7}\nb", 2), "a\\u{7}\n  b");
        assert_eq!(plain("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(plain("Zoë ✓ 漢字"), "Zoë ✓ 漢字");
    }

    #[test]
    fn hook_output_is_shown_without_colours_and_with_tabs_as_spaces() {
        let check = |line: &str, expected: &str| assert_eq!(plain_output(line), expected);
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("a\tb\t\tc", "a       b               c");
        check("12345678\tb", "12345678        b");
        check("\u{1b}[2J\u{7}\u{202e}x", "\\u{1b}[2J\\u{7}\\u{202e}x");
    }

    #[test]
    fn screen_lines_have_no_control_sequences() {
        let check = |text: &str, expected: &str| assert_eq!(screen_line(text), expected);
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("a\tb\0", "a    b");
        check("\u{202e}gpj.exe", "\\u{202e}gpj.exe");
        check("漢字 Zoë", "漢字 Zoë");
        check(&format!("e{}x", "\u{301}".repeat(500)), "e\u{301}\u{301}\u{301}x");
        assert!(!screen_line("\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}2J\u{1b}").contains('\u{1b}'));
        assert!(screen_line(&"x".repeat(100_000)).len() <= LINE_MAX);
    }

    #[test]
    fn only_the_last_state_of_a_progress_bar_is_kept() {
        assert_eq!(last_overwrite("10%\r50%\r100%"), "100%");
        assert_eq!(last_overwrite("done\r"), "done");
    }
}
