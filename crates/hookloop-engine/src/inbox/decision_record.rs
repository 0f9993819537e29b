//! The record of an inbox item: all that a person needs to decide about it, as it was when the item
//! was raised.
//!
//! The record is read from the session's events up to the one that raised the item. So a session
//! that continues with other tasks does not change it. The CLI, the TUI and the dashboard show this
//! record.

use hookloop_core::checks;
use hookloop_core::event::EventBody;
use hookloop_core::excerpt::first_chars;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::inbox::{Problem, ProblemKind, ProblemSubject};
use hookloop_core::options::Length;
use hookloop_core::session::facts::TestFinding;
use hookloop_core::session::plan::{CompactCount, Dollars};
use hookloop_core::session::{
    GatesEvaluated, PipedOutput, PromptChannel, Receipt, Session, SessionLimit, SessionOutcome,
    StopDecision, TurnEnded, TurnKind, stop,
};
use hookloop_store::log::StoredEvent;
use serde::Serialize;

use crate::error::EngineError;
use crate::project::Project;

/// Maximum events of a session that are read, the latest ones.
const EVENTS_MAX: usize = 100_000;
/// Maximum lines of a gate's output in a record, the last ones.
const OUTPUT_LINES_MAX: usize = 20;
/// Maximum characters of an output line.
const LINE_CHARS_MAX: usize = 300;
/// Maximum gates, receipts and files that a record names.
const NAMED_MAX: usize = 20;

/// A gate that failed, and its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedGate {
    pub gate: String,
    /// The command of the gate. None for a built-in.
    pub command: Option<String>,
    pub status: Option<String>,
    pub exit_code: Option<i32>,
    /// The last lines of the output, without colours.
    pub output: Vec<String>,
}

/// The record of one gate's run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateReceipt {
    pub gate: String,
    pub status: String,
    /// The git tree that the gate ran on.
    pub tree: Option<String>,
}

/// The used part of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitUse {
    pub limit: &'static str,
    pub used: String,
    pub of: String,
    /// Whether this limit ended the work.
    pub reached: bool,
}

/// The files that the work changed, and a command that shows the difference, including new files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkDifference {
    /// The files that the agent's turns changed, at most [`NAMED_MAX`].
    pub files: Vec<String>,
    pub truncated: bool,
    /// Number of files that `files` does not name.
    pub omitted: usize,
    pub command: String,
}

/// The facts about an inbox item from the session that raised it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    /// The task that the session worked on.
    pub worked_on: Option<String>,
    pub agent: Option<String>,
    /// The last iteration.
    pub iteration: Option<u32>,
    /// The question of an agent that needs a person.
    pub question: Option<String>,
    /// The agent's whole final message, without its report.
    pub message: Option<String>,
    /// The error of the last turn, if it failed.
    pub turn_failure: Option<String>,
    pub failed_gates: Vec<FailedGate>,
    pub receipts: Vec<GateReceipt>,
    /// The changes of tests that need a person.
    pub test_changes: Vec<TestFinding>,
    /// The number of further changes of tests that the session does not list.
    pub more_test_changes: u64,
    pub limits: Vec<LimitUse>,
    pub difference: Option<WorkDifference>,
    /// The digests that allow all changes of tests; none if older receipts left some out.
    #[serde(skip)]
    pub(super) allowable: Option<Vec<String>>,
    /// Whether the item is about the session, and not about a task.
    #[serde(skip)]
    is_of_session: bool,
    #[serde(skip)]
    pub(super) session: Option<SessionId>,
    /// The worker that ran the session.
    #[serde(skip)]
    pub(super) worker: Option<String>,
    #[serde(skip)]
    pub(super) outcome_limit: Option<SessionLimit>,
}

