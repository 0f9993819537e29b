//! Ids of tasks as people type them: a unique start is enough.

use hookloop_core::id::TaskId;
use hookloop_engine::project::Project;
use hookloop_engine::store::{LogError, View};

use crate::error::{CliError, CliResult};
use crate::output::TableCell;

/// The fewest characters of an id that are highlighted.
const SHORT_MIN: usize = 4;
/// Ids that an error lists for an ambiguous start.
const CANDIDATES: usize = 6;

/// Returns the task that `text` names by its id, or by a start that only one id has.
pub(crate) fn resolve(project: &Project, text: &str) -> CliResult<TaskId> {
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

pub(crate) fn resolve_all(project: &Project, texts: &[String]) -> CliResult<Vec<TaskId>> {
    texts.iter().map(|text| resolve(project, text)).collect()
}

/// Returns an id as a cell; a terminal highlights the part that is enough to type.
pub(crate) fn cell(
    view: View<'_>,
    id: &TaskId,
    terminal: bool,
) -> std::result::Result<TableCell, LogError> {
    if !terminal {
        return Ok(TableCell::new(id));
    }
    let shared = |other: &Option<String>| match other {
        Some(other) => id.as_str().bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count(),
        None => 0,
    };
    let unique = view.neighbours(id)?.iter().map(shared).max().unwrap_or(0) + 1;
    let lead = unique.max(SHORT_MIN).min(id.as_str().len());
    Ok(TableCell::new(id).lead(lead))
}
