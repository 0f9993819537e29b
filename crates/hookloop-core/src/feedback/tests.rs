use super::*;
use crate::checks::RecordsBuilder;

const RUN: &str = "running 3 tests\n\
                   test kept ... FAILED\n\
                   test added ... FAILED\n\n\
                   failures:\n\n\
                   ---- kept stdout ----\n\
                   thread 'kept' panicked at src/lib.rs:1:1:\nold news\n\n\
                   ---- added stdout ----\n\
                   thread 'added' panicked at src/lib.rs:2:2:\nbad news\n\n\
                   failures:\n    kept\n    added\n\n\
                   test result: FAILED. 1 passed; 2 failed\n";

/// Returns feedback without records.
fn told<'a>(
    gate: &'a str,
    reason: Option<&'a str>,
    output: impl Into<GateOutput<'a>>,
    before: Option<&'a BTreeSet<String>>,
    max_bytes: usize,
) -> Feedback {
    let output = output.into();
    feedback(&GateFailure { gate, reason, output, records: None, before }, max_bytes)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn feedback_on_a_first_run_lists_failing_checks_and_causes() {
    let Feedback { text, failing, .. } = told("tests", None, RUN, None, 4_000);
    assert_eq!(failing, set(&["tests: added", "tests: kept"]));
    let expected = "tests: 2 checks fail (cargo test)\n\n\
                    Failing:\n- kept\n- added\n\n\
                    Why:\n\n\
                    kept\n    thread 'kept' panicked at src/lib.rs:1:1:\n    old news\n\n\
                    added\n    thread 'added' panicked at src/lib.rs:2:2:\n    bad news\n\n\
                    Output:\n";
    assert_eq!(text, format!("{expected}{}", RUN.trim()));
}

#[test]
fn feedback_lists_fixed_still_failing_and_new_checks() {
    let before = set(&["tests: kept", "tests: gone"]);
    let text = told("tests", Some("exit code 101"), RUN, Some(&before), 4_000).text;
    let expected = "tests: 2 checks fail (cargo test)\nexit code 101\n\n\
                    Fixed since the run before, or not run this time:\n- gone\n\n\
                    Still failing:\n- kept\n\n\
                    New:\n- added\n\n\
                    Why:\n\nadded\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn checks_that_did_not_run_are_not_reported_as_fixed() {
    let check = |before: &[&str], output: &str, expected: &[&str], unexpected: &str| {
        let before = set(before);
        let text = told("tests", None, output, Some(&before), 4_000).text;
        for line in expected {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains(unexpected), "{text}");
    };
    let broken = "error[E0308]: mismatched types\n --> src/a.rs:3:1\n";
    let lines =
        ["Not known, since not everything ran or is listed:\n- kept", "- error[E0308] src/a.rs:3"];
    check(&["tests: kept"], broken, &lines, "Fixed");
    check(&["tests: kept"], "segmentation fault", &["tests: it did not pass"], "Fixed");
    let many: String = (0..500).map(|number| format!("test t{number} ... FAILED\n")).collect();
    let lines = ["Not known, since not everything ran or is listed:\n- kept", "300 more fail"];
    check(&["tests: kept"], &many, &lines, "Fixed");
    // An output that becomes readable fixes no check.
    check(&["tests"], RUN, &["New:\n- kept\n- added"], "Fixed");
}

#[test]
fn feedback_on_unrecognized_output_contains_the_output() {
    let Feedback { text, failing, .. } = told("lint", Some("exit code 2"), "oh no\n", None, 1_000);
    assert_eq!(text, "lint: it did not pass\nexit code 2\n\nOutput:\noh no");
    assert_eq!(failing, set(&["lint"]));
    let nothing = told("lint", Some("  "), "\n", None, 1_000).text;
    assert_eq!(nothing, "lint: it did not pass");
}

#[test]
fn feedback_has_the_beginning_and_the_end_of_long_output() {
    let output = format!("begin {} end", "é".repeat(5_000));
    let text = told("lint", None, &output, None, 500).text;
    assert!(text.contains("Output:\nbegin éé") && text.ends_with("éé end"), "{text}");
    let (head, tail) = text.split_once("\n[… ").unwrap();
    let (count, tail) = tail.split_once(" bytes left out …]\n").unwrap();
    let count = count.replace(',', "");
    let kept = head.split_once("Output:\n").unwrap().1.len() + tail.len();
    assert_eq!(count.parse::<usize>().unwrap() + kept, output.len());
}

#[test]
fn feedback_has_no_colours() {
    let text = told("lint", None, "\x1b[31mred\x1b[0m", None, 500).text;
    assert!(text.ends_with("Output:\nred"), "{text}");
}

#[test]
fn feedback_never_exceeds_its_byte_limit() {
    let names: Vec<String> = (0..300).map(|number| format!("größe::fall_{number}")).collect();
    let line = |name: &String| format!("---- {name} stdout ----\nthread panicked at …\n{name}\n");
    let many: String = names.iter().map(line).collect();
    let before: BTreeSet<String> = (0..500).map(|number| format!("日: alt {number}")).collect();
    let long = "ß".repeat(3_000);
    let outputs = ["", "x", RUN, &many, &long];
    for max_bytes in (0..200).chain((200..3_000).step_by(97)).chain([16_384, 1 << 20]) {
        for output in outputs {
            for (reason, before) in [(None, None), (Some(long.as_str()), Some(&before))] {
                let made = told("日", reason, output, before, max_bytes);
                assert!(made.text.len() <= max_bytes, "{max_bytes}: {}", made.text);
                assert_eq!(made, told("日", reason, output, before, max_bytes));
                assert!(!made.failing.is_empty());
            }
        }
    }
}

#[test]
fn feedback_counts_the_checks_that_changed() {
    let before = set(&["tests: kept", "tests: gone"]);
    let changes = told("tests", None, RUN, Some(&before), 4_000).changes.unwrap();
    assert_eq!(changes, CheckChanges { still: 1, fixed: 1, new: 1 });
    assert_eq!(changes.to_string(), "1 check still fails, 1 was fixed, 1 is new");
    assert_eq!(told("tests", None, RUN, None, 4_000).changes, None, "nothing to compare with");
    assert_eq!(told("tests", None, "oh no", Some(&before), 4_000).changes, None);
}

/// Returns complete records: `+` before a name for passed, `-` for failed, `~` for skipped.
fn records(checks: &[&str]) -> CheckRecords {
    let mut builder = RecordsBuilder::new("junit");
    for check in checks {
        let (sign, name) = check.split_at(1);
        let (outcome, cause) = match sign {
            "+" => (CheckOutcome::Passed, ""),
            "-" => (CheckOutcome::Failed, "no"),
            _ => (CheckOutcome::Skipped, ""),
        };
        builder.add(name, outcome, None, cause.to_owned());
    }
    builder.finish()
}

/// Returns feedback with records about checks that failed before.
fn compared(records: &CheckRecords, before: Option<&[&str]>, max_bytes: usize) -> Feedback {
    let before: Option<BTreeSet<String>> =
        before.map(|names| names.iter().map(|name| format!("tests: {name}")).collect());
    let failure = GateFailure {
        gate: "tests",
        reason: Some("exit code 1"),
        output: GateOutput::from("oh no"),
        records: Some(records),
        before: before.as_ref(),
    };
    feedback(&failure, max_bytes)
}

#[test]
fn feedback_with_records_separates_passed_skipped_and_missing_checks() {
    let records = records(&["-kept", "+mended", "~put_off", "-added", "+other"]);
    let made = compared(&records, Some(&["kept", "mended", "put_off", "gone"]), 4_000);
    let expected = "tests: 2 checks fail (junit)\nexit code 1\n\n\
                    Fixed since the run before:\n- mended\n\n\
                    Not run this time:\n- gone\n\n\
                    Skipped now, failed before:\n- put_off\n\n\
                    Still failing:\n- kept\n\n\
                    New:\n- added\n\n\
                    Why:\n\nadded\n    no\n\nkept\n    no\n\n\
                    Output:\noh no";
    assert_eq!(made.text, expected);
    assert_eq!(made.changes, Some(CheckChanges { still: 1, fixed: 1, new: 1 }));
    assert_eq!(made.failing, set(&["tests: kept", "tests: added"]));
    let first = compared(&records, None, 4_000);
    assert!(first.text.contains("\n\nFailing:\n- kept\n- added\n\nWhy:"), "{}", first.text);
    assert_eq!(first.changes, None, "nothing to compare with");
}

#[test]
fn feedback_with_incomplete_records_claims_no_fix_for_missing_checks() {
    let all = records(&["-kept", "+mended"]);
    let check = |records: CheckRecords, title: &str| {
        let made = compared(&records, Some(&["kept", "mended", "gone"]), 4_000);
        let expected = format!("Fixed since the run before:\n- mended\n\n{title}\n- gone\n\nStill");
        assert!(made.text.contains(&expected), "{}", made.text);
        assert_eq!(made.changes, None);
    };
    let partial = CheckRecords { is_complete: false, ..all.clone() };
    check(partial.clone(), "Fixed since the run before, or not run this time:");
    let unknown = "Not known, since not everything ran or is listed:";
    check(CheckRecords { is_broken: true, ..partial.clone() }, unknown);
    let mut more = partial;
    more.counts.failed += 3;
    check(more, unknown);
}

#[test]
fn feedback_states_that_no_check_failed() {
    let passed = records(&["+a", "~b"]);
    let made = compared(&passed, Some(&["a"]), 4_000);
    let expected = "tests: it did not pass, although no check failed\nexit code 1\n\n\
                    Fixed since the run before:\n- a\n\nOutput:\noh no";
    assert_eq!((made.text.as_str(), made.failing), (expected, set(&["tests"])));
    assert_eq!(made.changes, Some(CheckChanges { still: 0, fixed: 1, new: 0 }));
    let mut unnamed = passed;
    unnamed.counts.failed = 2;
    let made = compared(&unnamed, None, 4_000);
    assert_eq!(made.text, "tests: 2 checks fail (junit)\nexit code 1\n\nOutput:\noh no");
    assert_eq!(made.failing, set(&["tests"]));
}

#[test]
fn feedback_lists_checks_that_still_fail_beyond_the_limit() {
    let names: Vec<String> = (0..=FAILING_MAX).map(|number| format!("-t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let last = format!("t{FAILING_MAX}");
    let made = compared(&records(&names), Some(&[&last]), 100_000);
    assert!(made.text.contains(&format!("Still failing:\n- {last}\n")), "{}", made.text);
    assert!(made.text.contains("\n1 more fail that are not listed.\n"), "{}", made.text);
    assert_eq!((made.failing.len(), made.changes), (FAILING_MAX, None));
}

#[test]
fn feedback_with_records_never_exceeds_its_byte_limit() {
    let names = |sign: char| (0..300).map(move |number| format!("{sign}größe_{number}_{number}"));
    let all: Vec<String> = names('+').chain(names('-')).chain(names('~')).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let records = records(&all);
    let before: Vec<&str> = records.checks.iter().step_by(2).map(|it| it.id.as_str()).collect();
    for max_bytes in (0..200).chain((200..3_000).step_by(97)).chain([16_384, 1 << 20]) {
        let made = compared(&records, Some(&before), max_bytes);
        assert!(made.text.len() <= max_bytes, "{max_bytes}: {}", made.text);
        let has_causes = made.text.contains("\nWhy:\n");
        assert!(has_causes || max_bytes < 1_000, "{max_bytes}: {}", made.text);
    }
}