/// Reads the record of an inbox item. It is empty if the session's events no longer exist.
pub(crate) fn read(project: &Project, problem: &Problem) -> Result<DecisionRecord, EngineError> {
    let id = match &problem.key.about {
        ProblemSubject::Task(_) => SessionId::of_actor(&problem.by),
        ProblemSubject::Session(id) => Some(id.clone()),
        ProblemSubject::Budget => None,
    };
    let Some(id) = id else { return Ok(DecisionRecord::default()) };
    let history = project.log().history(&Subject::Session(id.clone()), EVENTS_MAX)?;
    let moment = SessionMoment::of(&history, problem);
    let Some(session) = Session::of(moment.before.iter().map(|stored| &stored.event.body)) else {
        return Ok(DecisionRecord { session: Some(id), ..DecisionRecord::default() });
    };
    let mut record = moment.record(&session, problem);
    record.difference = moment.difference(project, &session);
    record.session = Some(id);
    record.is_of_session = matches!(problem.key.about, ProblemSubject::Session(_));
    Ok(record)
}

fn last_of_each_gate<'e>(bodies: impl Iterator<Item = &'e EventBody>) -> Vec<&'e Receipt> {
    let mut found: Vec<&Receipt> = Vec::new();
    for body in bodies {
        let EventBody::ReceiptRecorded(receipt) = body else { continue };
        found.retain(|known| (&known.gate, &known.point) != (&receipt.gate, &receipt.point));
        found.push(receipt);
    }
    found
}

/// The events of a session up to the one that raised an item.
struct SessionMoment<'e> {
    before: &'e [StoredEvent],
    /// The events since the task was claimed. All events without a task.
    of_task: &'e [StoredEvent],
    task: Option<TaskId>,
    /// Whether the events are about the work of the item.
    has_work: bool,
}

impl<'e> SessionMoment<'e> {
    fn of(history: &'e [StoredEvent], problem: &Problem) -> SessionMoment<'e> {
        let end = history.partition_point(|stored| stored.seq <= problem.key.version);
        let before = &history[..end];
        let wanted = match &problem.key.about {
            ProblemSubject::Task(id) => Some(id),
            ProblemSubject::Session(_) | ProblemSubject::Budget => None,
        };
        let is_taken = |stored: &StoredEvent| match &stored.event.body {
            EventBody::SessionTaskClaimed(taken) => wanted.is_none_or(|id| taken.task == *id),
            _ => false,
        };
        let start = before.iter().rposition(is_taken);
        let task = start.and_then(|start| match &before[start].event.body {
            EventBody::SessionTaskClaimed(taken) => Some(taken.task.clone()),
            _ => None,
        });
        // A task that the session did not work on has no changes of tests.
        let has_work = wanted.is_none() || start.is_some();
        SessionMoment { before, of_task: &before[start.unwrap_or(0)..], task, has_work }
    }

    fn bodies(&self) -> impl DoubleEndedIterator<Item = &'e EventBody> {
        self.of_task.iter().map(|stored| &stored.event.body)
    }

