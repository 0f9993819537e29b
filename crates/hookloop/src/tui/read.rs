//! Reads the shown content from the view and the log, again after each change. It has its own thread, so that a slow
//! store does not delay keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_core::claim::Claim;
use hookloop_core::id::{ProjectName, SessionId};
use hookloop_core::inbox::{Problem, ProblemKind, ProblemSubject};
use hookloop_core::session::SessionState;
use hookloop_core::session::plan::CostFigure;
use hookloop_core::task::{Task, TaskState};
use hookloop_core::time::{Day, Timestamp};
use hookloop_engine::error::EngineError;
use hookloop_engine::inbox::{self, InboxError};
use hookloop_engine::project::Project;
use hookloop_engine::session::{lookup, session_directory};
use hookloop_engine::store::{Seq, SessionRow, TaskFilter, UsageBy};

use super::data::{
    ProblemFacts, ProblemLine, ProblemMatter, ProjectOverview, ScreenNews, ScreenRequest,
    SessionLine, TaskContent, TaskFacts, TaskLine, WhichTasks,
};
use crate::picture::TaskPicture;
use crate::present;
use crate::present::test_changes::test_changes;
use crate::tui::channels::ScreenChannels;
use crate::tui::session_view::SessionView;

const PROBLEMS_MAX: usize = 200;
const SESSIONS_MAX: usize = 1_000;
const TASKS_MAX: usize = 10_000;
/// The time between two checks for changes.
const POLL: Duration = Duration::from_millis(100);
/// The reader rests this many times as long as it read, so that a flood of events does not slow the sessions.
const REST: u32 = 6;
/// Between two attempts while the log can't be read.
const TROUBLE_POLL: Duration = Duration::from_secs(1);
/// How often processes are checked: the log does not say whether they live.
const LIVENESS: Duration = Duration::from_secs(2);
/// Sessions whose processes are checked.
const LIVENESS_MAX: usize = 50;
/// Lines of a task in the graph: its own, and those that lead to the next.
const ROW_HEIGHT: usize = 2;
/// The prefix of a claimant that is a session.
const SESSION: &str = "session:";

pub(super) struct ContentReader {
    project: Project,
    channels: Arc<ScreenChannels>,
    machine: String,
    head: Option<Seq>,
    known: ScreenRequest,
    session_view: Option<SessionView>,
    /// Whether a program of this machine has a session.
    alive: HashMap<SessionId, bool>,
    looked: Option<Instant>,
    news: ScreenNews,
}

impl ContentReader {
    pub(super) fn new(
        project: Project,
        channels: Arc<ScreenChannels>,
        machine: String,
    ) -> ContentReader {
        let known = ScreenRequest::default();
        let news = ScreenNews::default();
        let alive = HashMap::new();
        let session_view = None;
        ContentReader {
            project,
            channels,
            machine,
            head: None,
            known,
            session_view,
            alive,
            looked: None,
            news,
        }
    }

    /// Reads until the screen is closed.
    pub(super) fn run(mut self) {
        let mut is_live = false;
        while let Some(request) = self.channels.request() {
            let began = Instant::now();
            let read = if is_live {
                Ok(())
            } else {
                self.project.store().go_live().map_err(EngineError::from)
            };
            let read = read.and_then(|()| self.look(&request));
            is_live |= read.is_ok();
            let pause = match read {
                Ok(is_new) => {
                    if is_new || self.news.trouble.take().is_some() {
                        self.channels.publish(self.news.clone());
                    }
                    (began.elapsed() * REST).max(POLL)
                }
                Err(error) => {
                    self.news.trouble =
                        Some(crate::error::CliError::from(error).message().to_owned());
                    self.channels.publish(self.news.clone());
                    TROUBLE_POLL
                }
            };
            self.channels.rest(&request, pause);
        }
    }

    /// Updates the content, and returns whether it has changed.
    fn look(&mut self, request: &ScreenRequest) -> Result<bool, EngineError> {
        let head = self.project.read(|view| Ok(view.totals()?.head))?;
        let is_time = self.looked.is_none_or(|looked| looked.elapsed() >= LIVENESS);
        let is_other = self.known != *request;
        let is_new = self.head != Some(head);
        if is_new || is_time {
            self.news.overview = Some(Arc::new(self.overview(is_time)?));
        }
        if is_new || is_other {
            self.news.tasks =
                request.tasks.map(|which| self.tasks(which)).transpose()?.map(Arc::new);
            let facts = request.problem.as_ref().map(|matter| self.facts(matter)).transpose()?;
            self.news.facts = facts.flatten().map(Arc::new);
        }
        let has_said = self.session_view(request, is_new || is_other || is_time)?;
        self.head = Some(head);
        self.known = request.clone();
        Ok(is_new || is_time || is_other || has_said)
    }

