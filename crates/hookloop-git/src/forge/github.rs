//! Pull requests, by GitHub's REST API.
//!
//! - `client`: one request and its answer
//! - `refusal`: the error of a request that was refused or not answered
//! - `address`: the addresses of the API and of its resources
//! - `token`: the credentials
//! - `answers`: the fields of answers that are read
//! - `review`: labels, reviewers, drafts
//! - `checks`: the joint result of a commit's checks
//! - `merging`: merges, and the reasons why one was not made
//! - `queue`: the merge queue, auto-merge, and the requirements of a base
//!
//! Changing a draft, and all of `queue`, needs GraphQL.

mod address;
mod answers;
mod checks;
mod client;
mod merging;
mod queue;
mod refusal;
mod review;
mod token;

use address::ApiRoute;
use answers::PullAnswer;
use checks::{GithubCheck, RunsPage, StatusesPage};
use client::GithubClient;
use hookloop_core::excerpt::clipped_chars;
use hookloop_http::HttpClient;
use serde_json::{Value, json};

use super::remote::{is_owner, is_repository};
use super::{
    CommitChecks, Forge, ForgeError, ForgeMerge, MergeOptions, MergeRequest, MergeRequestDraft,
    MergeStatus, QueuePlace, RequestState,
};

pub use address::{ApiAddress, BadApi};
pub use token::{ForgeToken, TokenSearch};

/// The longest texts that GitHub accepts, in characters.
const TITLE_MAX: usize = 256;
const BODY_MAX: usize = 65_536;

/// A repository on GitHub, with the credentials for it.
#[derive(Clone, Debug)]
pub struct GitHubSettings {
    pub api: ApiAddress,
    pub owner: String,
    pub repo: String,
    pub token: ForgeToken,
    /// The client of all requests to GitHub.
    pub http: HttpClient,
}

/// GitHub, or a self-hosted server with the same API.
#[derive(Debug)]
pub struct GitHub {
    client: GithubClient,
    owner: String,
    repo: String,
}

impl GitHub {
    pub fn new(settings: GitHubSettings) -> Result<GitHub, ForgeError> {
        let GitHubSettings { api, owner, repo, token, http } = settings;
        if !is_owner(&owner) || !is_repository(&repo) {
            let why = format!("`{owner}/{repo}` is no repository of GitHub");
            return Err(ForgeError::Permanent { why });
        }
        Ok(GitHub { client: GithubClient::new(api, &token, http)?, owner, repo })
    }

    fn route(&self, parts: &[&str]) -> ApiRoute {
        ApiRoute::new(&[&["repos", self.owner.as_str(), self.repo.as_str()], parts].concat())
    }

    fn pull_route(&self, number: u64, parts: &[&str]) -> ApiRoute {
        self.route(&[&["pulls", number.to_string().as_str()], parts].concat())
    }

    fn issue_route(&self, number: u64, parts: &[&str]) -> ApiRoute {
        self.route(&[&["issues", number.to_string().as_str()], parts].concat())
    }

    fn pull(&self, number: u64) -> Result<PullAnswer, ForgeError> {
        Ok(self.client.get(&self.pull_route(number, &[]))?)
    }

    /// Updates an open request to match `draft`.
    fn fulfil(
        &self,
        pull: PullAnswer,
        draft: &MergeRequestDraft,
    ) -> Result<MergeRequest, ForgeError> {
        let request = pull.request()?;
        let number = pull.number;
        match request.state {
            RequestState::Open => {}
            RequestState::Merged { .. } => return Ok(request),
            RequestState::Closed => {
                return Err(ForgeError::NeedsHuman {
                    why: format!("#{number} was closed"),
                    hint: format!("open it again if it is wanted: {}", pull.html_url),
                });
            }
        }
        if pull.head.branch != draft.branch {
            let why = format!("#{number} is for `{}`, not `{}`", pull.head.branch, draft.branch);
            return Err(ForgeError::Permanent { why });
        }
        if pull.head.sha != draft.head {
            let why = format!("#{number} is at {}, not at {}", pull.head.sha, draft.head);
            return Err(ForgeError::Stale { why });
        }
        let pull = self.reword(pull, draft)?;
        self.set_draft(&pull, draft.is_draft)?;
        self.add_labels(&pull, draft)?;
        self.ask_for_reviews(&pull, draft)?;
        Ok(MergeRequest { is_draft: draft.is_draft, ..pull.request()? })
    }

    fn reword(
        &self,
        pull: PullAnswer,
        draft: &MergeRequestDraft,
    ) -> Result<PullAnswer, ForgeError> {
        let (title, body) =
            (clipped_chars(&draft.title, TITLE_MAX), clipped_chars(&draft.body, BODY_MAX));
        let is_same = pull.title == title
            && pull.body.as_deref().unwrap_or_default() == body
            && pull.base.branch == draft.base;
        if is_same {
            return Ok(pull);
        }
        let mut change = json!({ "title": title, "body": body });
        // GitHub refuses a change of the base where none is allowed, even to the same base.
        if pull.base.branch != draft.base {
            change["base"] = draft.base.as_str().into();
        }
        Ok(self.client.patch(&self.pull_route(pull.number, &[]), &change)?)
    }

    /// Returns the open request of a branch after a refused attempt to open another one.
    fn opened_before(&self, draft: &MergeRequestDraft) -> Result<Option<u64>, ForgeError> {
        let found = self.find(&draft.branch, &draft.base)?;
        let open = found.filter(|request| request.state == RequestState::Open);
        Ok(open.and_then(|request| request.number))
    }
}

