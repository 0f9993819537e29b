//! How tasks of another tool become tasks here: once, with their dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use hookloop_core::decide::{GOAL_MAX_BYTES, LIST_MAX, TEXT_MAX_BYTES, WORD_MAX_BYTES};
use hookloop_core::digest::short_sha256_hex;
use hookloop_core::id::{EventId, TASK_ID_MAX, TaskId};
use hookloop_core::task::{Priority, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_engine::bulk::{self, ImportLine};
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::project::Project;

use crate::cli::context::CommandContext;
use crate::cli::import::import_report::ImportReport;
use crate::error::{CliError, CliResult};
use crate::progress::ProgressBar;

/// Tasks of one import; more come by `hookloop task import`.
pub(super) const TASKS_MAX: usize = 200_000;

pub(super) struct AddedTasks {
    pub(super) added: u64,
    pub(super) present: u64,
}

/// Adds the tasks that were taken over, and passes over those that are there.
pub(super) fn add(
    context: &mut CommandContext,
    report: &mut ImportReport,
) -> CliResult<Option<AddedTasks>> {
    if report.tasks.is_empty() {
        return Ok(None);
    }
    if report.tasks.len() > TASKS_MAX {
        return Err(CliError::usage(format!("more than {TASKS_MAX} tasks"))
            .hint("hookloop task import --help"));
    }
    let project = context.project()?;
    let (fresh, present) = without_present(&project, report)?;
    let mut lines = Vec::new();
    for line in &fresh {
        serde_json::to_writer(&mut lines, line)?;
        lines.push(b'\n');
    }
    let progress = ProgressBar::new("importing");
    let imported =
        bulk::import(&project, Cursor::new(lines), &mut |done, all| progress.at(done, all));
    drop(progress);
    let imported = imported?;
    project.react_here(&mut CommandOutcome::default())?;
    context.finish(&project)?;
    Ok(Some(AddedTasks { added: imported.added, present: present + imported.present }))
}

/// Tasks that the project does not have yet. Tasks that exist stay as they are, even if the source has changed.
fn without_present(
    project: &Project,
    report: &mut ImportReport,
) -> CliResult<(Vec<ImportLine>, u64)> {
    let lines = std::mem::take(&mut report.tasks);
    let mut fresh = Vec::new();
    let mut present = 0;
    let mut known = BTreeSet::new();
    for line in lines {
        let Some(id) = line.id.clone() else { continue };
        match project.read(|view| view.task(&id))? {
            Some(row) => {
                present += 1;
                if row.task.spec.goal != line.goal {
                    report.lose(
                        format!("task {id}"),
                        "its goal changed there; here it stays as it is",
                    );
                }
            }
            None => fresh.push(line),
        }
        known.insert(id);
    }
    for line in &mut fresh {
        let mut missing = Vec::new();
        for on in &line.depends_on {
            if !known.contains(on) && project.read(|view| view.task(on))?.is_none() {
                missing.push(on.clone());
            }
        }
        line.depends_on.retain(|on| !missing.contains(on));
        for on in missing {
            report.lose(format!("a dependency on {on}"), "there is no such task");
        }
        if let Some(parent) = &line.parent
            && !known.contains(parent)
            && project.read(|view| view.task(parent))?.is_none()
        {
            report.lose(format!("the parent {parent}"), "there is no such task");
            line.parent = None;
        }
    }
    Ok((parents_first(fresh, report), present))
}

/// Tasks behind what they depend on and behind their parents, which have to be there before them.
fn parents_first(mut lines: Vec<ImportLine>, report: &mut ImportReport) -> Vec<ImportLine> {
    let order = order(&lines);
    if order.len() < lines.len() {
        // A parent that waits for its own child can't come first. A cycle without parents is refused later.
        let placed: BTreeSet<usize> = order.into_iter().collect();
        let left = lines.iter_mut().enumerate().filter(|(index, _)| !placed.contains(index));
        for (_, line) in left {
            if let Some(parent) = line.parent.take() {
                report.lose(format!("the parent {parent}"), "it waits for this task");
            }
        }
        return match self::order(&lines) {
            order if order.len() == lines.len() => sorted(lines, &order),
            _ => lines,
        };
    }
    sorted(lines, &order)
}

fn sorted(lines: Vec<ImportLine>, order: &[usize]) -> Vec<ImportLine> {
    let mut lines: Vec<Option<ImportLine>> = lines.into_iter().map(Some).collect();
    order.iter().filter_map(|index| lines[*index].take()).collect()
}

/// The lines that can be put one after the other, in that order; those of a cycle are left out.
fn order(lines: &[ImportLine]) -> Vec<usize> {
    let places: BTreeMap<&TaskId, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((line.id.as_ref()?, index)))
        .collect();
    let mut open = vec![0usize; lines.len()];
    let mut followers = vec![Vec::new(); lines.len()];
    for (index, line) in lines.iter().enumerate() {
        for before in line.depends_on.iter().chain(&line.parent).filter_map(|id| places.get(id)) {
            open[index] += 1;
            followers[*before].push(index);
        }
    }
    let mut order: Vec<usize> = (0..lines.len()).filter(|index| open[*index] == 0).collect();
    let mut next = 0;
    while let Some(&index) = order.get(next) {
        next += 1;
        for &follower in &followers[index] {
            open[follower] -= 1;
            if open[follower] == 0 {
                order.push(follower);
            }
        }
    }
    order
}