    fn overview(&mut self, looks_for_life: bool) -> Result<ProjectOverview, EngineError> {
        let now = crate::environment::now();
        let today = Day::from(now);
        let (problems, problem_count, rows, usage, tasks, stuck) = self.project.read(|view| {
            let problems = (view.problems(PROBLEMS_MAX)?, view.count_problems()?);
            let usage = view.usage(UsageBy::Day, Some(today))?;
            let sessions = view.sessions(SESSIONS_MAX)?;
            Ok((problems.0, problems.1, sessions, usage, view.counts()?, view.count_stuck()?))
        })?;
        if looks_for_life {
            self.look_for_life(&rows);
        }
        let sessions: Vec<SessionLine> =
            rows.into_iter().map(|row| self.session_line(row)).collect();
        let mut lines = Vec::new();
        for line in sessions.iter().filter(|line| line.state == SessionState::Interrupted) {
            lines.push(interrupted(&line.row));
        }
        let dead = lines.len() as u64;
        for problem in problems {
            lines.push(self.problem_line(problem)?);
        }
        lines.sort_by_key(|line| line.since);
        Ok(ProjectOverview {
            project: ProjectName::readable(self.project.name()).to_owned(),
            problems: lines,
            problem_count: problem_count + dead,
            running: sessions.iter().filter(|line| line.state == SessionState::Running).count(),
            sessions,
            cost_today: usage.iter().fold(CostFigure::default(), |sum, row| CostFigure {
                micros: sum.micros.saturating_add(row.usage.cost_micros),
                unpriced_turns: sum.unpriced_turns.saturating_add(row.unpriced_turns),
            }),
            tasks: tasks.to_vec(),
            stuck,
        })
    }

    /// Looks which of the open sessions of this machine have a program.
    fn look_for_life(&mut self, rows: &[SessionRow]) {
        self.looked = Some(Instant::now());
        let Some(runner) = self.project.runner() else { return };
        let is_ours = |row: &&SessionRow| {
            row.state == SessionState::Running
                && row.machine == self.machine
                && !lookup::is_external(row)
        };
        let ours = rows.iter().filter(is_ours).take(LIVENESS_MAX);
        self.alive = ours
            .map(|row| (row.id.clone(), session_directory::is_running(runner, &row.id)))
            .collect();
    }

    /// A session that was not checked yet has the state of the log.
    fn session_line(&self, row: SessionRow) -> SessionLine {
        let is_running = self.alive.get(&row.id).copied().unwrap_or(true);
        let state = present::state(&row, is_running, &self.machine);
        SessionLine { row, state }
    }

    fn problem_line(&self, problem: Problem) -> Result<ProblemLine, EngineError> {
        let title = inbox::title(&self.project, &problem)?;
        let asks = problem.kind == ProblemKind::SessionAsks;
        let can_approve = match &problem.key.about {
            ProblemSubject::Task(id) => {
                self.project.read(|view| view.delivery(id))?.standing().is_some()
            }
            ProblemSubject::Session(_) | ProblemSubject::Budget => asks,
        };
        let can_resume = problem.kind == ProblemKind::SessionPaused;
        let has_ended = problem.kind == ProblemKind::SessionEnded;
        let can_answer =
            can_resume || asks || has_ended || matches!(problem.key.about, ProblemSubject::Task(_));
        let reason = problem.reason;
        let since = problem.since;
        let matter = ProblemMatter::Problem(problem.key);
        Ok(ProblemLine { matter, title, reason, since, can_answer, can_approve, can_resume, asks })
    }

