//! Where the parts of a settings file are: JSON as people write it, with comments and trailing commas.
//!
//! Whether it is JSON is `serde_json`'s decision; this module only finds places, so that a change is a splice and all
//! other bytes stay.

use std::ops::Range;

use serde_json::Value;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file that can't be read, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(crate) struct JsoncFault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

impl JsoncFault {
    /// The mistake at `at`.
    pub(crate) fn at(text: &str, at: usize, message: impl Into<String>) -> JsoncFault {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[line_start..].trim_start_matches(BYTE_ORDER_MARK).chars().count() + 1;
        JsoncFault { line: before.matches('\n').count() + 1, column, message: message.into() }
    }
}

/// A value, and where it stands.
#[derive(Debug)]
pub(crate) struct JsoncNode {
    pub(crate) range: Range<usize>,
    pub(crate) parts: JsoncParts,
}

#[derive(Debug)]
pub(crate) enum JsoncParts {
    Object(Vec<JsoncMember>),
    Array(Vec<JsoncNode>),
    Scalar,
}

#[derive(Debug)]
pub(crate) struct JsoncMember {
    pub(crate) name: String,
    /// From the name to the end of the value.
    pub(crate) range: Range<usize>,
    pub(crate) value: JsoncNode,
}

impl JsoncNode {
    /// The member that counts: of equal names the last, as everybody reads it.
    pub(crate) fn member(&self, name: &str) -> Option<&JsoncMember> {
        match &self.parts {
            JsoncParts::Object(members) => members.iter().rev().find(|member| member.name == name),
            _ => None,
        }
    }

