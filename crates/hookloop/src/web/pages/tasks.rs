//! Tasks, the newest first.

use hookloop_core::task::{Task, TaskState};
use hookloop_engine::store::TaskFilter;
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::super::words::{PageTime, class};
use super::{PageTitle, PageVisit};
use crate::error::CliResult;

/// Tasks on a page.
const ON_A_PAGE: usize = 100;

const LIST: PagePart = PagePart::new("list", "Tasks", &[Topic::Tasks]);

/// A task as lists show it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TaskTableLine {
    id: String,
    link: String,
    goal: String,
    state: &'static str,
    class: &'static str,
    priority: u8,
    kind: Option<String>,
    labels: Vec<String>,
    holder: Option<String>,
    created: PageTime,
    waits_for: u32,
}

impl TaskTableLine {
    pub(super) fn new(visit: &PageVisit<'_>, task: &Task) -> TaskTableLine {
        let state = task.state.name();
        TaskTableLine {
            id: task.id.to_string(),
            link: visit.address(&format!("tasks/{}", task.id)),
            goal: task.spec.goal.clone(),
            state,
            class: class(state),
            priority: task.spec.priority.get(),
            kind: task.spec.kind.clone(),
            labels: task.spec.labels.clone(),
            holder: task.claim.as_ref().map(|claim| claim.agent.clone()),
            created: PageTime::new(task.created_at, visit.now),
            waits_for: task.open_dependencies,
        }
    }
}

pub(in super::super) fn tasks(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(LIST, "tasks.html", || list(visit))?;
    visit.finish(page, &PageTitle::new("Tasks", "tasks"))
}

fn list(visit: &PageVisit<'_>) -> CliResult<Value> {
    let query = visit.query;
    let state = query.get("state").and_then(|state| state.parse::<TaskState>().ok());
    let filter = TaskFilter {
        state,
        label: query.get("label").map(str::to_owned),
        kind: query.get("type").map(str::to_owned),
        text: query.get("q").map(str::to_owned),
        before: query.number("before"),
        limit: Some(ON_A_PAGE + 1),
    };
    let (found, counts) = visit.project().read(|view| Ok((view.list(&filter)?, view.counts()?)))?;
    let shown = &found[..found.len().min(ON_A_PAGE)];
    let rows: Vec<TaskTableLine> =
        shown.iter().map(|row| TaskTableLine::new(visit, &row.task)).collect();
    let last = shown.last().filter(|_| found.len() > ON_A_PAGE);
    let labels = |label: &str| query.with("label", label);
    let label = query.get("label");
    Ok(context! {
        rows => value_of(rows),
        states => counts.map(|(state, count)| context! { name => state.name(), count }).to_vec(),
        state => state.map(TaskState::name).unwrap_or_default(),
        text => query.get("q").unwrap_or_default(),
        label => label.unwrap_or_default(),
        kind => query.get("type").unwrap_or_default(),
        no_label => label.map(|_| labels("")),
        all => visit.address("tasks"),
        newest => filter.before.map(|_| query.with("before", "")),
        older => last.map(|row| query.with("before", &row.num.to_string())),
    })
}
