//! An editor for a line, or a few.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::sanitize::plain;

/// The most that can be typed or pasted.
const BYTES_MAX: usize = 16 * 1024;

/// Text and a cursor in it, which is always between two characters as people count them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextEditor {
    text: String,
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEdit<'t> {
    Insert(&'t str),
    Backspace,
    Delete,
    DeleteWord,
    DeleteToStart,
    Left,
    Right,
    Home,
    End,
}

impl TextEditor {
    pub(super) fn with(text: &str) -> TextEditor {
        TextEditor { text: text.to_owned(), at: text.len() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn edit(&mut self, edit: TextEdit<'_>) {
        match edit {
            TextEdit::Insert(text) => self.insert(text),
            TextEdit::Backspace => self.delete(self.before(), self.at),
            TextEdit::Delete => self.delete(self.at, self.after()),
            TextEdit::DeleteWord => self.delete(self.word(), self.at),
            TextEdit::DeleteToStart => self.delete(0, self.at),
            TextEdit::Left => self.at = self.before(),
            TextEdit::Right => self.at = self.after(),
            TextEdit::Home => self.at = 0,
            TextEdit::End => self.at = self.text.len(),
        }
    }

    /// Pasted text may contain anything: control characters are removed, lines stay.
    fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let is_shown =
            |c: &char| *c == '\n' || plain(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8();
        let mut room = BYTES_MAX.saturating_sub(self.text.len());
        let fits = |c: &char| {
            room = room.saturating_sub(c.len_utf8());
            room > 0
        };
        let text: String = text.chars().filter(is_shown).take_while(fits).collect();
        self.text.insert_str(self.at, &text);
        // A typed mark may join the character before it.
        self.at = self.border_from(self.at + text.len());
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = self.border_from(from);
    }

    fn border_from(&self, at: usize) -> usize {
        self.borders().find(|border| *border >= at).unwrap_or(self.text.len())
    }

    fn borders(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.text.grapheme_indices(true).map(|(at, _)| at)
    }

    fn before(&self) -> usize {
        self.borders().rev().find(|border| *border < self.at).unwrap_or(0)
    }

    fn after(&self) -> usize {
        self.borders().find(|border| *border > self.at).unwrap_or(self.text.len())
    }

    fn word(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + before[space..].chars().next().map_or(0, char::len_utf8))
    }

    /// The text in lines of at most `width` columns, and the cursor's row and column.
    pub(super) fn wrapped(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(2);
        let mut lines = vec![String::new()];
        let mut cursor = (0, 0);
        let mut used = 0;
        for (at, piece) in self.text.grapheme_indices(true) {
            let is_break = piece == "\n";
            if !is_break && used + piece.width() > width {
                lines.push(String::new());
                used = 0;
            }
            if at == self.at {
                cursor = (lines.len() - 1, used);
            }
            match (is_break, lines.last_mut()) {
                (true, _) => {
                    lines.push(String::new());
                    used = 0;
                }
                (false, Some(line)) => {
                    line.push_str(piece);
                    used += piece.width();
                }
                (false, None) => {}
            }
        }
        if self.at == self.text.len() {
            if used >= width {
                lines.push(String::new());
                used = 0;
            }
            cursor = (lines.len() - 1, used);
        }
        (lines, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(edits: &[TextEdit<'_>]) -> TextEditor {
        let mut editor = TextEditor::default();
        edits.iter().for_each(|edit| editor.edit(*edit));
        editor
    }

    #[test]
    fn the_cursor_moves_by_grapheme_clusters() {
        use TextEdit::{Backspace, Delete, Home, Insert, Left, Right};
        let check = |edits: &[TextEdit<'_>], text: &str| assert_eq!(typed(edits).text(), text);
        check(&[Insert("e\u{301}x"), Left, Backspace], "x");
        check(&[Insert("漢字"), Left, Insert("-")], "漢-字");
        check(&[Insert("👩🏽b"), Home, Delete], "b");
        check(&[Insert("ab"), Home, Right, Right, Right, Backspace], "a");
        check(&[Insert("e"), Insert("\u{301}"), Backspace], "");
        check(&[Insert("two words"), TextEdit::DeleteWord], "two ");
        check(&[Insert("two words"), Left, TextEdit::DeleteToStart, TextEdit::End], "s");
        check(&[Backspace, Delete, Left, Right, TextEdit::DeleteWord], "");
    }

    #[test]
    fn pasted_text_keeps_its_lines_and_loses_control_characters() {
        let editor = typed(&[TextEdit::Insert("one\r\ntwo\u{1b}[31m\u{202e}\0\tend")]);
        assert_eq!(editor.text(), "one\ntwo[31m    end");
        let long = typed(&[TextEdit::Insert(&"漢".repeat(100_000))]);
        assert!(long.text().len() <= BYTES_MAX);
    }

    #[test]
    fn long_text_is_wrapped_around_its_cursor() {
        let check = |editor: &TextEditor, width: usize, lines: &[&str], cursor: (usize, usize)| {
            assert_eq!(
                editor.wrapped(width),
                (lines.iter().map(|l| (*l).to_owned()).collect(), cursor)
            );
        };
        check(&TextEditor::default(), 5, &[""], (0, 0));
        check(&TextEditor::with("漢字漢"), 5, &["漢字", "漢"], (1, 2));
        check(&TextEditor::with("abcde"), 5, &["abcde", ""], (1, 0));
        check(&TextEditor::with("a\nb"), 5, &["a", "b"], (1, 1));
        let mut back = TextEditor::with("a\nb");
        back.edit(TextEdit::Left);
        check(&back, 5, &["a", "b"], (1, 0));
        back.edit(TextEdit::Left);
        check(&back, 5, &["a", "b"], (0, 1));
        check(&TextEditor::with("x"), 0, &["x"], (0, 1));
    }
}
