//! Imports and exports tasks as JSON lines, by the million.
//!
//! An import reads its input twice. The first pass checks every line, and that the graph is complete and has no
//! cycle, before anything is stored. The second pass stores the tasks in batches, dependencies first. Existing
//! tasks are skipped, so running an interrupted import again completes it.

mod line;
mod outline;

use std::io::{BufReader, Read, Seek};

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::command::Command;
use hookloop_core::id::{Subject, TaskId};
use hookloop_store::view::View;
pub use line::ImportLine;
use line::past;
use outline::{ImportOutline, LinesInOrder};

use crate::batch::{Batch, EventOrigin};
use crate::error::EngineError;
use crate::project::Project;

/// The longest line of an import.
pub(crate) const LINE_MAX: u64 = 1024 * 1024;
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

/// Writes every task through `write`, in the order in which the tasks were added.
///
/// A task comes after its dependencies if they were added before it.
pub fn export<E: From<EngineError>>(
    project: &Project,
    mut write: impl FnMut(&ImportLine) -> Result<(), E>,
) -> Result<(), E> {
    let mut failed = None;
    project.read(|view: View<'_>| {
        view.each_task(|row| {
            let needs = view.needs_of(row.num).and_then(|nums| {
                nums.into_iter().map(|num| view.id_of(num)).collect::<Result<_, _>>()
            });
            let written = match needs {
                Ok(needs) => write(&ImportLine::of(row.task, needs)),
                Err(error) => Err(EngineError::from(error).into()),
            };
            failed = written.err();
            failed.is_none()
        })
    })?;
    failed.map_or(Ok(()), Err)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportedTasks {
    pub added: u64,
    /// Tasks that the project already had.
    pub present: u64,
}

/// Imports the tasks of `input`, and calls `progress` with (done, all) after each batch.
pub fn import(
    project: &Project,
    input: impl Read + Seek,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ImportedTasks, ImportError> {
    let mut input = BufReader::with_capacity(1 << 18, input);
    let outline = ImportOutline::read(&mut input)?;
    outline.check_missing(project)?;
    let lines = LinesInOrder::new(input, outline)?;
    project.store.begin_bulk().map_err(EngineError::from)?;
    let imported = import_all(project, lines, progress);
    project.store.finish_bulk().map_err(EngineError::from)?;
    imported
}

fn import_all(
    project: &Project,
    mut lines: LinesInOrder<impl Read + Seek>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ImportedTasks, ImportError> {
    let mut imported = ImportedTasks::default();
    let all = lines.len() as u64;
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

type NumberedLine = (usize, ImportLine);

/// Imports as many tasks as fit into one batch, and returns the line that did not fit.
fn import_batch(
    project: &Project,
    mut held: Option<NumberedLine>,
    lines: &mut LinesInOrder<impl Read + Seek>,
) -> Result<(ImportedTasks, Option<NumberedLine>), ImportError> {
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
    let cause = project.origin()?.cause;
    let imported = project.store.transact(|unit| {
        let mut work = Batch::new(unit, &project.rules, now())?;
        let mut imported = ImportedTasks::default();
        for (number, line, id) in &batch {
            let mut origin = EventOrigin::command(*id, project.actor());
            origin.cause.clone_from(&cause);
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

impl Batch<'_, '_, '_> {
    /// Adds one task, and returns false if it already exists with the same goal.
    ///
    /// The events that lead to its imported state run no hooks, because those hooks ran where the
    /// task came from.
    fn import(
        &mut self,
        line: &ImportLine,
        origin: &EventOrigin,
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
            let origin = EventOrigin { id: origin.id.derive("past", i), at, ..origin.clone() };
            self.stage_quietly(origin, Subject::Task(id.clone()), body)?;
        }
        Ok(Ok(true))
    }
}
