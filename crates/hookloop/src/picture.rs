//! Draws tasks as a graph with lines: dependencies above their dependents.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hookloop_core::task::{Task, TaskState};
use hookloop_engine::store::{LogError, TaskRow, View};
use renderdag::{Ancestor, GraphRowRenderer, Renderer};

/// Tasks by number, and the edges between them.
pub(crate) struct TaskPicture {
    pub(crate) tasks: BTreeMap<u64, Task>,
    needs: HashMap<u64, Vec<u64>>,
    /// Whether tasks were left out.
    pub(crate) cut: bool,
}

/// A task, and the lines of the graph around it; the task stands in the first.
pub(crate) struct DrawnTask<'p> {
    pub(crate) task: &'p Task,
    pub(crate) lines: String,
}

impl TaskPicture {
    /// These tasks, with the edges that the view has between them.
    pub(crate) fn new(
        view: View<'_>,
        rows: impl IntoIterator<Item = TaskRow>,
        cut: bool,
    ) -> Result<TaskPicture, LogError> {
        let tasks: BTreeMap<u64, Task> = rows.into_iter().map(|row| (row.num, row.task)).collect();
        let mut needs = HashMap::new();
        for num in tasks.keys() {
            let mut of_task = view.needs_of(*num)?;
            of_task.retain(|need| tasks.contains_key(need));
            needs.insert(*num, of_task);
        }
        Ok(TaskPicture { tasks, needs, cut })
    }

    /// Pairs of a task and one of its dependencies.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (&Task, &Task)> {
        self.tasks.iter().flat_map(move |(num, task)| {
            self.needs_of(*num).iter().filter_map(move |need| Some((task, self.tasks.get(need)?)))
        })
    }

    pub(crate) fn needs_of(&self, num: u64) -> &[u64] {
        self.needs.get(&num).map_or(&[], Vec::as_slice)
    }

    /// The tasks with dependencies before dependents, older before newer. `label` follows a task's place; a task has
    /// `height` lines at least.
    pub(crate) fn draw(
        &self,
        height: usize,
        mut label: impl FnMut(&Task) -> String,
    ) -> Vec<DrawnTask<'_>> {
        let mut renderer = GraphRowRenderer::new()
            .output()
            .with_min_row_height(height)
            .with_stagger_consecutive_disconnected_nodes(true)
            .build_box_drawing();
        let dependents = self.dependents();
        let mut drawn = Vec::with_capacity(self.tasks.len());
        for num in self.sorted(&dependents) {
            let Some(task) = self.tasks.get(&num) else { continue };
            let below = dependents.get(&num).into_iter().flatten().copied().map(Ancestor::Parent);
            let glyph = glyph(task.state).to_owned();
            let lines = renderer.next_row(num, below.collect(), glyph, label(task));
            drawn.push(DrawnTask { task, lines });
        }
        drawn
    }

    fn sorted(&self, dependents: &HashMap<u64, Vec<u64>>) -> Vec<u64> {
        let mut open: HashMap<u64, usize> =
            self.needs.iter().map(|(num, needs)| (*num, needs.len())).collect();
        let mut free: BTreeSet<u64> =
            self.tasks.keys().copied().filter(|num| self.needs_of(*num).is_empty()).collect();
        let mut order = Vec::new();
        while let Some(num) = free.pop_first() {
            order.push(num);
            for dependent in dependents.get(&num).into_iter().flatten() {
                if let Some(open) = open.get_mut(dependent) {
                    *open -= 1;
                    if *open == 0 {
                        free.insert(*dependent);
                    }
                }
            }
        }
        order
    }

    fn dependents(&self) -> HashMap<u64, Vec<u64>> {
        let mut dependents: HashMap<u64, Vec<u64>> = HashMap::new();
        for num in self.tasks.keys() {
            for need in self.needs_of(*num) {
                dependents.entry(*need).or_default().push(*num);
            }
        }
        dependents
    }
}

/// A state as one character.
pub(crate) fn glyph(state: TaskState) -> &'static str {
    match state {
        TaskState::Created => "◌",
        TaskState::Ready => "○",
        TaskState::Active => "◉",
        TaskState::Submitted => "◍",
        TaskState::Completed => "●",
        TaskState::Blocked => "✗",
    }
}
