//! An agent's promises in its final message.
//!
//! A promise is a line of its own: `<promise>COMPLETE</promise>`, `BLOCKED` or `ESCALATE`, exact in
//! case, indented by at most three spaces, with nothing but spaces, tabs and a carriage return behind
//! it. Prose is never understood: whoever writes about a promise writes it in a sentence, a quote, a
//! list, a comment or a code block, and none of these count.
//!
//! - Fences are CommonMark's, but for one that no line closes: it goes to the end, not to the end of
//!   the list it is in. A promise that is missed costs a round, a false one ends the work.
//! - A line at the margin ends the list or quote above it, also without an empty line between:
//!   that is how agents end a report.
//! - Escape sequences are not removed. Agents print a plain message when they don't print to a
//!   terminal, and who takes escapes away finds lines that nobody saw.
//! - What stands in `<pre>`, `<code>` and `<blockquote>` is quoted as well.

use serde::{Deserialize, Serialize};

/// A longer line is no promise and closes no fence. It is all that is kept of a stream.
pub const LINE_MAX: usize = 1024;

/// Deeper is code.
const INDENTATION_MAX: usize = 3;
/// More spaces behind a list marker are the indentation of code.
const MARKER_SPACES_MAX: usize = 4;
const TAB_STOP: usize = 4;
const FENCE_MIN: usize = 3;
const MARKER_DIGITS_MAX: usize = 9;

