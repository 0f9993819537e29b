//! The merge queue, auto-merge and branch rules, as in GitHub's GraphQL API.
//!
//! A merge that bypasses the queue is refused; a push to a request, or a person, removes it from
//! the queue. The test decides when the queue merges a request.

use serde_json::{Value, json};

use super::answer::{Answer, Hub, Question};
use super::check::Check;
use super::git::Merge;
use super::pull::{Pull, State};

/// The queue of the only base, and the requirements of auto-merge.
#[derive(Debug, Default)]
pub(super) struct MergeQueue {
    pub(super) is_on: bool,
    /// Queued requests in order, each with its enqueued head.
    pub(super) entries: Vec<(u64, String)>,
    /// The last event of each request that was ever queued.
    pub(super) events: Vec<(u64, QueueEvent)>,
    /// Whether the repository allows auto-merge.
    pub(super) allows_auto_merge: bool,
    /// Requests that are merged as soon as all requirements are met, each with its head and method.
    pub(super) auto_merging: Vec<(u64, String, String)>,
    /// Required checks of the base.
    pub(super) required: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) enum QueueEvent {
    Added,
    Removed { reason: String, by: String },
}

fn wrong(kind: &str, message: &str) -> Answer {
    (200, json!({ "errors": [{ "type": kind, "message": message }] }))
}

fn data(name: &str, value: &Value) -> Answer {
    (200, json!({ "data": { name: value } }))
}

impl MergeQueue {
    fn event(&mut self, number: u64, event: QueueEvent) {
        self.events.retain(|(known, _)| *known != number);
        self.events.push((number, event));
    }

    pub(super) fn remove(&mut self, number: u64, reason: &str, by: &str) {
        self.entries.retain(|(known, _)| *known != number);
        let (reason, by) = (reason.to_owned(), by.to_owned());
        self.event(number, QueueEvent::Removed { reason, by });
    }

    fn entry(&self, number: u64) -> Value {
        match self.entries.iter().position(|(known, _)| *known == number) {
            Some(at) => json!({
                "position": at + 1,
                "state": if at == 0 { "AWAITING_CHECKS" } else { "QUEUED" },
                "estimatedTimeToMerge": 300 * (at + 1),
            }),
            None => Value::Null,
        }
    }
}

impl Hub {
    /// Executes a query or a mutation.
    pub(super) fn graphql(&mut self, question: &Question<'_>) -> Answer {
        let asked = question.text("query");
        if asked.contains("mergeQueue(branch:") {
            let queue = self.queue.is_on.then(|| json!({ "id": "MQ_1" }));
            return data("repository", &json!({ "mergeQueue": queue }));
        }
        if asked.contains("pullRequest(number:") {
            return self.merge_status(question);
        }
        let id = question.body["variables"]["id"].as_str().unwrap_or_default();
        let Some(at) = self.pulls.iter().position(|pull| format!("PR_{}", pull.number) == id)
        else {
            return wrong("NOT_FOUND", "NOT_FOUND");
        };
        for (name, is_draft) in
            [("markPullRequestReadyForReview", false), ("convertPullRequestToDraft", true)]
        {
            if asked.contains(&format!("{name}(")) {
                self.pulls[at].is_draft = is_draft;
                return data(name, &json!({ "pullRequest": { "isDraft": is_draft } }));
            }
        }
        let head = question.body["variables"]["head"].as_str().unwrap_or_default().to_owned();
        if head != self.pulls[at].head {
            return wrong("UNPROCESSABLE", "Expected head sha did not match current head ref.");
        }
        if asked.contains("enqueuePullRequest(") {
            return self.enqueue(at, head);
        }
        if asked.contains("enablePullRequestAutoMerge(") {
            let method = question.body["variables"]["method"].as_str().unwrap_or("MERGE");
            return self.enable_auto_merge(at, head, method.to_ascii_lowercase());
        }
        wrong("UNKNOWN_MUTATION", "UNKNOWN_MUTATION")
    }

    fn enqueue(&mut self, at: usize, head: String) -> Answer {
        let number = self.pulls[at].number;
        if !self.queue.is_on {
            return wrong("UNPROCESSABLE", "The merge queue is not enabled for this branch.");
        }
        if self.queue.entries.iter().any(|(known, _)| *known == number) {
            return wrong("UNPROCESSABLE", "Pull request is already in the queue.");
        }
        if !self.missing(at).is_empty() || self.is_protected {
            return wrong("UNPROCESSABLE", "Pull request is not mergeable.");
        }
        self.queue.entries.push((number, head));
        self.queue.event(number, QueueEvent::Added);
        let entry = self.queue.entry(number);
        data("enqueuePullRequest", &json!({ "mergeQueueEntry": entry }))
    }

    fn enable_auto_merge(&mut self, at: usize, head: String, method: String) -> Answer {
        let number = self.pulls[at].number;
        if !self.queue.allows_auto_merge {
            return wrong("UNPROCESSABLE", "Auto merge is not allowed for this repository");
        }
        if self.missing(at).is_empty() && !self.is_protected {
            return wrong("UNPROCESSABLE", "Pull request is in clean status");
        }
        self.queue.auto_merging.retain(|(known, ..)| *known != number);
        self.queue.auto_merging.push((number, head, method));
        let request = json!({ "autoMergeRequest": { "enabledAt": "2026-01-01T00:00:00Z" } });
        data("enablePullRequestAutoMerge", &json!({ "pullRequest": request }))
    }

