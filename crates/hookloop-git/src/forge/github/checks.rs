//! The joint result of a commit's checks: check runs, and the older commit statuses.

use serde::Deserialize;

use super::super::{CommitChecks, ForgeError};
use super::client::PagedItems;

#[derive(Debug, Deserialize)]
pub(super) struct RunsPage {
    pub(super) check_runs: Vec<CheckRun>,
}

/// A check run. Its words are read as text, because GitHub may add new ones. An unknown word is no success.
#[derive(Debug, Deserialize)]
pub(super) struct CheckRun {
    name: String,
    status: String,
    conclusion: Option<String>,
    html_url: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StatusesPage {
    pub(super) statuses: Vec<GithubStatus>,
}

#[derive(Debug, Deserialize)]
pub(super) struct GithubStatus {
    context: String,
    state: String,
    target_url: Option<String>,
}

/// One check of either kind.
#[derive(Debug)]
pub(super) struct GithubCheck {
    name: String,
    url: Option<String>,
    says: CheckState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Passed,
    Pending,
    Failed,
    Nothing,
}

impl From<CheckRun> for GithubCheck {
    fn from(run: CheckRun) -> GithubCheck {
        let says = match (run.status.as_str(), run.conclusion.as_deref()) {
            ("completed", Some("success")) => CheckState::Passed,
            ("completed", Some("neutral" | "skipped")) => CheckState::Nothing,
            ("completed", Some(_)) => CheckState::Failed,
            _ => CheckState::Pending,
        };
        GithubCheck { name: run.name, url: run.html_url, says }
    }
}

impl From<GithubStatus> for GithubCheck {
    fn from(status: GithubStatus) -> GithubCheck {
        let says = match status.state.as_str() {
            "success" => CheckState::Passed,
            "failure" | "error" => CheckState::Failed,
            _ => CheckState::Pending,
        };
        GithubCheck { name: status.context, url: status.target_url, says }
    }
}

/// Returns the joint result of all checks of a commit.
pub(super) fn together(pages: [PagedItems<GithubCheck>; 2]) -> Result<CommitChecks, ForgeError> {
    let is_whole = pages.iter().all(|pages| pages.is_whole);
    let checks: Vec<GithubCheck> = pages.into_iter().flat_map(|pages| pages.things).collect();
    let that = |says: CheckState| checks.iter().filter(move |check| check.says == says);
    let names = |says: CheckState| {
        let mut names: Vec<String> = that(says).map(|check| check.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    };
    let (failed, pending) = (names(CheckState::Failed), names(CheckState::Pending));
    if !failed.is_empty() {
        let urls = that(CheckState::Failed).filter_map(|check| check.url.clone()).collect();
        return Ok(CommitChecks::Failed { names: failed, urls });
    }
    if !is_whole {
        let why = format!("the commit has more checks than can be read ({})", checks.len());
        return Err(ForgeError::Permanent { why });
    }
    if !pending.is_empty() {
        return Ok(CommitChecks::Pending { names: pending });
    }
    match that(CheckState::Passed).next() {
        Some(_) => Ok(CommitChecks::Passed),
        None => Ok(CommitChecks::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, status: &str, conclusion: Option<&str>) -> GithubCheck {
        let conclusion = conclusion.map(str::to_owned);
        let html_url = Some(format!("https://x/{name}"));
        CheckRun { name: name.into(), status: status.into(), conclusion, html_url }.into()
    }

    fn status(context: &str, state: &str) -> GithubCheck {
        GithubStatus { context: context.into(), state: state.into(), target_url: None }.into()
    }

    fn of(runs: Vec<GithubCheck>, statuses: Vec<GithubCheck>) -> CommitChecks {
        let whole = |things| PagedItems { things, is_whole: true };
        together([whole(runs), whole(statuses)]).unwrap()
    }

    #[test]
    fn only_success_counts_as_passed() {
        for conclusion in ["failure", "cancelled", "timed_out", "action_required", "stale", "new"] {
            let checks = of(vec![run("a", "completed", Some(conclusion))], vec![]);
            assert!(matches!(checks, CommitChecks::Failed { .. }), "{conclusion}: {checks:?}");
        }
        for state in ["queued", "in_progress", "waiting", "requested", "pending", "new"] {
            // Also with a conclusion, which would belong to the run before.
            let checks = of(vec![run("a", state, Some("success"))], vec![]);
            assert!(matches!(checks, CommitChecks::Pending { .. }), "{state}: {checks:?}");
        }
        let checks = of(vec![run("a", "completed", None)], vec![]);
        assert_eq!(checks, CommitChecks::Pending { names: vec!["a".into()] });
        for (state, failed) in
            [("failure", true), ("error", true), ("pending", false), ("x", false)]
        {
            let checks = of(vec![], vec![status("s", state)]);
            assert_eq!(
                matches!(checks, CommitChecks::Failed { .. }),
                failed,
                "{state}: {checks:?}"
            );
            assert_ne!(checks, CommitChecks::Passed);
        }
    }

    #[test]
    fn check_runs_and_statuses_count_and_the_worst_decides() {
        let good = || run("good", "completed", Some("success"));
        let bad = || run("bad", "completed", Some("failure"));
        assert_eq!(of(vec![], vec![]), CommitChecks::None);
        assert_eq!(of(vec![run("a", "completed", Some("skipped"))], vec![]), CommitChecks::None);
        assert_eq!(of(vec![good()], vec![status("s", "success")]), CommitChecks::Passed);
        let checks = of(vec![good()], vec![status("s", "pending")]);
        assert_eq!(checks, CommitChecks::Pending { names: vec!["s".into()] });
        let checks = of(vec![bad(), good()], vec![status("s", "pending")]);
        let urls = vec!["https://x/bad".to_owned()];
        assert_eq!(checks, CommitChecks::Failed { names: vec!["bad".into()], urls });
    }

    #[test]
    fn an_incomplete_list_of_checks_is_an_error() {
        let some = |things| PagedItems { things, is_whole: false };
        let good = || run("good", "completed", Some("success"));
        assert!(together([some(vec![good()]), some(vec![])]).is_err());
    }
}