/// What hides the lines between its beginning and its end.
const HIDING: [(&[u8], &[u8]); 7] = [
    (b"<!--", b"-->"),
    (b"<pre>", b"</pre>"),
    (b"<pre ", b"</pre>"),
    (b"<code>", b"</code>"),
    (b"<code ", b"</code>"),
    (b"<blockquote>", b"</blockquote>"),
    (b"<blockquote ", b"</blockquote>"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Promise {
    /// The work is done.
    Complete,
    /// It can't go on before something else happens.
    Blocked,
    /// A human is needed.
    Escalate,
}

/// The promises in a message, distinct, in the order in which they first occur.
pub fn promises(text: &str) -> Vec<Promise> {
    let mut scanner = Scanner::default();
    scanner.push(text.as_bytes());
    scanner.finish()
}

/// Finds promises in a stream that is cut anywhere.
#[derive(Debug, Default)]
pub struct Scanner {
    /// The line at hand, up to [`LINE_MAX`].
    line: Vec<u8>,
    /// It is longer than that.
    is_cut: bool,
    /// The last bytes of the line, in lower case: enough for the longest of [`HIDING`].
    recent: u128,
    is_begun: bool,
    fence: Option<Fence>,
    /// Where the content of the outermost open list item begins.
    list: Option<usize>,
    /// As of the last byte.
    hidden: Option<Hidden>,
    /// As of the beginning of the line.
    hidden_before: Option<Hidden>,
    /// Something hidden came to its end in the line.
    is_ended: bool,
    found: Vec<Promise>,
    /// Found behind what may hide them: that shows at its end.
    held: Vec<Promise>,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: u8,
    length: usize,
    /// How far the line that closes it may be indented.
    indentation_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    end: &'static [u8],
    /// It began its line. In the middle of one it may be text, as long as it has no end.
    is_certain: bool,
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

    pub fn finish(mut self) -> Vec<Promise> {
        self.end_line();
        if self.hidden.is_none_or(|hidden| !hidden.is_certain) {
            let held = std::mem::take(&mut self.held);
            held.into_iter().for_each(|promise| add(&mut self.found, promise));
        }
        self.found
    }

    fn take(&mut self, byte: u8) {
        match self.line.len() < LINE_MAX {
            true => self.line.push(byte),
            false => self.is_cut = true,
        }
        self.recent = self.recent << 8 | u128::from(byte.to_ascii_lowercase());
        if matches!(byte, b'-' | b'>' | b' ') && self.fence.is_none() {
            self.look_for_hiding();
        }
    }

    fn look_for_hiding(&mut self) {
        let recent = self.recent.to_be_bytes();
        match self.hidden {
            Some(hidden) if recent.ends_with(hidden.end) => {
                self.hidden = None;
                self.is_ended = true;
            }
            Some(_) => {}
            None => {
                let began = HIDING.iter().find(|(start, _)| recent.ends_with(start));
                // What is named in backticks hides nothing.
                let is_named = |start: &[u8]| recent[recent.len() - start.len() - 1] == b'`';
                self.hidden = began
                    .filter(|(start, _)| !is_named(start))
                    .map(|(_, end)| Hidden { end, is_certain: false });
            }
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let bytes = match self.is_begun {
            false => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line),
            true => &line,
        };
        self.read_line(trim_end(bytes));
        line.clear();
        self.line = line;
        self.is_cut = false;
        self.recent = 0;
        self.is_begun = true;
        self.hidden_before = self.hidden;
        self.is_ended = false;
    }

    fn read_line(&mut self, line: &[u8]) {
        if let Some(fence) = self.fence {
            if !self.is_cut && fence.is_closed_by(line) {
                self.fence = None;
            }
            return;
        }
        if self.hidden_before.is_some_and(|hidden| hidden.is_certain) || line.is_empty() {
            return;
        }
        let (column, text) = unindented(line, 0);
        let is_in_list = self.list.is_some_and(|content| column >= content);
        if !is_in_list {
            self.list = None;
        }
        let is_code = column > INDENTATION_MAX && !is_in_list;
        if is_code || is_thematic_break(text) {
            return self.end_hiding(text, is_code);
        }
        let item = past_markers(text, column);
        if self.list.is_none() {
            self.list = item.outermost;
        }
        let indentation_max = match self.list {
            Some(_) => item.column + INDENTATION_MAX,
            None => INDENTATION_MAX,
        };
        self.fence = Fence::opened_by(item.text, indentation_max);
        if self.fence.is_some() || item.text.starts_with(b">") {
            self.hidden = self.hidden_before;
            return;
        }
        self.end_hiding(item.text, false);
        let promise = promise_in(item.text).filter(|_| self.list.is_none() && !self.is_cut);
        match (promise, self.hidden) {
            (Some(promise), Some(_)) => add(&mut self.held, promise),
            (Some(promise), None) => add(&mut self.found, promise),
            (None, _) => {}
        }
    }

    /// What a line of text means for what is hidden.
    fn end_hiding(&mut self, text: &[u8], is_code: bool) {
        if self.is_ended {
            self.held.clear();
        }
        let begins_line = || HIDING.iter().any(|(start, _)| starts_with(text, start));
        if let Some(hidden) = &mut self.hidden {
            hidden.is_certain |= self.hidden_before.is_none() && !is_code && begins_line();
        }
    }
}

impl Fence {
    fn opened_by(text: &[u8], indentation_max: usize) -> Option<Fence> {
        let mark = *text.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.iter().take_while(|byte| **byte == mark).count();
        let is_inline_code = mark == b'`' && text[length..].contains(&b'`');
        let is_fence = length >= FENCE_MIN && !is_inline_code;
        is_fence.then_some(Fence { mark, length, indentation_max })
    }

    fn is_closed_by(&self, line: &[u8]) -> bool {
        let (column, text) = unindented(line, 0);
        column <= self.indentation_max
            && text.len() >= self.length
            && text.iter().all(|byte| *byte == self.mark)
    }
}

/// The text of a line behind its list markers.
struct Item<'a> {
    text: &'a [u8],
    column: usize,
    /// Where the content of the first marker's item begins.
    outermost: Option<usize>,
}

fn past_markers(text: &[u8], column: usize) -> Item<'_> {
    let mut item = Item { text, column, outermost: None };
    while let Some(width) = marker_width(item.text) {
        let marker_end = item.column + width;
        let (column, text) = unindented(&item.text[width..], marker_end);
        let is_code = column - marker_end > MARKER_SPACES_MAX;
        let content = if is_code || text.is_empty() { marker_end + 1 } else { column };
        item.outermost = item.outermost.or(Some(content));
        (item.column, item.text) = (content, text);
        if is_code {
            item.text = b"";
        }
    }
    item
}

/// How long the list marker is that a text begins with.
fn marker_width(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let width = match (digits, text.get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=MARKER_DIGITS_MAX, b'.' | b')') => digits + 1,
        _ => return None,
    };
    matches!(text.get(width), None | Some(b' ' | b'\t')).then_some(width)
}

/// A line such as `* * *`, which is no list.
fn is_thematic_break(text: &[u8]) -> bool {
    let Some(mark @ (b'-' | b'*' | b'_')) = text.first() else { return false };
    let is_part = |byte: &u8| byte == mark || matches!(byte, b' ' | b'\t');
    text.iter().all(is_part) && text.iter().filter(|byte| *byte == mark).count() >= 3
}

/// A text without its indentation, and the column where it begins then.
fn unindented(text: &[u8], mut column: usize) -> (usize, &[u8]) {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += TAB_STOP - column % TAB_STOP,
            _ => return (column, &text[at..]),
        }
    }
    (column, b"")
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    &line[..end.map_or(0, |last| last + 1)]
}

fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
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