/// A task as another tool has it.
#[derive(Default)]
pub(super) struct TaskDraft {
    pub(super) id: String,
    pub(super) goal: String,
    pub(super) description: Vec<(&'static str, String)>,
    pub(super) deliverables: Vec<String>,
    pub(super) labels: Vec<String>,
    pub(super) priority: Option<u64>,
    pub(super) kind: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) depends_on: Vec<String>,
    pub(super) not_before: Option<String>,
    pub(super) state: Option<TaskState>,
    pub(super) result: Option<String>,
    pub(super) created_at: Option<String>,
    pub(super) completed_at: Option<String>,
}

impl TaskDraft {
    /// Takes the task over, within the limits of tasks here.
    pub(super) fn take(self, report: &mut ImportReport) {
        let id = if self.id.trim().is_empty() {
            id_of_goal(&self.goal, report)
        } else {
            task_id(&self.id, report)
        };
        let goal = cut("goal", self.goal.trim().to_owned(), GOAL_MAX_BYTES, report);
        if goal.is_empty() {
            return report.lose(format!("task {id}"), "it has no title");
        }
        if !report.ids.insert(id.clone()) {
            return report.lose(format!("task {id}"), "left out: another task has its id");
        }
        let parts = self.description.iter().filter(|(_, text)| !text.trim().is_empty());
        let parts: Vec<String> = parts
            .map(|(heading, text)| {
                if heading.is_empty() {
                    text.trim().to_owned()
                } else {
                    format!("{heading}:\n{}", text.trim())
                }
            })
            .collect();
        let description = cut("description", parts.join("\n\n"), TEXT_MAX_BYTES, report);
        let deliverables = words("deliverables", self.deliverables, report);
        let labels = words("labels", self.labels, report);
        let lowest = u64::from(Priority::MAX);
        if let Some(priority) = self.priority.filter(|priority| *priority > lowest) {
            report.changed(format!("priority {priority}"), format!("{lowest} is the lowest here"));
        }
        let priority = self.priority.map(|n| n.min(lowest) as u8);
        let mut depends_on: Vec<TaskId> = Vec::new();
        for on in &self.depends_on {
            let on = task_id(on, report);
            if on == id {
                report.lose(
                    format!("a dependency of {id} on itself"),
                    "a task can't wait for itself",
                );
            } else if !depends_on.contains(&on) {
                depends_on.push(on);
            }
        }
        let not_before = instant("the start", self.not_before, report);
        let created_at = instant("the time of creation", self.created_at, report);
        let completed_at = instant("the time of completion", self.completed_at, report);
        let is_kind = |kind: &String| kind.len() <= WORD_MAX_BYTES;
        if self.kind.as_ref().is_some_and(|kind| !is_kind(kind)) {
            report.lose("a type", format!("longer than {WORD_MAX_BYTES} bytes"));
        }
        let outcome = self.result.map(|result| hookloop_core::task::TaskOutcome {
            result: Some(cut("result", result, TEXT_MAX_BYTES, report)),
            artifacts: Vec::new(),
            proven: false,
        });
        let parent = self.parent.map(|parent| task_id(&parent, report));
        report.tasks.push(ImportLine {
            goal,
            description,
            deliverables,
            labels,
            priority: priority.and_then(|n| Priority::try_from(n).ok()).unwrap_or_default(),
            kind: self.kind.filter(|kind| !kind.is_empty() && is_kind(kind)),
            parent,
            depends_on,
            not_before,
            outcome: outcome.filter(|_| self.state == Some(TaskState::Completed)),
            created_at,
            completed_at: completed_at.filter(|_| self.state == Some(TaskState::Completed)),
            state: self.state,
            id: Some(id),
            ..ImportLine::default()
        });
    }
}

