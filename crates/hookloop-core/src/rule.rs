//! Validation rules about the project's files, which need no process.

use std::fmt;

/// A condition on the project's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A file exists.
    File(String),
    /// A file that the pattern names has changed since the session began.
    Changed(String),
    Pattern(TextRule),
    Coverage(CoverageRule),
    Diff(DiffRule),
}

/// A condition on the text of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRule {
    /// A path or pattern of files.
    pub path: String,
    /// A regular expression.
    pub text: String,
    /// The text must not occur.
    pub absent: bool,
}

/// A condition on test coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageRule {
    pub report: String,
    /// The least line coverage, in hundredths of a percent.
    pub at_least: u32,
}

/// A condition on the size of the changes since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffRule {
    pub max_files: Option<u64>,
    /// Largest number of added and deleted lines.
    pub max_lines: Option<u64>,
    pub min_files: Option<u64>,
    /// Only files that match one of these patterns have changed.
    pub only: Vec<String>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::File(path) => write!(f, "file {path}"),
            Rule::Changed(path) => write!(f, "changed {path}"),
            Rule::Pattern(pattern) => {
                let not = if pattern.absent { "no " } else { "" };
                write!(f, "{not}`{}` in {}", pattern.text, pattern.path)
            }
            Rule::Coverage(coverage) => {
                let (whole, part) = (coverage.at_least / 100, coverage.at_least % 100);
                write!(f, "coverage of {whole}.{part:02} % in {}", coverage.report)
            }
            Rule::Diff(diff) => {
                let parts = [
                    diff.min_files.map(|n| format!("at least {n} files")),
                    diff.max_files.map(|n| format!("at most {n} files")),
                    diff.max_lines.map(|n| format!("at most {n} lines")),
                    (!diff.only.is_empty()).then(|| format!("only {}", diff.only.join(", "))),
                ];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                write!(f, "diff of {}", parts.join(", "))
            }
        }
    }
}
