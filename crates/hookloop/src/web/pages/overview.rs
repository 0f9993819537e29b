//! The overview: problems come first.

use hookloop_core::inbox::{Problem, ProblemKind, ProblemSubject};
use hookloop_core::session::plan::{CompactCount, CostFigure};
use hookloop_core::time::{Day, Timestamp};
use hookloop_engine::inbox;
use hookloop_engine::session::session_directory;
use hookloop_engine::store::SessionRow;
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::super::words::{PageTime, class};
use super::usage::budget;
use super::{PageTitle, PageVisit};
use crate::environment::machine;
use crate::error::CliResult;
use crate::present::test_changes::{TestChanges, test_changes};
use crate::present::{self, now};

/// Problems and sessions that are shown.
const PROBLEMS_MAX: usize = 50;
const RUNNING_MAX: usize = 50;
/// Problems whose record is shown: each is read from the log.
const RECORDS_MAX: usize = 10;

const PROBLEMS: PagePart = PagePart::new("problems", "Inbox", &[Topic::Problems]);
const RUNNING: PagePart = PagePart::new("running", "Running", &[Topic::Sessions]).every(3);
const COUNTS: PagePart = PagePart::new("counts", "Tasks", &[Topic::Tasks]);
const TODAY: PagePart = PagePart::new("today", "Usage today", &[Topic::Usage]);

pub(in super::super) fn overview(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(PROBLEMS, "problems.html", || problems(visit))?;
    page.part(RUNNING, "running.html", || running(visit))?;
    page.part(COUNTS, "counts.html", || counts(visit))?;
    page.part(TODAY, "today.html", || today(visit))?;
    visit.finish(page, &PageTitle::new("Overview", ""))
}

/// A problem, with the actions of the page.
#[derive(Debug, Serialize)]
struct ProblemRow {
    key: String,
    kind: &'static str,
    title: String,
    reason: String,
    since: PageTime,
    by: String,
    link: Option<String>,
    can_approve: bool,
    can_answer: bool,
    /// A session that can be resumed.
    paused: Option<String>,
    /// A session that waits for a decision.
    asks: bool,
    /// The facts as they were when the item was raised.
    details: Vec<String>,
    /// The commands that decide it, with their effects.
    choices: Vec<ProblemChoice>,
    /// The tests of the base beside those of the work, if the work changed tests.
    changes: Vec<TestChanges>,
    /// Whether these changes can be allowed.
    can_allow: bool,
}

/// A command that decides an item, and its effect.
#[derive(Clone, Debug, Serialize)]
struct ProblemChoice {
    command: String,
    effect: &'static str,
}

fn problems(visit: &PageVisit<'_>) -> CliResult<Value> {
    let found = inbox::list(visit.project(), PROBLEMS_MAX + 1)?;
    let is_cut = found.len() > PROBLEMS_MAX;
    let shown = found.iter().take(PROBLEMS_MAX).enumerate();
    let rows = shown.map(|(place, problem)| problem_row(visit, problem, place < RECORDS_MAX));
    let rows = rows.collect::<CliResult<Vec<_>>>()?;
    Ok(context! { rows => value_of(rows), is_cut, action => visit.address("do") })
}

fn problem_row(
    visit: &PageVisit<'_>,
    problem: &Problem,
    has_record: bool,
) -> CliResult<ProblemRow> {
    let project = visit.project();
    let about = &problem.key.about;
    let link = match about {
        ProblemSubject::Task(id) => Some(visit.address(&format!("tasks/{id}"))),
        ProblemSubject::Session(id) => Some(visit.address(&format!("sessions/{id}"))),
        ProblemSubject::Budget => Some(visit.address("usage")),
    };
    let can_approve = match about {
        ProblemSubject::Task(id) => {
            project.read(|view| Ok(view.delivery(id)?.standing().is_some()))?
        }
        ProblemSubject::Session(_) | ProblemSubject::Budget => false,
    };
    let asks = problem.kind == ProblemKind::SessionAsks;
    let is_paused = problem.kind == ProblemKind::SessionPaused;
    let paused = match about {
        ProblemSubject::Session(id) if is_paused => Some(id.to_string()),
        _ => None,
    };
    let evidence = has_record.then(|| inbox::evidence(project, problem)).transpose()?;
    let can_allow = evidence.as_ref().is_some_and(|evidence| evidence.can_allow);
    let (details, choices, changes) = match evidence {
        Some(inbox::ItemEvidence { details, next, effects, record, .. }) => {
            let choices = next.into_iter().zip(effects);
            let choices = choices.map(|(command, effect)| ProblemChoice { command, effect });
            (details, choices.collect(), test_changes(&record.test_changes))
        }
        None => (Vec::new(), Vec::new(), Vec::new()),
    };
    let has_ended = problem.kind == ProblemKind::SessionEnded;
    Ok(ProblemRow {
        details,
        choices,
        can_allow,
        changes,
        key: problem.key.to_string(),
        kind: problem.kind.words(),
        title: inbox::title(project, problem)?,
        reason: problem.reason.clone(),
        since: PageTime::new(problem.since, visit.now),
        by: problem.by.clone(),
        link,
        can_approve,
        can_answer: matches!(about, ProblemSubject::Task(_)) || is_paused || asks || has_ended,
        paused,
        asks,
    })
}

