//! Finds signs in new source code that it is written for the tests of the base, and not for its users.
//!
//! A test literal is a condition, a case or an entry of a table whose literals are the inputs and the outcome of
//! one assertion of the base, such as `if n == 17 { return 42 }` for `assert_eq!(f(17), 42)`. The rule:
//!
//! 1. The literal is compared for equality or membership, or is a pattern or a key. Arithmetic, arguments, messages
//!    and ordered comparisons do not count.
//! 2. The code beside it (a small block, an arm, a value) has the outcome of an assertion with this input. An outcome
//!    that repeats its input is a name, and no finding.
//! 3. No source of the base pairs the two literals already, so moved and reformatted code is no finding.
//! 4. Input and outcome together have at least three characters or significant digits; 0, 1, -1, 2, 10, 100, 1000,
//!    `true`, `null` and the empty string have none. Several inputs of one call count as two more.
//! 5. An outcome without weight, such as `true`, needs an input that is no word: a phrase or a long number.
//! 6. A table needs two such entries, or one whose input is no word. Tables of names and units are honest, and one
//!    of their entries is often the example of a test.
//!
//! A runner mention is code that can tell whether a test runner runs it. It counts if the file has more of them than
//! in the base. Comments and test code never count.

mod baseline;
mod literal_weight;
mod mention_context;
mod runner_mentions;
mod script_mentions;
mod source_parts;
mod special_cases;

use std::collections::HashMap;

use crate::error::EvidenceError;
use crate::language::SourceLanguage;
use crate::syntax::SyntaxTree;
use mention_context::RunnerMention;
pub(crate) use source_parts::SourceParts;

pub use baseline::SourceBaseline;

/// Maximum bytes of the line that a suspicion shows.
const DETAIL_BYTES_MAX: usize = 200;
/// Maximum suspicions of a file.
const SUSPICIONS_MAX: usize = 100;

/// The kind of a sign that source code is written for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspicionKind {
    /// Literals of an assertion of the base decide about a result.
    TestLiteral,
    /// The code can tell whether a test runner runs it.
    RunnerMention,
}

/// A sign that source code is written for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSuspicion {
    pub kind: SuspicionKind,
    /// The line in the work's source, counted from 1.
    pub line: usize,
    /// The literals, or the mention.
    pub text: String,
    /// The line of the source, trimmed and cut.
    pub detail: String,
}

impl SourceBaseline {
    /// Returns the suspicions of a source of the work, in source order. `base` is the same file in the base.
    ///
    /// At most 100 are returned.
    pub fn suspicions(
        &self,
        language: SourceLanguage,
        base: Option<&str>,
        work: &str,
    ) -> Result<Vec<SourceSuspicion>, EvidenceError> {
        let tree = SyntaxTree::parse(language, work)?;
        let parts = SourceParts::of(tree.root());
        let mut mentions = match base {
            Some(base) => {
                let tree = SyntaxTree::parse(language, base)?;
                counted(&runner_mentions::mentions(&SourceParts::of(tree.root())))
            }
            None => HashMap::new(),
        };
        let lines: Vec<&str> = work.lines().collect();
        let mut found = Vec::new();
        for mention in runner_mentions::mentions(&parts) {
            let known = mentions.entry(mention.text.clone()).or_default();
            if *known > 0 {
                *known -= 1;
                continue;
            }
            found.push(suspicion(SuspicionKind::RunnerMention, mention.line, mention.text, &lines));
        }
        for (line, text) in self.test_literals_in(&parts) {
            found.push(suspicion(SuspicionKind::TestLiteral, line, text, &lines));
        }
        found.sort_by_key(|suspicion| suspicion.line);
        found.truncate(SUSPICIONS_MAX);
        Ok(found)
    }
}

impl SourceBaseline {
    /// Returns the lines of special cases for tests, and their literals.
    fn test_literals_in(&self, parts: &SourceParts<'_>) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut entries: HashMap<usize, usize> = HashMap::new();
        for special in special_cases::special_cases(parts) {
            let Some(text) = self.test_literals(&special) else { continue };
            if let Some(table) = special.table {
                *entries.entry(table).or_default() += 1;
            }
            found.push((special, text));
        }
        found.retain(|(special, _)| {
            let of_table = special.table.and_then(|table| entries.get(&table).copied());
            baseline::stands_alone(special) || of_table.is_some_and(|entries| entries > 1)
        });
        found.into_iter().map(|(special, text)| (special.line, text)).collect()
    }
}

fn counted(mentions: &[RunnerMention]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for mention in mentions {
        *counts.entry(mention.text.clone()).or_default() += 1;
    }
    counts
}

fn suspicion(kind: SuspicionKind, line: usize, text: String, lines: &[&str]) -> SourceSuspicion {
    let whole = lines.get(line.saturating_sub(1)).map_or("", |line| line.trim());
    let detail = whole[..whole.floor_char_boundary(DETAIL_BYTES_MAX)].to_owned();
    SourceSuspicion { kind, line, text, detail }
}
