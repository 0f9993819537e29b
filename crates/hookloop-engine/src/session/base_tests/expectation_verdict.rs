//! The review of changed expectations by a gatekeeper, before a person is asked.

use hookloop_core::event::EventBody;
use hookloop_core::excerpt::one_line;
use hookloop_core::id::Subject;
use hookloop_core::options::{BaseTestRules, ExpectationPolicy, ExpectationReviewer};
use hookloop_core::remark::TESTS_ALLOWED;
use hookloop_core::session::PromptChannel;
use hookloop_core::session::facts::{
    BaseTests, ExpectationVerdict, FindingKind, TestFinding, digest_of_all,
};

use crate::delivery_context::ChangedExpectations;
use crate::session::drive::SessionDriver;
use crate::session::world::{SessionUpdate, SessionWorld};

/// Maximum reviews of one session.
const REVIEWS_MAX: usize = 5;
/// Maximum characters of the reason why there is no verdict.
const REASON_MAX: usize = 300;
/// Maximum messages of persons that a gatekeeper gets, the latest ones.
const MESSAGES_MAX: usize = 20;
/// Maximum events of the session that are searched for messages, the latest ones.
const EVENTS_MAX: usize = 10_000;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Asks a gatekeeper about changed expectations, if the rules say so and no other finding needs a person.
    pub(super) fn review_expectations(
        &mut self,
        rules: &BaseTestRules,
        work: Option<&str>,
        tests: &mut BaseTests,
    ) {
        let ExpectationPolicy::Review(reviewer) = &rules.expectations else { return };
        let is_expectation =
            |finding: &TestFinding| finding.kind == FindingKind::ExpectationChanged;
        let open: Vec<TestFinding> = tests.open().cloned().collect();
        let needs_person = !open.iter().all(is_expectation) || tests.more > 0;
        let (Some(base), Some(work)) = (&tests.base, work) else { return };
        if open.is_empty() || needs_person || self.is_stopping() {
            return;
        }
        let messages = self.messages_of_persons();
        // The same question gets the same verdict, when gates judge the files again.
        let task = self.task.as_ref().map(|task| &task.id);
        let question = format!("{reviewer:?} {task:?} {work} {messages:?}");
        let key = format!("{question} {}", digest_of_all(&open));
        let verdict = match self.expectation_verdicts.get(&key) {
            Some(verdict) => verdict.clone(),
            None => {
                let by = self.name_of(reviewer).to_owned();
                let changed = ChangedExpectations {
                    reviewer,
                    session: &self.journal.id,
                    task: self.task.as_ref(),
                    messages: &messages,
                    findings: &open,
                    trees: (base, work),
                };
                let verdict = match self.why_no_review() {
                    Some(why) => Err(why),
                    None => {
                        self.world.notice(SessionUpdate::TestReview { by: &by });
                        self.world.review_expectations(&self.journal.session, &changed)
                    }
                };
                verdict.unwrap_or_else(|why| ExpectationVerdict {
                    by,
                    approves: None,
                    reason: one_line(&why, REASON_MAX),
                })
            }
        };
        self.expectation_verdicts.insert(key, verdict.clone());
        if verdict.approves == Some(true) {
            let is_open = |finding: &&mut TestFinding| {
                finding.allowed_by.is_none() && is_expectation(finding)
            };
            for finding in tests.findings.iter_mut().filter(is_open) {
                // The change stays in the files for the next tasks of the session.
                self.approved_expectations.insert((reviewer.clone(), finding.digest()));
                finding.allowed_by = Some(by_gatekeeper(&verdict.by));
            }
        }
        tests.review = Some(verdict);
    }

    /// Returns the gatekeeper of these rules, if it approved this change before.
    pub(super) fn approved_by(
        &self,
        rules: &BaseTestRules,
        finding: &TestFinding,
    ) -> Option<String> {
        let ExpectationPolicy::Review(reviewer) = &rules.expectations else { return None };
        let is_approved =
            self.approved_expectations.contains(&(reviewer.clone(), finding.digest()));
        is_approved.then(|| by_gatekeeper(self.name_of(reviewer)))
    }

    fn name_of<'r>(&'r self, reviewer: &'r ExpectationReviewer) -> &'r str {
        reviewer.name.as_deref().unwrap_or(self.journal.session.agent())
    }

    /// Returns the reason why a person decides without a review.
    fn why_no_review(&self) -> Option<String> {
        if self.expectation_verdicts.len() >= REVIEWS_MAX {
            return Some(format!("the session has had {REVIEWS_MAX} reviews of tests"));
        }
        let task = self.task.as_ref()?;
        match self.journal.project.is_added_by_agent(&task.id) {
            Ok(false) => None,
            Ok(true) => {
                Some("an agent added the task, and could have written what it needs".to_owned())
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the latest messages of persons to the agent of this session.
    fn messages_of_persons(&self) -> Vec<String> {
        let subject = Subject::Session(self.journal.id.clone());
        let events = self.journal.project.log().history(&subject, EVENTS_MAX).unwrap_or_default();
        let messages = events.into_iter().filter_map(|stored| match stored.event.body {
            EventBody::OutputPiped(piped)
                if piped.channel() == PromptChannel::User && piped.text != TESTS_ALLOWED =>
            {
                Some(piped.text)
            }
            _ => None,
        });
        let messages: Vec<String> = messages.collect();
        messages[messages.len().saturating_sub(MESSAGES_MAX)..].to_vec()
    }
}

fn by_gatekeeper(name: &str) -> String {
    format!("gatekeeper {name}")
}
