//! One session: its iterations, the steps of one of them, the agent's output, the waiting outputs.

use hookloop_core::session::plan::CompactCount;
use hookloop_core::session::timeline::StepContent;
use hookloop_engine::session::now::{NowStep, RunningHook};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{cell, choose, first, put, put_all, said, wrapped};
use crate::output::cut;
use crate::present;
use crate::present::{StepSeverity, clock, now};
use crate::tui::data::{AgentOutput, GateLine, SessionContent};
use crate::tui::state::ScreenState;
use crate::tui::steps;
use crate::tui::theme::{BOLD, DIM, PLAIN, sign, state_name};

/// Columns of the list of iterations.
const PARTS: u16 = 24;
/// A narrower screen has no room for it.
const PARTS_FROM: u16 = 60;
/// Gates whose checks are shown.
const GATES_MAX: u16 = 3;
/// The steps get at least this many times as many lines as the gates.
const STEPS_SHARE: u16 = 3;

pub(super) fn draw(state: &ScreenState, frame: &mut Frame<'_>, area: Rect) {
    let Some(shown) = &state.shown else {
        let text = match &state.session {
            Some(id) => format!("reading session {id} …"),
            None => "No session selected. Press 2, then enter.".to_owned(),
        };
        put(frame, area, Line::from(said(&text, DIM)));
        return;
    };
    let rows = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Fill(3),
        Constraint::Length(1),
        Constraint::Fill(2),
    ];
    let [top, blank, middle, rule, said_area] = Layout::vertical(rows).areas(area);
    let gates = u16::try_from(shown.gates.len()).unwrap_or(u16::MAX);
    let gates = gates.min(GATES_MAX).min(middle.height / (STEPS_SHARE + 1));
    let rows = [Constraint::Fill(1), Constraint::Length(gates)];
    let [middle, gates_area] = Layout::vertical(rows).areas(middle);
    put_all(frame, top, heading(state, shown));
    let parts_width = if area.width >= PARTS_FROM { PARTS } else { 0 };
    let columns = [Constraint::Length(parts_width), Constraint::Fill(1)];
    let [parts, steps] = Layout::horizontal(columns).areas(middle);
    put(frame, blank, titles(state, parts_width));
    draw_parts(state, shown, frame, parts);
    draw_steps(state, shown, frame, steps);
    put_all(frame, gates_area, shown.gates.iter().map(|gate| checks(state, gate)));
    put(frame, rule, waiting(state, shown));
    put_all(frame, said_area, speech(state, shown, said_area));
}

fn heading(state: &ScreenState, shown: &SessionContent) -> Vec<Line<'static>> {
    let session = &shown.session;
    let plan = &shown.session.plan;
    let limits = &plan.limits;
    let is_unproven = shown.is_unproven();
    let style = state.theme.session(shown.state, is_unproven);
    let (sign, name) = (sign(shown.state, is_unproven), state_name(shown.state, is_unproven));
    let work = present::work(&plan.work);
    let first_line = vec![
        Span::styled(format!("{sign} {name}"), style),
        Span::raw("  "),
        said(shown.id.as_str(), BOLD),
        Span::raw("  "),
        said(&work, PLAIN),
    ];
    let ran = match shown.timeline.ended {
        Some(ended) => ended.millis_since(shown.timeline.began),
        None => state.now.millis_since(shown.timeline.began),
    };
    let mut facts =
        format!("iteration {} of {}, {}", session.iteration, limits.max_iterations, clock(ran));
    if !session.usage.is_none() {
        facts.push_str(&format!(
            ", {} of {} tokens, {}",
            CompactCount(session.usage.tokens()),
            CompactCount(limits.max_tokens),
            session.cost().of(limits.max_cost_micros)
        ));
    }
    let now = match &shown.timeline.outcome {
        Some(outcome) => present::outcome(outcome),
        None => match &shown.now {
            Some(record) => now::line(record, state.now),
            None => steps::phase(session).to_owned(),
        },
    };
    let asked = if session.pause_requested { "; pause requested" } else { "" };
    let agent = session.agent();
    let machine = &shown.machine;
    let facts = match &shown.now {
        // On a narrow screen the end of the line is cut.
        Some(_) => format!("{now}{asked}  {facts}  {agent} on {machine}"),
        None => format!("{facts}  {now}{asked}  {agent} on {machine}"),
    };
    vec![Line::from(first_line), Line::from(first(&facts, DIM))]
}