    /// Returns the events since the last work turn: those of its gates, and of the decision about
    /// it.
    fn since_turn(&self) -> impl DoubleEndedIterator<Item = &'e EventBody> {
        let is_turn = |stored: &StoredEvent| match &stored.event.body {
            EventBody::TurnEnded(ended) => ended.turn == TurnKind::Work,
            _ => false,
        };
        let start = self.of_task.iter().rposition(is_turn).map_or(0, |at| at + 1);
        self.of_task[start..].iter().map(|stored| &stored.event.body)
    }

    fn last_turn(&self) -> Option<&'e TurnEnded> {
        self.bodies().rev().find_map(|body| match body {
            EventBody::TurnEnded(ended) if ended.turn == TurnKind::Work => Some(ended),
            _ => None,
        })
    }

    fn record(&self, session: &Session, problem: &Problem) -> DecisionRecord {
        let last = self.last_turn();
        let message = last.map(|last| without_promises(&last.message));
        let message = message.filter(|message| !message.is_empty());
        let asked = self.since_turn().any(|body| match body {
            EventBody::StopEvaluated(decided) => decided.decision == StopDecision::Escalate,
            _ => false,
        });
        let question = stop::question_in(&problem.reason).trim();
        let question = Some(question.to_owned())
            .filter(|_| asked && problem.kind != ProblemKind::MergeBlocked);
        let iteration = self.bodies().rev().find_map(|body| match body {
            EventBody::IterationStarted(started) => Some(started.number),
            _ => None,
        });
        let outcome_limit = match &session.outcome {
            Some(SessionOutcome::Limit { limit }) => Some(*limit),
            _ => None,
        };
        let (test_changes, more_test_changes) = self.test_changes();
        DecisionRecord {
            test_changes,
            more_test_changes,
            allowable: self.allowable(),
            worked_on: self.task.as_ref().map(ToString::to_string),
            agent: Some(session.agent().to_owned()),
            iteration,
            question,
            message,
            turn_failure: last.and_then(TurnEnded::failure_line),
            failed_gates: self.failed_gates(),
            receipts: self.receipts(),
            limits: self.limits(session, outcome_limit),
            worker: session.plan.worker.clone(),
            outcome_limit,
            ..DecisionRecord::default()
        }
    }

    fn failed_gates(&self) -> Vec<FailedGate> {
        let is_check = |piped: &&PipedOutput| piped.channel() == PromptChannel::CheckResult;
        let piped = self.since_turn().filter_map(|body| match body {
            EventBody::OutputPiped(piped) => Some(piped),
            _ => None,
        });
        piped.filter(is_check).take(NAMED_MAX).map(FailedGate::from).collect()
    }

    /// Returns the last receipt of each gate for the files that the last turn left.
    ///
    /// A turn that only asks a question runs no gate. If it changed no file, the receipts before it still hold.
    fn last_receipts(&self) -> Vec<&'e Receipt> {
        if !self.has_work {
            return Vec::new();
        }
        let found = last_of_each_gate(self.since_turn());
        let tree = self.last_turn().and_then(|turn| turn.tree.as_ref());
        if !found.is_empty() || tree.is_none() {
            return found;
        }
        let mut found = last_of_each_gate(self.bodies());
        found.retain(|receipt| receipt.tree.as_ref() == tree);
        found
    }

    /// Returns the changes of tests that need a person, and the number of those that are not listed.
    fn test_changes(&self) -> (Vec<TestFinding>, u64) {
        let tests =
            self.last_receipts().into_iter().filter_map(|receipt| receipt.base_tests.as_deref());
        let (mut found, mut more) = (Vec::new(), 0);
        for tests in tests {
            found.extend(tests.open().cloned());
            more += tests.more;
        }
        (found, more)
    }

    /// Returns the digests that allow all changes of tests.
    fn allowable(&self) -> Option<Vec<String>> {
        let mut digests = Vec::new();
        for receipt in self.last_receipts() {
            let Some(tests) = &receipt.base_tests else { continue };
            match (tests.more, &tests.digest_of_all) {
                (0, _) => digests.extend(tests.open().map(TestFinding::digest)),
                (_, Some(digest)) => digests.push(digest.clone()),
                (_, None) => return None,
            }
        }
        Some(digests).filter(|digests| !digests.is_empty())
    }

    fn receipts(&self) -> Vec<GateReceipt> {
        let shown = self.last_receipts().into_iter().take(NAMED_MAX);
        shown
            .map(|receipt| GateReceipt {
                gate: receipt.gate.clone(),
                status: receipt.status.to_string(),
                tree: receipt.tree.clone(),
            })
            .collect()
    }

    fn limits(&self, session: &Session, reached: Option<SessionLimit>) -> Vec<LimitUse> {
        let limits = &session.plan.limits;
        let use_of =
            |limit, used: String, of: String, reached| LimitUse { limit, used, of, reached };
        let sent_back = self.bodies().filter_map(|body| match body {
            EventBody::GatesEvaluated(judged) => Some(judged),
            _ => None,
        });
        let has_failed = |judged: &GatesEvaluated| !judged.failing.is_empty();
        let mut sent_back = sent_back;
        let is_judged = sent_back.next_back().is_some_and(has_failed);
        let retries = session.retries.min(limits.gate_retries);
        let is_at_retries = is_judged && session.retries > limits.gate_retries;
        let stalled = session.progress.stalled;
        vec![
            use_of(
                "iterations",
                session.iteration.to_string(),
                limits.max_iterations.to_string(),
                reached == Some(SessionLimit::Iterations),
            ),
            use_of(
                "gate retries",
                retries.to_string(),
                limits.gate_retries.to_string(),
                is_at_retries,
            ),
            use_of(
                "iterations without progress",
                stalled.to_string(),
                limits.max_no_progress.to_string(),
                stalled >= limits.max_no_progress,
            ),
            use_of(
                "failed turns in a row",
                session.errors.to_string(),
                limits.max_errors.to_string(),
                reached == Some(SessionLimit::Errors),
            ),
            use_of(
                "time",
                Length { ms: session.active_ms / 1_000 * 1_000 }.to_string(),
                Length { ms: limits.max_duration_ms }.to_string(),
                reached == Some(SessionLimit::Duration),
            ),
            use_of(
                "tokens",
                CompactCount(session.usage.tokens()).to_string(),
                CompactCount(limits.max_tokens).to_string(),
                reached == Some(SessionLimit::Tokens),
            ),
            use_of(
                "cost",
                session.cost().to_string(),
                Dollars(limits.max_cost_micros).to_string(),
                reached == Some(SessionLimit::Cost),
            ),
        ]
    }

    fn difference(&self, project: &Project, session: &Session) -> Option<WorkDifference> {
        let mut files: Vec<String> = Vec::new();
        for body in self.bodies() {
            let EventBody::TurnEnded(ended) = body else { continue };
            for file in &ended.changed {
                if !files.contains(file) {
                    files.push(file.clone());
                }
            }
        }
        if files.is_empty() {
            return None;
        }
        let omitted = files.len().saturating_sub(NAMED_MAX);
        files.truncate(NAMED_MAX);
        let head = session.start.as_ref().and_then(|start| start.head.as_deref());
        let since =
            head.map_or(String::new(), |head| format!(" {}", head.get(..12).unwrap_or(head)));
        let worktree = self.task.as_ref().filter(|_| session.plan.delivers);
        let worktree = worktree.zip(project.runner());
        let worktree =
            worktree.map(|(task, runner)| runner.state().join(WORKTREES).join(task.as_str()));
        let git = match worktree.filter(|path| path.is_dir()) {
            Some(path) => format!("git -C {}", path.display()),
            None => "git".to_owned(),
        };
        // `git diff` leaves out files that git does not track yet.
        let command = format!(
            "{git} diff{since}; {git} ls-files -z --others --exclude-standard | \
             xargs -0 -r -n 1 {git} diff --no-index /dev/null"
        );
        Some(WorkDifference { files, truncated: omitted > 0, omitted, command })
    }
}

