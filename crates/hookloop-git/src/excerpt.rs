//! Output as text for people and prompts. No character in it acts on a terminal, reorders text or is invisible.

use std::fmt::Write;

use hookloop_core::excerpt::{self, LeftOut};
use hookloop_core::redact::without_colours;
use hookloop_process::StreamOutput;

/// Returns the output of a job as text. A note replaces the part that is left out.
pub fn of_output(output: &StreamOutput) -> String {
    of_output_within(output, usize::MAX)
}

/// Returns at most `max` bytes of output as text: whole lines, half of them from the end.
pub fn of_output_within(output: &StreamOutput, max: usize) -> String {
    of_output_and_rest(output, max).0
}

/// Returns output as [`of_output_within`] does, and the size of the part that is left out.
pub fn of_output_and_rest(output: &StreamOutput, max: usize) -> (String, Option<LeftOut>) {
    let whole = output.whole();
    let (head, tail) = match &whole {
        Some(whole) if whole.len() <= max => return (plain(whole), None),
        Some(whole) => (&whole[..], &whole[..]),
        None => (output.head(), output.tail()),
    };
    let head = whole_lines_of_head(&head[..head.len().min(max / 2)]);
    let tail = whole_lines_of_tail(&tail[tail.len() - tail.len().min(max / 2)..]);
    let left_out = LeftOut {
        bytes: output.bytes - (head.len() + tail.len()) as u64,
        lines: output.lines - count_lines(head) - count_lines(tail),
    };
    (around(head, left_out, tail), Some(left_out))
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Returns head and tail as text, with a note of the missing part between them.
pub fn around(head: &[u8], left_out: LeftOut, tail: &[u8]) -> String {
    excerpt::around(&plain(head), left_out, &plain(tail))
}

/// Returns bytes as text without colours.
///
/// Broken UTF-8 is replaced. Invisible characters and control characters other than newline and tab become escapes.
/// `\r\n` counts as a newline.
pub fn plain(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        // Most output is plain and is copied as it is.
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

/// Returns text as [`plain`] does, on one line: a name that contains a newline could imitate the next line.
pub fn plain_line(text: &str) -> String {
    plain(text.as_bytes()).replace('\n', "\\n").replace('\t', "\\t")
}

fn push(text: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(escape);
}

/// Returns whether a character is a control beyond ASCII, changes the direction of text, or has no width.
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

/// Returns `bytes` without an incomplete character at the end.
pub(crate) fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else { return bytes };
    let cut = last.invalid();
    // Only an end that could continue is cut. Invalid bytes stay and become replacement characters.
    match std::str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => &bytes[..bytes.len() - cut.len()],
        _ => bytes,
    }
}

/// Returns `bytes` without an incomplete character at the beginning.
pub(crate) fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // A character has at most three such bytes. More are invalid text, which stays.
    let rest = bytes.iter().take(4).take_while(continues).count();
    if rest <= 3 { &bytes[rest..] } else { bytes }
}

/// Returns the whole lines at the beginning of `bytes`, or all of its whole characters if it has no line end.
pub fn whole_lines_of_head(bytes: &[u8]) -> &[u8] {
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => &bytes[..=end],
        None => without_cut_end(bytes),
    }
}

/// Returns the whole lines at the end of `bytes`, whose first line is cut, or all of its whole characters if it has no
/// other line.
pub fn whole_lines_of_tail(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < bytes.len() => &bytes[end + 1..],
        _ => without_cut_start(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookloop_process::{HEAD_MAX, TAIL_MAX};

    /// Numbered lines, so that no two parts are alike.
    fn numbered(bytes: usize) -> Vec<u8> {
        (0..).flat_map(|n| format!("{n}\n").into_bytes()).take(bytes).collect()
    }

    #[test]
    fn an_excerpt_within_a_limit_has_both_ends() {
        for total in [10, 100, HEAD_MAX + 10, HEAD_MAX + TAIL_MAX + 10] {
            let text = numbered(total);
            let excerpt = of_output_within(&StreamOutput::of_bytes(&text), 60);
            if total <= 60 {
                assert_eq!(excerpt.as_bytes(), text);
            } else {
                let (head, rest) = excerpt.split_once("[… ").unwrap();
                let (note, tail) = rest.split_once(" left out …]\n").unwrap();
                assert!(text.starts_with(head.as_bytes()) && head.ends_with('\n'), "{excerpt}");
                assert!(text.ends_with(tail.as_bytes()) && tail.len() > 10, "{excerpt}");
                let bytes: usize =
                    note.split(' ').next().unwrap().replace(',', "").parse().unwrap();
                assert_eq!(head.len() + bytes + tail.len(), total, "{excerpt}");
            }
        }
    }

    #[test]
    fn an_excerpt_reports_its_omitted_bytes_and_splits_no_character() {
        let text = "€".repeat(40_000);
        let excerpt = of_output(&StreamOutput::of_bytes(text.as_bytes()));
        // 32,768 is not a multiple of three: two bytes go at each cut.
        let kept = (HEAD_MAX / 3) * 3 + (TAIL_MAX / 3) * 3;
        let told = format!(
            "\n[… {},{:03} bytes left out …]\n",
            (120_000 - kept) / 1000,
            (120_000 - kept) % 1000
        );
        assert_eq!(excerpt.matches('€').count(), kept / 3);
        assert!(excerpt.contains(&told), "{told}");
        assert!(!excerpt.contains('\u{fffd}'));
    }

    #[test]
    fn a_character_across_head_and_tail_is_whole() {
        let text = format!("{}€{}", "x".repeat(HEAD_MAX - 1), "y".repeat(10));
        assert_eq!(of_output(&StreamOutput::of_bytes(text.as_bytes())), text);
    }

    #[test]
    fn control_and_invisible_characters_are_shown_as_escapes() {
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
