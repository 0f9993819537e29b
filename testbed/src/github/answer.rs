//! Responses of the forge.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::check::{Check, Kind};
use super::git::{Bare, Merge};
use super::pull::{Mergeable, Pull, State};
use super::queue::MergeQueue;
use super::route::{Route, query};

/// State and settings of the forge.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) git: Bare,
    /// Heads of the branches at the last update of the requests.
    pub(super) heads: HashMap<String, String>,
    pub(super) pulls: Vec<Pull>,
    pub(super) checks: Vec<Check>,
    /// Whether merging into the base requires a review.
    pub(super) is_protected: bool,
    /// Remaining reads until it is known whether a request can be merged.
    pub(super) unknown_looks: usize,
    pub(super) methods: Vec<String>,
    pub(super) queue: MergeQueue,
}

pub(super) type Answer = (u16, Value);

/// A parsed request.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) route: Route,
    /// The values in its path.
    pub(super) values: &'a [String],
    pub(super) path: &'a str,
    pub(super) body: &'a Value,
}

impl Question<'_> {
    fn repository(&self) -> String {
        self.values[..2].join("/")
    }

    /// Returns a string field of the body.
    pub(super) fn text(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_default().to_owned()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let all = self.body[name].as_array().into_iter().flatten();
        all.filter_map(|text| Some(text.as_str()?.to_owned())).collect()
    }

    fn asked(&self, name: &str) -> Option<String> {
        query(self.path).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the requested page of a list.
    fn page(&self, all: Vec<Value>) -> Vec<Value> {
        let number = |name, usual| self.asked(name).map_or(usual, |text| text.parse().unwrap());
        let (size, page): (usize, usize) = (number("per_page", 30).min(100), number("page", 1));
        all.into_iter().skip(size * (page - 1)).take(size).collect()
    }
}

fn not_found() -> Answer {
    (404, json!({ "message": "Not Found" }))
}

fn invalid(error: Value) -> Answer {
    (422, json!({ "message": "Validation Failed", "errors": [error] }))
}

fn custom(message: String) -> Answer {
    invalid(json!({ "resource": "PullRequest", "code": "custom", "message": message }))
}

impl Hub {
    pub(super) fn answer(&mut self, question: &Question<'_>) -> Answer {
        self.settle();
        match question.route {
            Route::Repository => self.repository(question),
            Route::List => self.list(question),
            Route::Open => self.open(question),
            Route::CheckRuns => self.check(question, Kind::Run),
            Route::Status => self.check(question, Kind::Status),
            Route::GraphQl => self.graphql(question),
            Route::Get
            | Route::Change
            | Route::Merge
            | Route::AskForReview
            | Route::AddLabels
            | Route::Events
            | Route::Comment => {
                let number: Option<usize> = question.values[2].parse().ok();
                let at = number.and_then(|number| number.checked_sub(1));
                match at.filter(|at| *at < self.pulls.len()) {
                    Some(at) => self.of_pull(at, question),
                    None => not_found(),
                }
            }
        }
    }

    /// Updates all requests according to the pushed branches.
    pub(super) fn settle(&mut self) {
        self.settle_pulls();
        self.settle_queue();
    }

    fn settle_pulls(&mut self) {
        let heads = self.git.heads();
        if heads == self.heads {
            return;
        }
        let mut merged: HashMap<String, HashSet<String>> = HashMap::new();
        for pull in self.pulls.iter_mut().filter(|pull| pull.state == State::Open) {
            let (head, base) = (heads.get(&pull.branch), heads.get(&pull.base));
            let is_merged = base.is_some_and(|commit| {
                let known = merged.entry(pull.base.clone());
                known.or_insert_with(|| self.git.merged(commit)).contains(&pull.branch)
            });
            pull.settle(head, base, is_merged);
        }
        self.heads = heads;
    }

