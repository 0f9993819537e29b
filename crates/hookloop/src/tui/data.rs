//! The content that a screen shows of a project, at one moment.

use std::collections::VecDeque;
use std::sync::Arc;

use hookloop_core::checks::CheckCounts;
use hookloop_core::id::SessionId;
use hookloop_core::inbox::{ProblemKey, ProblemSubject};
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::timeline::Timeline;
use hookloop_core::session::{Session, SessionState, SessionWork};
use hookloop_core::task::TaskState;
use hookloop_core::time::Timestamp;
use hookloop_engine::session::now::NowRecord;
use hookloop_engine::store::SessionRow;

use crate::present::test_changes::TestChanges;
use crate::sanitize::{last_overwrite, screen_line};

/// Lines of an agent's output that are shown while it speaks.
const SAID_MAX: usize = 500;
/// The most of a line that is not over yet.
const OPEN_LINE_MAX: usize = 16 * 1024;

/// The content that the user looks at: only that is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenRequest {
    pub(super) session: Option<SessionId>,
    pub(super) problem: Option<ProblemMatter>,
    pub(super) tasks: Option<WhichTasks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhichTasks {
    Open,
    All,
}

/// The content that was read. Other views have no content.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenNews {
    pub(super) overview: Option<Arc<ProjectOverview>>,
    pub(super) tasks: Option<Arc<TaskContent>>,
    pub(super) shown: Option<Arc<SessionContent>>,
    pub(super) facts: Option<Arc<ProblemFacts>>,
    /// Why the log can't be read.
    pub(super) trouble: Option<String>,
}

/// The content that several views use.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectOverview {
    pub(super) project: String,
    pub(super) problems: Vec<ProblemLine>,
    /// The number of all, listed or not.
    pub(super) problem_count: u64,
    pub(super) sessions: Vec<SessionLine>,
    pub(super) running: usize,
    pub(super) cost_today: CostFigure,
    pub(super) tasks: Vec<(TaskState, u64)>,
    /// Tasks that wait for a blocked task.
    pub(super) stuck: u64,
}

/// The subject of a line of the problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProblemMatter {
    /// As the inbox has it.
    Problem(ProblemKey),
    /// A session of this machine whose program died.
    Interrupted(SessionId),
}

impl ProblemMatter {
    pub(super) fn name(&self) -> String {
        match self {
            ProblemMatter::Problem(key) => key.to_string(),
            ProblemMatter::Interrupted(id) => format!("session:{id}"),
        }
    }

