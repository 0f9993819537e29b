//! The graph of open tasks, or of the tasks around one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

use hookloop_core::id::TaskId;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::store::{LogError, TaskFilter, TaskRow, View};
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::super::words::class;
use super::layers::{BoxSizes, PlacedGraph, place};
use super::{PageTitle, PageVisit};
use crate::error::{CliError, CliResult};

/// Tasks in a picture.
const TASKS_MAX: usize = 80;
/// Dependents of one task that are read.
const DEPENDENTS_MAX: usize = 20;
/// Characters of a goal that have room in a box.
const GOAL_CHARS: usize = 30;

const SIZES: BoxSizes = BoxSizes { width: 216, height: 44, across: 56, down: 12 };

const PICTURE: PagePart = PagePart::new("picture", "Graph", &[Topic::Tasks]);

pub(in super::super) fn graph(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(PICTURE, "graph.html", || picture(visit))?;
    visit.finish(page, &PageTitle::new("Graph", "graph"))
}

/// Tasks by number, with their dependencies.
#[derive(Default)]
struct ChosenTasks {
    tasks: BTreeMap<u64, Task>,
    is_cut: bool,
}

#[derive(Clone, Debug, Serialize)]
struct GraphBox {
    x: u64,
    y: u64,
    id: String,
    link: String,
    goal: String,
    whole: String,
    state: &'static str,
    class: &'static str,
    is_start: bool,
}

fn picture(visit: &PageVisit<'_>) -> CliResult<Value> {
    let wanted = visit.query.get("task");
    let start: Option<TaskId> = match wanted {
        Some(text) => Some(text.parse().map_err(CliError::usage)?),
        None => None,
    };
    let (chosen, lines) = visit.project().read(|view| {
        let chosen = match &start {
            Some(start) => around(view, start)?,
            None => open(view)?,
        };
        let lines = lines(view, &chosen)?;
        Ok((chosen, lines))
    })?;
    if let (Some(text), true) = (wanted, chosen.tasks.is_empty()) {
        let message = format!("there is no task `{text}`");
        return Err(CliError::refused(message).hint("hookloop task list"));
    }
    let placed = place(chosen.tasks.len(), &lines, SIZES);
    let boxes: Vec<GraphBox> = chosen
        .tasks
        .values()
        .zip(&placed.boxes)
        .map(|(task, at)| boxed(visit, task, *at, start.as_ref()))
        .collect();
    let PlacedGraph { width, height, lines, .. } = placed;
    Ok(context! {
        boxes => value_of(boxes), lines => lines.iter().map(|line| path(line)).collect::<Vec<_>>(),
        width => width + 2, height => height + 2, box_width => SIZES.width, box_height => SIZES.height,
        is_cut => chosen.is_cut, most => TASKS_MAX, task => wanted, all => visit.address("graph"),
    })
}

fn boxed(
    visit: &PageVisit<'_>,
    task: &Task,
    (x, y): (u64, u64),
    start: Option<&TaskId>,
) -> GraphBox {
    let goal = &task.spec.goal;
    let is_long = goal.chars().count() > GOAL_CHARS;
    let short: String = goal.chars().take(GOAL_CHARS - usize::from(is_long)).collect();
    let state = task.state.name();
    GraphBox {
        x: x + 1,
        y: y + 1,
        id: task.id.to_string(),
        link: visit.address(&format!("tasks/{}", task.id)),
        goal: if is_long { format!("{short}…") } else { short },
        whole: goal.clone(),
        state,
        class: class(state),
        is_start: start == Some(&task.id),
    }
}

/// Returns the newest open tasks, active ones first.
fn open(view: View<'_>) -> std::result::Result<ChosenTasks, LogError> {
    use TaskState::{Active, Blocked, Created, Ready, Submitted};
    let mut chosen = ChosenTasks::default();
    for state in [Active, Blocked, Submitted, Ready, Created] {
        let limit = Some(TASKS_MAX + 1 - chosen.tasks.len());
        let filter = TaskFilter { state: Some(state), limit, ..TaskFilter::default() };
        for TaskRow { num, task, .. } in view.list(&filter)? {
            chosen.is_cut |= chosen.tasks.len() == TASKS_MAX;
            if !chosen.is_cut {
                chosen.tasks.insert(num, task);
            }
        }
    }
    Ok(chosen)
}

/// A task and those near it, the nearest first.
fn around(view: View<'_>, start: &TaskId) -> std::result::Result<ChosenTasks, LogError> {
    let mut chosen = ChosenTasks::default();
    let mut queue: VecDeque<TaskRow> = view.task(start)?.into_iter().collect();
    while let Some(row) = queue.pop_front() {
        if chosen.tasks.contains_key(&row.num) {
            continue;
        }
        chosen.is_cut = chosen.tasks.len() == TASKS_MAX;
        if chosen.is_cut {
            break;
        }
        queue.extend(view.dependencies(&row.task.id)?.into_iter().take(TASKS_MAX));
        queue.extend(view.dependents(&row.task.id, 0, DEPENDENTS_MAX)?);
        chosen.tasks.insert(row.num, row.task);
    }
    Ok(chosen)
}

/// Returns the lines between shown tasks, from dependency to dependent.
fn lines(
    view: View<'_>,
    chosen: &ChosenTasks,
) -> std::result::Result<Vec<(usize, usize)>, LogError> {
    let places: HashMap<u64, usize> =
        chosen.tasks.keys().enumerate().map(|(place, num)| (*num, place)).collect();
    let mut lines = Vec::new();
    for (num, place) in &places {
        let needs = view.needs_of(*num)?;
        lines.extend(needs.iter().filter_map(|need| Some((*places.get(need)?, *place))));
    }
    lines.sort_unstable();
    Ok(lines)
}

/// A line through its points, bent where it changes its height.
fn path(points: &[(u64, u64)]) -> String {
    let mut path = String::new();
    for (i, (x, y)) in points.iter().map(|(x, y)| (x + 1, y + 1)).enumerate() {
        // Writing to a string does not fail.
        let _ = match points.get(i.wrapping_sub(1)) {
            None => write!(path, "M{x} {y}"),
            Some((before, height)) => {
                let bend = (before + 1).midpoint(x);
                write!(path, "C{bend} {} {bend} {y} {x} {y}", height + 1)
            }
        };
    }
    path
}
