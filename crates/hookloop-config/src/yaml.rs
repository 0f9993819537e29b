//! Reads the configuration files strictly: unknown keys are errors, and every error has its line.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use hookloop_core::nearest::did_you_mean;
use serde_saphyr::{Location, Spanned};

pub(crate) const VERSION: u64 = 1;

pub(crate) const MAX_BYTES: u64 = 256 * 1024;

const MAX_DEPTH: usize = 16;

const MAX_NODES: usize = 20_000;

/// The longest name of a hook or workflow.
pub(crate) const NAME_MAX: usize = 64;

/// A mistake in a file, with its place.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    pub path: PathBuf,
    pub line: Option<u64>,
    pub column: Option<u64>,
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A complaint about one place in the file.
pub(crate) struct ConfigComplaint {
    pub(crate) at: Option<Location>,
    pub(crate) message: String,
}

impl ConfigComplaint {
    pub(crate) fn new(at: Location, message: impl ToString) -> ConfigComplaint {
        ConfigComplaint { at: Some(at), message: message.to_string() }
    }
}

/// Reads `path` within the limits of all configuration files.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, ConfigComplaint>,
) -> Result<T, ConfigError> {
    let failed = |error: std::io::Error| ConfigError {
        path: path.to_owned(),
        line: None,
        column: None,
        message: error.to_string(),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // The limit holds even if the file is longer than it claims.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    read_bytes(path, &bytes, parse)
}

pub(crate) fn read_bytes<T>(
    path: &Path,
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<T, ConfigComplaint>,
) -> Result<T, ConfigError> {
    let error = |(line, column): (u64, u64), message: String| ConfigError {
        path: path.to_owned(),
        line: Some(line),
        column: Some(column),
        message,
    };
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file is longer than {MAX_BYTES} bytes");
        return Err(error(place_of(&bytes[..MAX_BYTES as usize]), message));
    }
    let text = std::str::from_utf8(bytes).map_err(|wrong| {
        error(place_of(&bytes[..wrong.valid_up_to()]), "this is not UTF-8".to_owned())
    })?;
    parse(text).map_err(|complaint| {
        let at = complaint.at.filter(|at| at.line() > 0 && at.column() > 0);
        error(at.map_or(BEGINNING, |at| (at.line(), at.column())), complaint.message)
    })
}

/// The place of a complaint about the whole file.
const BEGINNING: (u64, u64) = (1, 1);

/// Returns the line and column after `before`.
fn place_of(before: &[u8]) -> (u64, u64) {
    let line = before.split(|byte| *byte == b'\n').next_back().unwrap_or_default();
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    (lines as u64 + 1, String::from_utf8_lossy(line).chars().count() as u64 + 1)
}

/// Keys that no repository's file may have, with the reason. They are not keys of `File`, so no list of keys names
/// them.
pub(crate) const REFUSED_KEYS: [(&str, &str); 4] = [
    (
        "secrets",
        "a repository does not say where secrets are: \
         that is for your own configuration, or for a policy",
    ),
    (
        "notify",
        "`notify` is yours, and not a repository's: it belongs in ~/.config/hookloop/config.yaml",
    ),
    (
        "gates",
        "`gates` is yours, and not a repository's: it belongs in ~/.config/hookloop/config.yaml",
    ),
    (
        "network",
        "a repository does not choose a proxy or certificates: \
         `network` belongs in ~/.config/hookloop/config.yaml",
    ),
];

/// A key that only the top level of a repository's file has.
const TOP_LEVEL_KEY: &str = "task_types";

/// Returns a message about an unknown key, with the allowed keys.
fn unknown_key(key: &str, allowed: &[&str]) -> String {
    let refused = REFUSED_KEYS.iter().find(|(refused, _)| *refused == key);
    if let Some((_, reason)) = refused.filter(|_| allowed.contains(&TOP_LEVEL_KEY)) {
        return (*reason).to_owned();
    }
    let suggestion = did_you_mean(key, allowed.iter().copied());
    match allowed.is_empty() {
        true => format!("unknown key `{key}`; no keys are allowed here"),
        false => format!("unknown key `{key}`{suggestion}; known keys: {}", allowed.join(", ")),
    }
}