fn titles(state: &ScreenState, parts_width: u16) -> Line<'static> {
    let follows = state.part.is_none() && state.step.is_none();
    let steps = if follows { "STEPS" } else { "STEPS  (esc: back to the latest)" };
    let parts =
        if parts_width > 0 { cell("ITERATIONS", usize::from(parts_width)) } else { String::new() };
    Line::from(Span::styled(format!("{parts}{steps}"), DIM))
}

fn draw_parts(state: &ScreenState, shown: &SessionContent, frame: &mut Frame<'_>, area: Rect) {
    let parts = &shown.timeline.parts;
    let at = state.part_at().unwrap_or(0);
    let height = usize::from(area.height);
    let top = at.saturating_sub(height / 2).min(parts.len().saturating_sub(height));
    for (row, (place, part)) in area.rows().zip(parts.iter().enumerate().skip(top)) {
        let (severity, text) = steps::part(part, state.now);
        let row = Rect { width: row.width.saturating_sub(1), ..row };
        put(frame, row, Line::from(Span::styled(text, state.theme.severity(severity))));
        if place == at {
            choose(frame, row);
        }
    }
}

fn draw_steps(state: &ScreenState, shown: &SessionContent, frame: &mut Frame<'_>, area: Rect) {
    let Some(part) = state.current_part() else { return };
    let at = state.step_at().unwrap_or(0);
    let limits = &shown.session.plan.limits;
    let height = usize::from(area.height);
    let width = usize::from(area.width);
    let running = if is_now(state) { running_hooks(shown) } else { &[] };
    let rows_of_running = running.len().min(height / 2);
    let height = height - rows_of_running;
    let top = at.saturating_sub(height / 2).min(part.steps.len().saturating_sub(height));
    let below = part.steps.len().min(height);
    for (row, hook) in area.rows().skip(below).zip(running) {
        let took = clock(state.now.millis_since(hook.since));
        let room = width.saturating_sub(took.width() + 4);
        let point = match shown.now.as_ref().map(|record| &record.step) {
            Some(NowStep::Hooks { point, .. }) => point.as_str(),
            _ => "",
        };
        let last = hook.last_line().map_or(String::new(), now::shown);
        let text = format!("{point} {} runs  {last}", now::shown(&hook.name));
        let style = state.theme.severity(StepSeverity::Heading);
        let line = vec![
            Span::styled("▶ ", style),
            Span::styled(cell(&cut(&text, room), room), style),
            Span::styled(format!(" {took}"), DIM),
        ];
        put(frame, row, Line::from(line));
    }
    if part.steps.is_empty() && running.is_empty() {
        put(frame, area, Line::from(Span::styled("no steps yet", DIM)));
    }
    let shown_steps = part.steps.iter().enumerate().skip(top).take(height);
    for (row, (place, step)) in area.rows().zip(shown_steps) {
        let steps::StepRow { severity, sign, text, took } = steps::row(step, limits, state.now);
        let room = width.saturating_sub(took.width() + 4);
        let text = cell(&cut(&text, room), room);
        let style = state.theme.severity(severity);
        let line = vec![
            Span::styled(format!("{sign} "), style),
            Span::styled(text, style),
            Span::styled(format!(" {took}"), DIM),
        ];
        put(frame, row, Line::from(line));
        if place == at {
            choose(frame, row);
        }
    }
}

/// Returns the checks of a gate's newest run: their counts, and the slowest ones.
fn checks(state: &ScreenState, line: &GateLine) -> Line<'static> {
    let is_red = line.counts.failed > 0;
    let severity = if is_red { StepSeverity::Bad } else { StepSeverity::Good };
    let counts = format!("{}: {}", line.gate, present::check_counts(line.counts));
    let mut spans = vec![said(&counts, state.theme.severity(severity))];
    if !line.slowest.is_empty() {
        let slowest =
            line.slowest.iter().map(|(id, ms)| format!("{id} {}", present::duration(*ms)));
        let slowest: Vec<String> = slowest.collect();
        spans.push(said(&format!("  slowest: {}", slowest.join(", ")), DIM));
    }
    Line::from(spans)
}