    /// Where the members or items stand.
    pub(crate) fn items(&self) -> Vec<Range<usize>> {
        match &self.parts {
            JsoncParts::Object(members) => {
                members.iter().map(|member| member.range.clone()).collect()
            }
            JsoncParts::Array(items) => items.iter().map(|item| item.range.clone()).collect(),
            JsoncParts::Scalar => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsoncTokenKind {
    /// A bracket, a colon or a comma.
    Mark(u8),
    Text,
    /// A number or a name, valid or not.
    Word,
    LineComment,
    BlockComment,
}

impl JsoncTokenKind {
    pub(crate) fn is_comment(self) -> bool {
        matches!(self, JsoncTokenKind::LineComment | JsoncTokenKind::BlockComment)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct JsoncToken {
    pub(crate) kind: JsoncTokenKind,
    pub(crate) range: Range<usize>,
}

/// A file's text with its tokens and its value; no value if it holds none.
#[derive(Debug)]
pub(crate) struct JsoncDocument<'t> {
    pub(crate) text: &'t str,
    pub(crate) tokens: Vec<JsoncToken>,
    pub(crate) root: Option<JsoncNode>,
}

impl<'t> JsoncDocument<'t> {
    pub(crate) fn read(text: &'t str) -> Result<JsoncDocument<'t>, JsoncFault> {
        let tokens = tokens(text);
        if tokens.iter().all(|token| token.kind.is_comment()) {
            return Ok(JsoncDocument { text, tokens, root: None });
        }
        check(text, &tokens)?;
        let meaning: Vec<&JsoncToken> =
            tokens.iter().filter(|token| !token.kind.is_comment()).collect();
        let root = JsoncReader { text, tokens: &meaning, next: 0 }.node();
        let wrong = || JsoncFault::at(text, 0, "this is not JSON");
        let root = Some(root.ok_or_else(wrong)?);
        Ok(JsoncDocument { text, tokens, root })
    }

    /// Whether a comment stands in `range`.
    pub(crate) fn has_comment(&self, range: &Range<usize>) -> bool {
        let is_inside =
            |token: &&JsoncToken| range.start <= token.range.start && token.range.end <= range.end;
        self.tokens.iter().filter(is_inside).any(|token| token.kind.is_comment())
    }

    /// The last token that ends at `at` or before it.
    pub(crate) fn token_before(&self, at: usize) -> Option<&JsoncToken> {
        let index = self.tokens.partition_point(|token| token.range.end <= at);
        index.checked_sub(1).and_then(|index| self.tokens.get(index))
    }

    /// The first token from `at` on that is no comment.
    pub(crate) fn mark_after(&self, at: usize) -> Option<&JsoncToken> {
        let index = self.tokens.partition_point(|token| token.range.start < at);
        self.tokens[index..].iter().find(|token| !token.kind.is_comment())
    }

    /// The last token before `at` that is no comment.
    pub(crate) fn mark_before(&self, at: usize) -> Option<&JsoncToken> {
        let index = self.tokens.partition_point(|token| token.range.end <= at);
        self.tokens[..index].iter().rev().find(|token| !token.kind.is_comment())
    }

    /// The value of a part of the text.
    pub(crate) fn value(&self, range: &Range<usize>) -> Value {
        let part = &self.text[range.clone()];
        let shift = range.start;
        let inside =
            |token: &&JsoncToken| range.start <= token.range.start && token.range.end <= range.end;
        let moved = |token: &JsoncToken| JsoncToken {
            kind: token.kind,
            range: token.range.start - shift..token.range.end - shift,
        };
        let tokens: Vec<JsoncToken> = self.tokens.iter().filter(inside).map(moved).collect();
        serde_json::from_str(&strict(part, &tokens)).unwrap_or_default()
    }
}

/// Cuts the text into tokens. Invalid JSON stays invalid.
fn tokens(text: &str) -> Vec<JsoncToken> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    while at < bytes.len() {
        let rest = &text[at..];
        let (kind, length) = match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            mark @ (b'{' | b'}' | b'[' | b']' | b':' | b',') => (JsoncTokenKind::Mark(mark), 1),
            b'"' => (JsoncTokenKind::Text, text_length(rest)),
            b'/' if rest.starts_with("//") => {
                let line = rest.split('\n').next().unwrap_or(rest);
                (JsoncTokenKind::LineComment, line.trim_end_matches('\r').len())
            }
            b'/' if rest.starts_with("/*") => {
                // A string without an end becomes a word, which is not JSON.
                match rest[2..].find("*/") {
                    Some(end) => (JsoncTokenKind::BlockComment, end + 4),
                    None => (JsoncTokenKind::Word, rest.len()),
                }
            }
            _ => (JsoncTokenKind::Word, word_length(rest)),
        };
        tokens.push(JsoncToken { kind, range: at..at + length });
        at += length;
    }
    tokens
}

fn text_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return at + 1,
            _ => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    rest.len()
}

fn word_length(rest: &str) -> usize {
    let ends = |c: char| c.is_ascii_whitespace() || "{}[]:,\"/".contains(c);
    let first = rest.chars().next().map_or(1, char::len_utf8);
    rest[first..].find(ends).map_or(rest.len(), |end| first + end)
}

/// The text as strict JSON, everything in its place: comments and trailing commas are blanks.
fn strict(text: &str, tokens: &[JsoncToken]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |range: &Range<usize>| {
        bytes[range.clone()]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
    };
    if text.starts_with(BYTE_ORDER_MARK) {
        blank(&(0..BYTE_ORDER_MARK.len()));
    }
    let mut marks: Vec<&JsoncToken> = Vec::new();
    for token in tokens {
        if token.kind.is_comment() {
            blank(&token.range);
            continue;
        }
        marks.push(token);
        if let [.., item, comma, end] = marks.as_slice() {
            let is_end = matches!(end.kind, JsoncTokenKind::Mark(b'}' | b']'));
            let is_after_item =
                !matches!(item.kind, JsoncTokenKind::Mark(b'{' | b'[' | b',' | b':'));
            if is_end && comma.kind == JsoncTokenKind::Mark(b',') && is_after_item {
                blank(&comma.range);
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Says where the text is not JSON.
fn check(text: &str, tokens: &[JsoncToken]) -> Result<(), JsoncFault> {
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&strict(text, tokens)) else {
        return Ok(());
    };
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    Err(JsoncFault { line: error.line(), column: error.column(), message })
}

/// Reads tokens that are known to be JSON, no deeper than `serde_json` lets them be.
struct JsoncReader<'t> {
    text: &'t str,
    tokens: &'t [&'t JsoncToken],
    next: usize,
}

impl JsoncReader<'_> {
    fn take(&mut self) -> Option<&JsoncToken> {
        self.next += 1;
        self.tokens.get(self.next - 1).copied()
    }

    fn is_next(&self, mark: u8) -> bool {
        self.tokens.get(self.next).is_some_and(|token| token.kind == JsoncTokenKind::Mark(mark))
    }

    fn node(&mut self) -> Option<JsoncNode> {
        let token = self.take()?.clone();
        let start = token.range.start;
        let mut end = token.range.end;
        let parts = match token.kind {
            JsoncTokenKind::Mark(b'{') => {
                let mut members = Vec::new();
                while !self.is_next(b'}') {
                    members.push(self.member()?);
                    self.skip_comma();
                }
                end = self.take()?.range.end;
                JsoncParts::Object(members)
            }
            JsoncTokenKind::Mark(b'[') => {
                let mut items = Vec::new();
                while !self.is_next(b']') {
                    items.push(self.node()?);
                    self.skip_comma();
                }
                end = self.take()?.range.end;
                JsoncParts::Array(items)
            }
            JsoncTokenKind::Text | JsoncTokenKind::Word => JsoncParts::Scalar,
            _ => return None,
        };
        Some(JsoncNode { range: start..end, parts })
    }

    fn member(&mut self) -> Option<JsoncMember> {
        let name = self.take()?.range.clone();
        self.take().filter(|token| token.kind == JsoncTokenKind::Mark(b':'))?;
        let value = self.node()?;
        let range = name.start..value.range.end;
        Some(JsoncMember { name: serde_json::from_str(&self.text[name]).ok()?, range, value })
    }

    fn skip_comma(&mut self) {
        if self.is_next(b',') {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_text_range_and_value() {
        let text =
            "\u{feff}// a\r\n{ \"a\": [1, {\"b\": null},], /* } */ \"a\\u0062\": \"x\\\"//\", }\n";
        let document = JsoncDocument::read(text).unwrap();
        let root = document.root.as_ref().unwrap();
        let list = root.member("a").unwrap();
        assert_eq!(&text[list.range.clone()], "\"a\": [1, {\"b\": null},]");
        assert_eq!(list.value.items().len(), 2);
        assert_eq!(document.value(&root.member("ab").unwrap().value.range), "x\"//");
        assert_eq!(document.value(&list.value.range), serde_json::json!([1, { "b": null }]));
    }

    #[test]
    fn a_syntax_error_has_its_line_and_column() {
        for (text, line, column) in [
            ("{\n  \"a\": 1,\n  oops\n}", 3, 3),
            ("{\"a\": 1", 1, 7),
            ("{} {}", 1, 4),
            ("{\"a\": [,]}", 1, 8),
            ("{,}", 1, 2),
            ("/* x", 1, 1),
            ("{\"a\": 01}", 1, 8),
        ] {
            let fault = JsoncDocument::read(text).unwrap_err();
            assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault}");
        }
    }

    #[test]
    fn an_empty_document_has_no_root_value() {
        for text in ["", " \n", "// only\n", "\u{feff}"] {
            assert!(JsoncDocument::read(text).unwrap().root.is_none(), "{text:?}");
        }
    }
}
