//! Tags in a message that look like a promise and are none, for reports to agent and user.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Promise;

/// Near misses of one message that are kept.
pub const NEAR_MISSES_MAX: usize = 4;
/// Longest word between tags that is checked.
const WORD_MAX: usize = 32;
/// The longest name of a tag that may be a misspelt one.
const NAME_MAX: usize = 10;
/// Names of tags that begin like this may be misspelt ones.
const NAME_START: &[u8] = b"prom";
const OPENING: &[u8] = b"<promise>";
const CLOSING: &[u8] = b"</promise>";

/// A tag that is no promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NearMiss {
    /// The tag is not alone on its line.
    InText { promise: Promise },
    /// The tag is in a code block, a quote, a list item or a comment.
    Quoted { promise: Promise },
    /// The tag or its word is not spelt exactly so.
    Misspelt { promise: Promise },
    /// The word between the tags is none of the three.
    OtherWord { word: String },
    /// The tag is spread over several lines.
    Split,
}

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NearMiss::InText { promise } => {
                write!(f, "`{}` has other text on its line", Tag(promise.word()))
            }
            NearMiss::Quoted { promise } => {
                let tag = Tag(promise.word());
                write!(f, "`{tag}` is in a code block, a quote, a list or a comment")
            }
            NearMiss::Misspelt { promise } => {
                write!(
                    f,
                    "the tag for {0} is not exactly `{1}`",
                    promise.word(),
                    Tag(promise.word())
                )
            }
            NearMiss::OtherWord { word } => {
                write!(f, "`{}` is none of COMPLETE, BLOCKED and ESCALATE", Tag(word))
            }
            NearMiss::Split => f.write_str("the tag is spread over several lines"),
        }
    }
}

struct Tag<'a>(&'a str);

impl fmt::Display for Tag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<promise>{}</promise>", self.0)
    }
}

/// The role of a line in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContext {
    /// The line is a promise.
    Promise,
    /// The line is code, a quote or a comment.
    Quoted,
    Text,
}

/// The tags of a message's lines so far.
#[derive(Debug, Default)]
pub(super) struct LineTags {
    near_misses: Vec<NearMiss>,
    /// The promise that ends the last line that is not empty.
    inline: Option<Promise>,
}

impl LineTags {
    /// Reads a line. If the line is too long to be kept, `line` is its beginning and `end` its end.
    pub(super) fn take_line(&mut self, line: &[u8], end: Option<&[u8]>, context: LineContext) {
        if line.is_empty() && end.is_none_or(<[u8]>::is_empty) {
            return;
        }
        self.inline = None;
        if context == LineContext::Promise {
            return;
        }
        for part in [Some(line), end].into_iter().flatten() {
            self.inline = None;
            for (tag, behind) in tags_in(part) {
                let is_last = context == LineContext::Text && is_only_markup(behind);
                self.inline = tag.exact().filter(|_| is_last);
                self.add(tag.near_miss(context, line));
            }
        }
    }

    fn add(&mut self, found: NearMiss) {
        if self.near_misses.len() < NEAR_MISSES_MAX && !self.near_misses.contains(&found) {
            self.near_misses.push(found);
        }
    }

    pub(super) fn finish(self) -> (Option<Promise>, Vec<NearMiss>) {
        (self.inline, self.near_misses)
    }
}

/// A tag as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FoundTag {
    Exact(Promise),
    Misspelt(Promise),
    OtherWord(String),
    Split,
}

impl FoundTag {
    fn exact(&self) -> Option<Promise> {
        match self {
            FoundTag::Exact(promise) => Some(*promise),
            _ => None,
        }
    }

    fn near_miss(self, context: LineContext, line: &[u8]) -> NearMiss {
        match self {
            FoundTag::Exact(promise) => {
                let is_alone = super::promise_in(line.trim_ascii()).is_some();
                if is_alone || context == LineContext::Quoted {
                    NearMiss::Quoted { promise }
                } else {
                    NearMiss::InText { promise }
                }
            }
            FoundTag::Misspelt(promise) => NearMiss::Misspelt { promise },
            FoundTag::OtherWord(word) => NearMiss::OtherWord { word },
            FoundTag::Split => NearMiss::Split,
        }
    }
}

/// Returns the tags in a line, each with the text after it.
fn tags_in(line: &[u8]) -> impl Iterator<Item = (FoundTag, &[u8])> {
    let starts = line.iter().enumerate().filter(|(_, byte)| **byte == b'<');
    starts.filter_map(|(at, _)| tag_at(&line[at..]))
}

/// Returns the tag that a text begins with, and the text after it.
fn tag_at(text: &[u8]) -> Option<(FoundTag, &[u8])> {
    let name = text.get(1..)?.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let begin = text.get(1..)?.get(..NAME_START.len())?;
    if name > NAME_MAX
        || !begin.eq_ignore_ascii_case(NAME_START)
        || text.get(1 + name) != Some(&b'>')
    {
        return None;
    }
    let is_exact_name = text.starts_with(OPENING);
    let body = &text[name + 2..];
    let length = body.iter().position(|byte| *byte == b'<').unwrap_or(body.len());
    let (word, rest) = body.split_at(length);
    if word.len() > WORD_MAX {
        return None;
    }
    if word.is_empty() && rest.is_empty() && is_exact_name {
        return Some((FoundTag::Split, rest));
    }
    let exact = promise_of(word).filter(|_| is_exact_name);
    if let (Some(promise), Some(behind)) = (exact, rest.strip_prefix(CLOSING)) {
        return Some((FoundTag::Exact(promise), behind));
    }
    let known = without_marks(word.trim_ascii()).to_ascii_uppercase();
    if let Some(promise) = promise_of(&known) {
        return Some((FoundTag::Misspelt(promise), rest));
    }
    let behind = rest.strip_prefix(CLOSING).filter(|_| is_exact_name)?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
    let word = word.trim_ascii();
    let is_word = !word.is_empty() && word.iter().all(is_plain);
    let word = if is_word { String::from_utf8_lossy(word).into_owned() } else { "…".to_owned() };
    Some((FoundTag::OtherWord(word), behind))
}

fn promise_of(word: &[u8]) -> Option<Promise> {
    let all = [Promise::Complete, Promise::Blocked, Promise::Escalate];
    all.into_iter().find(|promise| promise.word().as_bytes() == word)
}

/// Returns a word without the marks of bold, italics and code around it.
fn without_marks(word: &[u8]) -> &[u8] {
    let is_mark = |byte: &u8| matches!(byte, b'*' | b'_' | b'`' | b'"');
    let start = word.iter().position(|byte| !is_mark(byte)).unwrap_or(word.len());
    let end = word.iter().rposition(|byte| !is_mark(byte)).map_or(start, |last| last + 1);
    &word[start..end]
}

/// Whether a text consists only of marks, punctuation and symbols.
fn is_only_markup(text: &[u8]) -> bool {
    match std::str::from_utf8(text) {
        Ok(text) => {
            !text.chars().any(|character| character.is_alphanumeric() || character.is_control())
                && !text.contains('<')
        }
        Err(_) => false,
    }
}
