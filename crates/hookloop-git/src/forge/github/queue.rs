//! The merge queue of a base, auto-merge, and the requirements of a base that a request does not meet yet.
//!
//! GitHub offers these only in GraphQL.

use hookloop_core::excerpt::clipped_chars;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{
    ForgeError, MergeMethod, MergeOptions, MergeStatus, QueueExit, QueuePlace, QueueStatus,
};
use super::answers::PullAnswer;
use super::{BODY_MAX, GitHub, TITLE_MAX};

const QUEUE: &str = "query($owner: String!, $name: String!, $branch: String!) { \
     repository(owner: $owner, name: $name) { mergeQueue(branch: $branch) { id } } }";
const ENQUEUE: &str = "mutation($id: ID!, $head: GitObjectID!) { \
     enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { \
       mergeQueueEntry { position state estimatedTimeToMerge } } }";
const AUTO_MERGE: &str = "mutation($id: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod!, \
     $title: String, $message: String) { \
     enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $head, \
       mergeMethod: $method, commitHeadline: $title, commitBody: $message}) { \
       pullRequest { autoMergeRequest { enabledAt } } } }";
/// The entry in the queue, the rules of the base, and their requirements.
const STATUS: &str = "query($owner: String!, $name: String!, $number: Int!) { \
     repository(owner: $owner, name: $name) { \
       autoMergeAllowed \
       pullRequest(number: $number) { \
         state isDraft headRefOid reviewDecision viewerCanEnableAutoMerge \
         autoMergeRequest { enabledAt } \
         mergeQueue { url } \
         mergeQueueEntry { position state estimatedTimeToMerge } \
         timelineItems(last: 1, itemTypes: [ADDED_TO_MERGE_QUEUE_EVENT, REMOVED_FROM_MERGE_QUEUE_EVENT]) { \
           nodes { __typename ... on RemovedFromMergeQueueEvent { reason actor { login } } } } \
         baseRef { \
           refUpdateRule { \
             requiredStatusCheckContexts requiredApprovingReviewCount requiresCodeOwnerReviews \
             requiresConversationResolution requiresLinearHistory requiresSignatures viewerCanPush } \
           rules(first: 50) { nodes { type parameters { \
             ... on RequiredStatusChecksParameters { requiredStatusChecks { context } } \
             ... on PullRequestParameters { requiredApprovingReviewCount } } } } } \
         reviewThreads(first: 100) { nodes { isResolved } } \
         commits(last: 1) { nodes { commit { statusCheckRollup { contexts(first: 100) { nodes { __typename \
           ... on CheckRun { name conclusion isRequired(pullRequestNumber: $number) } \
           ... on StatusContext { context state isRequired(pullRequestNumber: $number) } } } } } } } } } }";