    fn of_pull(&mut self, at: usize, question: &Question<'_>) -> Answer {
        let pull = &mut self.pulls[at];
        match question.route {
            Route::AddLabels => {
                for label in question.texts("labels") {
                    if !pull.labels.contains(&label) {
                        pull.labels.push(label);
                    }
                }
                let labels = pull.labels.iter().map(|name| json!({ "name": name }));
                (200, labels.collect())
            }
            Route::Events => (200, question.page(pull.events.clone()).into()),
            Route::Comment => {
                pull.comments.push(question.text("body"));
                (201, json!({ "id": pull.comments.len(), "body": question.text("body") }))
            }
            Route::AskForReview => {
                pull.ask(question.texts("reviewers"), question.texts("team_reviewers"));
                (201, self.told(at, question))
            }
            Route::Change => {
                // The change may set another base.
                self.heads.clear();
                self.change(at, question)
            }
            Route::Merge => self.merge(at, question),
            _ => (200, self.told(at, question)),
        }
    }

    /// Returns the JSON of a single request.
    fn told(&mut self, at: usize, question: &Question<'_>) -> Value {
        let mergeable = self.mergeable(at);
        let pull = &self.pulls[at];
        let base = self.git.head(&pull.base).unwrap_or_default();
        pull.told(&question.repository(), &base, Some(mergeable))
    }

    fn mergeable(&mut self, at: usize) -> Mergeable {
        let pull = &self.pulls[at];
        let base = self.git.head(&pull.base);
        let conflicts = |base: &String| self.git.conflicts(base, &pull.head);
        if pull.state != State::Open || self.unknown_looks > 0 {
            self.unknown_looks = self.unknown_looks.saturating_sub(1);
            return Mergeable { is: None, state: "unknown" };
        }
        match base.as_ref().is_none_or(conflicts) {
            true => Mergeable { is: Some(false), state: "dirty" },
            false if pull.is_draft => Mergeable { is: Some(true), state: "draft" },
            false if self.is_protected || self.queue.is_on || self.lacks_checks() => {
                Mergeable { is: Some(true), state: "blocked" }
            }
            false => Mergeable { is: Some(true), state: "clean" },
        }
    }

    fn lacks_checks(&self) -> bool {
        let has_passed =
            |name: &String| self.checks.iter().any(|check| check.name() == *name && check.passes());
        !self.queue.required.iter().all(has_passed)
    }

    fn repository(&self, question: &Question<'_>) -> Answer {
        let allows = |method: &str| self.methods.iter().any(|known| known == method);
        let told = json!({
            "full_name": question.repository(),
            "allow_squash_merge": allows("squash"),
            "allow_rebase_merge": allows("rebase"),
            "allow_merge_commit": allows("merge"),
        });
        (200, told)
    }

    fn list(&self, question: &Question<'_>) -> Answer {
        let owner = &question.values[0];
        let state = question.asked("state").unwrap_or_else(|| "open".to_owned());
        let is_asked = |pull: &&Pull| {
            let head = format!("{owner}:{}", pull.branch);
            question.asked("head").is_none_or(|asked| asked == head)
                && question.asked("base").is_none_or(|asked| asked == pull.base)
                && (state == "all" || (state == "open") == (pull.state == State::Open))
        };
        let told = |pull: &Pull| {
            let base = self.git.head(&pull.base).unwrap_or_default();
            pull.told(&question.repository(), &base, None)
        };
        // Newest first, which is also GitHub's default.
        let all = self.pulls.iter().rev().filter(is_asked).map(told).collect();
        (200, question.page(all).into())
    }