const WORKTREES: &str = "worktrees";

impl From<&PipedOutput> for FailedGate {
    fn from(piped: &PipedOutput) -> FailedGate {
        let text = without_colours(&piped.text);
        let lines: Vec<&str> =
            text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let skipped = lines.len().saturating_sub(OUTPUT_LINES_MAX);
        let clipped = |line: &&str| first_chars(line, LINE_CHARS_MAX);
        FailedGate {
            gate: piped.from.clone(),
            command: piped.command.clone(),
            status: piped.status.as_ref().map(ToString::to_string),
            exit_code: piped.exit_code,
            output: lines[skipped..].iter().map(clipped).collect(),
        }
    }
}

impl DecisionRecord {
    /// Returns the record as lines of text: one for each fact, a block of lines for an output.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(task) = self.worked_on.as_ref().filter(|_| self.is_of_session) {
            lines.push(format!("it was working on task {task} (see: hookloop why {task})"));
        }
        if let Some(message) = &self.message {
            let message = checks::plain(message);
            lines.push(match message.contains('\n') {
                true => format!("the agent's last message:\n{message}"),
                false => format!("the agent's last message: {message}"),
            });
        }
        lines.extend(self.turn_failure.iter().map(|why| format!("the last turn failed: {why}")));
        lines.extend(self.failed_gates.iter().map(FailedGate::line));
        lines.extend(self.receipts.iter().map(GateReceipt::line));
        if let Some(difference) = &self.difference {
            let more = match difference.omitted {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!(
                "changed: {}{more} (see: {})",
                difference.files.join(", "),
                difference.command
            ));
        }
        let is_none = |used: &str| ["0", "0h", "unknown", "$0.00"].contains(&used);
        let used = self.limits.iter().filter(|limit| limit.reached || !is_none(&limit.used));
        let used: Vec<String> = used.map(LimitUse::words).collect();
        if !used.is_empty() {
            lines.push(format!("used: {}", used.join(", ")));
        }
        lines
    }

    /// Returns the item's session, agent and iteration in a line.
    pub fn origin(&self) -> Option<String> {
        let session = self.session.as_ref()?;
        let agent = self.agent.as_ref().map(|agent| format!(", agent {agent}"));
        let iteration = self.iteration.map(|number| format!(", iteration {number}"));
        let worker = self.worker.as_ref().map(|worker| format!(" of worker {worker}"));
        Some(format!(
            "session {session}{}{}{}",
            worker.unwrap_or_default(),
            agent.unwrap_or_default(),
            iteration.unwrap_or_default()
        ))
    }
}

