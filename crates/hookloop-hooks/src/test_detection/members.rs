//! Patterns with which a workspace names its members.

use std::path::Path;

use globset::GlobMatcher;
use hookloop_config::patterns::glob;
use toml_edit::{Document, Item};

use super::NoTests;
use super::reading::{Project, unreadable};

/// Patterns of one workspace that are read.
const PATTERNS_MAX: usize = 1_000;
/// Levels and values of a YAML file that are read.
const DEPTH_MAX: usize = 64;
const NODES_MAX: usize = 100_000;

/// Paths from the root of a workspace that belong to it.
#[derive(Clone, Debug)]
pub struct MemberPatterns {
    included: Vec<GlobMatcher>,
    excluded: Vec<GlobMatcher>,
}

impl MemberPatterns {
    /// Reads the patterns of `file`. One that begins with `!` excludes.
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

/// `./packages/a/` as `packages/a`.
pub fn normal(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_prefix("./").unwrap_or(if path == "." { "" } else { path })
}

/// A path without `.` and `..`; none if it leads out of the root.
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

/// A file of the project as TOML, if it is there.
pub(crate) fn toml(project: &Project, file: &str) -> Result<Option<Document<String>>, NoTests> {
    let Some(text) = project.read(file)? else { return Ok(None) };
    let wrong = |error: toml_edit::TomlError| {
        unreadable(Path::new(file), &format!("is not valid TOML: {}", error.message()))
    };
    Document::parse(text).map(Some).map_err(wrong)
}

/// Reads the YAML of a file that other tools write, within the limits of [`DEPTH_MAX`] and [`NODES_MAX`].
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

/// The value below these keys.
pub(crate) fn value<'a>(document: &'a Document<String>, keys: &[&str]) -> Option<&'a Item> {
    let mut item = document.as_item();
    for key in keys {
        item = item.as_table_like()?.get(key)?;
    }
    Some(item)
}

/// The texts of a list; a single text is a list of one.
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
    fn patterns_include_and_exclude() {
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
    fn paths_that_leave_the_root_are_none() {
        assert_eq!(resolved("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(resolved("a", "../.."), None);
        assert_eq!(resolved("", "/etc"), None);
    }
}
