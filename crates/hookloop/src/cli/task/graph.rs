use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use clap::ValueEnum;
use hookloop_core::task::{Task, TaskState};
use hookloop_engine::project::Project;
use hookloop_engine::store::LogError;
use renderdag::{Ancestor, GraphRowRenderer, Renderer};

use super::Context;
use crate::ids;
use crate::output::{DIM, Output, Result, plain, state_style};

/// Draw the graph of tasks, dependencies above what depends on them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this task and what it is connected to
    task: Option<String>,

    /// How to draw it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// Completed tasks too
    #[arg(short, long)]
    all: bool,

    /// At most so many tasks
    #[arg(short = 'n', long, value_name = "N", default_value = "200")]
    limit: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Dot,
    Mermaid,
}

/// Tasks by number, and the edges between them.
struct Picture {
    tasks: BTreeMap<u64, Task>,
    needs: HashMap<u64, Vec<u64>>,
    /// There was more than the limit allowed.
    cut: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project()?;
        let picture = self.picture(&project)?;
        let out = &mut context.out;
        match (out.json, self.format) {
            (true, _) => out.json(&picture.json()),
            (false, Format::Text) => picture.text(out),
            (false, Format::Dot) => picture.dot(out),
            (false, Format::Mermaid) => picture.mermaid(out),
        }
    }

    fn picture(&self, project: &Project) -> Result<Picture> {
        let start = self.task.as_ref().map(|task| ids::resolve(project, task)).transpose()?;
        let picture = project.read(|view| {
            let mut picture = Picture { tasks: BTreeMap::new(), needs: HashMap::new(), cut: false };
            match &start {
                None => view.each_task(|row| {
                    let shown = self.all || row.task.state != TaskState::Completed;
                    picture.cut |= shown && picture.tasks.len() == self.limit;
                    if shown && !picture.cut {
                        picture.tasks.insert(row.num, row.task);
                    }
                    !picture.cut
                })?,
                Some(start) => {
                    let mut queue: VecDeque<_> = view.task(start)?.into_iter().collect();
                    while let Some(row) = queue.pop_front() {
                        picture.cut = picture.tasks.len() == self.limit;
                        if picture.cut {
                            break;
                        }
                        queue.extend(view.dependencies(&row.task.id)?);
                        queue.extend(view.dependents(&row.task.id, 0, self.limit)?);
                        picture.tasks.insert(row.num, row.task);
                        queue.retain(|row| !picture.tasks.contains_key(&row.num));
                    }
                }
            }
            for num in picture.tasks.keys() {
                let mut needs = view.needs_of(*num)?;
                needs.retain(|need| picture.tasks.contains_key(need));
                picture.needs.insert(*num, needs);
            }
            Ok::<_, LogError>(picture)
        })?;
        Ok(picture)
    }
}

impl Picture {
    fn edges(&self) -> impl Iterator<Item = (&Task, &Task)> {
        self.tasks.iter().flat_map(move |(num, task)| {
            self.needs[num].iter().filter_map(move |need| Some((task, self.tasks.get(need)?)))
        })
    }

    /// Numbers with dependencies before dependents, older before newer.
    fn sorted(&self) -> Vec<u64> {
        let mut open: HashMap<u64, usize> =
            self.needs.iter().map(|(num, needs)| (*num, needs.len())).collect();
        let mut free: BTreeSet<u64> =
            self.tasks.keys().copied().filter(|num| open[num] == 0).collect();
        let dependents = self.dependents();
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
            for need in &self.needs[num] {
                dependents.entry(*need).or_default().push(*num);
            }
        }
        dependents
    }

    fn text(&self, out: &mut Output) -> Result {
        let mut renderer = GraphRowRenderer::new()
            .output()
            .with_min_row_height(2)
            .with_stagger_consecutive_disconnected_nodes(true)
            .build_box_drawing();
        let dependents = self.dependents();
        for num in self.sorted() {
            let Some(task) = self.tasks.get(&num) else { continue };
            let below = dependents.get(&num).into_iter().flatten().copied().map(Ancestor::Parent);
            let style = state_style(task.state);
            let glyph = match task.state {
                TaskState::Created => "◌",
                TaskState::Ready => "○",
                TaskState::Active => "◉",
                TaskState::Submitted => "◍",
                TaskState::Completed => "●",
                TaskState::Blocked => "✗",
            };
            let label =
                format!("{} {style}{}{style:#} {}", task.id, task.state, plain(&task.spec.goal));
            let row = renderer.next_row(num, below.collect(), glyph.to_owned(), label);
            out.line(row.trim_end())?;
        }
        match self.cut {
            true => out.line(format_args!("{DIM}… there are more; see --limit{DIM:#}")),
            false => Ok(()),
        }
    }

    fn dot(&self, out: &mut Output) -> Result {
        let quoted =
            |text: &str| format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""));
        out.line("digraph tasks {\n  rankdir=TB;\n  node [shape=box, style=rounded];")?;
        for task in self.tasks.values() {
            let label = quoted(&format!("{} ({})", task.spec.goal, task.state));
            out.line(format_args!("  {} [label={label}];", quoted(task.id.as_str())))?;
        }
        for (task, need) in self.edges() {
            out.line(format_args!(
                "  {} -> {};",
                quoted(need.id.as_str()),
                quoted(task.id.as_str())
            ))?;
        }
        out.line("}")
    }

    fn mermaid(&self, out: &mut Output) -> Result {
        out.line("flowchart TD")?;
        // Mermaid reads markup in labels; everything but letters and digits goes as a number.
        let quoted = |text: &str| -> String {
            let entity = |c: char| match c.is_alphanumeric() || c == ' ' {
                true => c.to_string(),
                false => format!("#{};", u32::from(c)),
            };
            plain(text).chars().map(entity).collect()
        };
        for (num, task) in &self.tasks {
            let label = quoted(&format!("{} ({})", task.spec.goal, task.state));
            out.line(format_args!("  t{num}[\"{label}\"]"))?;
        }
        for (num, needs) in self.tasks.keys().map(|num| (num, &self.needs[num])) {
            for need in needs {
                out.line(format_args!("  t{need} --> t{num}"))?;
            }
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let task = |task: &Task| serde_json::json!({"id": task.id, "state": task.state, "goal": task.spec.goal});
        let edge =
            |(task, need): (&Task, &Task)| serde_json::json!({"task": task.id, "needs": need.id});
        serde_json::json!({
            "tasks": self.tasks.values().map(task).collect::<Vec<_>>(),
            "edges": self.edges().map(edge).collect::<Vec<_>>(),
            "cut": self.cut,
        })
    }
}
