//! Tasks by the million, in and out, as JSON lines.
//!
//! An import reads its input twice: first to know, before anything is stored, that every line is a
//! task and that the graph is whole and has no cycle; then task by task, dependencies first, in
//! batches. Tasks that are there already are passed over, so an import that was cut short is
//! finished by running it again.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use hookloop_core::command::Command;
use hookloop_core::decide::{DEPENDENCIES_MAX, check_spec};
use hookloop_core::event::{Empty, EventBody, Started};
use hookloop_core::id::{Subject, TaskId};
use hookloop_core::task::{Obstacle, Outcome, Priority, Task, TaskSpec, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_store::view::View;
use serde::{Deserialize, Serialize};

use crate::project::{EngineError, Project, fresh_id, now};
use crate::work::{Origin, Work};

/// The longest line of an import.
pub const LINE_MAX: u64 = 1024 * 1024;
/// Events that a batch of an import leaves free for reactions.
const RESERVE: usize = 450;

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("line {line}: {message}")]
    Line { line: usize, message: String },
    #[error("the input has a cycle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    #[error(
        "line {line}: `{task}` depends on `{on}`, which is neither in the input nor in the project"
    )]
    Missing { line: usize, task: String, on: String },
    #[error("can't read the input: {0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A task as a line of JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    pub goal: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliverables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Obstacle>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

impl Line {
    fn into_spec(self) -> TaskSpec {
        TaskSpec {
            goal: self.goal,
            description: self.description,
            deliverables: self.deliverables,
            labels: self.labels,
            priority: self.priority,
            kind: self.kind,
            parent_task_id: self.parent,
        }
    }

    fn of(task: Task, depends_on: Vec<TaskId>) -> Line {
        Line {
            id: Some(task.id),
            goal: task.spec.goal,
            description: task.spec.description,
            deliverables: task.spec.deliverables,
            labels: task.spec.labels,
            priority: task.spec.priority,
            kind: task.spec.kind,
            parent: task.spec.parent_task_id,
            depends_on,
            state: Some(task.state),
            blocked: task.obstacle,
            outcome: task.outcome,
            created_at: Some(task.created_at),
            started_at: task.started_at,
            completed_at: task.completed_at,
        }
    }
}

/// What is wrong with a line; its only number is the one in the input.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what}, at column {}", error.column()),
        None => text,
    }
}

/// Writes every task through `write`, dependencies before what depends on them where they were
/// added in that order.
pub fn export<E: From<EngineError>>(
    project: &Project,
    mut write: impl FnMut(&Line) -> Result<(), E>,
) -> Result<(), E> {
    let mut failed = None;
    project.read(|view: View<'_>| {
        view.each_task(|row| {
            let needs = view.needs_of(row.num).and_then(|nums| {
                nums.into_iter().map(|num| view.id_of(num)).collect::<Result<_, _>>()
            });
            let written = match needs {
                Ok(needs) => write(&Line::of(row.task, needs)),
                Err(error) => Err(EngineError::from(error).into()),
            };
            failed = written.err();
            failed.is_none()
        })
    })?;
    failed.map_or(Ok(()), Err)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: u64,
    /// Tasks that were there already.
    pub present: u64,
}

