//! Ids as people type and read them: the start is enough where it is unique.

use hookloop_core::id::TaskId;
use hookloop_engine::project::Project;
use hookloop_engine::store::{LogError, View};

use crate::error::{CliError, Result};
use crate::output::Cell;

/// The fewest characters that are shown to stand for an id.
const SHORT_MIN: usize = 4;
/// Ids that an ambiguous start is answered with.
const CANDIDATES: usize = 6;

/// The task that `text` names: by its whole id, or by the start of just one.
pub(crate) fn resolve(project: &Project, text: &str) -> Result<TaskId> {
    let invalid = |error| CliError::usage(error);
    let id: TaskId = text.parse().map_err(invalid)?;
    let mut matches = project.read(|view| match view.task(&id)? {
        Some(row) => Ok(vec![row.task.id]),
        None => view.ids_starting_with(text, CANDIDATES),
    })?;
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 => Err(CliError::refused(format!("there is no task `{id}`")).hint("hookloop task list")),
        n => {
            let names: Vec<&str> =
                matches.iter().take(CANDIDATES - 1).map(TaskId::as_str).collect();
            let more = if n == CANDIDATES { ", …" } else { "" };
            let message = format!("`{text}` could be {}{more}", names.join(", "));
            Err(CliError::refused(message).hint(format!("hookloop task show {}", names[0])))
        }
    }
}

pub(crate) fn resolve_all(project: &Project, texts: &[String]) -> Result<Vec<TaskId>> {
    texts.iter().map(|text| resolve(project, text)).collect()
}

/// An id, on a terminal with the part that is enough to type standing out.
pub(crate) fn cell(
    view: View<'_>,
    id: &TaskId,
    terminal: bool,
) -> std::result::Result<Cell, LogError> {
    if !terminal {
        return Ok(Cell::new(id));
    }
    let shared = |other: &Option<String>| match other {
        Some(other) => id.as_str().bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count(),
        None => 0,
    };
    let unique = view.neighbours(id)?.iter().map(shared).max().unwrap_or(0) + 1;
    let lead = unique.max(SHORT_MIN).min(id.as_str().len());
    Ok(Cell::new(id).lead(lead))
}
