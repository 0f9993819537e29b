//! A session as a trace: the ids of its spans, and its parent span in another trace.
//!
//! Ids are hashes of the session's id and of places in its timeline, which depends only on the log.
//! So every export of a session has the same span ids.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::SessionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A parent span from `TRACEPARENT` (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether its trace is recorded.
    pub is_sampled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no traceparent, such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
pub struct BadTraceParent;

impl FromStr for TraceParent {
    type Err = BadTraceParent;

    fn from_str(text: &str) -> Result<TraceParent, BadTraceParent> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(BadTraceParent);
        let (version, trace, span, flags) = (part()?, part()?, part()?, part()?);
        let [version] = bytes::<1>(version)?;
        let (trace, span, [flags]) = (bytes(trace)?, bytes(span)?, bytes::<1>(flags)?);
        // A later version may have more parts. The version 0xff is invalid.
        let is_sound = match version {
            0 => parts.next().is_none(),
            0xff => false,
            _ => true,
        };
        match is_sound && trace != [0; 16] && span != [0; 8] {
            true => Ok(TraceParent {
                trace: TraceId(trace),
                span: SpanId(span),
                is_sampled: flags & 1 == 1,
            }),
            false => Err(BadTraceParent),
        }
    }
}

/// Returns the bytes that lower-case hexadecimal digits stand for.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], BadTraceParent> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return Err(BadTraceParent);
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| BadTraceParent)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| BadTraceParent)?;
    }
    Ok(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl TryFrom<String> for TraceParent {
    type Error = BadTraceParent;

    fn try_from(text: String) -> Result<TraceParent, BadTraceParent> {
        text.parse()
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> String {
        parent.to_string()
    }
}

/// The names of a session's spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanNames {
    session: SessionId,
    parent: Option<TraceParent>,
}

impl SpanNames {
    /// Creates the span ids of a session, below `parent` if it was started in that span.
    pub fn new(session: SessionId, parent: Option<TraceParent>) -> SpanNames {
        SpanNames { session, parent }
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the trace of the session: that of its parent, else its own.
    pub fn trace(&self) -> TraceId {
        self.parent.map_or_else(|| TraceId(self.hash("trace", [0, 0])), |parent| parent.trace)
    }

    /// Returns the parent span of the session, if it is not the first of its trace.
    pub fn above(&self) -> Option<SpanId> {
        self.parent.map(|parent| parent.span)
    }

    /// Whether the trace is recorded, as the process that started the session decided.
    pub fn is_sampled(&self) -> bool {
        self.parent.is_none_or(|parent| parent.is_sampled)
    }

    /// Returns the span of the session itself.
    pub fn root(&self) -> SpanId {
        SpanId(self.hash("session", [0, 0]))
    }

    /// Returns the span of a part, by its place in the timeline.
    pub fn part(&self, part: usize) -> SpanId {
        SpanId(self.hash("part", [part, 0]))
    }

    /// Returns the span of a step, by its place in its part.
    pub fn step(&self, part: usize, step: usize) -> SpanId {
        SpanId(self.hash("step", [part, step]))
    }

    /// Returns the trace parent for a process inside a span.
    pub fn parent_for(&self, span: SpanId) -> TraceParent {
        TraceParent { trace: self.trace(), span, is_sampled: self.is_sampled() }
    }

    fn hash<const N: usize>(&self, what: &str, place: [usize; 2]) -> [u8; N] {
        let [part, step] = place;
        let text = format!("hookloop {what} {} {part} {step}", self.session);
        let digest = Sha256::digest(text.as_bytes());
        let mut id = [0; N];
        for (byte, hashed) in id.iter_mut().zip(digest) {
            *byte = hashed;
        }
        // An id of zeros would be invalid.
        id[N - 1] |= u8::from(id == [0; N]);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn names(parent: Option<&str>) -> SpanNames {
        SpanNames::new("s1".parse().unwrap(), parent.map(|parent| parent.parse().unwrap()))
    }

    #[test]
    fn a_traceparent_is_read_and_written() {
        for text in [PARENT, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"] {
            assert_eq!(text.parse::<TraceParent>().unwrap().to_string(), text);
        }
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-what-follows";
        assert_eq!(later.parse::<TraceParent>().unwrap().to_string(), PARENT);
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        ] {
            assert_eq!(bad.parse::<TraceParent>(), Err(BadTraceParent), "{bad}");
        }
    }

    /// Spans that another version exported have these ids.
    #[test]
    fn trace_and_span_ids_are_stable_across_versions() {
        let own = names(None);
        assert_eq!(own.trace().to_string(), "d5035ef1edbf52f66d509f55cb696d30");
        assert_eq!(own.root().to_string(), "a012c71360bb3c73");
        assert_eq!(own.part(2).to_string(), "a78221fce3833d13");
        assert_eq!(own.step(2, 7).to_string(), "486fad163d594d75");
    }

    #[test]
    fn every_span_of_a_session_has_a_unique_id() {
        let own = names(None);
        let mut ids: Vec<SpanId> = vec![own.root()];
        for part in 0..20 {
            ids.push(own.part(part));
            ids.extend((0..20).map(|step| own.step(part, step)));
        }
        let all: std::collections::HashSet<SpanId> = ids.iter().copied().collect();
        assert_eq!(all.len(), ids.len());
    }

    #[test]
    fn a_session_started_with_a_traceparent_belongs_to_that_trace() {
        let own = names(None);
        let inside = names(Some(PARENT));
        assert_eq!(inside.trace().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(inside.above().unwrap().to_string(), "b7ad6b7169203331");
        assert_eq!(inside.root(), own.root());
        assert!(inside.is_sampled() && own.is_sampled());
        assert!(!names(Some(&PARENT.replace("-01", "-00"))).is_sampled());
    }
}
