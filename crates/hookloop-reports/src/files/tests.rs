use std::fs;
use std::os::unix::fs::symlink;

use hookloop_core::checks::CheckCounts;
use rustix::fs::{CWD, mkfifoat};
use tempfile::TempDir;

use super::*;

const PASSED: &str = "<testsuite><testcase name='a'/></testsuite>";
const FAILED: &str = "<testsuite><testcase name='a'><failure/></testcase></testsuite>";

/// A project with the given files.
fn project(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

fn read(project: &TempDir, paths: &[&str]) -> Result<CheckRecords, ReportError> {
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    read_files(&paths, project.path())
}

fn ids(records: &CheckRecords) -> Vec<&str> {
    records.checks.iter().map(|check| check.id.as_str()).collect()
}

/// Checks that reading fails with the file and the reason.
fn check_error(project: &TempDir, paths: &[&str], file: &str, reason: &str) {
    let error = read(project, paths).unwrap_err().to_string();
    assert!(error.contains(file), "{error}");
    assert!(error.contains(reason), "{error}");
}

#[test]
fn files_are_merged_in_the_order_of_their_paths() {
    let project = project(&[
        ("reports/b.xml", FAILED),
        ("reports/a/z.xml", PASSED),
        ("reports/c.tap", "1..2\nok 1 - a\nok 2 - t\n"),
        ("reports/notes.txt", "no report"),
    ]);
    let records = read(&project, &["reports"]).unwrap();
    assert_eq!(ids(&records), ["a", "a #2", "a #3", "t"]);
    let failing: Vec<&str> = records.failing().map(|check| check.id.as_str()).collect();
    assert_eq!(failing, ["a #2"]);
    assert_eq!(records.counts, CheckCounts { passed: 3, failed: 1, skipped: 0 });
    assert_eq!(records.source, "junit");
    assert!(records.is_complete && !records.is_broken);

    let named = read(&project, &["reports/c.tap", "reports/b.xml", "reports/./b.xml"]).unwrap();
    assert_eq!(ids(&named), ["a", "a #2", "t"]);
    let absolute = project.path().join("reports/c.tap");
    assert_eq!(read(&project, &[absolute.to_str().unwrap()]).unwrap().source, "tap");
}

#[test]
fn one_broken_report_makes_all_broken() {
    let project = project(&[("a.tap", "1..2\nok 1 - t\n"), ("b.xml", PASSED)]);
    assert!(read(&project, &["a.tap", "b.xml"]).unwrap().is_broken);
    assert!(!read(&project, &["b.xml"]).unwrap().is_broken);
}

#[test]
fn a_missing_or_malformed_file_is_an_error_with_its_name() {
    let project = project(&[
        ("good.xml", PASSED),
        ("bad/cut.xml", "<testsuite>\n<testcase name='a'"),
        ("other/page.xml", "<html/>"),
        ("empty/a.xml", ""),
        ("texts/notes.txt", PASSED),
    ]);
    check_error(&project, &["good.xml", "gone.xml"], "gone.xml", "No such file");
    check_error(&project, &["good.xml", "bad"], "bad/cut.xml", "malformed at line 2");
    check_error(&project, &["other/page.xml"], "other/page.xml", "not a known format");
    check_error(&project, &["empty"], "empty/a.xml", "not a known format");
    check_error(&project, &["texts"], "texts", "has no report files");
    check_error(&project, &["good.xml/x"], "good.xml/x", "not a regular file");
    assert!(matches!(read(&project, &[]), Err(ReportError::NoPaths)));
    assert!(read(&project, &["texts/notes.txt"]).is_ok());
}

#[test]
fn links_and_pipes_are_refused() {
    let outside = project(&[("secret.xml", PASSED), ("reports/a.xml", PASSED)]);
    let project = project(&[("reports/a.xml", PASSED), ("real/a.xml", PASSED)]);
    let root = project.path();
    symlink(outside.path().join("secret.xml"), root.join("link.xml")).unwrap();
    symlink(outside.path().join("reports"), root.join("linked")).unwrap();
    symlink(root.join("real"), root.join("inner")).unwrap();
    mkfifoat(CWD, root.join("pipe.xml"), Mode::from_raw_mode(0o600)).unwrap();
    for path in ["link.xml", "linked", "linked/a.xml", "inner/a.xml", "pipe.xml"] {
        check_error(&project, &[path], path, "not a regular file");
    }
    assert!(read(&project, &["reports"]).is_ok());
    for (name, target) in [("link.xml", "real/a.xml"), ("dangling.json", "gone")] {
        let link = root.join("reports").join(name);
        symlink(root.join(target), &link).unwrap();
        check_error(&project, &["reports"], name, "not a regular file");
        fs::remove_file(link).unwrap();
    }
    mkfifoat(CWD, root.join("reports/p.tap"), Mode::from_raw_mode(0o600)).unwrap();
    check_error(&project, &["reports"], "p.tap", "not a regular file");
    check_error(&project, &["/dev/zero"], "/dev/zero", "not a regular file");
}

#[test]
fn a_linked_directory_within_reports_is_not_entered() {
    let project = project(&[("reports/a.xml", PASSED), ("old/b.xml", FAILED)]);
    symlink(project.path().join("old"), project.path().join("reports/latest")).unwrap();
    assert_eq!(read(&project, &["reports"]).unwrap().counts.total(), 1);
}

#[test]
fn a_project_that_is_reached_by_a_link_is_read() {
    let project = project(&[("real/reports/a.xml", PASSED)]);
    let link = project.path().join("link");
    symlink(project.path().join("real"), &link).unwrap();
    assert!(read_files(&[PathBuf::from("reports/a.xml")], &link).is_ok());
    assert!(read_files(&[link.join("reports")], &link).is_ok());
}

#[test]
fn files_outside_of_the_project_can_be_named() {
    let outside = project(&[("reports/a.xml", PASSED)]);
    let project = project(&[("inner/keep", "")]);
    let path = outside.path().join("reports");
    assert!(read_files(std::slice::from_ref(&path), project.path()).is_ok());
    symlink(&path, project.path().join("link")).unwrap();
    let link = project.path().join("inner/../link");
    assert!(read_files(&[link], &project.path().join("inner")).is_err());
}

#[test]
fn sizes_numbers_and_depths_are_bounded() {
    let project = project(&[("r/a.xml", PASSED), ("r/b.xml", PASSED), ("r/c/d/e.xml", PASSED)]);
    let length = PASSED.len() as u64;
    let enough =
        ReadLimits { file_bytes: length, total_bytes: 3 * length, files: 3, entries: 5, depth: 3 };
    let read = |limits| read_limited(&[PathBuf::from("r")], project.path(), limits);
    assert_eq!(read(enough).unwrap().counts.passed, 3);
    for (limits, reason) in [
        (ReadLimits { file_bytes: length - 1, ..enough }, "the file has more than"),
        (ReadLimits { total_bytes: 3 * length - 1, ..enough }, "the set of all reports has more"),
        (ReadLimits { files: 2, ..enough }, "more than 2 files"),
        (ReadLimits { entries: 4, ..enough }, "more than 4 entries"),
        (ReadLimits { depth: 2, ..enough }, "more than 2 levels deep"),
    ] {
        let error = read(limits).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_sparse_file_over_the_limit_is_refused() {
    let project = project(&[("huge.xml", "")]);
    let file = fs::OpenOptions::new().write(true).open(project.path().join("huge.xml")).unwrap();
    file.set_len(FILE_BYTES_MAX + 1).unwrap();
    check_error(&project, &["huge.xml"], "huge.xml", "more than 67108864 bytes");
    file.set_len(1 << 40).unwrap();
    check_error(&project, &["huge.xml"], "huge.xml", "more than 67108864 bytes");
}
