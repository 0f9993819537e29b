//! The description of a merge request: the task, and the tests that its work changed.

use hookloop_core::excerpt::first_chars;
use hookloop_core::session::Receipt;
use hookloop_core::session::facts::{BaseTests, TestFinding};
use hookloop_core::task::Task;

/// Maximum findings that a description names.
const FINDINGS_NAMED_MAX: usize = 20;
/// Maximum characters of a check's name and of a cause.
const TEXT_MAX: usize = 200;

/// Returns the description of a request. `receipts` are those of the last run of the gates.
pub(super) fn request_body(task: &Task, receipts: &[Receipt]) -> String {
    let mut text = task.spec.description.trim().to_owned();
    if !task.spec.deliverables.is_empty() {
        text.push_str("\n\n");
        for deliverable in &task.spec.deliverables {
            text.push_str(&format!("- {deliverable}\n"));
        }
    }
    let about_tests: String = receipts.iter().filter_map(about_tests).collect();
    format!("{}\n\n{about_tests}Task: {}", text.trim(), task.id).trim().to_owned()
}

/// Returns the differences between the tests of the base and those of the work that a reviewer should know.
fn about_tests(receipt: &Receipt) -> Option<String> {
    let tests: &BaseTests = receipt.base_tests.as_deref()?;
    let count = tests.findings.len() as u64 + tests.more;
    let mut text = String::new();
    if count > 0 {
        text.push_str(&format!("Changes of tests at gate {}:\n\n", code(&receipt.gate)));
        for finding in tests.findings.iter().take(FINDINGS_NAMED_MAX) {
            text.push_str(&line(finding));
        }
        let more = count.saturating_sub(FINDINGS_NAMED_MAX.min(tests.findings.len()) as u64);
        if more > 0 {
            text.push_str(&format!("- and {more} more\n"));
        }
        text.push('\n');
    }
    if let Some(verdict) = &tests.review {
        text.push_str(&format!("Review of these changes: {}\n\n", code(&verdict.to_string())));
    }
    if tests.known_failures > 0 {
        text.push_str(&format!(
            "Failing checks at gate {} that failed before the work, too: {}\n\n",
            code(&receipt.gate),
            tests.known_failures
        ));
    }
    (!text.is_empty()).then_some(text)
}

fn line(finding: &TestFinding) -> String {
    let TestFinding { kind, check, cause, allowed_by, .. } = finding;
    let cause = if cause.is_empty() { String::new() } else { format!(": {}", code(cause)) };
    let allowed = allowed_by.as_ref().map(|by| format!(", allowed by {}", code(by)));
    format!("- {} {}{cause}{}\n", code(check), kind.words(), allowed.unwrap_or_default())
}

/// Returns a text of the work as code in one line, so that a forge shows no link, picture or mention.
fn code(text: &str) -> String {
    let plain: String =
        text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    format!("`{}`", first_chars(&plain.replace('`', "'"), TEXT_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn receipt(base_tests: serde_json::Value) -> Receipt {
        let receipt = json!({
            "gate": "tests", "point": "stop", "definition": "x", "status": "passed",
            "output_sha256": "", "duration_ms": 1, "base_tests": base_tests,
        });
        serde_json::from_value(receipt).unwrap()
    }

    #[test]
    fn a_description_names_the_tests_that_the_work_changed() {
        let finding = |check: &str| {
            json!({"kind": "expectation_changed", "check": check, "cause": "5 == `-1`\n",
                   "allowed_by": "ada"})
        };
        let text = about_tests(&receipt(json!({
            "base": "t", "findings": [finding("adds"), finding("![x](y)")], "more": 3,
            "known_failures": 2,
        })));
        let words = hookloop_core::session::facts::FindingKind::ExpectationChanged.words();
        let expected = format!(
            "Changes of tests at gate `tests`:\n\n- `adds` {words}: `5 == '-1' `, allowed by `ada`\n\
             - `![x](y)` {words}: `5 == '-1' `, allowed by `ada`\n- and 3 more\n\n\
             Failing checks at gate `tests` that failed before the work, too: 2\n\n"
        );
        assert_eq!(text.unwrap(), expected);
        assert_eq!(about_tests(&receipt(json!({"base": "t"}))), None);
    }
}