    /// Returns the required checks that have not passed.
    fn missing(&mut self, _: usize) -> Vec<String> {
        let passed: Vec<String> =
            self.checks.iter().filter(|check| check.passes()).map(Check::name).collect();
        self.queue.required.iter().filter(|name| !passed.contains(name)).cloned().collect()
    }

    fn merge_status(&mut self, question: &Question<'_>) -> Answer {
        let number = question.body["variables"]["number"].as_u64().unwrap_or_default();
        let Some(at) = self.pulls.iter().position(|pull| pull.number == number) else {
            return data("repository", &json!({ "autoMergeAllowed": false, "pullRequest": null }));
        };
        let queue = &self.queue;
        let event = queue.events.iter().find(|(known, _)| *known == number).map(|(_, event)| event);
        let event = event.map(|event| match event {
            QueueEvent::Added => json!({ "__typename": "AddedToMergeQueueEvent" }),
            QueueEvent::Removed { reason, by } => json!({
                "__typename": "RemovedFromMergeQueueEvent",
                "reason": reason,
                "actor": { "login": by },
            }),
        });
        let contexts: Vec<Value> =
            self.checks.iter().map(|check| check.context(&queue.required)).collect();
        let auto = queue.auto_merging.iter().any(|(known, ..)| *known == number);
        let pull = &self.pulls[at];
        let told = json!({
            "state": match pull.state {
                State::Open => "OPEN",
                State::Merged(_) => "MERGED",
                State::Closed => "CLOSED",
            },
            "isDraft": pull.is_draft,
            "headRefOid": pull.head,
            "reviewDecision": self.is_protected.then_some("REVIEW_REQUIRED"),
            "viewerCanEnableAutoMerge": queue.allows_auto_merge,
            "autoMergeRequest": auto.then(|| json!({ "enabledAt": "2026-01-01T00:00:00Z" })),
            "mergeQueue": queue.is_on.then(|| json!({ "url": "https://github.com/acme/app/queue/main" })),
            "mergeQueueEntry": queue.entry(number),
            "timelineItems": { "nodes": event.into_iter().collect::<Vec<_>>() },
            "baseRef": {
                "refUpdateRule": {
                    "requiredStatusCheckContexts": queue.required,
                    "requiredApprovingReviewCount": u64::from(self.is_protected),
                    "requiresCodeOwnerReviews": false,
                    "requiresConversationResolution": false,
                    "requiresLinearHistory": false,
                    "requiresSignatures": false,
                    "viewerCanPush": true,
                },
                "rules": { "nodes": [] },
            },
            "reviewThreads": { "nodes": [] },
            "commits": { "nodes": [
                { "commit": { "statusCheckRollup": { "contexts": { "nodes": contexts } } } }
            ] },
        });
        let allowed = queue.allows_auto_merge;
        data("repository", &json!({ "autoMergeAllowed": allowed, "pullRequest": told }))
    }

    /// Removes requests from the queue, and ends their auto-merge, after a push.
    pub(super) fn settle_queue(&mut self) {
        let heads: Vec<(u64, String, bool)> = self.pulls.iter().map(head_of).collect();
        let is_same = |number: u64, head: &str| {
            // Requests of other users are not checked.
            number == 0
                || heads.iter().any(|(known, now, open)| *known == number && now == head && *open)
        };
        let stale: Vec<u64> = self
            .queue
            .entries
            .iter()
            .filter(|(number, head)| !is_same(*number, head))
            .map(|(number, _)| *number)
            .collect();
        for number in stale {
            self.queue.remove(number, "head_changed", "github");
        }
        self.queue.auto_merging.retain(|(number, head, _)| is_same(*number, head));
        if self.is_protected {
            return;
        }
        let ready: Vec<(u64, String, String)> = self.queue.auto_merging.clone();
        for (number, _, method) in ready {
            let Some(at) = self.pulls.iter().position(|pull| pull.number == number) else {
                continue;
            };
            if self.missing(at).is_empty() {
                self.merge_now(at, &method);
                self.queue.auto_merging.retain(|(known, ..)| *known != number);
            }
        }
    }

    /// Merges a request without checking the rules.
    pub(super) fn merge_now(&mut self, at: usize, method: &str) {
        let pull = &self.pulls[at];
        let base = self.git.head(&pull.base).unwrap();
        let message = format!("Merge pull request #{}", pull.number);
        let merge = Merge { method, base: &base, head: &pull.head, message: &message };
        let commit = self.git.merge(&pull.base, &merge).expect("it can be merged");
        self.pulls[at].state = State::Merged(commit);
        let number = self.pulls[at].number;
        self.queue.entries.retain(|(known, _)| *known != number);
    }
}

fn head_of(pull: &Pull) -> (u64, String, bool) {
    (pull.number, pull.head.clone(), pull.state == State::Open)
}
