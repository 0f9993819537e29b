//! Shortens long text to its first and last lines, and long lists to their first names. A note states the size of the
//! part that is left out.

use std::borrow::Cow;
use std::fmt;

/// The part of a text that an excerpt does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub bytes: u64,
    /// Ends of lines.
    pub lines: u64,
}

impl LeftOut {
    /// Counts a text that is left out as a whole.
    pub fn of(text: &str) -> LeftOut {
        LeftOut { bytes: text.len() as u64, lines: ends_of_lines(text) }
    }

    #[must_use]
    pub fn plus(self, other: LeftOut) -> LeftOut {
        LeftOut {
            bytes: self.bytes.saturating_add(other.bytes),
            lines: self.lines.saturating_add(other.lines),
        }
    }

    /// Returns the bytes and lines that the note replaces, minus the note itself.
    fn behind_note(self) -> (i64, i64) {
        let note = self.to_string().len() + 1;
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        (signed(self.bytes).saturating_sub_unsigned(note as u64), signed(self.lines) - 1)
    }
}

/// The note between the first and the last lines.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Grouped(self.bytes);
        match self.lines {
            0 => write!(f, "[… {bytes} bytes left out …]"),
            1 => write!(f, "[… {bytes} bytes (1 line) left out …]"),
            lines => write!(f, "[… {bytes} bytes ({} lines) left out …]", Grouped(lines)),
        }
    }
}

/// `1234567` as `1,234,567`.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// The rules of an excerpt.
#[derive(Clone, Copy, Debug)]
pub struct ExcerptRules<'a> {
    /// The longest excerpt, in bytes, with its note.
    pub max: usize,
    /// The beginning of the text gets one part in this many.
    pub head_parts: usize,
    /// The text is an excerpt itself, with these notes beyond its first `max` and before its last `max` bytes.
    pub earlier: &'a [LeftOut],
}

/// Returns the first and the last lines of a text. A line is cut only if it exceeds its part.
pub fn head_and_tail(text: &str, rules: ExcerptRules<'_>) -> String {
    let ExcerptRules { max, head_parts, earlier } = rules;
    if text.len() <= max {
        return text.to_owned();
    }
    let all = earlier.iter().fold(LeftOut::of(text), |all, cut| all.plus(*cut));
    // The note has a line end on each side, and its counts are at most these.
    let kept = max.saturating_sub(all.to_string().len() + 2);
    let head_max = kept / head_parts.max(1);
    let head = whole_lines_of_head(text, head_max);
    let tail = whole_lines_of_tail(text, kept - head_max);
    let missing = &text[head.len()..text.len() - tail.len()];
    let mut left_out = LeftOut::of(missing);
    for cut in earlier {
        let (bytes, lines) = cut.behind_note();
        left_out.bytes = left_out.bytes.saturating_add_signed(bytes);
        left_out.lines = left_out.lines.saturating_add_signed(lines);
    }
    let excerpt = around(head, left_out, tail);
    // There may be hardly room for the note.
    excerpt[..excerpt.floor_char_boundary(max)].to_owned()
}

/// Returns the beginning and the end of a text with a note between them.
pub fn around(head: &str, left_out: LeftOut, tail: &str) -> String {
    let break_line = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{break_line}{left_out}\n{tail}")
}

/// Returns the first lines of a text that fit, or as much of the first one.
pub fn whole_lines_of_head(text: &str, max: usize) -> &str {
    let head = &text[..text.floor_char_boundary(max)];
    match head.rfind('\n') {
        Some(end) if head.len() < text.len() => &head[..=end],
        _ => head,
    }
}

/// Returns the last lines of a text that fit, or as much of the last one.
pub fn whole_lines_of_tail(text: &str, max: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max));
    let tail = &text[start..];
    if start == 0 || text[..start].ends_with('\n') {
        return tail;
    }
    match tail.find('\n').map(|end| &tail[end + 1..]) {
        Some(lines) if !lines.is_empty() => lines,
        _ => tail,
    }
}

fn ends_of_lines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Returns the first `max` of some names, and the number of the others: `a, b and 3 more`.
pub fn first_names<S: AsRef<str>>(names: &[S], max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(max).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns `text` in one line of at most `max` characters, without control and invisible characters.
pub fn one_line(text: &str, max: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || is_harmful(c));
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    clipped_chars(&line, max)
}

