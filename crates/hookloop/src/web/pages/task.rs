//! A task: its state with reasons, its neighbours, its notes and its history.

use hookloop_core::delivery::Delivery;
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::task::Task;
use hookloop_engine::store::StoredEvent;
use minijinja::context;
use minijinja::value::Value;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::super::words::{PageTime, address, class};
use super::log::event_line;
use super::tasks::TaskTableLine;
use super::{PageTitle, PageVisit};
use crate::error::{CliError, CliResult};
use crate::present::why;

/// Neighbours of a sort, and events, that are shown.
const NEIGHBOURS_MAX: usize = 50;
const EVENTS_MAX: usize = 100;

const FACTS: PagePart = PagePart::new("facts", "State", &[Topic::This, Topic::Problems]).every(5);
const NEIGHBOURS: PagePart =
    PagePart::new("neighbours", "Related tasks", &[Topic::This, Topic::Tasks]);
const HISTORY: PagePart = PagePart::new("history", "History", &[Topic::This]);

pub(in super::super) fn task(visit: &PageVisit<'_>) -> CliResult<String> {
    let none =
        || CliError::refused(format!("there is no task `{}`", visit.id)).hint("hookloop task list");
    let id: TaskId = visit.id.parse().map_err(|_| none())?;
    let row = visit.project().read(|view| view.task(&id))?;
    // One that is deleted has its history still.
    let events = visit.project().log().history(&Subject::Task(id.clone()), EVENTS_MAX)?;
    if events.is_empty() {
        return Err(none());
    }
    let mut page = visit.page();
    if let Some(row) = &row {
        page.part(FACTS, "task.html", || facts(visit, &row.task))?;
        page.part(NEIGHBOURS, "neighbours.html", || neighbours(visit, &row.task))?;
    }
    page.part(HISTORY, "history.html", || history(visit, &events, row.is_none()))?;
    let title = format!("Task {id}");
    let subject = Some(Subject::Task(id));
    visit.finish(page, &PageTitle { title: &title, section: "tasks", subject })
}

fn facts(visit: &PageVisit<'_>, task: &Task) -> CliResult<Value> {
    let (delivery, notes) =
        visit.project().read(|view| Ok((view.delivery(&task.id)?, view.notes(&task.id)?)))?;
    let why::StateReasons { reasons, next, .. } = why::of_task(visit.project(), &task.id)?;
    let outcome = task.outcome.as_ref();
    let when = |at| PageTime::new(at, visit.now);
    let holder = task.claim.as_ref().map(|claim| claim.agent.as_str());
    let session =
        holder.and_then(|agent| agent.strip_prefix("session:")?.parse::<SessionId>().ok());
    Ok(context! {
        line => value_of(TaskTableLine::new(visit, task)),
        description => &task.spec.description,
        deliverables => value_of(&task.spec.deliverables),
        may_change => value_of(&task.spec.may_change),
        reasons, next,
        holder,
        holder_link => session.map(|id| visit.address(&format!("sessions/{id}"))),
        parent => task.spec.parent_task_id.as_ref().map(TaskId::as_str),
        parent_link => task.spec.parent_task_id.as_ref().map(|id| visit.address(&format!("tasks/{id}"))),
        not_before => task.spec.not_before.map(when),
        started => task.started_at.map(when),
        completed => task.completed_at.map(when),
        result => outcome.and_then(|outcome| outcome.result.as_deref()),
        artifacts => value_of(outcome.map(|outcome| &outcome.artifacts)),
        delivery => delivered(&delivery),
        notes => notes.iter().map(|note| context! { text => &note.what.text, by => &note.by, at => when(note.at) }).collect::<Vec<_>>(),
        problem => problem(visit, task)?,
        action => visit.address("do"),
    })
}

fn delivered(delivery: &Delivery) -> Option<Value> {
    let submission = delivery.submission.as_ref()?;
    Some(context! {
        branch => &submission.branch,
        head => &submission.head,
        url => submission.url.as_deref(),
        link => submission.url.as_deref().and_then(address),
        merged => delivery.merged.as_ref().map(|merged| merged.commit.as_str()),
        reviews => delivery.reviews.iter().map(|review| context! {
            gate => &review.gate, passed => review.passed, reason => &review.reason,
        }).collect::<Vec<_>>(),
        returns => delivery.returns,
        reason => &delivery.reason,
    })
}

/// The decisions that are possible now.
fn problem(visit: &PageVisit<'_>, task: &Task) -> CliResult<Option<Value>> {
    let about = hookloop_core::inbox::ProblemSubject::Task(task.id.clone());
    let (problem, delivery) =
        visit.project().read(|view| Ok((view.problem_of(&about)?, view.delivery(&task.id)?)))?;
    let Some(problem) = problem.filter(|problem| !problem.is_dismissed) else { return Ok(None) };
    let can_approve = delivery.standing().is_some();
    Ok(Some(context! { key => problem.key.to_string(), reason => problem.reason, can_approve }))
}

fn neighbours(visit: &PageVisit<'_>, task: &Task) -> CliResult<Value> {
    let id = &task.id;
    let (needs, needed_by, led_to) = visit.project().read(|view| {
        let dependents = view.dependents(id, 0, NEIGHBOURS_MAX + 1)?;
        Ok((view.dependencies(id)?, dependents, view.spawned(id)?))
    })?;
    let groups = [("Depends on", needs), ("Needed by", needed_by), ("Spawned", led_to)];
    let groups: Vec<Value> = groups
        .into_iter()
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(name, rows)| {
            let lines: Vec<TaskTableLine> = rows
                .iter()
                .take(NEIGHBOURS_MAX)
                .map(|row| TaskTableLine::new(visit, &row.task))
                .collect();
            context! { name, lines => value_of(lines), is_cut => rows.len() > NEIGHBOURS_MAX }
        })
        .collect();
    Ok(context! { groups, graph => visit.address(&format!("graph?task={id}")) })
}

fn history(visit: &PageVisit<'_>, events: &[StoredEvent], is_deleted: bool) -> CliResult<Value> {
    let rows: Vec<Value> = events.iter().rev().map(|stored| event_line(visit, stored)).collect();
    let is_cut = events.len() == EVENTS_MAX;
    Ok(context! { rows, is_deleted, is_cut, class => class("deleted") })
}
