//! Patterns of paths and texts in configuration files.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// The largest size of a compiled regular expression.
const PATTERN_MAX_BYTES: usize = 256 * 1024;

/// Compiles a path, or a pattern with `*`, `?` and `**`.
pub fn glob(text: &str) -> Result<GlobMatcher, String> {
    let built = GlobBuilder::new(text).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
}

/// Compiles the regular expression of a rule.
pub fn pattern(text: &str) -> Result<regex::Regex, String> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.multi_line(true).size_limit(PATTERN_MAX_BYTES);
    builder.build().map_err(|error| error.to_string())
}

/// Returns whether a pattern matches the project: its real path, or the URL that it was cloned from.
pub(crate) fn is_project(pattern: &str, root: &Path, cloned_from: Option<&str>) -> bool {
    let Ok(pattern) = glob(pattern) else { return false };
    // A URL with such parts may lead elsewhere.
    let is_plain = |url: &&str| {
        !url.split('/').any(|part| matches!(part, "." | ".."))
            && !url.contains(['\\', '?', '#'])
            && !url.to_ascii_lowercase().contains("%2")
    };
    pattern.is_match(root) || cloned_from.filter(is_plain).is_some_and(|url| pattern.is_match(url))
}
