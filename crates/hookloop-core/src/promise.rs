//! Promises of an agent in its final message.
//!
//! A promise is a line of its own: `<promise>COMPLETE</promise>`, `BLOCKED` or `ESCALATE`. The case
//! is exact. The line is indented by at most three spaces, and only spaces, tabs and a carriage
//! return may follow. Prose is never interpreted: a promise in a sentence, a quote, a list, a
//! comment or a code block does not count.
//!
//! - Fences follow CommonMark, with one exception: an unclosed fence extends to the end of the
//!   text, not to the end of its list. A missed promise costs one iteration, a false one ends the
//!   work.
//! - A promise at the margin is in no list or quote above it, even without an empty line between.
//!   Agents end reports like that.
//! - Escape sequences are not removed. Agents print a plain message when they do not print to a
//!   terminal. Removing escapes would reveal lines that were never visible.
//! - A promise is `inline` if it ends the last line after other text, in bold, in a list item or in
//!   inline code. It counts if gates judge it, even beside promises above it. All other tags are
//!   near misses, which are reported.
//! - Text in `<pre>`, `<code>` and `<blockquote>`, or between backticks of a paragraph, is also
//!   quoted. If that becomes clear only later, a promise is withheld until then.

mod markdown;
mod near_miss;

pub use near_miss::{NEAR_MISSES_MAX, NearMiss};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use markdown::{CodeFence, is_thematic_break, past_markers, trim_end, unindented};
use near_miss::{LineContext, LineTags};

/// Longest line that can be a promise or close a fence. Nothing more of a stream is kept.
pub const LINE_MAX: usize = 1024;

/// Bytes of the end of a longer line that are kept: enough for a promise and markup after it.
const LINE_END_MAX: usize = 128;

/// Largest indentation of a promise. Deeper text is code.
const INDENTATION_MAX: usize = 3;

/// Marks that hide the lines between their beginning and their end.
const HIDING: [(&[u8], &[u8]); 7] = [
    (b"<!--", b"-->"),
    (b"<pre>", b"</pre>"),
    (b"<pre ", b"</pre>"),
    (b"<code>", b"</code>"),
    (b"<code ", b"</code>"),
    (b"<blockquote>", b"</blockquote>"),
    (b"<blockquote ", b"</blockquote>"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Promise {
    /// The work is done.
    Complete,
    /// The work is blocked until something else happens.
    Blocked,
    /// A person is needed.
    Escalate,
}

impl Promise {
    /// The precedence of promises if a message has several.
    pub const BY_WEIGHT: [Promise; 3] = [Promise::Complete, Promise::Escalate, Promise::Blocked];

    /// Returns the word between the tags.
    pub fn word(self) -> &'static str {
        match self {
            Promise::Complete => "COMPLETE",
            Promise::Blocked => "BLOCKED",
            Promise::Escalate => "ESCALATE",
        }
    }
}

/// Everything in a message that is a promise or looks like one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessagePromises {
    /// The promises alone on their line, distinct, in the order in which they first occur.
    pub alone: Vec<Promise>,
    /// The promise that ends the last line, after other text or in markup.
    pub inline: Option<Promise>,
    /// Tags that are no promise, the first [`NEAR_MISSES_MAX`], including the one of `inline`.
    pub near_misses: Vec<NearMiss>,
}

impl MessagePromises {
    /// Returns the promises that count, distinct. An inline promise counts only with gates.
    pub fn counted(&self, has_gates: bool) -> Vec<Promise> {
        let inline = self.inline.filter(|promise| has_gates && !self.alone.contains(promise));
        self.alone.iter().copied().chain(inline).collect()
    }
}

/// Reads a whole message.
pub fn read(text: &str) -> MessagePromises {
    let mut scanner = Scanner::default();
    scanner.push(text.as_bytes());
    scanner.read_all()
}

/// Returns the promises in a message, distinct, in the order in which they first occur.
pub fn promises(text: &str) -> Vec<Promise> {
    read(text).alone
}

