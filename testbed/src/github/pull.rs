//! Pull requests as stored by the forge.

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Pull {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub branch: String,
    pub base: String,
    /// The last known head of the branch.
    pub head: String,
    pub is_draft: bool,
    pub state: State,
    pub labels: Vec<String>,
    /// Users and teams that are requested for a review.
    pub reviewers: Vec<String>,
    pub teams: Vec<String>,
    pub comments: Vec<String>,
    /// All review requests so far, as events.
    pub(super) events: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    Merged(String),
    Closed,
}

/// Whether the request can be merged, as GitHub reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mergeable {
    pub(super) is: Option<bool>,
    pub(super) state: &'static str,
}

impl Pull {
    /// Updates the request after pushes: its branch is at `head`, its base at `base`.
    pub(super) fn settle(&mut self, head: Option<&String>, base: Option<&String>, is_merged: bool) {
        if self.state != State::Open {
            return;
        }
        match (head, base) {
            (Some(head), Some(base)) => {
                if is_merged {
                    self.state = State::Merged(base.clone());
                }
                self.head.clone_from(head);
            }
            _ => self.state = State::Closed,
        }
    }

    pub(super) fn ask(&mut self, users: Vec<String>, teams: Vec<String>) {
        for login in users {
            let user = json!({ "login": login });
            self.events.push(json!({ "event": "review_requested", "requested_reviewer": user }));
            self.reviewers.push(login);
        }
        for slug in teams {
            let team = json!({ "slug": slug, "name": slug });
            self.events.push(json!({ "event": "review_requested", "requested_team": team }));
            self.teams.push(slug);
        }
    }

    /// Returns the request as JSON of the API, as a list item or a single object.
    pub(super) fn told(&self, repository: &str, base: &str, mergeable: Option<Mergeable>) -> Value {
        let number = self.number;
        let commit = match &self.state {
            State::Merged(commit) => Some(commit),
            _ => None,
        };
        let owner = repository.split('/').next().unwrap();
        let side = |branch: &str, sha: &str| {
            json!({
                "label": format!("{owner}:{branch}"),
                "ref": branch,
                "sha": sha,
                "repo": { "full_name": repository },
            })
        };
        let named = |field: &str, names: &[String]| -> Vec<Value> {
            names.iter().map(|name| json!({ field: name })).collect()
        };
        let mut told = json!({
            "number": number,
            "node_id": format!("PR_{number}"),
            "html_url": format!("https://github.com/{repository}/pull/{number}"),
            "state": if self.state == State::Open { "open" } else { "closed" },
            "draft": self.is_draft,
            "title": self.title,
            "body": self.body,
            "merged_at": commit.map(|_| "2026-01-01T00:00:00Z"),
            "merge_commit_sha": commit,
            "head": side(&self.branch, &self.head),
            "base": side(&self.base, base),
            "labels": named("name", &self.labels),
            "requested_reviewers": named("login", &self.reviewers),
            "requested_teams": named("slug", &self.teams),
        });
        if let Some(mergeable) = mergeable {
            told["merged"] = commit.is_some().into();
            told["mergeable"] = mergeable.is.into();
            told["mergeable_state"] = mergeable.state.into();
        }
        told
    }
}
