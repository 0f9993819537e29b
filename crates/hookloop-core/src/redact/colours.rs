//! Colour codes in output. The search for tokens ignores them, so that it finds partly coloured
//! tokens.
//!
//! It ignores these codes, also in the spellings of JSON and shell strings:
//!
//! - colours (`ESC [ … m`)
//! - erasing a line (`ESC [ … K`, which `grep` adds to its colours)
//! - selecting ASCII (`ESC ( B`, which `tput sgr0` prints)
//!
//! It does not ignore sequences that move the cursor or set a title: a token may be a part of them.

use std::borrow::Cow;

use super::StreamEnd;

/// The most parameter bytes of a code. The longest usual one has 17: `38;2;255;255;255`.
const PARAMETERS_MAX: usize = 48;

/// Spellings of the escape character.
const ESCAPES: [&[u8]; 7] = [b"\x1b", b"\\u001b", b"\\u001B", b"\\x1b", b"\\x1B", b"\\033", b"\\e"];

/// The control character that stands for `ESC [`, in UTF-8.
const CSI: &[u8] = b"\xc2\x9b";

/// Output without its colour codes.
pub(super) struct Uncoloured<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    gaps: Vec<CodeGap>,
}

/// A place where codes were left out.
struct CodeGap {
    /// The position of the first byte after it, in the remaining bytes.
    at: usize,
    /// Bytes that were left out up to here.
    left_out: usize,
}

