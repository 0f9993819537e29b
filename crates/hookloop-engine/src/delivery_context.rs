//! The repository and the forge of a project, opened for delivery.

use std::ffi::OsString;

use hookloop_config::effective::{DeliveryRules, ForgeName};
use hookloop_core::hook::Hook;
use hookloop_core::id::SessionId;
use hookloop_core::options::ExpectationReviewer;
use hookloop_core::session::facts::{ExpectationVerdict, TestFinding};
use hookloop_core::shared_budget::Amount;
use hookloop_core::task::Task;
use hookloop_git::excerpt::plain_line;
use hookloop_git::forge::Forge;
use hookloop_git::forge::branches::BranchesOnly;
use hookloop_git::forge::github::{
    ApiAddress, BadApi, ForgeToken, GitHub, GitHubSettings, TokenSearch,
};
use hookloop_git::forge::remote::{ForgeRepository, repository_of};
use hookloop_git::repo::names::without_user;
use hookloop_git::repo::{
    CommitId, Repo, RepoDirectories, RepoOptions, SettledRequest, UnfinishedOperation, WorkState,
    Worktree,
};
use hookloop_git::step_error::{CommittedWork, StepError};
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::{BuiltinHooks, HookContext};
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;
use hookloop_store::crash;

use crate::project::Project;

/// Environment variable with the address of GitHub's API.
const API_VARIABLE: &str = "HOOKLOOP_GITHUB_API";
const GITHUB: &str = "github.com";
/// Maximum length of a commit's first line and of a request's title.
const TITLE_MAX: usize = 120;

/// The repository, forge and rules of a delivery.
#[derive(Debug)]
pub(crate) struct DeliveryTools<'r> {
    pub(crate) repo: Repo<'r>,
    pub(crate) forge: Box<dyn Forge + Send + Sync>,
    pub(crate) requests: RequestSupport,
    pub(crate) rules: DeliveryRules,
}

/// Whether branches of a project can get requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestSupport {
    /// The forge accepts requests.
    Forge,
    /// There is no remote, or the remote is a directory, so no forge is possible.
    Local,
    /// The configuration has `forge: none`.
    Declined,
    /// The remote is on another host, and neither its address nor the configuration names its
    /// forge.
    Unknown {
        /// The address of the remote, without a password.
        remote: String,
    },
}

impl RequestSupport {
    fn of(wanted: ForgeName, forge: &dyn Forge, url: Option<&str>) -> RequestSupport {
        match (wanted, url) {
            _ if forge.name() != BranchesOnly.name() => RequestSupport::Forge,
            (_, None) => RequestSupport::Local,
            (_, Some(url)) if is_local(url) => RequestSupport::Local,
            (ForgeName::None, _) => RequestSupport::Declined,
            (_, Some(url)) => RequestSupport::Unknown { remote: without_user(url) },
        }
    }

    /// Returns an error that starts with `what` if the forge is unknown.
    pub(crate) fn check(&self, what: &str) -> Result<(), StepError> {
        let RequestSupport::Unknown { remote } = self else { return Ok(()) };
        Err(StepError::NeedsHuman {
            why: format!(
                "{what}: {remote} is on no forge that hookloop knows; if it is GitHub Enterprise, write \
                 `delivery: {{forge: github}}` to hookloop.yaml, and to work with branches alone, without \
                 requests, `delivery: {{forge: none}}`"
            ),
        })
    }
}

/// Whether git reads the address of a remote as a local directory.
fn is_local(url: &str) -> bool {
    let is_path = |url: &str| {
        // A host ends at a colon, and has no slash before it.
        let colon = url.find(':');
        !url.contains("://") && colon.is_none_or(|colon| url[..colon].contains('/'))
    };
    url.starts_with("file:") || is_path(url)
}

/// The delivery context of one task.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryContext<'a> {
    pub(crate) project: &'a Project,
    pub(crate) delivery_tools: &'a DeliveryTools<'a>,
    /// The worktree of the task, if there is one on this machine.
    pub(crate) worktree: Option<&'a Worktree>,
    /// The branch of the work, or its last commit if there is no worktree.
    pub(crate) branch: &'a str,
    /// The rest of the budget of the session that runs the delivery.
    pub(crate) left: Option<Amount>,
}

