//! The graph of tasks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::{choose, first, put, put_all, said};
use crate::output::cut;
use crate::picture::glyph;
use crate::tui::data::{TaskContent, TaskLine, WhichTasks};
use crate::tui::state::ScreenState;
use crate::tui::theme::{BOLD, DIM, PLAIN};

/// Lines about the task that is chosen.
const DETAILS: u16 = 4;
/// Columns of a line that the graph may use.
const GRAPH_MAX: usize = 40;

pub(super) fn draw(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    let Some(tasks) = &state.tasks else {
        put(frame, area, Line::from(Span::styled("reading tasks …", DIM)));
        return;
    };
    if state.task_list.is_empty() {
        let text = match (state.filter().is_empty(), state.which_tasks) {
            (false, _) => format!("No task matches `{}`.", state.filter()),
            (true, WhichTasks::Open) => {
                "No open tasks. Add one: hookloop task add \"…\" (c shows completed tasks)"
                    .to_owned()
            }
            (true, WhichTasks::All) => "No tasks yet. Add one: hookloop task add \"…\"".to_owned(),
        };
        put(frame, area, Line::from(said(&text, BOLD)));
        return;
    }
    let rows = [Constraint::Fill(1), Constraint::Length(1), Constraint::Length(DETAILS)];
    let [list, rule, detail] = Layout::vertical(rows).areas(area);
    let lines = state.task_list.window(usize::from(list.height));
    for (row, (place, is_chosen)) in list.rows().zip(lines) {
        let Some(line) = tasks.lines.get(place) else { continue };
        put(frame, row, task(state, line));
        if is_chosen {
            choose(frame, row);
        }
    }
    put(frame, rule, counts(state, tasks));
    let details = state.task().into_iter().flat_map(|task| task.details.iter());
    put_all(frame, detail, details.map(|line| Line::from(first(line, PLAIN))));
}

fn counts(state: &ScreenState, tasks: &TaskContent) -> Line<'static> {
    let (at, all) = state.task_list.count();
    let mut text = format!("── {at} of {all} ");
    if tasks.cut {
        text.push_str("── more: hookloop task list ");
    }
    let counts = state.overview.iter().flat_map(|overview| overview.tasks.iter());
    for (state, count) in counts.filter(|(_, count)| *count > 0) {
        text.push_str(&format!("── {count} {state} "));
    }
    if !state.filter().is_empty() {
        text.push_str(&format!("── filter: {} ", state.filter()));
    }
    Line::from(said(&text, DIM))
}

fn task(state: &ScreenState, line: &TaskLine) -> Line<'static> {
    let Some(task) = &line.task else {
        return Line::from(Span::styled(cut(&line.graph, GRAPH_MAX), DIM));
    };
    let style = state.theme.task(task.state);
    // Tasks that a filter selects are drawn without a graph.
    let place = if state.filter().is_empty() {
        cut(&line.graph, GRAPH_MAX)
    } else {
        glyph(task.state).to_owned()
    };
    Line::from(vec![
        Span::styled(place, style),
        Span::raw(" "),
        said(&task.id, BOLD),
        Span::styled(format!(" {} ", task.state), style),
        first(&task.goal, PLAIN),
    ])
}
