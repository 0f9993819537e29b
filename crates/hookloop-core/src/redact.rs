//! Removes secrets from the output of hooks.
//!
//! Every form in which a secret is likely to be printed is replaced by `[redacted:NAME]`, however
//! the output is cut into chunks. A secret that was changed in another way (reversed, encrypted,
//! compressed, cut in two) is not found.
//!
//! Tokens of well-known shapes are also replaced, whether their values are known or not. This
//! includes partly coloured tokens.

mod colours;
mod forms;
mod shapes;

use std::fmt;

pub use colours::without_colours;

use aho_corasick::{AhoCorasick, Anchored, Input, Match, MatchKind, StartKind};

/// Shorter secrets are ignored: they would be found everywhere.
pub const SHORTEST_SECRET: usize = 6;

/// A line of a secret of several lines is a secret of its own from this length on.
pub(crate) const SHORTEST_LINE: usize = 8;

#[derive(Debug, thiserror::Error)]
#[error("the secrets are too many or too long to look for")]
pub struct TooManySecrets(#[source] aho_corasick::BuildError);

/// Finds secrets in output.
pub struct Redactor {
    searcher: AhoCorasick,
    /// The replacement of each form.
    markers: Vec<usize>,
    names: Vec<String>,
    beginnings: Beginnings,
}

// Debug output must not contain secrets.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Redactor {
    pub fn new<N, V>(secrets: impl IntoIterator<Item = (N, V)>) -> Result<Redactor, TooManySecrets>
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let mut names = Vec::new();
        let mut forms: Vec<(Vec<u8>, usize)> = Vec::new();
        for (name, value) in secrets {
            let marker = names.len();
            forms.extend(forms::of_secret(value.as_ref()).into_iter().map(|form| (form, marker)));
            names.push(format!("[redacted:{}]", name.as_ref()));
        }
        // If two secrets share a form, the marker has the name of the first.
        forms.sort();
        forms.dedup_by(|one, other| one.0 == other.0);
        let (forms, markers): (Vec<Vec<u8>>, Vec<usize>) = forms.into_iter().unzip();
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .start_kind(StartKind::Anchored)
            .build(&forms)
            .map_err(TooManySecrets)?;
        let beginnings = Beginnings::new(forms);
        let mut redactor = Redactor { searcher, markers, names: Vec::new(), beginnings };
        // A secret can be a part of its own name.
        let tells = |name: &String| redactor.find(name.as_bytes(), 0).is_some();
        let named = names.into_iter();
        redactor.names =
            named.map(|name| if tells(&name) { UNNAMED.to_owned() } else { name }).collect();
        Ok(redactor)
    }

    pub fn stream(&self) -> RedactStream<'_> {
        RedactStream { redactor: self, held: Vec::new(), unshaped: Vec::new() }
    }

    pub fn text(&self, text: &str) -> String {
        let mut named = Vec::new();
        self.redact(text.as_bytes(), StreamEnd::Final, &mut named);
        let mut out = Vec::new();
        shapes::redact(&named, StreamEnd::Final, &mut out);
        String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Writes the part of `bytes` that is certain. Returns the position of the rest.
    fn redact(&self, bytes: &[u8], end: StreamEnd, out: &mut Vec<u8>) -> usize {
        let open_from = |from| match end {
            StreamEnd::Final => bytes.len(),
            StreamEnd::Open => self.beginnings.first_at_end(bytes, from),
        };
        let mut written = 0;
        let mut open = open_from(0);
        while let Some(found) = self.find(bytes, written) {
            // From here on, further bytes may complete a longer or earlier form.
            if found.start() >= open {
                break;
            }
            out.extend_from_slice(&bytes[written..found.start()]);
            let marker = self.markers[found.pattern().as_usize()];
            out.extend_from_slice(self.names[marker].as_bytes());
            written = found.end();
            if open < written {
                open = open_from(written);
            }
        }
        out.extend_from_slice(&bytes[written..open]);
        open
    }

    /// Returns the first form in `bytes` from `from` on, and of several at one position the
    /// longest.
    fn find(&self, bytes: &[u8], mut from: usize) -> Option<Match> {
        loop {
            let at = self.beginnings.next(bytes, from)?;
            let here = Input::new(bytes).range(at..).anchored(Anchored::Yes);
            if let Some(found) = self.searcher.find(here) {
                return Some(found);
            }
            from = at + 1;
        }
    }
}

