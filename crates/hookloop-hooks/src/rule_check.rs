//! Validation rules that need no process: files, their text, coverage reports, size of changes.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use hookloop_config::patterns::{glob, pattern};
use hookloop_core::excerpt::first_names;
use hookloop_core::rule::{CoverageRule, DiffRule, Rule, TextRule};
use hookloop_git::files::walk;

/// Largest number of files that a pattern checks, and the largest size of each.
const FILES_MAX: usize = 10_000;
const FILE_MAX: u64 = 4 * 1024 * 1024;
const REPORT_MAX: u64 = 64 * 1024 * 1024;
/// Largest number of names in an answer.
const NAMES_MAX: usize = 10;

/// The files that changed since the session began, with changed lines. `None` if unknown.
pub(crate) type ChangedLines = Option<Vec<(String, u64)>>;

/// The files that a rule is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleFiles<'a> {
    pub(crate) root: &'a Path,
    /// In a room: the time after which a gate's own files are written. Older files are the agent's.
    pub(crate) since: Option<SystemTime>,
}

/// Checks a rule. The error is the reason why the rule does not hold.
pub(crate) fn holds(
    rule: &Rule,
    files: RuleFiles<'_>,
    changes: impl FnOnce() -> ChangedLines,
) -> Result<(), String> {
    let RuleFiles { root, since } = files;
    match rule {
        Rule::File(path) => match root.join(path).is_file() {
            true => Ok(()),
            false => Err(format!("there is no file {path}")),
        },
        Rule::Changed(path) => has_changed(path, changes()),
        Rule::Pattern(pattern) => matches(pattern, root),
        Rule::Coverage(coverage) => is_covered(coverage, root, since),
        Rule::Diff(diff) => is_within(diff, changes()),
    }
}

const UNKNOWN: &str = "what has changed is known in a git repository only";

fn has_changed(path: &str, changes: ChangedLines) -> Result<(), String> {
    let (wanted, changes) = (glob(path)?, changes.ok_or(UNKNOWN)?);
    match changes.iter().any(|(name, _)| wanted.is_match(name)) {
        true => Ok(()),
        false => Err(format!("{path} has not changed since the session began")),
    }
}

fn matches(rule: &TextRule, root: &Path) -> Result<(), String> {
    let (wanted, text) = (glob(&rule.path)?, pattern(&rule.text)?);
    let mut looked_at = 0;
    let mut found = Vec::new();
    for entry in walk(root).flatten() {
        let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
        if !wanted.is_match(name) {
            continue;
        }
        match entry.file_type() {
            Some(kind) if kind.is_file() => {}
            // The text behind a link is not part of the files.
            Some(kind) if kind.is_symlink() && rule.absent => {
                return Err(format!("{} is a link, so its text is unknown", name.display()));
            }
            _ => continue,
        }
        looked_at += 1;
        if looked_at > FILES_MAX {
            return Err(format!("{} names more than {FILES_MAX} files", rule.path));
        }
        let unknown = |why: &dyn std::fmt::Display| format!("{}: {why}", name.display());
        let size = entry.metadata().map_err(|error| unknown(&error))?.len();
        if size > FILE_MAX {
            if rule.absent {
                return Err(unknown(&format!("the file is larger than {FILE_MAX} bytes")));
            }
            continue;
        }
        let content = fs::read(entry.path()).map_err(|error| unknown(&error))?;
        if text.is_match(&String::from_utf8_lossy(&content)) {
            found.push(name.display().to_string());
        }
    }
    match (rule.absent, found.is_empty()) {
        (true, false) => Err(format!("`{}` is in {}", rule.text, first_names(&found, NAMES_MAX))),
        (false, true) if looked_at == 0 => Err(format!("there is no file {}", rule.path)),
        (false, true) => Err(format!("`{}` is in no file that {} names", rule.text, rule.path)),
        _ => Ok(()),
    }
}

fn is_covered(rule: &CoverageRule, root: &Path, since: Option<SystemTime>) -> Result<(), String> {
    let path = root.join(&rule.report);
    let wrong = |why: &str| format!("{}: {why}", rule.report);
    let metadata = fs::metadata(&path).map_err(|error| wrong(&error.to_string()))?;
    let written = metadata.modified().map_err(|error| wrong(&error.to_string()))?;
    if since.is_some_and(|since| written < since) {
        return Err(wrong("the report is part of the work; a gate must write it"));
    }
    let size = metadata.len();
    if size > REPORT_MAX {
        return Err(wrong("the report is too long"));
    }
    let text = fs::read_to_string(&path).map_err(|error| wrong(&error.to_string()))?;
    let (covered, lines) =
        coverage(&text).ok_or_else(|| wrong("this is no report that hookloop reads"))?;
    if lines == 0 {
        return Err(wrong("the report has no lines"));
    }
    let hundredths = covered.saturating_mul(10_000) / lines;
    match hundredths >= u64::from(rule.at_least) {
        true => Ok(()),
        false => {
            let percent =
                |hundredths: u64| format!("{}.{:02} %", hundredths / 100, hundredths % 100);
            let (is, wanted) = (percent(hundredths), percent(rule.at_least.into()));
            Err(format!("{covered} of {lines} lines are covered: {is}, not {wanted}"))
        }
    }
}