/// Finds promises in a stream of arbitrary pieces.
#[derive(Debug, Default)]
pub struct Scanner {
    /// The current line, up to [`LINE_MAX`].
    line: Vec<u8>,
    /// Whether the line is longer than that.
    is_cut: bool,
    /// The end of a longer line, at least its last [`LINE_END_MAX`] bytes.
    line_end: Vec<u8>,
    /// The last bytes of the line, in lower case: enough for the longest of [`HIDING`].
    recent: u128,
    /// Number of consecutive backticks at their end.
    backticks: usize,
    is_begun: bool,
    fence: Option<CodeFence>,
    /// The column at which the content of the outermost open list item begins.
    list: Option<usize>,
    /// Whether the last line was text that the next one may continue.
    is_in_text: bool,
    /// The hidden part at the last byte.
    hidden: Option<HiddenPart>,
    /// The hidden part at the beginning of the line.
    hidden_before: Option<HiddenPart>,
    /// Whether a hidden part ended in the line.
    is_ended: bool,
    found: Vec<Promise>,
    /// Promises after text that may hide them. Its end shows whether it does.
    held: Vec<Promise>,
    /// Tags that are no promise.
    tags: LineTags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HiddenPart {
    end: HidingEnd,
    /// Whether the mark began its line. Otherwise it may be text until its end is found.
    is_certain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HidingEnd {
    Mark(&'static [u8]),
    /// As many backticks as at its beginning, in the same paragraph.
    Backticks(usize),
}

impl Scanner {
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                byte => self.take(*byte),
            }
        }
    }

    pub fn finish(self) -> Vec<Promise> {
        self.read_all().alone
    }

    /// Ends the message.
    pub fn read_all(mut self) -> MessagePromises {
        self.end_line();
        if self.hidden.is_none_or(|hidden| !hidden.is_certain) {
            self.release();
        }
        let (inline, near_misses) = self.tags.finish();
        MessagePromises { alone: self.found, inline, near_misses }
    }

    fn take(&mut self, byte: u8) {
        match self.line.len() < LINE_MAX {
            true => self.line.push(byte),
            false => self.cut_line(byte),
        }
        self.recent = self.recent << 8 | u128::from(byte.to_ascii_lowercase());
        if self.fence.is_some() {
            return;
        }
        match byte {
            b'`' => self.backticks += 1,
            _ => self.end_backticks(),
        }
        // All marks end with one of these bytes, after one of those.
        let before = (self.recent >> 8) as u8;
        if matches!(byte, b'-' | b'>' | b' ') && matches!(before, b'-' | b'e' | b't') {
            self.look_for_marks();
        }
    }

    /// Handles a byte beyond the kept part of the line.
    fn cut_line(&mut self, byte: u8) {
        self.is_cut = true;
        if self.line_end.len() >= 2 * LINE_END_MAX {
            self.line_end.drain(..LINE_END_MAX);
        }
        self.line_end.push(byte);
    }

    /// Returns the last bytes of a line that was cut after `line`.
    fn end_of_cut_line(&self, line: &[u8]) -> Vec<u8> {
        let before = line.len().saturating_sub(LINE_END_MAX);
        let end = [&line[before..], &self.line_end].concat();
        end[end.len().saturating_sub(LINE_END_MAX)..].to_vec()
    }

    fn end_backticks(&mut self) {
        let count = std::mem::take(&mut self.backticks);
        if count > 0 {
            let end = HidingEnd::Backticks(count);
            self.pass(|open| open == end, Some(end));
        }
    }

    fn look_for_marks(&mut self) {
        let recent = self.recent.to_be_bytes();
        let begun = HIDING.iter().find(|(start, _)| recent.ends_with(start));
        let begun = begun.map(|(_, end)| HidingEnd::Mark(end));
        let is_end = |end: HidingEnd| matches!(end, HidingEnd::Mark(end) if recent.ends_with(end));
        self.pass(is_end, begun);
    }

    /// Ends the hidden part if `is_end` accepts its end. Without a hidden part, begins one.
    fn pass(&mut self, is_end: impl Fn(HidingEnd) -> bool, begun: Option<HidingEnd>) {
        match self.hidden {
            Some(hidden) if is_end(hidden.end) => {
                self.hidden = None;
                self.is_ended = true;
            }
            Some(_) => {}
            None => self.hidden = begun.map(|end| HiddenPart { end, is_certain: false }),
        }
    }

