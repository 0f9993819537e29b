//! Validation rules that need no process: files, their text, coverage reports, size of changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
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
    /// In a room: the time of files after which the gates of this claim write files.
    pub(crate) since: Option<SystemTime>,
    /// In a room: the files of the tree. Git may ignore some of them.
    pub(crate) tree: &'a [PathBuf],
}

/// Checks a rule. The error is the reason why the rule does not hold.
pub(crate) fn holds(
    rule: &Rule,
    files: RuleFiles<'_>,
    changes: impl FnOnce() -> ChangedLines,
) -> Result<(), String> {
    let root = files.root;
    match rule {
        Rule::File(path) => match root.join(path).is_file() {
            true => Ok(()),
            false => Err(format!("there is no file {path}")),
        },
        Rule::Changed(path) => has_changed(path, changes()),
        Rule::Pattern(pattern) => matches(pattern, files),
        Rule::Coverage(coverage) => is_covered(coverage, files),
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

fn matches(rule: &TextRule, files: RuleFiles<'_>) -> Result<(), String> {
    let text = pattern(&rule.text)?;
    let mut looked_at = 0;
    let mut found = Vec::new();
    for name in named_files(rule, files)? {
        let path = files.root.join(&name);
        let unknown = |why: &dyn std::fmt::Display| format!("{}: {why}", name.display());
        let metadata = path.symlink_metadata().map_err(|error| unknown(&error))?;
        if metadata.is_symlink() && rule.absent {
            // The text behind a link is not part of the files.
            return Err(format!("{} is a link, so its text is unknown", name.display()));
        }
        if !metadata.is_file() {
            continue;
        }
        looked_at += 1;
        if looked_at > FILES_MAX {
            return Err(format!("{} names more than {FILES_MAX} files", rule.path));
        }
        if metadata.len() > FILE_MAX {
            if rule.absent {
                return Err(unknown(&format!("the file is larger than {FILE_MAX} bytes")));
            }
            continue;
        }
        let content = fs::read(&path).map_err(|error| unknown(&error))?;
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

/// Returns the files that a rule names, from the project's directory: those that git does not ignore, and in a room
/// all files of the tree.
fn named_files(rule: &TextRule, files: RuleFiles<'_>) -> Result<BTreeSet<PathBuf>, String> {
    let wanted = glob(&rule.path)?;
    let mut named: BTreeSet<PathBuf> =
        files.tree.iter().filter(|path| wanted.is_match(path)).cloned().collect();
    for entry in walk(files.root) {
        let entry = match entry {
            Ok(entry) => entry,
            // A file that can't be seen may have the text.
            Err(error) if rule.absent => return Err(format!("not all files are known: {error}")),
            Err(_) => continue,
        };
        let name = entry.path().strip_prefix(files.root).unwrap_or(entry.path());
        if wanted.is_match(name) {
            named.insert(name.to_owned());
        }
    }
    Ok(named)
}

fn is_covered(rule: &CoverageRule, files: RuleFiles<'_>) -> Result<(), String> {
    let wrong = |why: &str| format!("{}: {why}", rule.report);
    // Without links: the report behind a link may be a file of the tree.
    let real = |path: &Path| path.canonicalize().map_err(|error| wrong(&error.to_string()));
    let (root, path) = (real(files.root)?, real(&files.root.join(&rule.report))?);
    let name = path.strip_prefix(root).map_err(|_| wrong("the report is not in the project"))?;
    if files.tree.iter().any(|file| file == name) {
        let why = "the report is part of the work; a gate must write it, and git must ignore it";
        return Err(wrong(why));
    }
    let metadata = fs::metadata(&path).map_err(|error| wrong(&error.to_string()))?;
    let written = metadata.modified().map_err(|error| wrong(&error.to_string()))?;
    if files.since.is_some_and(|since| written < since) {
        return Err(wrong("the report is older than this claim; a gate must write it"));
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
    use std::time::Duration;

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
        let files = RuleFiles { root: dir.path(), since: None, tree: &[] };
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

    /// Git does not ignore a file that it tracks, also if `.gitignore` names it.
    #[test]
    fn a_tracked_file_is_checked_although_a_pattern_of_git_ignores_it() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [(".gitignore", "*.gen\n"), ("a.gen", "TODO\n"), ("b.gen", "TODO\n")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let rule =
            |absent| Rule::Pattern(TextRule { path: "*.gen".into(), text: "TODO".into(), absent });
        let result = |tree: &[PathBuf], absent| {
            holds(&rule(absent), RuleFiles { root: dir.path(), since: None, tree }, || None)
        };
        assert_eq!(result(&[], true), Ok(()));
        assert_eq!(result(&["a.gen".into()], true), Err("`TODO` is in a.gen".to_owned()));
        assert_eq!(result(&["a.gen".into()], false), Ok(()));
    }

    #[test]
    fn a_coverage_report_counts_only_if_a_gate_of_the_claim_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("r"), "SF:a\nLF:1\nLH:1\nend_of_record\n").unwrap();
        let rule = Rule::Coverage(CoverageRule { report: "r".into(), at_least: 8_000 });
        let result = |since, tree: &[PathBuf]| {
            let files = RuleFiles { root: dir.path(), since: Some(since), tree };
            holds(&rule, files, || None).map_err(|why| why.split(';').next().unwrap().to_owned())
        };
        let written = fs::metadata(dir.path().join("r")).unwrap().modified().unwrap();
        assert_eq!(result(written, &[]), Ok(()));
        let old = Err("r: the report is older than this claim".to_owned());
        assert_eq!(result(written + Duration::from_nanos(1), &[]), old);
        // A room may give a file of the tree a later time.
        let before = written - Duration::from_secs(5);
        let own = Err("r: the report is part of the work".to_owned());
        assert_eq!(result(before, &["r".into()]), own);
        assert_eq!(result(before, &["other".into()]), Ok(()));
        // The same file behind a link.
        fs::rename(dir.path().join("r"), dir.path().join("text")).unwrap();
        std::os::unix::fs::symlink("text", dir.path().join("r")).unwrap();
        assert_eq!(result(before, &["text".into()]), own);
        fs::remove_file(dir.path().join("r")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("r")).unwrap();
        let outside = Err("r: the report is not in the project".to_owned());
        assert_eq!(result(before, &[]), outside);
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