/// Returns the covered lines and all lines of a report in any supported format.
fn coverage(text: &str) -> Option<(u64, u64)> {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(text) {
        let lines = &json["total"]["lines"];
        return Some((lines["covered"].as_u64()?, lines["total"].as_u64()?));
    }
    if text.contains("<coverage") {
        let number = |name: &str| {
            let after = text.split(&format!("{name}=\"")).nth(1)?;
            after.split('"').next()?.parse().ok()
        };
        return Some((number("lines-covered")?, number("lines-valid")?));
    }
    let sum = |prefix: &str| -> u64 {
        text.lines().filter_map(|line| line.strip_prefix(prefix)?.trim().parse::<u64>().ok()).sum()
    };
    text.lines().any(|line| line.starts_with("LF:")).then(|| (sum("LH:"), sum("LF:")))
}

fn is_within(rule: &DiffRule, changes: ChangedLines) -> Result<(), String> {
    let changes = changes.ok_or(UNKNOWN)?;
    let (files, lines) =
        (changes.len() as u64, changes.iter().map(|(_, lines)| lines).sum::<u64>());
    if let Some(max) = rule.max_files.filter(|max| files > *max) {
        return Err(format!("{files} files have changed; at most {max}"));
    }
    if let Some(min) = rule.min_files.filter(|min| files < *min) {
        return Err(format!("{files} files have changed; at least {min}"));
    }
    if let Some(max) = rule.max_lines.filter(|max| lines > *max) {
        return Err(format!("{lines} lines have changed; at most {max}"));
    }
    if rule.only.is_empty() {
        return Ok(());
    }
    let allowed = rule.only.iter().map(|path| glob(path)).collect::<Result<Vec<_>, _>>()?;
    let is_allowed = |name: &&(String, u64)| allowed.iter().any(|path| path.is_match(&name.0));
    let others: Vec<String> =
        changes.iter().filter(|change| !is_allowed(change)).map(|(name, _)| name.clone()).collect();
    match others.is_empty() {
        true => Ok(()),
        false => Err(format!("{} may not change", first_names(&others, NAMES_MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        rule: Rule,
        changes: ChangedLines,
        files: &[(&str, &str)],
        expected: Result<(), &str>,
    ) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = RuleFiles { root: dir.path(), since: None };
        let found = holds(&rule, files, || changes);
        match (&found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(why), Err(part)) => assert!(why.contains(part), "{rule}: {why}"),
            _ => panic!("{rule}: {found:?}"),
        }
    }

    #[test]
    fn file_and_pattern_rules() {
        check(Rule::File("a/b".into()), None, &[("a/b", "")], Ok(()));
        check(Rule::File("a".into()), None, &[("a/b", "")], Err("no file a"));
        let pattern = |path: &str, text: &str, absent| {
            Rule::Pattern(TextRule { path: path.into(), text: text.into(), absent })
        };
        let files = [("src/a.rs", "fn main() {}\n// TODO\n"), ("src/b/c.rs", "fn x() {}\n")];
        check(pattern("src/**/*.rs", "^fn ma", false), None, &files, Ok(()));
        check(pattern("src/*.rs", "^fn x", false), None, &files, Err("in no file"));
        check(pattern("src/**/*.rs", "TODO", true), None, &files, Err("is in src/a.rs"));
        check(pattern("src/b/*", "TODO", true), None, &files, Ok(()));
        check(pattern("lib/*", "x", false), None, &files, Err("no file lib/*"));
    }

    #[test]
    fn changed_file_and_diff_rules() {
        let changes = || Some(vec![("src/a.rs".to_owned(), 10), ("docs/b.md".to_owned(), 5)]);
        check(Rule::Changed("docs/*".into()), changes(), &[], Ok(()));
        check(Rule::Changed("CHANGELOG.md".into()), changes(), &[], Err("has not changed"));
        check(Rule::Changed("x".into()), None, &[], Err("git repository"));
        let diff = |diff: DiffRule| Rule::Diff(diff);
        let none = DiffRule::default;
        check(
            diff(DiffRule { max_files: Some(2), max_lines: Some(15), ..none() }),
            changes(),
            &[],
            Ok(()),
        );
        check(diff(DiffRule { max_files: Some(1), ..none() }), changes(), &[], Err("2 files"));
        check(diff(DiffRule { max_lines: Some(14), ..none() }), changes(), &[], Err("15 lines"));
        check(diff(DiffRule { min_files: Some(3), ..none() }), changes(), &[], Err("at least 3"));
        let only = vec!["src/**".to_owned()];
        check(diff(DiffRule { only, ..none() }), changes(), &[], Err("docs/b.md may not change"));
    }

    #[test]
    fn coverage_rules_read_each_report_format() {
        let rule = |at_least| Rule::Coverage(CoverageRule { report: "r".into(), at_least });
        let lcov = "SF:a\nLF:10\nLH:8\nend_of_record\nSF:b\nLF:10\nLH:8\nend_of_record\n";
        let cobertura = r#"<?xml version="1.0"?><coverage lines-covered="8" lines-valid="10">"#;
        let istanbul = r#"{"total":{"lines":{"total":10,"covered":8,"pct":80}}}"#;
        for report in [lcov, cobertura, istanbul] {
            check(rule(8_000), None, &[("r", report)], Ok(()));
            check(rule(8_001), None, &[("r", report)], Err("80.00 %, not 80.01 %"));
        }
        check(rule(0), None, &[("r", "hello")], Err("no report"));
        check(rule(0), None, &[], Err("No such file"));
        check(rule(0), None, &[("r", "LF:0\nLH:0\n")], Err("no lines"));
    }
}
