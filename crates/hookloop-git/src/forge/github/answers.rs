//! The fields of GitHub's answers that are read.

use serde::Deserialize;

use super::super::{ForgeError, MergeRequest, RequestState};

#[derive(Debug, Deserialize)]
pub(super) struct PullAnswer {
    pub(super) number: u64,
    pub(super) html_url: String,
    /// The id of the request in GraphQL.
    pub(super) node_id: String,
    pub(super) state: PullState,
    #[serde(default)]
    pub(super) draft: bool,
    pub(super) merged_at: Option<String>,
    /// Set for open requests too: a test merge of GitHub.
    pub(super) merge_commit_sha: Option<String>,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) head: PullSide,
    pub(super) base: PullSide,
    /// `None` while GitHub computes it, and always in lists.
    pub(super) mergeable: Option<bool>,
    pub(super) mergeable_state: Option<String>,
    #[serde(default)]
    pub(super) labels: Vec<LabelAnswer>,
    #[serde(default)]
    pub(super) requested_reviewers: Vec<UserAnswer>,
    #[serde(default)]
    pub(super) requested_teams: Vec<TeamAnswer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PullState {
    Open,
    Closed,
}

#[derive(Debug, Deserialize)]
pub(super) struct PullSide {
    #[serde(rename = "ref")]
    pub(super) branch: String,
    pub(super) sha: String,
    /// `None` if the repository was deleted.
    pub(super) repo: Option<RepoAnswer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RepoAnswer {
    pub(super) full_name: String,
    pub(super) allow_squash_merge: Option<bool>,
    pub(super) allow_rebase_merge: Option<bool>,
    pub(super) allow_merge_commit: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LabelAnswer {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct UserAnswer {
    pub(super) login: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TeamAnswer {
    pub(super) slug: String,
}

/// An event of a request.
#[derive(Debug, Deserialize)]
pub(super) struct PullEvent {
    pub(super) requested_reviewer: Option<UserAnswer>,
    pub(super) requested_team: Option<TeamAnswer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MergeAnswer {
    pub(super) sha: String,
    pub(super) merged: bool,
}

impl PullAnswer {
    pub(super) fn request(&self) -> Result<MergeRequest, ForgeError> {
        Ok(MergeRequest {
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
            (PullState::Open, ..) => Ok(RequestState::Open),
            (PullState::Closed, None, _) => Ok(RequestState::Closed),
            (PullState::Closed, Some(_), Some(commit)) => {
                Ok(RequestState::Merged { commit: commit.clone() })
            }
            (PullState::Closed, Some(_), None) => {
                let why = "GitHub does not say yet by which commit it was merged".to_owned();
                Err(ForgeError::Retry { why, after: None })
            }
        }
    }
}