    fn facts(&self, matter: &ProblemMatter) -> Result<Option<ProblemFacts>, EngineError> {
        let key = match matter {
            ProblemMatter::Problem(key) => key,
            ProblemMatter::Interrupted(id) => {
                let next = vec![format!("hookloop resume {id}")];
                let (matter, session) = (matter.clone(), Some(id.clone()));
                return Ok(Some(ProblemFacts { next, ..ProblemFacts::of(matter, session) }));
            }
        };
        let found = self.project.read(|view| view.problem_of(&key.about))?;
        let Some(problem) = found.filter(|problem| problem.key == *key) else { return Ok(None) };
        match inbox::evidence(&self.project, &problem) {
            Ok(inbox::ItemEvidence { details, session, next, can_allow, record, .. }) => {
                let (matter, changes) = (matter.clone(), test_changes(&record.test_changes));
                Ok(Some(ProblemFacts { matter, details, changes, can_allow, session, next }))
            }
            Err(InboxError::Engine(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn tasks(&self, which: WhichTasks) -> Result<TaskContent, EngineError> {
        use TaskState::{Active, Blocked, Completed, Created, Ready, Submitted};
        let states: &[TaskState] = match which {
            WhichTasks::Open => &[Active, Blocked, Submitted, Ready, Created],
            WhichTasks::All => &[Active, Blocked, Submitted, Ready, Created, Completed],
        };
        let picture = self.project.read(|view| {
            let mut rows = Vec::new();
            for state in states {
                let left = TASKS_MAX + 1 - rows.len();
                let limit = Some(left).filter(|left| *left > 0);
                if limit.is_some() {
                    rows.extend(view.list(&TaskFilter {
                        state: Some(*state),
                        limit,
                        ..TaskFilter::default()
                    })?);
                }
            }
            let cut = rows.len() > TASKS_MAX;
            rows.truncate(TASKS_MAX);
            TaskPicture::new(view, rows, cut)
        })?;
        Ok(TaskContent { lines: graph(&picture), cut: picture.cut })
    }

    /// Follows the shown session, and returns whether its agent printed something.
    fn session_view(&mut self, request: &ScreenRequest, is_new: bool) -> Result<bool, EngineError> {
        let Some(id) = &request.session else {
            self.session_view = None;
            self.news.shown = None;
            return Ok(false);
        };
        match &mut self.session_view {
            Some(session_view) if session_view.id == *id => {
                if is_new {
                    session_view.catch_up(&self.project)?;
                }
            }
            _ => self.session_view = SessionView::open(&self.project, id)?,
        }
        let Some(session_view) = &mut self.session_view else { return Ok(false) };
        let has_said = session_view.listen(&self.project);
        if is_new || has_said {
            let row = self.project.read(|view| view.session(id))?;
            let line = row.map(|row| self.session_line(row));
            self.news.shown = line.zip(self.session_view.as_ref()).map(|(line, session_view)| {
                Arc::new(session_view.shown(&line.row, line.state, &self.machine))
            });
        }
        Ok(has_said)
    }
}

fn interrupted(row: &SessionRow) -> ProblemLine {
    ProblemLine {
        matter: ProblemMatter::Interrupted(row.id.clone()),
        title: format!("session {} was interrupted: {}", row.id, row.work),
        reason: "its program died: the session can be resumed".to_owned(),
        since: row.started_at,
        can_answer: false,
        can_approve: false,
        can_resume: true,
        asks: false,
    }
}

/// The picture line by line.
fn graph(picture: &TaskPicture) -> Vec<TaskLine> {
    let mut lines = Vec::new();
    for row in picture.draw(ROW_HEIGHT, |_| String::new()) {
        let mut drawn = row.lines.lines();
        let graph = drawn.next().unwrap_or_default().trim_end().to_owned();
        lines.push(TaskLine { graph, task: Some(task_facts(row.task)) });
        let rest = drawn.map(str::trim_end).filter(|line| !line.is_empty());
        lines.extend(rest.map(|line| TaskLine { graph: line.to_owned(), task: None }));
    }
    lines
}

fn task_facts(task: &Task) -> TaskFacts {
    let spec = &task.spec;
    let mut details = vec![format!("{}: {}", task.id, spec.goal)];
    let mut how = format!("{}, priority {}", task.state, spec.priority.get());
    if let Some(kind) = &spec.kind {
        how.push_str(&format!(", type {kind}"));
    }
    if !spec.labels.is_empty() {
        how.push_str(&format!(", {}", spec.labels.join(", ")));
    }
    match task.open_dependencies {
        0 => {}
        count => how.push_str(&format!(", waits for {}", present::counted(count, "task", "tasks"))),
    }
    if let Some(time) = task.waits_until() {
        how.push_str(&format!(", not before {}", Timestamp::brief(time)));
    }
    if let Some(Claim { agent, .. }) = &task.claim {
        how.push_str(&format!(", claimed by {agent}"));
    }
    details.push(how);
    if let Some(obstacle) = &task.obstacle {
        details.push(format!("blocked: {}", obstacle.reason));
    }
    details.extend(task.outcome.as_ref().and_then(|outcome| outcome.result.clone()));
    details.extend(Some(spec.description.clone()).filter(|text| !text.is_empty()));
    details
        .extend(spec.deliverables.iter().map(|deliverable| format!("deliverable: {deliverable}")));
    if !spec.may_change.is_empty() {
        details.push(format!("tests that may change: {}", spec.may_change.join(", ")));
    }
    let holder = task.claim.as_ref().and_then(|claim| claim.agent.strip_prefix(SESSION));
    let session = holder.and_then(|id| id.parse().ok());
    let id = task.id.to_string();
    let state = task.state;
    let goal = spec.goal.clone();
    TaskFacts { id, state, goal, details, session }
}