/// A point in time; a day stands for its beginning in UTC. Any other text is reported.
fn instant(what: &str, text: Option<String>, report: &mut ImportReport) -> Option<Timestamp> {
    let text = text?;
    let read = text.parse::<Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse());
    if read.is_err() {
        report.lose(what, "left out: it is not written as 2026-01-31T12:00:00Z");
    }
    read.ok()
}

/// Returns a valid id for a task: the same for the same source id.
pub(super) fn task_id(text: &str, report: &mut ImportReport) -> TaskId {
    if let Ok(id) = text.parse() {
        return id;
    }
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let word: String = text.chars().map(fits).collect();
    let digest = digest(text);
    // Two ids that differ only in invalid characters stay different.
    let start: String = word.trim_start_matches(['_', '-']).chars().take(TASK_ID_MAX - 9).collect();
    let id = if start.is_empty() { format!("t-{digest}") } else { format!("{start}-{digest}") };
    report.changed(
        format!("id {text}"),
        format!("`{id}` here: ids are letters, digits, `_` and `-`"),
    );
    // It is one, by the way it was made.
    id.parse().unwrap_or_else(|_| TaskId::generate(EventId([0; 16])))
}

/// An id for a task without one: the same each time, from its goal.
fn id_of_goal(goal: &str, report: &mut ImportReport) -> TaskId {
    let id = task_id(&format!("task-{}", digest(goal.trim())), report);
    report.changed("tasks without an id", "the id is made from the title");
    id
}

/// Eight letters that stand for a text.
fn digest(text: &str) -> String {
    short_sha256_hex(text, 4)
}

/// An id for a text that has none: the same each time.
pub(super) fn id_of(prefix: &str, text: &str, seen: &mut BTreeMap<String, u32>) -> String {
    let id = format!("{prefix}-{}", digest(text));
    let times = seen.entry(id.clone()).or_insert(0);
    *times += 1;
    match *times {
        1 => id,
        n => format!("{id}-{n}"),
    }
}

fn cut(what: &str, mut text: String, max: usize, report: &mut ImportReport) -> String {
    if text.len() > max {
        let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        report.changed(format!("a {what}"), format!("cut off after {max} bytes"));
    }
    text
}

fn words(what: &str, mut list: Vec<String>, report: &mut ImportReport) -> Vec<String> {
    let before = list.len();
    list.retain(|word| !word.trim().is_empty() && word.len() <= WORD_MAX_BYTES);
    list.truncate(LIST_MAX);
    if list.len() < before {
        report.changed(what, format!("at most {LIST_MAX}, of {WORD_MAX_BYTES} bytes each"));
    }
    list
}
