//! Output as text for people and prompts: nothing in it acts on a terminal, reorders text or hides.

use std::fmt::Write;

use hookloop_core::excerpt::{self, LeftOut};
use hookloop_core::redact::without_colours;

/// Head and tail with a note between them of what is missing.
pub fn around(head: &[u8], left_out: LeftOut, tail: &[u8]) -> String {
    excerpt::around(&plain(head), left_out, &plain(tail))
}

/// Colours are left out. Broken UTF-8 is replaced. Control characters other than newline and tab, and characters
/// without a shape of their own, are shown as escapes. A newline may be written `\r\n`.
pub fn plain(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        // Most output is plain: that goes over as it is.
        let is_special = |byte: &u8| !matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        let valid = without_colours(chunk.valid());
        let plain = valid.bytes().position(|byte| is_special(&byte)).unwrap_or(valid.len());
        text.push_str(&valid[..plain]);
        let mut characters = valid[plain..].chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\r' if characters.peek() == Some(&'\n') => {}
                '\n' | '\t' => text.push(character),
                '\0'..' ' | '\x7f' => {
                    push(&mut text, format_args!("\\x{:02x}", u32::from(character)))
                }
                _ if acts_or_hides(character) => {
                    push(&mut text, format_args!("\\u{{{:x}}}", u32::from(character)));
                }
                _ => text.push(character),
            }
        }
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// The same on one line: a name or a title that ends its line could pose as what follows it.
pub fn plain_line(text: &str) -> String {
    plain(text.as_bytes()).replace('\n', "\\n").replace('\t', "\\t")
}

fn push(text: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(escape);
}

/// Controls beyond ASCII, marks that change the direction of text, and what has no width.
fn acts_or_hides(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// `bytes` without a character at the end of which only the beginning is there.
pub fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else { return bytes };
    let cut = last.invalid();
    // Only an end that could go on is cut; bytes that are broken in themselves stay and are shown so.
    match std::str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => &bytes[..bytes.len() - cut.len()],
        _ => bytes,
    }
}

/// `bytes` without the rest of a character whose beginning is not there.
pub fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // A character has at most three such bytes; more are broken text, which is shown.
    let rest = bytes.iter().take(4).take_while(continues).count();
    if rest <= 3 { &bytes[rest..] } else { bytes }
}

/// The whole lines that `bytes` begin with; if there is none, all of it but for a character that is cut.
pub fn whole_lines_of_head(bytes: &[u8]) -> &[u8] {
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &bytes[..=end],
        None => without_cut_end(bytes),
    }
}

/// The whole lines that `bytes` end with, if the first one is cut; without one, all of it but for a character that
/// is cut.
pub fn whole_lines_of_tail(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < bytes.len() => &bytes[end + 1..],
        _ => without_cut_start(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_or_hides_is_shown() {
        let check = |given: &[u8], expected: &str| assert_eq!(plain(given), expected);
        check(b"plain\ttext\n", "plain\ttext\n");
        check("größe €\u{1f600}".as_bytes(), "größe €\u{1f600}");
        check(b"\x1b]0;title\x07\x1b[2Jred\x00\x7f", "\\x1b]0;title\\x07\\x1b[2Jred\\x00\\x7f");
        check(b"\x1b[1;31mred\x1b[0m \xff\x1b[Kend", "red \u{fffd}end");
        check(b"dos\r\nprogress\rdone\r", "dos\nprogress\\x0ddone\\x0d");
        check(
            "a\u{202e}b\u{2066}c\u{200b}d\u{feff}".as_bytes(),
            "a\\u{202e}b\\u{2066}c\\u{200b}d\\u{feff}",
        );
        check("\u{9b}31A\u{e0041}".as_bytes(), "\\u{9b}31A\\u{e0041}");
        check(b"bad \xff\xfe end \xe2\x82", "bad \u{fffd}\u{fffd} end \u{fffd}");
    }

    #[test]
    fn cuts_leave_whole_characters() {
        let euro = "€".as_bytes();
        assert_eq!(without_cut_end(&euro[..2]), b"");
        assert_eq!(without_cut_end(euro), euro);
        assert_eq!(without_cut_end(b"a\xff"), b"a\xff");
        assert_eq!(without_cut_start(&euro[1..]), b"");
        assert_eq!(without_cut_start(b"a\x80"), b"a\x80");
        assert_eq!(without_cut_start(&[0x80; 9]), [0x80; 9]);
    }

    #[test]
    fn cuts_leave_whole_lines() {
        assert_eq!(whole_lines_of_head(b"a\nb\ncut"), b"a\nb\n");
        assert_eq!(whole_lines_of_head(b"one line"), b"one line");
        assert_eq!(whole_lines_of_tail(b"cut\na\nb"), b"a\nb");
        assert_eq!(whole_lines_of_tail(b"one line\n"), b"one line\n");
    }
}