    /// The session that it is about, if it is about one.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            ProblemMatter::Problem(ProblemKey { about: ProblemSubject::Session(id), .. })
            | ProblemMatter::Interrupted(id) => Some(id),
            ProblemMatter::Problem(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ProblemLine {
    pub(super) matter: ProblemMatter,
    pub(super) title: String,
    pub(super) reason: String,
    pub(super) since: Timestamp,
    pub(super) can_answer: bool,
    pub(super) can_approve: bool,
    pub(super) can_resume: bool,
    /// A session that waits for a decision.
    pub(super) asks: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SessionLine {
    pub(super) row: SessionRow,
    /// As lists show it.
    pub(super) state: SessionState,
}

impl SessionLine {
    /// Whether the session is complete, and no gate has proven its work.
    pub(super) fn is_unproven(&self) -> bool {
        let has_worked = self.row.iteration > 0;
        self.state == SessionState::Complete && has_worked && !self.row.proven
    }
}

/// The details of the selected problem.
#[derive(Debug)]
pub(super) struct ProblemFacts {
    pub(super) matter: ProblemMatter,
    pub(super) details: Vec<String>,
    /// The tests of the base beside those of the work, if the work changed tests.
    pub(super) changes: Vec<TestChanges>,
    /// Whether these changes can be allowed.
    pub(super) can_allow: bool,
    /// The session that ran into it.
    pub(super) session: Option<SessionId>,
    /// The commands for the problem.
    pub(super) next: Vec<String>,
}

impl ProblemFacts {
    pub(super) fn of(matter: ProblemMatter, session: Option<SessionId>) -> ProblemFacts {
        ProblemFacts {
            matter,
            details: Vec::new(),
            changes: Vec::new(),
            can_allow: false,
            session,
            next: Vec::new(),
        }
    }
}

/// The graph of tasks, line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskContent {
    pub(super) lines: Vec<TaskLine>,
    /// There are more.
    pub(super) cut: bool,
}

#[derive(Clone, Debug)]
pub(super) struct TaskLine {
    /// The lines of the graph before it.
    pub(super) graph: String,
    /// None on lines that only continue the graph.
    pub(super) task: Option<TaskFacts>,
}

#[derive(Clone, Debug)]
pub(super) struct TaskFacts {
    pub(super) id: String,
    pub(super) state: TaskState,
    pub(super) goal: String,
    /// The details, in lines.
    pub(super) details: Vec<String>,
    /// The session that has it.
    pub(super) session: Option<SessionId>,
}

/// The session that is shown.
#[derive(Clone, Debug)]
pub(super) struct SessionContent {
    pub(super) id: SessionId,
    /// As lists show it.
    pub(super) state: SessionState,
    pub(super) machine: String,
    pub(super) timeline: Arc<Timeline>,
    pub(super) session: Arc<Session>,
    /// The gates whose checks are recorded, by name.
    pub(super) gates: Arc<Vec<GateLine>>,
    pub(super) heard: AgentOutput,
    /// The step that it is at, if a process of this machine performs it.
    pub(super) now: Option<NowRecord>,
}

impl SessionContent {
    /// Whether the session is complete, and no gate has proven its work.
    pub(super) fn is_unproven(&self) -> bool {
        let session = &self.session;
        // A review proves nothing.
        let is_work = !matches!(session.plan.work, SessionWork::Review(_));
        let has_worked = is_work && !session.had_nothing_to_do();
        self.state == SessionState::Complete && has_worked && !session.is_proven()
    }
}

/// The checks of a gate in its newest run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GateLine {
    pub(super) gate: String,
    pub(super) counts: CheckCounts,
    /// The slowest checks, with their durations in milliseconds.
    pub(super) slowest: Vec<(String, u64)>,
}

/// The output of the agent in the current turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentOutput {
    /// No turn is running.
    Nothing,
    /// The turn runs on another machine, which has its output.
    Elsewhere(String),
    /// The turn of an external session: its user sees the output.
    External,
    Here(OutputTail),
}

/// The last lines of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputTail {
    lines: VecDeque<String>,
    /// The unfinished last line.
    open: Vec<u8>,
}

impl OutputTail {
    pub(super) fn push(&mut self, mut text: &[u8]) {
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            self.open.extend_from_slice(&text[..end]);
            text = &text[end + 1..];
            let line = self.open_line();
            self.open.clear();
            self.lines.push_back(line);
            if self.lines.len() > SAID_MAX {
                self.lines.pop_front();
            }
        }
        self.open.extend_from_slice(text);
        let too_many = self.open.len().saturating_sub(OPEN_LINE_MAX);
        self.open.drain(..too_many);
    }

    fn open_line(&self) -> String {
        screen_line(last_overwrite(&String::from_utf8_lossy(&self.open)))
    }

    /// The last lines, at most `most`, the oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<String> {
        let open = Some(self.open_line()).filter(|_| !self.open.is_empty());
        let all = self.lines.len() + usize::from(open.is_some());
        let lines = self.lines.iter().cloned().chain(open);
        lines.skip(all.saturating_sub(most)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_output_are_joined_into_lines() {
        let mut said = OutputTail::default();
        said.push(b"one\ntw");
        assert_eq!(said.last(9), ["one", "tw"]);
        said.push("o ✓".as_bytes().get(..3).unwrap());
        assert_eq!(said.last(1), ["two \u{fffd}"]);
        said.push(&"✓".as_bytes()[1..]);
        said.push(b"\n\x1b[1mbold\x1b[0m\r\n");
        assert_eq!(said.last(2), ["two ✓", "bold"]);
    }

    #[test]
    fn an_output_tail_keeps_only_the_last_lines() {
        let mut said = OutputTail::default();
        (0..2 * SAID_MAX).for_each(|number| said.push(format!("{number}\n").as_bytes()));
        said.push(&vec![b'x'; 10 * OPEN_LINE_MAX]);
        assert_eq!(said.lines.len(), SAID_MAX);
        assert!(said.open.len() <= OPEN_LINE_MAX);
    }
}
