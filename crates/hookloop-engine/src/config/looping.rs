//! The parts of the configuration that are about sessions: how they stop, what rules there are.

use hookloop_core::point::{Point, PointKind};
use hookloop_core::rule::{CoverageRule, DiffRule, Rule, TextRule};
use hookloop_core::session::{AtRetryLimit, StopWhen};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Location;

use super::Complaint;
use super::agents::{ConversationEntry, agent, fallback};
use super::entry::{HookEntry, Located, OneOrMany};
use super::hooks::is_inside;
use crate::files::glob;
use crate::rules::Loop;

/// How sessions go in this project.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LoopEntry {
    /// What decides that an iteration is the last one: `default`, `validation`, `promise`, `turn`, `tasks`,
    /// names of hooks at `stop_when`, or a list of them.
    stop_when: Option<Located<OneOrMany>>,
    /// When gates have said no too often: `needs_human`. `accept` belongs in your own configuration.
    at_retry_limit: Option<Located<AtLimitEntry>>,
    /// A file with the template for prompts.
    prompt: Option<Located<String>>,
    /// Who does the work where nobody is named: an agent that hookloop knows, or one of `agents`.
    agent: Option<Located<String>>,
    /// Who does it when that agent only fails: a name, or a list of them.
    fallback: Option<Located<OneOrMany>>,
    /// Failed turns in a row until the next agent is asked; 3 if it is not given.
    fallback_after: Option<u32>,
    /// Which turns go on in the agent's last conversation: none (`fresh`), those that answer a gate's feedback
    /// (`feedback`, the default), or all (`continue`).
    conversation: Option<ConversationEntry>,
}

/// How your sessions go, in every project.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnLoopEntry")]
pub(crate) struct OwnLoop {
    /// When gates have said no too often: `needs_human` (if it is not given) or `accept`.
    at_retry_limit: Option<AtLimitEntry>,
}

impl OwnLoop {
    pub(crate) fn at_retry_limit(&self) -> AtRetryLimit {
        self.at_retry_limit.map_or(AtRetryLimit::default(), Into::into)
    }
}

impl From<AtLimitEntry> for AtRetryLimit {
    fn from(entry: AtLimitEntry) -> AtRetryLimit {
        match entry {
            AtLimitEntry::NeedsHuman => AtRetryLimit::NeedsHuman,
            AtLimitEntry::Accept => AtRetryLimit::Accept,
        }
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AtLimitEntry {
    NeedsHuman,
    Accept,
}

/// A text that files must have, or must not have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternEntry {
    /// Which files: a path, or a pattern such as `src/**/*.rs`.
    path: String,
    /// A regular expression.
    text: String,
    /// It must not be there.
    #[serde(default)]
    absent: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CoverageEntry {
    /// The file that the tests leave: lcov, Cobertura XML, or Istanbul's `coverage-summary.json`.
    report: String,
    /// Percent of lines.
    at_least: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffEntry {
    min_files: Option<u64>,
    max_files: Option<u64>,
    /// Added and deleted.
    max_lines: Option<u64>,
    /// Patterns of the only files that may change.
    #[serde(default)]
    only: Vec<String>,
}

impl LoopEntry {
    /// Reads the entry under what the user's own file says of the retry limit.
    pub(super) fn read(
        self,
        hooks_at_stop_when: &[String],
        users: AtRetryLimit,
    ) -> Result<Loop, Complaint> {
        let stop_when = match self.stop_when {
            Some(Located { value, at }) => {
                let read = |name: String| match name.parse() {
                    Ok(way) => Ok(way),
                    Err(_) if hooks_at_stop_when.contains(&name) => Ok(StopWhen::Hook(name)),
                    Err(error) => {
                        let message = format!("{error}, or a hook at `stop_when`");
                        Err(Complaint::new(at, message))
                    }
                };
                value.into_list().into_iter().map(read).collect::<Result<_, _>>()?
            }
            None if hooks_at_stop_when.is_empty() => vec![StopWhen::Default],
            None => hooks_at_stop_when.iter().cloned().map(StopWhen::Hook).collect(),
        };
        let at_retry_limit = match self.at_retry_limit {
            None => users,
            Some(Located { value: AtLimitEntry::NeedsHuman, .. }) => AtRetryLimit::NeedsHuman,
            Some(Located { value: AtLimitEntry::Accept, at }) => {
                let message = "a repository does not accept work that its gates refuse: write \
                    `loop: {at_retry_limit: accept}` into ~/.config/hookloop/config.yaml, or run with \
                    `--at-retry-limit accept`";
                return Err(Complaint::new(at, message));
            }
        };
        let agent = self.agent.map(agent).transpose()?;
        let fallback =
            self.fallback.map(|named| fallback(named, self.fallback_after)).transpose()?;
        let prompt = self.prompt.map(super::hooks::inside).transpose()?;
        Ok(Loop {
            stop_when,
            at_retry_limit,
            prompt,
            agent,
            fallback,
            conversation: self.conversation.map(Into::into).unwrap_or_default(),
        })
    }
}

/// The rule that an entry has instead of a command.
pub(super) fn rule(
    point: &Point,
    entry: &mut HookEntry,
    at: Location,
) -> Result<Option<Rule>, Complaint> {
    let complain = |message: String| Err(Complaint::new(at, message));
    let rule = if let Some(path) = entry.file.take() {
        Rule::File(path)
    } else if let Some(path) = entry.changed.take() {
        Rule::Changed(path)
    } else if let Some(pattern) = entry.pattern.take() {
        let PatternEntry { path, text, absent } = pattern;
        if let Err(error) = crate::files::pattern(&text) {
            return complain(format!("`text`: {error}"));
        }
        Rule::Pattern(TextRule { path, text, absent })
    } else if let Some(CoverageEntry { report, at_least }) = entry.coverage.take() {
        if !(0.0..=100.0).contains(&at_least) {
            return complain("`at_least` is a percentage, from 0 to 100".to_owned());
        }
        Rule::Coverage(CoverageRule { report, at_least: (at_least * 100.0).round() as u32 })
    } else if let Some(diff) = entry.diff.take() {
        let DiffEntry { min_files, max_files, max_lines, only } = diff;
        Rule::Diff(DiffRule { max_files, max_lines, min_files, only })
    } else {
        return Ok(None);
    };
    if point.kind() != PointKind::Gate {
        return complain(format!("a rule says yes or no, and `{point}` is not a gate"));
    }
    for path in paths(&rule) {
        if !is_inside(path) {
            return complain(format!("`{path}` leads out of the project"));
        }
        if let Err(error) = glob(path) {
            return complain(error);
        }
    }
    Ok(Some(rule))
}

fn paths(rule: &Rule) -> Vec<&str> {
    match rule {
        Rule::File(path) | Rule::Changed(path) => vec![path],
        Rule::Pattern(pattern) => vec![&pattern.path],
        Rule::Coverage(coverage) => vec![&coverage.report],
        Rule::Diff(diff) => diff.only.iter().map(String::as_str).collect(),
    }
}