/// Changes of tests about which a gatekeeper decides.
#[derive(Clone, Copy, Debug)]
pub struct ChangedExpectations<'c> {
    pub reviewer: &'c ExpectationReviewer,
    pub session: &'c SessionId,
    pub task: Option<&'c Task>,
    /// Messages of persons to the agent.
    pub messages: &'c [String],
    pub findings: &'c [TestFinding],
    /// The trees of the base and of the work.
    pub trees: (&'c str, &'c str),
}

/// A question to a gatekeeper: whether the work asks for changes of tests.
#[derive(Clone, Copy, Debug)]
pub struct ExpectationQuestion<'q> {
    pub(crate) project: &'q Project,
    /// The runner at an empty directory.
    pub(crate) place: &'q HookRunner,
    pub(crate) changed: &'q ChangedExpectations<'q>,
    /// The agent of the session.
    pub(crate) agent: &'q str,
    /// The prompt or the specification of the session; empty for tasks.
    pub(crate) work: &'q str,
    /// All changes of the work.
    pub(crate) difference: &'q str,
    /// The rest of the budget of the session.
    pub(crate) left: Amount,
    pub(crate) cancel: &'q Cancel,
}

/// Runs the built-in hooks of a delivery, and asks gatekeepers.
pub trait DeliverySteps: std::fmt::Debug + Sync {
    /// Asks a gatekeeper about changes of tests. The error is for a person.
    fn review_expectations(
        &self,
        question: &ExpectationQuestion<'_>,
    ) -> Result<ExpectationVerdict, String>;

    fn run(
        &self,
        delivery_context: Option<DeliveryContext<'_>>,
        runner: &HookRunner,
        hook: &Hook,
        hook_context: &HookContext<'_>,
    ) -> HookRun;
}

/// The delivery steps, with the delivery context in which they run.
#[derive(Clone, Copy, Debug)]
pub struct StepsInContext<'a> {
    pub steps: &'a dyn DeliverySteps,
    pub runner: &'a HookRunner,
    pub delivery_context: Option<DeliveryContext<'a>>,
}

impl BuiltinHooks for StepsInContext<'_> {
    fn run(&self, hook: &Hook, hook_context: &HookContext<'_>) -> HookRun {
        self.steps.run(self.delivery_context, self.runner, hook, hook_context)
    }
}

impl<'r> DeliveryTools<'r> {
    pub(crate) fn open(
        runner: &'r HookRunner,
        rules: &DeliveryRules,
        cancel: &Cancel,
    ) -> Result<DeliveryTools<'r>, StepError> {
        let options = RepoOptions {
            base: rules.base.clone(),
            remote: rules.remote.clone(),
            prefix: rules.branch_prefix.clone(),
            copy: rules.copy.clone(),
        };
        let repo = Repo::at(repo_place(runner), options, cancel)?;
        let url = repo.target().remote.as_ref().map(|remote| remote.push_url.as_str());
        let forge = open_forge(runner, rules.forge, url)?;
        let requests = RequestSupport::of(rules.forge, &*forge, url);
        Ok(DeliveryTools { repo, forge, requests, rules: rules.clone() })
    }

    pub(crate) fn base(&self) -> &str {
        &self.repo.target().branch
    }

    /// Commits everything in the worktree to the task's branch.
    ///
    /// Returns an error with a prompt if a rebase, merge or conflict is unfinished.
    pub(crate) fn wrap_up(
        &self,
        worktree: &Worktree,
        task: &Task,
    ) -> Result<CommittedWork, StepError> {
        if let WorkState::Unfinished(what) = self.repo.state(worktree)?
            && what != UnfinishedOperation::LaidOut
        {
            let prompt = format!("This directory is {what}. What is submitted is your branch.");
            return Err(StepError::block(prompt));
        }
        // The reasons name the files.
        if let SettledRequest::Unresolved { why, .. } = self.repo.settle_conflict(worktree)? {
            let why: Vec<String> = why.lines().map(plain_line).collect();
            let (base, why) = (self.base(), why.join("; "));
            let prompt = format!("The conflict with `{base}` is not resolved: {why}");
            return Err(StepError::block(prompt));
        }
        crash::point("wrap up");
        self.repo.commit_all(worktree, &message(task))?;
        crash::point("wrapped up");
        let head = self.repo.head(worktree)?;
        let commits = self.repo.ahead(&worktree.base, &head)?;
        let (branch, base) = (worktree.branch.clone(), self.base().to_owned());
        Ok(CommittedWork { branch, head: head.to_string(), base, commits })
    }
}