/// A part of the GraphQL error of a server that is older than a field.
const UNKNOWN_FIELD: &str = "doesn't exist on type";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueEntry {
    position: u64,
    state: String,
    estimated_time_to_merge: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusAnswer {
    auto_merge_allowed: bool,
    pull_request: Option<PullStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullStatus {
    state: String,
    is_draft: bool,
    head_ref_oid: String,
    review_decision: Option<String>,
    viewer_can_enable_auto_merge: bool,
    auto_merge_request: Option<Value>,
    merge_queue: Option<Value>,
    merge_queue_entry: Option<QueueEntry>,
    timeline_items: QueryList<QueueEvent>,
    base_ref: Option<BaseRules>,
    review_threads: QueryList<ReviewThread>,
    commits: QueryList<CommitNode>,
}

/// A list. GitHub may omit items that the account may not see.
#[derive(Debug, Deserialize)]
struct QueryList<T> {
    nodes: Option<Vec<Option<T>>>,
}

impl<T> QueryList<T> {
    fn into_iter(self) -> impl Iterator<Item = T> {
        self.nodes.unwrap_or_default().into_iter().flatten()
    }
}

#[derive(Debug, Deserialize)]
struct QueueEvent {
    #[serde(rename = "__typename")]
    kind: String,
    reason: Option<String>,
    actor: Option<EventActor>,
}

#[derive(Debug, Deserialize)]
struct EventActor {
    login: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BaseRules {
    ref_update_rule: Option<UpdateRule>,
    rules: Option<QueryList<RepositoryRule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateRule {
    required_status_check_contexts: Option<Vec<Option<String>>>,
    required_approving_review_count: Option<u64>,
    requires_code_owner_reviews: bool,
    requires_conversation_resolution: bool,
    requires_linear_history: bool,
    requires_signatures: bool,
    viewer_can_push: bool,
}

#[derive(Debug, Deserialize)]
struct RepositoryRule {
    #[serde(rename = "type")]
    kind: String,
    parameters: Option<RuleParameters>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleParameters {
    required_status_checks: Option<Vec<RequiredCheck>>,
    required_approving_review_count: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct RequiredCheck {
    context: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewThread {
    is_resolved: bool,
}

#[derive(Debug, Deserialize)]
struct CommitNode {
    commit: CommitStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommitStatus {
    status_check_rollup: Option<CheckRollup>,
}

#[derive(Debug, Deserialize)]
struct CheckRollup {
    contexts: QueryList<CheckContext>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckContext {
    /// The name of a check run.
    name: Option<String>,
    conclusion: Option<String>,
    /// The name of a commit status.
    context: Option<String>,
    state: Option<String>,
    #[serde(default)]
    is_required: bool,
}

impl CheckContext {
    fn has_passed(&self) -> bool {
        let word = self.conclusion.as_deref().or(self.state.as_deref());
        matches!(word, Some("SUCCESS" | "NEUTRAL" | "SKIPPED"))
    }

    fn into_name(self) -> Option<String> {
        self.name.or(self.context)
    }
}

impl From<QueueEntry> for QueuePlace {
    fn from(entry: QueueEntry) -> QueuePlace {
        QueuePlace {
            position: entry.position,
            state: entry.state.to_ascii_lowercase(),
            estimated_seconds: entry.estimated_time_to_merge,
        }
    }
}

impl GitHub {
    pub(super) fn queue_of(&self, branch: &str) -> Result<bool, ForgeError> {
        let variables = json!({ "owner": self.owner, "name": self.repo, "branch": branch });
        let body = json!({ "query": QUEUE, "variables": variables });
        match self.client.graphql(&body) {
            Ok(answer) => Ok(!answer["data"]["repository"]["mergeQueue"].is_null()),
            // A self-hosted server that is older than merge queues has none.
            Err(refusal) if refusal.error.to_string().contains(UNKNOWN_FIELD) => Ok(false),
            Err(refusal) => Err(refusal.error),
        }
    }

    pub(super) fn status_of(&self, number: u64) -> Result<MergeStatus, ForgeError> {
        let variables = json!({ "owner": self.owner, "name": self.repo, "number": number });
        let body = json!({ "query": STATUS, "variables": variables });
        let mut answer = self.client.graphql(&body)?;
        let unread = |why: &str| ForgeError::Retry {
            why: format!("GitHub's answer about #{number} is not what its API promises: {why}"),
            after: None,
        };
        let answer = answer["data"]["repository"].take();
        let answer: StatusAnswer =
            serde_json::from_value(answer).map_err(|error| unread(&error.to_string()))?;
        let allows_auto_merge = answer.auto_merge_allowed;
        let pull = answer.pull_request.ok_or_else(|| unread("there is no such request"))?;
        Ok(pull.status(allows_auto_merge))
    }

    pub(super) fn enqueued(&self, number: u64, head: &str) -> Result<QueuePlace, ForgeError> {
        let pull: PullAnswer = self.pull(number)?;
        let variables = json!({ "id": pull.node_id, "head": head });
        let body = json!({ "query": ENQUEUE, "variables": variables });
        let refused = match self.client.graphql(&body) {
            Ok(mut answer) => {
                let entry = answer["data"]["enqueuePullRequest"]["mergeQueueEntry"].take();
                match serde_json::from_value::<QueueEntry>(entry) {
                    Ok(entry) => return Ok(entry.into()),
                    // The request was enqueued. The caller looks up its place.
                    Err(_) => ForgeError::Stale { why: format!("#{number} has no place yet") },
                }
            }
            Err(refusal) => refusal.error,
        };
        if matches!(refused, ForgeError::Retry { .. }) {
            return Err(refused);
        }
        // The answer may have been lost: a request that is already in the queue is refused.
        let status = self.status_of(number)?;
        match status.queue {
            QueueStatus::Queued(place) if status.head == head => Ok(place),
            _ if status.head != head => {
                Err(ForgeError::Stale { why: format!("#{number} has another head by now") })
            }
            _ if !status.is_ready() => Err(status.unmet(&named(&pull))),
            _ => Err(match refused {
                ForgeError::Permanent { why } => ForgeError::NeedsHuman {
                    why: format!("#{number} does not get into the merge queue: {why}"),
                    hint: format!("see {}", pull.html_url),
                },
                other => other,
            }),
        }
    }

    pub(super) fn auto_merged(&self, number: u64, how: &MergeOptions) -> Result<(), ForgeError> {
        let pull: PullAnswer = self.pull(number)?;
        let method = match how.method {
            MergeMethod::Squash => "SQUASH",
            MergeMethod::Rebase => "REBASE",
            MergeMethod::Merge => "MERGE",
        };
        let mut variables = json!({ "id": pull.node_id, "head": how.head, "method": method });
        if how.method != MergeMethod::Rebase {
            variables["title"] = clipped_chars(&how.title, TITLE_MAX).into();
            variables["message"] = clipped_chars(&how.message, BODY_MAX).into();
        }
        let body = json!({ "query": AUTO_MERGE, "variables": variables });
        let refused = match self.client.graphql(&body) {
            Ok(_) => return Ok(()),
            Err(refusal) => refusal.error,
        };
        if matches!(refused, ForgeError::Retry { .. }) {
            return Err(refused);
        }
        let status = self.status_of(number)?;
        if status.auto_merge && status.head == how.head {
            return Ok(());
        }
        if status.head != how.head || status.is_ready() {
            let why = format!("#{number} changed, or needs no auto-merge any more: {refused}");
            return Err(ForgeError::Stale { why });
        }
        Err(ForgeError::NeedsHuman {
            why: format!("auto-merge can't be enabled for #{number}: {refused}"),
            hint: "allow auto-merge in the settings of the repository, or write `delivery: {auto_merge: false}`"
                .to_owned(),
        })
    }

    /// Returns the error with the requirements of the base that prevent a merge.
    pub(super) fn unmet(&self, pull: &PullAnswer, said: &ForgeError) -> ForgeError {
        let name = named(pull);
        match self.status_of(pull.number) {
            Ok(status) if !status.is_ready() => status.unmet(&name),
            Err(error @ ForgeError::Retry { .. }) => error,
            status => {
                let rules = status.map(|status| status.rules.join(", ")).unwrap_or_default();
                let rules = if rules.is_empty() {
                    rules
                } else {
                    format!("; the branch requires: {rules}")
                };
                ForgeError::NeedsHuman {
                    why: format!(
                        "{name} may not be merged by the rules of the branch: {said}{rules}"
                    ),
                    hint: format!("meet them, or let somebody merge who may: {}", pull.html_url),
                }
            }
        }
    }
}

/// Returns a request with its base.
fn named(pull: &PullAnswer) -> String {
    format!("#{} into `{}`", pull.number, pull.base.branch)
}

impl PullStatus {
    fn status(self, allows_auto_merge: bool) -> MergeStatus {
        let base = self.base_ref;
        let (rule, rules) = match base {
            Some(base) => (base.ref_update_rule, base.rules),
            None => (None, None),
        };
        let rules: Vec<RepositoryRule> =
            rules.map(|rules| rules.into_iter().collect()).unwrap_or_default();
        let rollups = self.commits.into_iter().filter_map(|node| node.commit.status_check_rollup);
        let contexts = rollups.flat_map(|rollup| rollup.contexts.into_iter()).collect();
        let checks = missing_checks(rule.as_ref(), &rules, contexts);
        let has_threads = self.review_threads.into_iter().any(|thread| !thread.is_resolved);
        let mut people = Vec::new();
        if self.is_draft {
            people.push("that it is marked as ready for review".to_owned());
        }
        let count = rule.as_ref().and_then(|rule| rule.required_approving_review_count);
        let by_rules = rules.iter().filter_map(|rule| rule.parameters.as_ref());
        let by_rules = by_rules.filter_map(|rule| rule.required_approving_review_count).max();
        match self.review_decision.as_deref() {
            Some("REVIEW_REQUIRED") => {
                let owners = rule.as_ref().is_some_and(|rule| rule.requires_code_owner_reviews);
                let from = if owners { " of a code owner" } else { "" };
                people.push(match count.max(by_rules).unwrap_or(1) {
                    0 | 1 => format!("an approving review{from}"),
                    count => format!("{count} approving reviews{from}"),
                });
            }
            Some("CHANGES_REQUESTED") => {
                people.push("a new review: a reviewer asked for changes".to_owned());
            }
            _ => {}
        }
        if has_threads && rule.as_ref().is_some_and(|rule| rule.requires_conversation_resolution) {
            people.push("that all conversations are resolved".to_owned());
        }
        let event = self.timeline_items.into_iter().last();
        let queue = match (self.merge_queue, self.merge_queue_entry) {
            (_, Some(entry)) => QueueStatus::Queued(entry.into()),
            (None, None) => QueueStatus::NoQueue,
            (Some(_), None) => {
                let removed = event.filter(|event| event.kind == "RemovedFromMergeQueueEvent");
                QueueStatus::Outside {
                    removed: removed.map(|event| QueueExit {
                        reason: event.reason.unwrap_or_default(),
                        by: event.actor.map(|actor| actor.login),
                    }),
                }
            }
        };
        MergeStatus {
            is_open: self.state == "OPEN",
            head: self.head_ref_oid,
            queue,
            checks,
            people,
            rules: rules_in_words(rule.as_ref(), &rules),
            auto_merge: self.auto_merge_request.is_some(),
            allows_auto_merge: allows_auto_merge && self.viewer_can_enable_auto_merge,
        }
    }
}

/// Returns the required checks that have not passed: failed, running, or not reported.
fn missing_checks(
    rule: Option<&UpdateRule>,
    rules: &[RepositoryRule],
    contexts: Vec<CheckContext>,
) -> Vec<String> {
    let by_rule = rule.and_then(|rule| rule.required_status_check_contexts.as_ref());
    let by_rule = by_rule.into_iter().flatten().flatten().cloned();
    let by_rules = rules.iter().filter_map(|rule| rule.parameters.as_ref());
    let by_rules = by_rules.filter_map(|rule| rule.required_status_checks.as_ref()).flatten();
    let mut missing: Vec<String> =
        by_rule.chain(by_rules.map(|check| check.context.clone())).collect();
    for context in contexts {
        let (has_passed, is_required) = (context.has_passed(), context.is_required);
        let Some(name) = context.into_name() else { continue };
        if has_passed {
            missing.retain(|known| *known != name);
        } else if is_required {
            missing.push(name);
        }
    }
    missing.sort();
    missing.dedup();
    missing
}

/// Returns further rules of the base, which GitHub does not relate to a request.
fn rules_in_words(rule: Option<&UpdateRule>, rules: &[RepositoryRule]) -> Vec<String> {
    let has = |kind: &str| rules.iter().any(|rule| rule.kind == kind);
    let is = |check: fn(&UpdateRule) -> bool| rule.is_some_and(check);
    let all = [
        (is(|rule| rule.requires_signatures) || has("REQUIRED_SIGNATURES"), "commits are signed"),
        (
            is(|rule| rule.requires_linear_history) || has("REQUIRED_LINEAR_HISTORY"),
            "no merge commits",
        ),
        (
            is(|rule| !rule.viewer_can_push) || has("UPDATE"),
            "only some may push to it, and you are not one of them",
        ),
        (has("REQUIRED_DEPLOYMENTS"), "deployments have succeeded"),
        (has("CODE_SCANNING"), "code scanning has passed"),
    ];
    all.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words.to_owned()).collect()
}