impl FailedGate {
    fn line(&self) -> String {
        let command = self.command.as_ref().map(|command| format!(" (`{command}`)"));
        let code = self.exit_code.map(|code| format!(", exit code {code}"));
        let output: String = self.output.iter().map(|line| format!("\n  {line}")).collect();
        format!(
            "gate {}{} failed{}{}{output}",
            self.gate,
            command.unwrap_or_default(),
            code.unwrap_or_default(),
            if output.is_empty() { "" } else { ":" }
        )
    }
}

impl GateReceipt {
    fn line(&self) -> String {
        let tree = match &self.tree {
            Some(tree) => format!("on {tree}"),
            None => "on files of an unknown tree".to_owned(),
        };
        format!("receipt: {} {} {tree}", self.gate, self.status)
    }
}

impl LimitUse {
    fn words(&self) -> String {
        let reached = if self.reached { " (reached)" } else { "" };
        format!("{} of {} {}{reached}", self.used, self.of, self.limit)
    }
}

/// Removes colours, both control sequences and their escaped form in captured output.
fn without_colours(text: &str) -> String {
    const SPELLED: &str = "\\x1b[";
    let text = checks::plain(text);
    let mut parts = text.split(SPELLED);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.filter(|end| part[*end..].starts_with('m')) {
            Some(end) => plain.push_str(&part[end + 1..]),
            None => plain.extend([SPELLED, part]),
        }
    }
    plain
}

/// Removes the lines with a promise from a message.
fn without_promises(message: &str) -> String {
    let lines = message.lines().filter(|line| !line.contains("<promise>"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Returns the option of `hookloop resume` that raises a limit.
pub fn flag_of(limit: SessionLimit) -> Option<&'static str> {
    match limit {
        SessionLimit::Iterations => Some("--max-iterations +20"),
        SessionLimit::Duration => Some("--max-duration +1h"),
        SessionLimit::Tokens => Some("--max-tokens +5000000"),
        SessionLimit::Cost => Some("--max-cost +5"),
        SessionLimit::Errors | SessionLimit::Budget => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_gate_has_no_colours_and_is_bounded() {
        let text: String = (0..50).map(|n| format!("\u{1b}[31mline {n}\u{1b}[0m\n")).collect();
        let piped = PipedOutput { from: "tests".into(), text, ..PipedOutput::default() };
        let gate = FailedGate::from(&piped);
        assert_eq!(gate.output.len(), OUTPUT_LINES_MAX);
        assert_eq!(gate.output.last().map(String::as_str), Some("line 49"));
        assert_eq!(without_colours("\\x1b[1;31mred\\x1b[0m \\x1b[2K"), "red \\x1b[2K");
    }
}