fn waiting(state: &ScreenState, shown: &SessionContent) -> Line<'static> {
    let pending = &shown.session.pending;
    let mut spans = vec![match (running_hooks(shown).first(), is_now(state)) {
        (Some(hook), true) => {
            let name = now::shown(&hook.name);
            let command = now::shown(&hook.command);
            said(&format!("── output of {name}: {command} "), DIM)
        }
        (None, true) => Span::styled("── agent output ", DIM),
        (_, false) => Span::styled("── agent message ", DIM),
    }];
    if !pending.is_empty() {
        let from: Vec<String> = pending.iter().map(|piped| piped.from.clone()).collect();
        let text = format!("── pending for the next prompt: {} ", present::some(&from));
        spans.push(said(&text, BOLD));
    }
    let receipts = &shown.session.receipts;
    if !receipts.is_empty() && !shown.session.is_stale {
        let gates: Vec<String> = receipts.iter().map(|receipt| receipt.gate.clone()).collect();
        spans.push(said(
            &format!("── proven by {} ", present::some(&gates)),
            state.theme.severity(StepSeverity::Good),
        ));
    }
    Line::from(spans)
}

/// The hooks that run in the session.
fn running_hooks(shown: &SessionContent) -> &[RunningHook] {
    shown.now.as_ref().map_or(&[], |record| &record.hooks)
}

/// Whether the selected part is the current one.
fn is_now(state: &ScreenState) -> bool {
    let last = state.shown.as_ref().map(|shown| shown.timeline.parts.len());
    state.part_at().map(|part| part + 1) == last
}

/// Returns the agent's output in the selected part.
fn speech(state: &ScreenState, shown: &SessionContent, area: Rect) -> Vec<Line<'static>> {
    let height = usize::from(area.height);
    let width = usize::from(area.width);
    let is_at_work = state.current_part().is_some_and(|part| {
        let is_open = |what: &StepContent| matches!(what, StepContent::Turn { ended: None, .. });
        part.ended.is_none()
            && part.steps.iter().any(|step| step.ended.is_none() && is_open(&step.what))
    });
    let notice = |text: String| vec![Line::from(said(&text, DIM))];
    if let Some(hook) = running_hooks(shown).first().filter(|_| is_now(state)) {
        let lines = hook.lines.iter().map(|line| Line::from(said(&now::shown(line), PLAIN)));
        let quiet = hook.quiet_for(state.now).is_some() || hook.lines.is_empty();
        let quiet = quiet.then(|| Line::from(said(&now::last_output(hook, state.now), DIM)));
        let skipped = (hook.lines.len() + usize::from(quiet.is_some())).saturating_sub(height);
        return lines.chain(quiet).skip(skipped).collect();
    }
    match (&shown.heard, is_at_work) {
        (AgentOutput::Here(heard), true) => {
            let lines = heard.last(height);
            if lines.is_empty() {
                return notice("no output yet".to_owned());
            }
            lines.into_iter().map(|line| Line::from(said(&line, PLAIN))).collect()
        }
        (AgentOutput::Elsewhere(machine), true) => {
            notice(format!("the agent runs on {machine}: its output appears here after the turn"))
        }
        (AgentOutput::External, true) => {
            notice("external session: its output is in its own terminal".to_owned())
        }
        (AgentOutput::Nothing, true) => notice("no output yet".to_owned()),
        (_, false) => {
            let last = state.current_part().and_then(|part| part.turns().last());
            let message = last.map(|ended| ended.message.clone()).unwrap_or_default();
            let lines = wrapped(&message, width, usize::MAX);
            let skipped = lines.len().saturating_sub(height);
            lines.into_iter().skip(skipped).map(Line::from).collect()
        }
    }
}