/// A marker that is too short to contain a secret.
const UNNAMED: &str = "[***]";

#[derive(Clone, Copy)]
enum StreamEnd {
    /// More may follow.
    Open,
    Final,
}

/// The output of one process, in arbitrary pieces.
pub struct RedactStream<'a> {
    redactor: &'a Redactor,
    /// Bytes that may be the beginning of a secret.
    held: Vec<u8>,
    /// Bytes without secrets whose values are known, in which a token may begin.
    unshaped: Vec<u8>,
}

impl fmt::Debug for RedactStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedactStream").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

impl RedactStream<'_> {
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let open = self.redactor.redact(chunk, StreamEnd::Open, &mut self.unshaped);
            self.held.extend_from_slice(&chunk[open..]);
        } else {
            self.held.extend_from_slice(chunk);
            let open = self.redactor.redact(&self.held, StreamEnd::Open, &mut self.unshaped);
            self.held.drain(..open);
        }
        let open = shapes::redact(&self.unshaped, StreamEnd::Open, out);
        self.unshaped.drain(..open);
    }

    /// Continues with a redactor that knows more secrets.
    #[must_use]
    pub fn with(self, redactor: &Redactor) -> RedactStream<'_> {
        RedactStream { redactor, held: self.held, unshaped: self.unshaped }
    }

    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.redactor.redact(&self.held, StreamEnd::Final, &mut self.unshaped);
        shapes::redact(&self.unshaped, StreamEnd::Final, out);
    }
}

/// Finds bytes that can begin a form.
struct Beginnings {
    /// Sorted.
    forms: Vec<Vec<u8>>,
    longest: usize,
    /// A bit for each hash of a form's first bytes.
    ///
    /// Most bytes begin no form, and this check is several times faster than a search.
    starts: Vec<u64>,
}

impl Beginnings {
    /// Number of bits that fits in the first-level cache of a processor.
    const BITS: u32 = 18;
    /// Shorter than any form.
    const START: usize = 4;

    fn new(forms: Vec<Vec<u8>>) -> Beginnings {
        let mut starts = vec![0; (1 << Self::BITS) / 64];
        for start in forms.iter().filter_map(|form| form.first_chunk()) {
            let hash = Self::hash(start);
            starts[hash / 64] |= 1 << (hash % 64);
        }
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        Beginnings { forms, longest, starts }
    }

    /// Whether a form may begin with `start`.
    fn may_start(&self, start: &[u8; Self::START]) -> bool {
        let hash = Self::hash(start);
        self.starts[hash / 64] & (1 << (hash % 64)) != 0
    }

    /// Returns the next position, from `from` on, where a form may begin.
    fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut starts = bytes.get(from..)?.windows(Self::START);
        let may_start =
            |start: &[u8]| start.first_chunk().is_some_and(|start| self.may_start(start));
        starts.position(may_start).map(|at| from + at)
    }

    fn hash(start: &[u8; Self::START]) -> usize {
        (u32::from_le_bytes(*start).wrapping_mul(0x9E37_79B1) >> (32 - Self::BITS)) as usize
    }

    /// Returns the first position, not before `from`, from which `bytes` are the beginning of a
    /// longer form.
    fn first_at_end(&self, bytes: &[u8], from: usize) -> usize {
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1)).max(from);
        (first..bytes.len()).find(|at| self.begins(&bytes[*at..])).unwrap_or(bytes.len())
    }

    fn begins(&self, bytes: &[u8]) -> bool {
        if bytes.first_chunk().is_some_and(|start| !self.may_start(start)) {
            return false;
        }
        // Forms that begin with `bytes` follow it in order, at once.
        let after = self.forms.partition_point(|form| form.as_slice() <= bytes);
        self.forms.get(after).is_some_and(|form| form.starts_with(bytes))
    }
}

#[cfg(test)]
mod tests;
