//! Verdicts of gatekeepers: reviewing agents that answer by a schema or not at all.
//!
//! A verdict is the whole message: one JSON object, bare or as the only content of one fenced
//! block. Prose is never interpreted, so "not approved" approves nothing. An object in a sentence,
//! or beside a second object, approves nothing either. The object names the review by an id that is
//! unique to it. Text planted in the reviewed files cannot know that id.
//!
//! - `strict`: strict parsing of JSON objects

mod strict;

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use strict::StrictObject;

use crate::excerpt::one_line;

/// A longer message is no verdict.
pub const MESSAGE_MAX: usize = 16 * 1024;
pub const FINDINGS_MAX: usize = 50;
/// Findings of a verdict in one line, and characters of that line.
const FINDINGS_IN_LINE: usize = 3;
const LINE_CHARS: usize = 400;
/// Lines of a file are counted from one.
const LINE_MAX: u64 = u32::MAX as u64;

/// The verdict of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewVerdict {
    pub decision: ReviewDecision,
    pub summary: String,
    pub findings: Vec<ReviewFinding>,
}

impl ReviewVerdict {
    pub fn is_approval(&self) -> bool {
        self.decision == ReviewDecision::Approve
    }

    /// Returns the summary and the first findings, blockers before others, in one line.
    pub fn in_a_line(&self) -> String {
        let mut findings: Vec<&ReviewFinding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| finding.severity != Severity::Blocker);
        let shown = findings.iter().take(FINDINGS_IN_LINE).map(ToString::to_string);
        let parts: Vec<String> = std::iter::once(self.summary.clone()).chain(shown).collect();
        let parts: Vec<&str> =
            parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        let more = match findings.len().saturating_sub(FINDINGS_IN_LINE) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        one_line(&format!("{}{more}", parts.join("; ")), LINE_CHARS)
    }
}

/// The verdict for the author: the summary, then each finding with its place.
impl fmt::Display for ReviewVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)?;
        for finding in &self.findings {
            write!(f, "\n- {finding}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewDecision {
    Approve,
    Reject,
}

/// A finding of a reviewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewFinding {
    /// A path inside the project.
    pub file: Option<String>,
    pub line: Option<u64>,
    pub message: String,
    pub severity: Severity,
}