/// Reads YAML strictly: without anchors, unknown keys and deep nesting.
pub(crate) fn from_yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ConfigComplaint> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_nodes: MAX_NODES,
            max_merge_keys: 0,
        },
        with_snippet: false,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location();
        if let serde_saphyr::Error::SerdeUnknownField { field, expected, .. } = &error {
            return ConfigComplaint { at, message: unknown_key(field, expected) };
        }
        let message = error.to_string();
        let message = match message.strip_prefix("budget breached: ") {
            Some(which) => {
                format!("anchors, aliases and files this large or deep are not read ({which})")
            }
            None if message.starts_with("invalid floating point") => not_a_number(text, at),
            None if is_about_tab(&message) => about_tab(text, at),
            None => in_plain_words(message.split(" at line ").next().unwrap_or(&message)),
        };
        ConfigComplaint { at, message }
    })
}

pub(crate) fn check_version(version: &Spanned<u64>) -> Result<(), ConfigComplaint> {
    match version.value {
        VERSION => Ok(()),
        other => {
            let message = format!("version {other} is not known; write `version: {VERSION}`");
            Err(ConfigComplaint::new(version.referenced, message))
        }
    }
}

/// Parses one word of the file.
pub(crate) fn read_word<T>(word: Spanned<String>) -> Result<T, ConfigComplaint>
where
    T: std::str::FromStr<Err: fmt::Display>,
{
    word.value.parse().map_err(|error| ConfigComplaint::new(word.referenced, error))
}

/// Longest part of a wrong value that a message quotes, in characters.
const QUOTED_MAX: usize = 40;

/// Returns the complaint about a value at this place that has to be a number.
fn not_a_number(text: &str, at: Option<Location>) -> String {
    let found = at.and_then(|at| {
        let line = usize::try_from(at.line()).ok()?.checked_sub(1)?;
        let before = usize::try_from(at.column()).ok()?.checked_sub(1)?;
        let rest: String = text.lines().nth(line)?.chars().skip(before).collect();
        let value = rest.split([',', '}', ']', '#']).next().unwrap_or_default().trim();
        let value: String = value.chars().take(QUOTED_MAX).collect();
        (!value.is_empty()).then(|| format!(", found `{value}`"))
    });
    format!("expected a number, such as 5{}", found.unwrap_or_default())
}

/// Whether the parser complains about a tab in an indentation.
fn is_about_tab(message: &str) -> bool {
    let known = ["tabs disallowed", "tab cannot be used as indentation", "found a tab"];
    known.iter().any(|theirs| message.contains(theirs))
}

/// Returns the complaint about a tab, with its line if the parser noticed it in an earlier one.
fn about_tab(text: &str, at: Option<Location>) -> String {
    let known = at.map_or(1, |at| at.line());
    let is_indented_by_tab = |line: &str| {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        line[..indentation].contains('\t')
    };
    let mut lines = (1..).zip(text.lines()).skip_while(|(number, _)| *number < known);
    match lines.find(|(_, line)| is_indented_by_tab(line)) {
        Some((number, _)) if number != known => {
            format!("indent with spaces, not tabs: line {number} begins with a tab")
        }
        _ => "indent with spaces, not tabs".to_owned(),
    }
}

/// Returns a parser's complaint in the words of a YAML author.
fn in_plain_words(message: &str) -> String {
    let known = [
        ("invalid i32", "a whole number belongs here"),
        ("invalid u32", "a whole number, not negative, belongs here"),
        ("invalid u64", "a whole number, not negative, belongs here"),
        ("invalid boolean", "`true` or `false` belongs here"),
        ("expected mapping start", "`key: value` lines belong here"),
        ("expected sequence start", "a list (lines that start with `- `) belongs here"),
        ("missing field `version`", "`version` is missing; begin the file with `version: 1`"),
        ("unexpected end of input", "the file is empty; write `version: 1`"),
    ];
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        return format!("`{key}` is there twice");
    }
    let found = known.into_iter().find(|(theirs, _)| message.contains(theirs));
    found.map_or(message, |(_, ours)| ours).to_owned()
}

pub(crate) fn check_name(name: &str, at: Location) -> Result<(), ConfigComplaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!("`{name}` is not a name: 1 to {NAME_MAX} letters, digits, `_` or `-`");
    Err(ConfigComplaint::new(at, message))
}