impl<'a> Uncoloured<'a> {
    /// Leaves out the codes of `raw`. If more may follow, the beginning of a code at the end is left out as well.
    pub(super) fn new(raw: &'a [u8], end: StreamEnd) -> Uncoloured<'a> {
        let mut kept: Vec<u8> = Vec::new();
        let mut gaps: Vec<CodeGap> = Vec::new();
        let (mut copied, mut from) = (0, 0);
        while let Some(at) = next_start(raw, from) {
            let length = match (code_at(&raw[at..]), end) {
                (ColourCode::Whole(length), _) => length,
                (ColourCode::Cut, StreamEnd::Open) => raw.len() - at,
                (ColourCode::Cut | ColourCode::None, _) => {
                    from = at + 1;
                    continue;
                }
            };
            kept.extend_from_slice(&raw[copied..at]);
            from = at + length;
            copied = from;
            gaps.push(CodeGap { at: kept.len(), left_out: from - kept.len() });
        }
        if gaps.is_empty() {
            return Uncoloured { bytes: Cow::Borrowed(raw), gaps };
        }
        kept.extend_from_slice(&raw[copied..]);
        Uncoloured { bytes: Cow::Owned(kept), gaps }
    }

    /// Returns the position in the output of the byte at `at`.
    pub(super) fn position(&self, at: usize) -> usize {
        at + self.left_out_before(at)
    }

    /// Returns the number of bytes that were left out after the byte at `at`.
    pub(super) fn left_out_behind(&self, at: usize) -> usize {
        let all = self.gaps.last().map_or(0, |gap| gap.left_out);
        all - self.left_out_before(at)
    }

    fn left_out_before(&self, at: usize) -> usize {
        let before = self.gaps.partition_point(|gap| gap.at <= at);
        before.checked_sub(1).map_or(0, |last| self.gaps[last].left_out)
    }
}

/// Returns a text without its colour codes, for people. Codes that the text spells out stay.
pub fn without_colours(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = text[from..].find(['\x1b', '\u{9b}']).map(|at| from + at) {
        from = match code_at(&text.as_bytes()[at..]) {
            ColourCode::Whole(length) => {
                kept.push_str(&text[copied..at]);
                copied = at + length;
                copied
            }
            ColourCode::Cut | ColourCode::None => text.ceil_char_boundary(at + 1),
        };
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[copied..]);
    Cow::Owned(kept)
}

/// Returns the next position, from `from` on, where a code may begin.
fn next_start(raw: &[u8], from: usize) -> Option<usize> {
    let may_start = |byte: &u8| matches!(byte, 0x1b | b'\\' | 0xc2);
    raw.get(from..)?.iter().position(may_start).map(|at| from + at)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColourCode {
    None,
    /// The bytes may be the beginning of a code.
    Cut,
    /// The length of a code.
    Whole(usize),
}

/// Reads the code that `bytes` begin with.
fn code_at(bytes: &[u8]) -> ColourCode {
    if let Some(rest) = bytes.strip_prefix(CSI) {
        return code_behind(CSI.len(), parameters(rest));
    }
    let spelled = ESCAPES.iter().find(|escape| bytes.starts_with(escape));
    let Some(escape) = spelled else {
        let is_cut = |whole: &&[u8]| whole.starts_with(bytes);
        return if ESCAPES.iter().chain([&CSI]).any(is_cut) {
            ColourCode::Cut
        } else {
            ColourCode::None
        };
    };
    let code = match &bytes[escape.len()..] {
        [] | [b'('] => ColourCode::Cut,
        [b'(', b'B', ..] => ColourCode::Whole(2),
        [b'[', rest @ ..] => code_behind(1, parameters(rest)),
        _ => ColourCode::None,
    };
    code_behind(escape.len(), code)
}

/// Adds `before` bytes to the length of a code.
fn code_behind(before: usize, code: ColourCode) -> ColourCode {
    match code {
        ColourCode::Whole(length) => ColourCode::Whole(before + length),
        other => other,
    }
}

/// Reads the parameters of a code and its last byte.
fn parameters(bytes: &[u8]) -> ColourCode {
    let is_parameter = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
    let count = bytes.iter().take(PARAMETERS_MAX).take_while(is_parameter).count();
    match bytes.get(count) {
        None => ColourCode::Cut,
        Some(b'm' | b'K') => ColourCode::Whole(count + 1),
        Some(_) => ColourCode::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_codes_are_removed_and_other_escape_sequences_kept() {
        let check = |text: &str, expected: &str| assert_eq!(without_colours(text), expected);
        check("plain \\x1b[31m", "plain \\x1b[31m");
        check("\x1b[1;31mé\x1b[0m\x1b[K!", "é!");
        check("\u{9b}31mred\x1b(B", "red");
        check("a\x1b[2Jb\x1b[", "a\x1b[2Jb\x1b[");
        check("\x1b\u{9b}\x1b[mx\x1b", "\x1b\u{9b}x\x1b");
    }

    #[test]
    fn colour_codes_are_read_in_every_spelling() {
        let check =
            |text: &str, expected: ColourCode| assert_eq!(code_at(text.as_bytes()), expected);
        check("\x1b[mx", ColourCode::Whole(3));
        check("\x1b[01;31mx", ColourCode::Whole(8));
        check("\x1b[38:2::1:2:3m", ColourCode::Whole(14));
        check("\x1b[K", ColourCode::Whole(3));
        check("\x1b(Bx", ColourCode::Whole(3));
        check("\u{9b}1mx", ColourCode::Whole(4));
        for escape in ["\\u001b", "\\u001B", "\\x1b", "\\x1B", "\\033", "\\e"] {
            check(&format!("{escape}[1mx"), ColourCode::Whole(escape.len() + 3));
            check(&escape[..escape.len() - 1], ColourCode::Cut);
            check(&format!("{escape}[1"), ColourCode::Cut);
        }
        for text in ["\x1b", "\x1b[", "\x1b[1;", "\x1b(", "\\", "\\u00", "\u{9b}"] {
            check(text, ColourCode::Cut);
        }
        for text in ["\x1b[2J", "\x1b[1A", "\x1b]0;m", "\x1b(A", "\x1bm", "\\n[1m", "é", "\\u001c"]
        {
            check(text, ColourCode::None);
        }
        check(
            &format!("\x1b[{}m", "1".repeat(PARAMETERS_MAX)),
            ColourCode::Whole(PARAMETERS_MAX + 3),
        );
        check(&format!("\x1b[{}m", "1".repeat(PARAMETERS_MAX + 1)), ColourCode::None);
    }

    #[test]
    fn positions_in_uncoloured_text_map_to_the_original_output() {
        let raw = b"a\x1b[1mb\x1b[m\x1b[Kcd\x1b[";
        let open = Uncoloured::new(raw, StreamEnd::Open);
        assert_eq!(&*open.bytes, b"abcd");
        let positions: Vec<usize> = (0..=4).map(|at| open.position(at)).collect();
        assert_eq!(positions, [0, 5, 12, 13, raw.len()]);
        assert_eq!((open.left_out_behind(0), open.left_out_behind(2)), (12, 2));
        assert_eq!(&*Uncoloured::new(raw, StreamEnd::Final).bytes, b"abcd\x1b[");
        let plain = Uncoloured::new(b"C:\\new caf\xc3\xa9", StreamEnd::Open);
        assert!(plain.gaps.is_empty() && matches!(plain.bytes, Cow::Borrowed(_)));
    }
}