/// Imports the tasks that `input` holds. `progress` is told of (done, all).
pub fn import(
    project: &Project,
    input: impl Read + Seek,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Imported, ImportError> {
    let mut input = BufReader::with_capacity(1 << 18, input);
    let outline = Outline::read(&mut input)?;
    outline.check_missing(project)?;
    let order = outline.order()?;
    let numbers = (0..outline.lines.len()).map(|line| outline.number_of(line)).collect();
    let offsets = outline.lines;
    let lines = LinesInOrder { input, offsets, numbers, order, next: 0, at: None };
    project.store.begin_bulk().map_err(EngineError::from)?;
    let imported = import_all(project, lines, progress);
    project.store.finish_bulk().map_err(EngineError::from)?;
    imported
}

fn import_all(
    project: &Project,
    mut lines: LinesInOrder<impl Read + Seek>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let all = lines.order.len() as u64;
    let mut held = lines.next()?;
    while held.is_some() {
        let (batch, rest) = import_batch(project, held, &mut lines)?;
        imported.added += batch.added;
        imported.present += batch.present;
        held = rest;
        progress(imported.added + imported.present, all);
    }
    Ok(imported)
}

type Numbered = (usize, Line);

/// Imports as many tasks as one batch takes; answers the line that no longer fitted.
fn import_batch(
    project: &Project,
    mut held: Option<Numbered>,
    lines: &mut LinesInOrder<impl Read + Seek>,
) -> Result<(Imported, Option<Numbered>), ImportError> {
    let mut batch = Vec::new();
    let mut events = 0;
    while let Some((number, line)) = held.take() {
        events += 3 + line.depends_on.len();
        if !batch.is_empty() && events > hookloop_store::log::MAX_BATCH - RESERVE {
            held = Some((number, line));
            break;
        }
        batch.push((number, line, fresh_id()));
        held = lines.next()?;
    }
    let imported = project.store.transact(|unit| {
        let mut work = Work::new(unit, &project.rules, now())?;
        let mut imported = Imported::default();
        for (number, line, id) in &batch {
            let mut origin = Origin::command(*id, &project.actor);
            origin.at = line.created_at;
            match work.import(line, &origin).map_err(ImportError::from)? {
                Ok(true) => imported.added += 1,
                Ok(false) => imported.present += 1,
                Err(message) => return Err(ImportError::Line { line: *number, message }),
            }
        }
        work.react().map_err(ImportError::from)?;
        Ok(imported)
    })?;
    Ok((imported, held))
}

impl From<hookloop_store::store::StoreError> for ImportError {
    fn from(error: hookloop_store::store::StoreError) -> Self {
        ImportError::Engine(error.into())
    }
}

impl Work<'_, '_, '_> {
    /// Adds one task; answers whether it was new. What it went through elsewhere is taken over
    /// without the hooks that followed it there.
    fn import(
        &mut self,
        line: &Line,
        origin: &Origin,
    ) -> Result<Result<bool, String>, EngineError> {
        let id = line.id.clone().unwrap_or_else(|| TaskId::generate(origin.id));
        if let Some(there) = self.unit.view()?.task(&id)? {
            return Ok(match there.task.spec.goal == line.goal {
                true => Ok(false),
                false => Err(format!("task `{id}` exists already, with another goal")),
            });
        }
        let command = Command::AddTask {
            id: id.clone(),
            spec: line.clone().into_spec(),
            depends_on: line.depends_on.clone(),
        };
        if let Err(refusal) = self.perform(&command, origin)? {
            return Ok(Err(refusal.to_string()));
        }
        for (i, (at, body)) in past(line).into_iter().enumerate() {
            let origin = Origin { id: origin.id.derive("past", i), at, ..origin.clone() };
            self.stage_quietly(origin, Subject::Task(id.clone()), body)?;
        }
        Ok(Ok(true))
    }
}

/// What brought a task to the state that its line names, and when.
fn past(line: &Line) -> Vec<(Option<Timestamp>, EventBody)> {
    let started = (line.started_at, EventBody::TaskStarted(Started { context: None }));
    let was_started = match line.state {
        None | Some(TaskState::Created | TaskState::Ready) => false,
        Some(TaskState::Active | TaskState::Submitted) => true,
        Some(TaskState::Completed | TaskState::Blocked) => line.started_at.is_some(),
    };
    let last = match line.state {
        None | Some(TaskState::Created | TaskState::Ready | TaskState::Active) => None,
        Some(TaskState::Submitted) => Some((None, EventBody::TaskSubmitted(Empty {}))),
        Some(TaskState::Completed) => {
            let completed = EventBody::TaskCompleted(line.outcome.clone().unwrap_or_default());
            Some((line.completed_at, completed))
        }
        Some(TaskState::Blocked) => {
            Some((None, EventBody::TaskBlocked(line.blocked.clone().unwrap_or_default())))
        }
    };
    was_started.then_some(started).into_iter().chain(last).collect()
}