    /// Ends a paragraph. Backticks without a partner in it were text.
    fn end_paragraph(&mut self) {
        if let Some(HiddenPart { end: HidingEnd::Backticks(_), .. }) = self.hidden_before {
            self.hidden_before = None;
            self.release();
        }
        self.hidden = self.hidden_before;
    }

    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        held.into_iter().for_each(|promise| add(&mut self.found, promise));
    }

    fn end_line(&mut self) {
        self.end_backticks();
        let mut line = std::mem::take(&mut self.line);
        let bytes = match self.is_begun {
            false => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line),
            true => &line,
        };
        let bytes = trim_end(bytes);
        let hidden_before = self.hidden_before;
        let context = self.read_line(bytes);
        let context = if hidden_before.is_some() { LineContext::Quoted } else { context };
        let end = self.is_cut.then(|| self.end_of_cut_line(bytes));
        self.tags.take_line(bytes, end.as_deref().map(trim_end), context);
        self.line_end.clear();
        line.clear();
        self.line = line;
        self.is_cut = false;
        self.recent = 0;
        self.is_begun = true;
        self.hidden_before = self.hidden;
        self.is_ended = false;
    }

    /// Reads a line and returns its role.
    fn read_line(&mut self, line: &[u8]) -> LineContext {
        if let Some(fence) = self.fence {
            if !self.is_cut && fence.is_closed_by(line) {
                self.fence = None;
            }
            return LineContext::Quoted;
        }
        let continues_text = std::mem::replace(&mut self.is_in_text, false);
        if self.hidden_before.is_some_and(|hidden| hidden.is_certain) {
            return LineContext::Quoted;
        }
        if line.is_empty() {
            self.end_paragraph();
            return LineContext::Text;
        }
        let (column, text) = unindented(line, 0);
        let list_before = self.list;
        let is_in_list = self.list.is_some_and(|content| column >= content);
        if !is_in_list {
            self.list = None;
        }
        if column > INDENTATION_MAX && !is_in_list {
            // Code can't begin in the middle of a paragraph, and in text backticks count.
            self.is_in_text = continues_text;
            if continues_text {
                self.end_hiding(b"");
            } else {
                self.end_paragraph();
            }
            return LineContext::Quoted;
        }
        if is_thematic_break(text) {
            self.end_paragraph();
            return LineContext::Text;
        }
        let item = past_markers(text, column);
        if self.list.is_none() {
            self.list = item.outermost;
        }
        let indentation_max = match self.list {
            Some(_) => item.column + INDENTATION_MAX,
            None => INDENTATION_MAX,
        };
        self.fence = CodeFence::opened_by(item.text, indentation_max);
        if self.fence.is_some() || item.text.starts_with(b">") {
            self.end_paragraph();
            return LineContext::Quoted;
        }
        self.end_hiding(item.text);
        let promise = promise_in(item.text).filter(|_| self.list.is_none() && !self.is_cut);
        match (promise, self.hidden) {
            (Some(promise), Some(_)) => add(&mut self.held, promise),
            (Some(promise), None) => add(&mut self.found, promise),
            (None, _) => {}
        }
        let is_marked = HIDING.iter().any(|(start, _)| ends_in(item.text, start));
        self.is_in_text = true;
        if continues_text && self.list.is_none() {
            self.list = list_before;
        }
        if promise.is_some() {
            LineContext::Promise
        } else if is_marked {
            LineContext::Quoted
        } else {
            LineContext::Text
        }
    }

    /// Applies a line of text to the hidden part.
    fn end_hiding(&mut self, text: &[u8]) {
        if self.is_ended {
            self.held.clear();
        }
        let begun = HIDING.iter().find(|(start, _)| starts_with(text, start));
        // The mark has no end in this line: an uncertain earlier mark would have hidden it.
        let is_open = |end: &'static [u8]| match self.hidden_before {
            None => self.hidden.is_some_and(|hidden| hidden.end == HidingEnd::Mark(end)),
            Some(_) => !self.is_cut && !ends_in(text, end),
        };
        if let Some((_, end)) = begun.filter(|(_, end)| is_open(end)) {
            self.hidden = Some(HiddenPart { end: HidingEnd::Mark(end), is_certain: true });
        }
    }
}

fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

fn ends_in(text: &[u8], end: &[u8]) -> bool {
    text.windows(end.len()).any(|window| window.eq_ignore_ascii_case(end))
}

fn promise_in(text: &[u8]) -> Option<Promise> {
    match text.strip_prefix(b"<promise>")?.strip_suffix(b"</promise>")? {
        b"COMPLETE" => Some(Promise::Complete),
        b"BLOCKED" => Some(Promise::Blocked),
        b"ESCALATE" => Some(Promise::Escalate),
        _ => None,
    }
}

fn add(promises: &mut Vec<Promise>, promise: Promise) {
    if !promises.contains(&promise) {
        promises.push(promise);
    }
}