/// Returns the repository's directories and the means to run git there.
pub(crate) fn repo_place(exec: &ExecContext) -> RepoDirectories<'_> {
    RepoDirectories {
        root: exec.root(),
        state: exec.state(),
        environment: exec.environment(),
        keepers: exec.keepers(),
    }
}

fn open_forge(
    runner: &HookRunner,
    wanted: ForgeName,
    url: Option<&str>,
) -> Result<Box<dyn Forge + Send + Sync>, StepError> {
    let Some((api, ForgeRepository { owner, name, .. })) =
        find_api(runner.environment(), wanted, url)?
    else {
        return Ok(Box::new(BranchesOnly));
    };
    let token = ForgeToken::of_user(&TokenSearch {
        environment: runner.environment(),
        cwd: runner.root(),
        keepers: runner.keepers(),
        host: api.host(),
    })?;
    let http = runner.http().clone();
    Ok(Box::new(GitHub::new(GitHubSettings { api, owner, repo: name, token, http })?))
}

/// Returns the forge API of a remote, or none if the remote is on no forge.
pub fn find_api(
    environment: &[(OsString, OsString)],
    wanted: ForgeName,
    url: Option<&str>,
) -> Result<Option<(ApiAddress, ForgeRepository)>, StepError> {
    let found = url.and_then(repository_of);
    let repository = match (wanted, found) {
        (ForgeName::None, _) => return Ok(None),
        (ForgeName::Auto, found) => match found.filter(|found| found.host == GITHUB) {
            Some(found) => found,
            None => return Ok(None),
        },
        (ForgeName::GitHub, Some(found)) => found,
        (ForgeName::GitHub, None) => {
            let why = format!(
                "`forge: github` needs a remote on GitHub, not {}; git remote add origin URL",
                url.map_or_else(|| "none".to_owned(), without_user)
            );
            return Err(StepError::NeedsHuman { why });
        }
    };
    let host = &repository.host;
    let given = environment.iter().find(|(name, _)| name == API_VARIABLE);
    let bad = |error: String| StepError::NeedsHuman { why: format!("{API_VARIABLE}: {error}") };
    let api: ApiAddress = match given.map(|(_, value)| value.to_string_lossy()) {
        Some(text) => text.parse().map_err(|error: BadApi| bad(error.to_string()))?,
        None => ApiAddress::of_host(host).ok_or_else(|| bad(format!("`{host}` has none")))?,
    };
    Ok(Some((api, repository)))
}

/// Returns the commit message of a task's work.
pub(crate) fn message(task: &Task) -> String {
    format!("{}\n\nTask: {}\n", title(task), task.id)
}

/// Returns the first line of a task's goal, shortened.
pub(crate) fn title(task: &Task) -> String {
    let line = task.spec.goal.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(TITLE_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

/// Parses a commit id from the log.
pub(crate) fn commit(text: &str) -> Result<CommitId, StepError> {
    text.parse().map_err(|error: hookloop_git::repo::commit_id::NotACommit| StepError::NeedsHuman {
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_need_a_supported_or_declined_forge() {
        let check = |wanted, url: Option<&str>, expected: RequestSupport| {
            assert_eq!(RequestSupport::of(wanted, &BranchesOnly, url), expected, "{url:?}");
        };
        let unknown = |remote: &str| RequestSupport::Unknown { remote: remote.to_owned() };
        check(ForgeName::Auto, None, RequestSupport::Local);
        for local in ["/srv/app.git", "../app.git", "app", "file:///srv/app.git", "./a:b"] {
            check(ForgeName::Auto, Some(local), RequestSupport::Local);
        }
        let remotes = [
            "https://gitlab.com/acme/app.git",
            "git@codeberg.org:acme/app.git",
            "ssh://git@ghe.example/acme/app.git",
            "host:app.git",
            "git://host/app.git",
        ];
        for remote in remotes {
            check(ForgeName::Auto, Some(remote), unknown(&without_user(remote)));
            check(ForgeName::None, Some(remote), RequestSupport::Declined);
        }
    }
}