/// Ids and dependencies of an input, as numbers.
#[derive(Default)]
struct Outline {
    names: HashMap<Box<str>, u32>,
    /// For each name, the line that defines it (1 is the first), or 0.
    defined: Vec<u32>,
    /// For each line, where it starts, its name, and where its dependencies end in `needs`.
    lines: Vec<u64>,
    line_names: Vec<u32>,
    ends: Vec<u32>,
    needs: Vec<u32>,
    /// Every dependency in the input is defined before it is used.
    sorted: bool,
}

impl Outline {
    fn read(input: &mut (impl BufRead + Seek)) -> Result<Outline, ImportError> {
        input.seek(SeekFrom::Start(0))?;
        let mut outline = Outline { sorted: true, ..Outline::default() };
        let (mut text, mut offset, mut number) = (String::new(), 0, 0);
        loop {
            text.clear();
            let len = input.by_ref().take(LINE_MAX).read_line(&mut text)? as u64;
            if len == 0 {
                return Ok(outline);
            }
            number += 1;
            let at_line = |message: String| ImportError::Line { line: number, message };
            if len == LINE_MAX {
                return Err(at_line(format!("longer than {LINE_MAX} bytes")));
            }
            if !text.trim().is_empty() {
                let line: Line =
                    serde_json::from_str(&text).map_err(|error| at_line(said(&error)))?;
                outline.add(number, offset, &line).map_err(at_line)?;
                check_spec(&line.into_spec()).map_err(|refusal| at_line(refusal.to_string()))?;
            }
            offset += len;
        }
    }

    fn add(&mut self, number: usize, offset: u64, line: &Line) -> Result<(), String> {
        let generated;
        let name = match &line.id {
            Some(id) => id.as_str(),
            None => {
                generated = format!("line {number}");
                &generated
            }
        };
        check_dependencies(&line.depends_on)?;
        for on in &line.depends_on {
            let on = self.number(on.as_str());
            self.sorted &= self.defined[on as usize] > 0;
            self.needs.push(on);
        }
        let name_number = self.number(name);
        if self.defined[name_number as usize] > 0 {
            let first = self.defined[name_number as usize];
            return Err(format!("`{name}` is defined a second time; the first is line {first}"));
        }
        self.defined[name_number as usize] = number as u32;
        self.lines.push(offset);
        self.line_names.push(name_number);
        self.ends.push(self.needs.len() as u32);
        Ok(())
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.defined.len() as u32;
        self.names.insert(name.into(), number);
        self.defined.push(0);
        number
    }

    fn needs_of(&self, line: usize) -> &[u32] {
        let start = if line == 0 { 0 } else { self.ends[line - 1] };
        &self.needs[start as usize..self.ends[line] as usize]
    }

    /// The place of a line in the input, where blank lines count too; 1 is the first.
    fn number_of(&self, line: usize) -> usize {
        self.defined[self.line_names[line] as usize] as usize
    }

    fn name(&self, number: u32) -> String {
        let found = self.names.iter().find(|(_, n)| **n == number);
        found.map_or_else(String::new, |(name, _)| name.to_string())
    }

    /// Dependencies that the input does not define have to be in the project.
    fn check_missing(&self, project: &Project) -> Result<(), ImportError> {
        if self.defined.iter().all(|line| *line > 0) {
            return Ok(());
        }
        for line in 0..self.lines.len() {
            for &on in self.needs_of(line).iter().filter(|on| self.defined[**on as usize] == 0) {
                let name = self.name(on);
                let id = name.parse::<TaskId>().ok();
                let there = id.map(|id| project.read(|view| view.task(&id))).transpose()?;
                if there.flatten().is_none() {
                    let task = self.name(self.line_names[line]);
                    let line = self.number_of(line);
                    return Err(ImportError::Missing { line, task, on: name });
                }
            }
        }
        Ok(())
    }