/// Returns the first `max` characters of a text.
pub fn first_chars(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

/// Returns a text of at most `max` characters. A cut text ends with `…`.
pub fn clipped_chars(text: &str, max: usize) -> String {
    match text.chars().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns a text of at most `max` bytes. A cut text ends with `…`, which counts.
pub(crate) fn clipped_bytes(text: &str, max: usize) -> Cow<'_, str> {
    const MARK: &str = "…";
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max.saturating_sub(MARK.len()));
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

/// Whether a character is a control character, changes the direction of text, or is invisible.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text in which no heading looks like a section of a prompt.
///
/// An agent may have written the text of a task.
pub fn demote_headings(text: &str) -> String {
    let demoted = text.lines().map(|line| {
        let is_heading = line.trim_start().starts_with('#');
        if is_heading { format!("##{}", line.trim_start()) } else { line.to_owned() }
    });
    demoted.collect::<Vec<_>>().join("\n")
}

/// Returns a text as a code span of Markdown, in more backticks than any run of backticks in it.
pub fn code_span(text: &str) -> String {
    let longest = text.split(|c: char| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A backtick beside the fence would belong to it. Readers ignore one space on each side.
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &[LeftOut] = &[];

    fn numbered(lines: u64) -> String {
        (0..lines).map(|number| format!("line {number}\n")).collect()
    }

    /// Returns the note of an excerpt, as counts, with the text before and after it.
    fn parts(excerpt: &str) -> (&str, LeftOut, &str) {
        let (head, rest) = excerpt.split_once("[… ").unwrap();
        let (note, tail) = rest.split_once(" left out …]\n").unwrap();
        let number = |text: &str| text.replace(',', "").parse().unwrap();
        let (bytes, lines) = match note.split_once(" bytes (") {
            Some((bytes, lines)) => (number(bytes), number(lines.split(' ').next().unwrap())),
            None => (number(note.strip_suffix(" bytes").unwrap()), 0),
        };
        (head, LeftOut { bytes, lines }, tail)
    }

    #[test]
    fn a_code_span_has_more_backticks_than_its_text() {
        for (text, span) in [
            ("npm test", "`npm test`"),
            ("`42` in answer", "`` `42` in answer ``"),
            ("echo `date`", "`` echo `date` ``"),
            ("a `b` c", "``a `b` c``"),
            ("a ``` b", "````a ``` b````"),
            ("é", "`é`"),
        ] {
            assert_eq!(code_span(text), span);
        }
    }

    #[test]
    fn an_excerpt_has_whole_lines_and_true_counts() {
        let text = numbered(10_000);
        for max in [100, 1_000, 32_768, text.len() - 1] {
            for head_parts in [2, 3] {
                let rules = ExcerptRules { max, head_parts, earlier: NOTHING };
                let excerpt = head_and_tail(&text, rules);
                assert!(excerpt.len() <= max, "{max}");
                let (head, left_out, tail) = parts(&excerpt);
                assert!(text.starts_with(head) && text.ends_with(tail), "{excerpt}");
                assert!(head.ends_with('\n') && tail.starts_with("line "), "{excerpt}");
                let kept = LeftOut::of(head).plus(LeftOut::of(tail));
                assert_eq!(kept.plus(left_out), LeftOut::of(&text), "{max}");
            }
        }
        let short = ExcerptRules { max: text.len(), head_parts: 2, earlier: NOTHING };
        assert_eq!(head_and_tail(&text, short), text);
    }

    #[test]
    fn an_excerpt_of_an_excerpt_counts_from_the_whole_text() {
        let text = numbered(100_000);
        let first = ExcerptRules { max: 65_536, head_parts: 2, earlier: NOTHING };
        let excerpt = head_and_tail(&text, first);
        let (_, cut, _) = parts(&excerpt);
        for max in [1_000, 16_384, 32_768] {
            let again = ExcerptRules { max, head_parts: 2, earlier: &[cut] };
            let excerpt = head_and_tail(&excerpt, again);
            let (head, left_out, tail) = parts(&excerpt);
            let kept = LeftOut::of(head).plus(LeftOut::of(tail));
            assert_eq!(kept.plus(left_out), LeftOut::of(&text), "{max}");
        }
    }

    #[test]
    fn a_line_is_cut_only_without_a_line_end_in_range() {
        let rules = ExcerptRules { max: 200, head_parts: 2, earlier: NOTHING };
        let one = "é".repeat(5_000);
        let excerpt = head_and_tail(&one, rules);
        let (head, left_out, tail) = parts(&excerpt);
        let head = head.trim_end();
        assert!(!head.is_empty() && !tail.is_empty());
        assert_eq!(head.len() as u64 + tail.len() as u64 + left_out.bytes, 10_000);
        let two = format!("first\n{one}\nlast\n");
        let excerpt = head_and_tail(&two, rules);
        assert!(excerpt.starts_with("first\n[… 10,001 bytes (1 line) left"), "{excerpt}");
        assert!(excerpt.ends_with("…]\nlast\n"), "{excerpt}");
    }

    #[test]
    fn an_excerpt_never_exceeds_its_limit() {
        let text = format!("{}{}", "ß\n".repeat(300), "日".repeat(300));
        for max in 0..300 {
            let rules =
                ExcerptRules { max, head_parts: 3, earlier: &[LeftOut { bytes: 9, lines: 1 }] };
            assert!(head_and_tail(&text, rules).len() <= max, "{max}");
        }
    }

    #[test]
    fn numbers_are_printed_with_thousands_separators() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(Grouped(number).to_string(), expected);
        }
    }

    #[test]
    fn clipped_texts_keep_their_limits_and_show_the_cut() {
        let chars = |text: &str, max: usize| clipped_chars(text, max);
        assert_eq!((chars("漢字漢", 3), chars("漢字漢字", 3)), ("漢字漢".into(), "漢字…".into()));
        assert_eq!((first_chars("漢字漢", 2), first_chars("漢", 2)), ("漢字".into(), "漢".into()));
        assert_eq!(
            (clipped_bytes("abcdef", 6), clipped_bytes("abcdef", 5)),
            ("abcdef".into(), "ab…".into())
        );
        assert_eq!(clipped_bytes("漢字漢", 7), "漢…");
    }
}