impl Forge for GitHub {
    fn name(&self) -> &'static str {
        "github"
    }

    fn find(&self, branch: &str, base: &str) -> Result<Option<MergeRequest>, ForgeError> {
        let head = format!("{}:{branch}", self.owner);
        let query = [
            ("head", head.as_str()),
            ("base", base),
            ("state", "all"),
            ("sort", "created"),
            ("direction", "desc"),
        ];
        let pulls =
            self.client.list(&self.route(&["pulls"]).with(&query), |page: Vec<PullAnswer>| page)?;
        // GitHub ignores a filter that it does not understand.
        let own = format!("{}/{}", self.owner, self.repo);
        let is_meant = |pull: &&PullAnswer| {
            let is_own = |repo: &answers::RepoAnswer| repo.full_name.eq_ignore_ascii_case(&own);
            pull.head.branch == branch
                && pull.base.branch == base
                && pull.head.repo.as_ref().is_some_and(is_own)
        };
        let requests: Result<Vec<MergeRequest>, ForgeError> =
            pulls.things.iter().filter(is_meant).map(PullAnswer::request).collect();
        let rank = |request: &MergeRequest| match request.state {
            RequestState::Open => 0,
            RequestState::Merged { .. } => 1,
            RequestState::Closed => 2,
        };
        // `min_by_key` returns the first of equals, which is the newest.
        Ok(requests?.into_iter().min_by_key(rank))
    }

    fn get(&self, number: u64) -> Result<MergeRequest, ForgeError> {
        self.pull(number)?.request()
    }

    fn open(&self, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError> {
        let body = json!({
            "title": clipped_chars(&draft.title, TITLE_MAX),
            "body": clipped_chars(&draft.body, BODY_MAX),
            "head": draft.branch,
            "base": draft.base,
            "draft": draft.is_draft,
        });
        match self.client.post::<PullAnswer>(&self.route(&["pulls"]), &body) {
            Ok(pull) => self.fulfil(pull, draft),
            Err(refusal) if refusal.status == Some(422) => match self.opened_before(draft)? {
                Some(number) => self.update(number, draft),
                // The push is not visible yet.
                None if refusal.fields.iter().any(|field| field == "head") => {
                    Err(ForgeError::Stale { why: refusal.error.to_string() })
                }
                None => Err(refusal.error),
            },
            Err(refusal) => Err(refusal.error),
        }
    }

    fn update(&self, number: u64, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError> {
        self.fulfil(self.pull(number)?, draft)
    }

    fn checks(&self, commit: &str) -> Result<CommitChecks, ForgeError> {
        let of = |what: &str| self.route(&["commits", commit, what]);
        let latest = of("check-runs").with(&[("filter", "latest")]);
        let each_run =
            |page: RunsPage| page.check_runs.into_iter().map(GithubCheck::from).collect();
        let each_status =
            |page: StatusesPage| page.statuses.into_iter().map(GithubCheck::from).collect();
        let runs = self.client.list(&latest, each_run);
        let pages = runs.and_then(|runs| Ok([runs, self.client.list(&of("status"), each_status)?]));
        let pages = pages.map_err(|refusal| match refusal.status {
            // The push is not visible yet.
            Some(422) => ForgeError::Stale { why: refusal.error.to_string() },
            _ => refusal.error,
        });
        checks::together(pages?)
    }

    fn merge(&self, number: u64, how: &MergeOptions) -> Result<ForgeMerge, ForgeError> {
        self.merged(number, how)
    }

    fn has_merge_queue(&self, base: &str) -> Result<bool, ForgeError> {
        self.queue_of(base)
    }

    fn merge_status(&self, number: u64) -> Result<MergeStatus, ForgeError> {
        self.status_of(number)
    }

    fn enqueue(&self, number: u64, head: &str) -> Result<QueuePlace, ForgeError> {
        self.enqueued(number, head)
    }

    fn enable_auto_merge(&self, number: u64, how: &MergeOptions) -> Result<(), ForgeError> {
        self.auto_merged(number, how)
    }

    fn comment(&self, number: u64, text: &str) -> Result<(), ForgeError> {
        let body = json!({ "body": clipped_chars(text, BODY_MAX) });
        Ok(self.client.post::<Value>(&self.issue_route(number, &["comments"]), &body).map(drop)?)
    }

    fn close(&self, number: u64) -> Result<(), ForgeError> {
        let body = json!({ "state": "closed" });
        Ok(self.client.patch::<Value>(&self.pull_route(number, &[]), &body).map(drop)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_clipped_with_an_ellipsis() {
        assert_eq!(clipped_chars("äöü", 3), "äöü");
        assert_eq!(clipped_chars("äöüß", 3), "äö…");
    }

    #[test]
    fn invalid_owner_and_repository_names_are_refused() {
        let settings = |owner: &str, repo: &str| GitHubSettings {
            api: ApiAddress::default(),
            owner: owner.into(),
            repo: repo.into(),
            token: ForgeToken::new("ghp_0123456789").unwrap(),
            http: HttpClient::default(),
        };
        assert!(GitHub::new(settings("o", "r")).is_ok());
        for (owner, repo) in [("o", ".."), ("o/x", "r"), ("o", "r?x"), ("", "r"), ("-o", "r")] {
            let error = GitHub::new(settings(owner, repo)).unwrap_err();
            assert!(matches!(error, ForgeError::Permanent { .. }), "{owner}/{repo}");
        }
    }
}