    /// The lines with dependencies before what depends on them.
    fn order(&self) -> Result<Vec<u32>, ImportError> {
        let lines = self.lines.len();
        if self.sorted {
            return Ok((0..lines as u32).collect());
        }
        let mut line_of = vec![u32::MAX; self.defined.len()];
        for (line, name) in self.line_names.iter().enumerate() {
            line_of[*name as usize] = line as u32;
        }
        let mut open = vec![0u32; lines];
        let mut dependents = vec![Vec::new(); lines];
        for (line, open) in open.iter_mut().enumerate() {
            for on in self.needs_of(line).iter().map(|on| line_of[*on as usize]) {
                if on != u32::MAX {
                    *open += 1;
                    dependents[on as usize].push(line as u32);
                }
            }
        }
        let mut order: Vec<u32> = (0..lines as u32).filter(|l| open[*l as usize] == 0).collect();
        let mut next = 0;
        while let Some(&line) = order.get(next) {
            next += 1;
            for &dependent in &dependents[line as usize] {
                open[dependent as usize] -= 1;
                if open[dependent as usize] == 0 {
                    order.push(dependent);
                }
            }
        }
        match order.len() == lines {
            true => Ok(order),
            false => Err(ImportError::Cycle(self.cycle(&open, &line_of))),
        }
    }

    /// A cycle among the lines that still wait: from any of them, dependency after dependency,
    /// until one comes twice.
    fn cycle(&self, open: &[u32], line_of: &[u32]) -> Vec<String> {
        let waits = |line: &u32| *line != u32::MAX && open[*line as usize] > 0;
        let Some(mut line) = (0..open.len() as u32).find(waits) else { return vec![] };
        let mut trail: Vec<u32> = Vec::new();
        let mut seen = HashMap::new();
        loop {
            if let Some(start) = seen.insert(line, trail.len()) {
                trail.push(line);
                let names = trail[start..].iter().map(|l| self.name(self.line_names[*l as usize]));
                return names.collect();
            }
            trail.push(line);
            let needs = self.needs_of(line as usize);
            match needs.iter().map(|on| line_of[*on as usize]).find(|on| waits(on)) {
                Some(on) => line = on,
                None => return vec![],
            }
        }
    }
}

fn check_dependencies(depends_on: &[TaskId]) -> Result<(), String> {
    if depends_on.len() > DEPENDENCIES_MAX {
        return Err(format!("{} dependencies; at most {DEPENDENCIES_MAX}", depends_on.len()));
    }
    match depends_on.iter().enumerate().find(|(i, on)| depends_on[..*i].contains(on)) {
        Some((_, on)) => Err(format!("depends on `{on}` twice")),
        None => Ok(()),
    }
}

/// The lines of an input in a given order.
struct LinesInOrder<R> {
    input: BufReader<R>,
    offsets: Vec<u64>,
    numbers: Vec<usize>,
    order: Vec<u32>,
    next: usize,
    /// Where the input stands.
    at: Option<u64>,
}

impl<R: Read + Seek> LinesInOrder<R> {
    fn next(&mut self) -> Result<Option<Numbered>, ImportError> {
        let Some(&line) = self.order.get(self.next) else { return Ok(None) };
        self.next += 1;
        let (number, offset) = (self.numbers[line as usize], self.offsets[line as usize]);
        match self.at {
            Some(at) => self.input.seek_relative(offset as i64 - at as i64)?,
            None => {
                self.input.seek(SeekFrom::Start(offset))?;
            }
        }
        let mut text = String::new();
        let len = self.input.read_line(&mut text)?;
        self.at = Some(offset + len as u64);
        let parsed = serde_json::from_str(&text);
        let parsed =
            parsed.map_err(|error| ImportError::Line { line: number, message: said(&error) })?;
        Ok(Some((number, parsed)))
    }
}
