//! Patterns with which a workspace names its members.

use std::path::Path;

use globset::GlobMatcher;
use hookloop_config::patterns::glob;
use toml_edit::{Document, Item};

use super::NoTests;
use super::reading::{TestedProject, unreadable};

/// Largest number of patterns of one workspace.
const PATTERNS_MAX: usize = 1_000;
/// Largest depth and number of values of a YAML file.
const DEPTH_MAX: usize = 64;
const NODES_MAX: usize = 100_000;

/// Matches the paths of workspace members, relative to the root of the workspace.
#[derive(Clone, Debug)]
pub struct MemberPatterns {
    included: Vec<GlobMatcher>,
    excluded: Vec<GlobMatcher>,
}

impl MemberPatterns {
    /// Reads the patterns of `file`. A pattern that begins with `!` excludes.
    pub fn new<'a>(
        file: &str,
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Result<MemberPatterns, NoTests> {
        let mut found = MemberPatterns { included: Vec::new(), excluded: Vec::new() };
        for (number, pattern) in patterns.into_iter().enumerate() {
            if number >= PATTERNS_MAX {
                let why = format!("names more than {PATTERNS_MAX} patterns of members");
                return Err(unreadable(Path::new(file), &why));
            }
            let (list, pattern) = match pattern.trim().strip_prefix('!') {
                Some(pattern) => (&mut found.excluded, pattern),
                None => (&mut found.included, pattern.trim()),
            };
            let wrong = |why: String| unreadable(Path::new(file), &why);
            list.push(glob(normal(pattern)).map_err(wrong)?);
        }
        Ok(found)
    }

    pub fn contains(&self, path: &str) -> bool {
        let matches = |list: &[GlobMatcher]| list.iter().any(|glob| glob.is_match(path));
        matches(&self.included) && !matches(&self.excluded)
    }
}

/// Normalizes a path: `./packages/a/` becomes `packages/a`.
pub fn normal(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_prefix("./").unwrap_or(if path == "." { "" } else { path })
}

/// Returns a path without `.` and `..`, or `None` if it leads out of the root.
pub fn resolved(base: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    if path.starts_with('/') {
        return None;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Reads a project file as TOML, if it exists.
pub(crate) fn toml(
    project: &TestedProject,
    file: &str,
) -> Result<Option<Document<String>>, NoTests> {
    let Some(text) = project.read(file)? else { return Ok(None) };
    let wrong = |error: toml_edit::TomlError| {
        unreadable(Path::new(file), &format!("is not valid TOML: {}", error.message()))
    };
    Document::parse(text).map(Some).map_err(wrong)
}

/// Parses YAML of other tools, within [`DEPTH_MAX`] and [`NODES_MAX`].
pub fn yaml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, NoTests> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_documents: 1,
            max_nodes: NODES_MAX,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| unreadable(Path::new(file), &format!("is not valid YAML: {error}")))
}

/// Returns the value below these keys.
pub(crate) fn value<'a>(document: &'a Document<String>, keys: &[&str]) -> Option<&'a Item> {
    let mut item = document.as_item();
    for key in keys {
        item = item.as_table_like()?.get(key)?;
    }
    Some(item)
}

/// Returns the texts of a list. A single text counts as a list of one.
pub(crate) fn texts(item: Option<&Item>) -> Vec<&str> {
    match item {
        Some(item) => match item.as_array() {
            Some(array) => array.iter().filter_map(|value| value.as_str()).collect(),
            None => item.as_str().into_iter().collect(),
        },
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_patterns_include_and_exclude_paths() {
        let patterns =
            MemberPatterns::new("f", ["./packages/*/", "apps/**", "!apps/old", "one"]).unwrap();
        for (path, is_member) in [
            ("packages/a", true),
            ("packages/a/b", false),
            ("apps/x/y", true),
            ("apps/old", false),
            ("one", true),
            ("two", false),
        ] {
            assert_eq!(patterns.contains(path), is_member, "{path}");
        }
    }

    #[test]
    fn member_paths_outside_the_root_are_refused() {
        assert_eq!(resolved("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(resolved("a", "../.."), None);
        assert_eq!(resolved("", "/etc"), None);
    }
}
