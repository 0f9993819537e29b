//! The fields of GitHub's answers that are read.

use serde::Deserialize;

use super::super::{ForgeError, Request, RequestState};

#[derive(Debug, Deserialize)]
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) html_url: String,
    /// The id of the request in GraphQL.
    pub(super) node_id: String,
    pub(super) state: State,
    #[serde(default)]
    pub(super) draft: bool,
    pub(super) merged_at: Option<String>,
    /// Set for open requests too: a test merge of GitHub.
    pub(super) merge_commit_sha: Option<String>,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) head: Side,
    pub(super) base: Side,
    /// `None` while GitHub computes it, and always in lists.
    pub(super) mergeable: Option<bool>,
    pub(super) mergeable_state: Option<String>,
    #[serde(default)]
    pub(super) labels: Vec<Label>,
    #[serde(default)]
    pub(super) requested_reviewers: Vec<User>,
    #[serde(default)]
    pub(super) requested_teams: Vec<Team>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Open,
    Closed,
}

#[derive(Debug, Deserialize)]
pub(super) struct Side {
    #[serde(rename = "ref")]
    pub(super) branch: String,
    pub(super) sha: String,
    /// `None` if the repository was deleted.
    pub(super) repo: Option<Repo>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Repo {
    pub(super) full_name: String,
    pub(super) allow_squash_merge: Option<bool>,
    pub(super) allow_rebase_merge: Option<bool>,
    pub(super) allow_merge_commit: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Label {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) login: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Team {
    pub(super) slug: String,
}

/// An event of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Happened {
    pub(super) requested_reviewer: Option<User>,
    pub(super) requested_team: Option<Team>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MergeAnswer {
    pub(super) sha: String,
    pub(super) merged: bool,
}

impl Pull {
    pub(super) fn request(&self) -> Result<Request, ForgeError> {
        Ok(Request {
            number: Some(self.number),
            url: Some(self.html_url.clone()),
            head: self.head.sha.clone(),
            base: self.base.branch.clone(),
            state: self.state()?,
            is_draft: self.draft,
        })
    }

    pub(super) fn state(&self) -> Result<RequestState, ForgeError> {
        match (self.state, &self.merged_at, &self.merge_commit_sha) {
            (State::Open, ..) => Ok(RequestState::Open),
            (State::Closed, None, _) => Ok(RequestState::Closed),
            (State::Closed, Some(_), Some(commit)) => {
                Ok(RequestState::Merged { commit: commit.clone() })
            }
            (State::Closed, Some(_), None) => {
                let why = "GitHub does not say yet by which commit it was merged".to_owned();
                Err(ForgeError::Retry { why, after: None })
            }
        }
    }
}