impl fmt::Display for ReviewFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReviewFinding { file, line, message, severity } = self;
        let place = match (file, line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        write!(f, "{} {place}{message}", severity.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The work must not be merged unchanged.
    Blocker,
    Warning,
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Blocker => "blocker",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A message that is no verdict. It neither approves nor rejects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reviewer's message is no verdict: {why}")]
pub struct NoVerdict {
    pub why: String,
}

fn none<T>(why: impl Into<String>) -> Result<T, NoVerdict> {
    Err(NoVerdict { why: why.into() })
}

/// Parses a message as the verdict of the review with this id.
pub fn verdict(message: &str, review_id: &str) -> Result<ReviewVerdict, NoVerdict> {
    if review_id.is_empty() {
        return none("the review has no id");
    }
    if message.len() > MESSAGE_MAX {
        return none(format!("it is longer than {MESSAGE_MAX} bytes"));
    }
    let mut object = StrictObject::read(unfenced(message)?)?;
    if object.text("review")? != review_id {
        return none("it has the id of another review");
    }
    let decision = match object.text("verdict")?.as_str() {
        "approve" => ReviewDecision::Approve,
        "reject" => ReviewDecision::Reject,
        _ => return none("`verdict` is neither `approve` nor `reject`"),
    };
    let summary = object.text("summary")?;
    let findings = object.objects("findings", FINDINGS_MAX)?;
    let findings = findings.into_iter().map(finding).collect::<Result<Vec<ReviewFinding>, _>>()?;
    object.end()?;
    sound(ReviewVerdict { decision, summary, findings })
}

fn finding(mut object: StrictObject) -> Result<ReviewFinding, NoVerdict> {
    let severity = match object.text("severity")?.as_str() {
        "blocker" => Severity::Blocker,
        "warning" => Severity::Warning,
        "note" => Severity::Note,
        _ => return none("`severity` is neither `blocker` nor `warning` nor `note`"),
    };
    let message = object.text("message")?;
    if message.trim().is_empty() {
        return none("a finding has no message");
    }
    let file = object.optional_text("file")?;
    if file.as_ref().is_some_and(|file| !is_inside(file)) {
        return none("`file` is not a path inside of the project");
    }
    let line = object.optional_number("line")?;
    if line.is_some_and(|line| !(1..=LINE_MAX).contains(&line)) {
        return none("`line` is not the number of a line");
    }
    if line.is_some() && file.is_none() {
        return none("a finding has a line and no file");
    }
    object.end()?;
    Ok(ReviewFinding { file, line, message, severity })
}

/// Checks that a verdict does not contradict itself.
fn sound(verdict: ReviewVerdict) -> Result<ReviewVerdict, NoVerdict> {
    let is_blocked = verdict.findings.iter().any(|found| found.severity == Severity::Blocker);
    let has_place = verdict.findings.iter().any(|found| found.file.is_some());
    match verdict.decision {
        ReviewDecision::Approve if is_blocked => {
            none("it approves, and has a finding that is a blocker")
        }
        ReviewDecision::Reject if !has_place => none("it rejects, and no finding names a file"),
        _ => Ok(verdict),
    }
}

/// Returns the object in a message: the whole text, or the content of its only fence.
fn unfenced(message: &str) -> Result<&str, NoVerdict> {
    let message = message.trim_matches(WHITESPACE);
    let Some(rest) = message.strip_prefix("```") else { return Ok(message) };
    let inside = rest.strip_prefix("json").and_then(|rest| rest.strip_suffix("```"));
    // The marks have lines of their own.
    let inside = inside.map(|inside| inside.trim_matches([' ', '\t', '\r']));
    match inside.and_then(|inside| inside.strip_prefix('\n')?.strip_suffix('\n')) {
        Some(inside) => Ok(inside),
        None => none("its fence is not one block of JSON with nothing around it"),
    }
}

/// Whitespace as JSON defines it. Other invisible characters count as text.
const WHITESPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Whether a path leads to a file below the project, under every interpretation.
fn is_inside(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_plain = !path.contains(|c: char| c.is_control() || c == '\\');
    // `C:` is absolute on Windows.
    is_plain && path.as_bytes().get(1) != Some(&b':') && path.split('/').all(is_part)
}

/// Returns the JSON Schema of a verdict, as the reviewer gets it.
pub fn schema(review_id: &str) -> Value {
    let finding = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["message", "severity"],
        "properties": {
            "file": { "type": "string", "description": "A path relative to the project. A rejection needs one." },
            "line": { "type": "integer", "minimum": 1, "maximum": LINE_MAX },
            "message": { "type": "string", "minLength": 1 },
            "severity": { "enum": ["blocker", "warning", "note"] },
        },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["review", "verdict", "summary", "findings"],
        "properties": {
            "review": { "const": review_id },
            "verdict": { "enum": ["approve", "reject"] },
            "summary": { "type": "string" },
            "findings": { "type": "array", "maxItems": FINDINGS_MAX, "items": finding },
        },
    })
}

/// The number of reviewers that have to approve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quorum {
    #[default]
    All,
    Any,
}

impl FromStr for Quorum {
    type Err = String;

    fn from_str(text: &str) -> Result<Quorum, String> {
        match text {
            "all" => Ok(Quorum::All),
            "any" => Ok(Quorum::Any),
            _ => Err(format!("`{text}` is no quorum: `all` or `any`")),
        }
    }
}

/// Returns the joint result of several reviews: approved, rejected, or undecided.
///
/// An undecided result does not approve. `None` stands for a reviewer without a verdict.
///
/// - All: one rejection rejects. Approval needs every reviewer, and at least one.
/// - Any: one approval approves. Rejection needs a verdict of every reviewer. Otherwise the result
///   is undecided.
pub fn quorum(kind: Quorum, verdicts: &[Option<bool>]) -> Option<bool> {
    let is_missing = verdicts.is_empty() || verdicts.contains(&None);
    let (has_yes, has_no) = (verdicts.contains(&Some(true)), verdicts.contains(&Some(false)));
    match kind {
        Quorum::All if has_no => Some(false),
        Quorum::Any if has_yes => Some(true),
        _ if is_missing => None,
        Quorum::All => Some(true),
        Quorum::Any => Some(false),
    }
}
