//! Labels, reviewers and the draft state of a pull request.

use serde_json::{Value, json};

use super::super::{ForgeError, MergeRequestDraft};
use super::GitHub;
use super::answers::{PullAnswer, PullEvent};

/// The prefix of a team's name.
const TEAM: &str = "team:";
/// Available only in GraphQL.
const READY: &str = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) \
                     { pullRequest { isDraft } } }";
const DRAFT: &str = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) \
                     { pullRequest { isDraft } } }";

impl GitHub {
    pub(super) fn set_draft(&self, pull: &PullAnswer, is_draft: bool) -> Result<(), ForgeError> {
        if pull.draft == is_draft {
            return Ok(());
        }
        let query = if is_draft { DRAFT } else { READY };
        let body = json!({ "query": query, "variables": { "id": pull.node_id } });
        Ok(self.client.graphql(&body).map(drop)?)
    }

    pub(super) fn add_labels(
        &self,
        pull: &PullAnswer,
        draft: &MergeRequestDraft,
    ) -> Result<(), ForgeError> {
        // GitHub ignores the case of labels.
        let has =
            |name: &String| pull.labels.iter().any(|label| label.name.eq_ignore_ascii_case(name));
        let missing: Vec<&String> = draft.labels.iter().filter(|name| !has(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let route = self.issue_route(pull.number, &["labels"]);
        Ok(self.client.post::<Value>(&route, &json!({ "labels": missing })).map(drop)?)
    }

    pub(super) fn ask_for_reviews(
        &self,
        pull: &PullAnswer,
        draft: &MergeRequestDraft,
    ) -> Result<(), ForgeError> {
        let users = pull.requested_reviewers.iter().map(|user| user.login.clone());
        let teams = pull.requested_teams.iter().map(|team| format!("{TEAM}{}", team.slug));
        let mut missing = draft.reviewers.clone();
        missing.retain(without(users.chain(teams).collect()));
        if !missing.is_empty() {
            // A reviewer who has answered is no longer listed as requested.
            missing.retain(without(self.asked_before(pull.number)?));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let (teams, users): (Vec<&String>, Vec<&String>) =
            missing.iter().partition(|name| name.starts_with(TEAM));
        let teams: Vec<&str> = teams.iter().map(|name| &name[TEAM.len()..]).collect();
        let route = self.pull_route(pull.number, &["requested_reviewers"]);
        let body = json!({ "reviewers": users, "team_reviewers": teams });
        Ok(self.client.post::<Value>(&route, &body).map(drop)?)
    }

    /// Returns all reviewers that were ever asked.
    fn asked_before(&self, number: u64) -> Result<Vec<String>, ForgeError> {
        let route = self.issue_route(number, &["events"]);
        let events = self.client.list(&route, |page: Vec<PullEvent>| page)?;
        let name = |event: PullEvent| match (event.requested_reviewer, event.requested_team) {
            (Some(user), _) => Some(user.login),
            (None, team) => team.map(|team| format!("{TEAM}{}", team.slug)),
        };
        Ok(events.things.into_iter().filter_map(name).collect())
    }
}

/// Returns a test that a name is none of these, ignoring case.
fn without(names: Vec<String>) -> impl Fn(&String) -> bool {
    move |name| !names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