    fn open(&mut self, question: &Question<'_>) -> Answer {
        let owner = format!("{}:", question.values[0]);
        let (head, base) = (question.text("head"), question.text("base"));
        let branch = head.strip_prefix(&owner).unwrap_or(&head).to_owned();
        let missing = |field: &str| {
            invalid(json!({ "resource": "PullRequest", "field": field, "code": "invalid" }))
        };
        let Some(commit) = self.git.head(&branch) else { return missing("head") };
        let Some(base_commit) = self.git.head(&base) else { return missing("base") };
        let is_same = |pull: &Pull| {
            pull.state == State::Open && (&pull.branch, &pull.base) == (&branch, &base)
        };
        if self.pulls.iter().any(is_same) {
            return custom(format!("A pull request already exists for {owner}{branch}."));
        }
        if self.git.is_in(&commit, &base_commit) {
            return custom(format!("No commits between {base} and {branch}"));
        }
        self.pulls.push(Pull {
            number: self.pulls.len() as u64 + 1,
            title: question.text("title"),
            body: question.text("body"),
            branch,
            base,
            head: commit,
            is_draft: question.body["draft"] == true,
            state: State::Open,
            labels: Vec::new(),
            reviewers: Vec::new(),
            teams: Vec::new(),
            comments: Vec::new(),
            events: Vec::new(),
        });
        (201, self.told(self.pulls.len() - 1, question))
    }

    fn change(&mut self, at: usize, question: &Question<'_>) -> Answer {
        let base = question.body["base"].as_str();
        if base.is_some_and(|base| self.git.head(base).is_none()) {
            return invalid(
                json!({ "resource": "PullRequest", "field": "base", "code": "invalid" }),
            );
        }
        let pull = &mut self.pulls[at];
        let fields =
            [("title", &mut pull.title), ("body", &mut pull.body), ("base", &mut pull.base)];
        for (name, field) in fields {
            if let Some(text) = question.body[name].as_str() {
                *field = text.to_owned();
            }
        }
        if question.body["state"] == "closed" && pull.state == State::Open {
            pull.state = State::Closed;
        }
        (200, self.told(at, question))
    }

    fn merge(&mut self, at: usize, question: &Question<'_>) -> Answer {
        let refuse = |status: u16, message: &str| (status, json!({ "message": message }));
        let mergeable = self.mergeable(at);
        let pull = &self.pulls[at];
        let method = question.body["merge_method"].as_str().unwrap_or("merge");
        if pull.state != State::Open {
            return refuse(405, "Pull Request is not mergeable");
        }
        if question.body["sha"].as_str().is_some_and(|sha| sha != pull.head) {
            return refuse(409, "Head branch was modified. Review and try the merge again.");
        }
        if !self.methods.iter().any(|known| known == method) {
            return refuse(405, &format!("{method} merges are not allowed on this repository."));
        }
        if self.queue.is_on {
            return refuse(405, "Changes must be made through the merge queue");
        }
        if mergeable.state != "clean" {
            return refuse(405, "Pull Request is not mergeable");
        }
        let base = self.git.head(&pull.base).unwrap();
        let words = [question.text("commit_title"), question.text("commit_message")];
        let message = match words[0].is_empty() {
            true => format!("Merge pull request #{}", pull.number),
            false => words.join("\n\n"),
        };
        let merge = Merge { method, base: &base, head: &pull.head, message: message.trim() };
        match self.git.merge(&pull.base, &merge) {
            Some(commit) => {
                self.pulls[at].state = State::Merged(commit.clone());
                (200, json!({ "sha": commit, "merged": true, "message": "merged" }))
            }
            None => refuse(405, "Base branch was modified. Review and try the merge again."),
        }
    }

    fn check(&mut self, question: &Question<'_>, kind: Kind) -> Answer {
        let commit = &question.values[2];
        if !self.git.is_commit(commit) {
            return (422, json!({ "message": format!("No commit found for SHA: {commit}") }));
        }
        let all: Vec<Value> = self.checks.iter_mut().filter_map(|check| check.look(kind)).collect();
        let count = all.len();
        let page = question.page(all);
        match kind {
            Kind::Run => (200, json!({ "total_count": count, "check_runs": page })),
            Kind::Status => {
                (200, json!({ "total_count": count, "state": "pending", "statuses": page }))
            }
        }
    }
}