/// A session as lists show it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RunningLine {
    id: String,
    name: String,
    state: String,
    class: &'static str,
    work: String,
    agent: String,
    machine: String,
    iteration: u32,
    task: Option<String>,
    tokens: String,
    cost: String,
    started: PageTime,
    /// The duration so far.
    took: String,
    reason: Option<String>,
    /// The step that it is at.
    step: Option<String>,
}

impl RunningLine {
    pub(super) fn new(visit: &PageVisit<'_>, row: &SessionRow) -> RunningLine {
        let state = state(visit, row);
        RunningLine {
            id: row.id.to_string(),
            name: row.name.clone(),
            class: class(&state),
            state,
            work: row.work.clone(),
            agent: row.agent.clone(),
            machine: row.machine.clone(),
            iteration: row.iteration,
            task: row.task.clone(),
            tokens: CompactCount(row.tokens).to_string(),
            cost: row.cost().to_string(),
            started: PageTime::new(row.started_at, visit.now),
            took: took(visit, row),
            reason: row.reason.clone(),
            step: if row.is_over() {
                None
            } else {
                now::of(visit.project(), &row.id).map(|record| now::line(&record, visit.now))
            },
        }
    }
}

/// Returns the duration of a session, in whole seconds while it runs.
pub(super) fn took(visit: &PageVisit<'_>, row: &SessionRow) -> String {
    let ms = |ended: Timestamp| u64::try_from(ended.millis_since(row.started_at)).unwrap_or(0);
    match row.ended_at {
        Some(ended) => present::duration(ms(ended)),
        None => present::duration(ms(visit.now) / 1_000 * 1_000),
    }
}

/// Returns the state of a session; a session of this machine that no process runs is interrupted.
pub(super) fn state(visit: &PageVisit<'_>, row: &SessionRow) -> String {
    let is_running = !row.is_over()
        && visit
            .project()
            .runner()
            .is_some_and(|runner| session_directory::is_running(runner, &row.id));
    present::state(row, is_running, &machine()).to_string()
}

fn running(visit: &PageVisit<'_>) -> CliResult<Value> {
    let rows = visit.project().read(|view| view.open_sessions(RUNNING_MAX + 1))?;
    let is_cut = rows.len() > RUNNING_MAX;
    let rows: Vec<RunningLine> =
        rows.iter().take(RUNNING_MAX).map(|row| RunningLine::new(visit, row)).collect();
    Ok(context! { rows => value_of(rows), is_cut, site => visit.address("") })
}

fn counts(visit: &PageVisit<'_>) -> CliResult<Value> {
    let (counts, early) = visit.project().read(|view| Ok((view.counts()?, view.early()?)))?;
    let counts = counts.map(|(state, count)| {
        let name = state.name();
        context! { name, count, class => class(name), link => visit.address(&format!("tasks?state={name}")) }
    });
    let next = early.next.map(|at| PageTime::new(at, visit.now));
    Ok(context! { counts => counts.to_vec(), early => early.count, next })
}

fn today(visit: &PageVisit<'_>) -> CliResult<Value> {
    let today = Day::from(visit.now);
    let (spent, unpriced_turns) = visit
        .project()
        .read(|view| Ok((view.spent(Some(today))?, view.unpriced_turns(Some(today))?)))?;
    let total = spent.total();
    let cost = CostFigure { micros: total.cost_micros, unpriced_turns };
    Ok(context! {
        cost => cost.to_string(),
        tokens => CompactCount(total.tokens).to_string(),
        turns => total.turns,
        day => today.to_string(),
        budget => budget(visit)?,
        link => visit.address("usage"),
    })
}
