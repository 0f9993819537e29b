//! A session: its state with reasons, its iterations, and the outputs for its next prompt.

use std::sync::{Arc, Mutex};

use hookloop_core::excerpt::first_chars;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::plan::CompactCount;
use hookloop_core::session::{Receipt, Session, SessionPhase, SessionState, SessionWork};
use hookloop_engine::check_history::CheckHistory;
use hookloop_engine::session::lookup;
use hookloop_engine::store::SessionRow;
use minijinja::context;
use minijinja::value::Value;

use super::super::page::PagePart;
use super::super::records::{SessionRecord, lock};
use super::super::topics::Topic;
use super::super::words::{PageTime, class};
use super::overview::{state, took};
use super::{PageTitle, PageVisit, scale, steps};
use crate::error::{CliError, CliResult};
use crate::present::{self, now, why};

/// Parts of a session on a page.
const ON_A_PAGE: usize = 20;
/// Texts that wait, and how much of each.
const WAITING_MAX: usize = 20;
const WAITING_CHARS: usize = 2_000;
/// Slowest checks of a gate on a page.
const SLOWEST_SHOWN: usize = 5;

const FACTS: PagePart = PagePart::new("facts", "Now", &[Topic::This]).every(10);
/// The step changes without an event.
const NOW: PagePart = PagePart::new("now", "Running now", &[Topic::This]).every(2);
const TIMELINE: PagePart = PagePart::new("timeline", "Timeline", &[Topic::This]).every(10);
const WAITING: PagePart = PagePart::new("waiting", "Pending for the next prompt", &[Topic::This]);
const ITERATIONS: PagePart = PagePart::new("iterations", "Steps", &[Topic::This]);

pub(in super::super) fn session(visit: &PageVisit<'_>) -> CliResult<String> {
    let (row, record) = find(visit)?;
    let record = lock(&record);
    let window = PartWindow::of(visit, &record);
    let mut page = visit.page();
    page.part(FACTS, "session.html", || facts(visit, &row, &record))?;
    if !row.is_over() || visit.query.parts().iter().any(|part| part == NOW.name) {
        page.part(NOW, "now.html", || Ok::<_, CliError>(step(visit, &row)))?;
    }
    page.part(TIMELINE, "timeline.html", || {
        Ok::<_, CliError>(scale::draw(&record.timeline, window.shown.clone(), visit.now))
    })?;
    if !row.is_over() || !record.session.pending.is_empty() {
        page.part(WAITING, "waiting.html", || Ok::<_, CliError>(waiting(&record)))?;
    }
    page.part(ITERATIONS, "iterations.html", || {
        Ok::<_, CliError>(iterations(visit, &record, &window))
    })?;
    let title = format!("Session {}", row.name);
    let subject = Some(Subject::Session(row.id.clone()));
    visit.finish(page, &PageTitle { title: &title, section: "sessions", subject })
}

/// Returns the session that the address names.
pub(super) fn find(visit: &PageVisit<'_>) -> CliResult<(SessionRow, Arc<Mutex<SessionRecord>>)> {
    let none = || {
        let message = format!("there is no session `{}`", visit.id);
        CliError::refused(message).hint("hookloop sessions list")
    };
    let id: SessionId = visit.id.parse().map_err(|_| none())?;
    let row = visit.project().read(|view| view.session(&id))?.ok_or_else(none)?;
    let record = visit.site.records.get(visit.project(), &id)?.ok_or_else(none)?;
    Ok((row, record))
}

fn facts(visit: &PageVisit<'_>, row: &SessionRow, record: &SessionRecord) -> CliResult<Value> {
    let session = &record.session;
    let state = state(visit, row);
    let is_running = state == SessionState::Running.name();
    let mut reason = why::of_session(row, session, is_running);
    if let Some(record) = now::of(visit.project(), &row.id) {
        reason.replace_step(session, vec![now::line(&record, visit.now)]);
    }
    let why::StateReasons { mut reasons, next, .. } = reason;
    // Those have a list of their own here.
    reasons.retain(|reason| !reason.starts_with(why::RECEIPT));
    let is_external = lookup::is_external(row);
    let is_review = matches!(session.plan.work, SessionWork::Review(_));
    let can_undo = !is_running && !is_external && !is_review && session.iteration > 0;
    let limits = &session.plan.limits;
    Ok(context! {
        id => row.id.as_str(), class => class(&state), state => &state, reasons, next,
        name => &row.name,
        work => present::work(&session.plan.work),
        prompt => prompt(session),
        agent => &row.agent, machine => &row.machine, worker => &session.plan.worker,
        task => &row.task,
        task_link => row.task.as_ref().map(|task| visit.address(&format!("tasks/{task}"))),
        started => PageTime::new(row.started_at, visit.now),
        took => took(visit, row),
        iteration => row.iteration, iterations_max => limits.max_iterations,
        tokens => CompactCount(row.tokens).to_string(), tokens_max => CompactCount(limits.max_tokens).to_string(),
        cost => row.cost().of(limits.max_cost_micros),
        receipts => session.receipts.iter().map(|receipt| gate(receipt, &record.checks)).collect::<Vec<_>>(),
        is_pausing => session.pause_requested && is_running,
        can_pause => is_running && !is_external && !session.pause_requested,
        can_stop => is_running && !is_external,
        can_resume => !row.is_over() && !is_external && (row.state == SessionState::Paused || state == SessionState::Interrupted.name()),
        can_tell => !row.is_over(),
        undo_link => can_undo.then(|| visit.address(&format!("sessions/{}/undo", row.id))),
        action => visit.address("do"),
    })
}

/// A gate of the last run: its result, the counts of its checks, its room and its slowest checks.
fn gate(receipt: &Receipt, checks: &CheckHistory) -> Value {
    let slowest = checks.gate(&receipt.gate).map(|gate| gate.slowest(SLOWEST_SHOWN));
    let slowest = slowest.into_iter().flatten();
    let slowest: Vec<Value> =
        slowest.map(|(id, ms)| context! { id, took => present::duration(ms) }).collect();
    let counts = receipt.checks.map(|counts| {
        context! { passed => counts.passed, failed => counts.failed, skipped => counts.skipped }
    });
    // A receipt that is used again has no duration of its own.
    let is_own = receipt.reused_from.is_none();
    context! {
        gate => &receipt.gate, point => &receipt.point, status => receipt.status.name(), class => class(receipt.status.name()),
        tree => receipt.tree.as_deref().map(present::short_hash),
        took => is_own.then(|| present::duration(receipt.duration_ms)),
        room => receipt.room.as_ref().map(present::room),
        reused_from => &receipt.reused_from,
        counts, slowest,
    }
}

/// Returns the number of the last turn that began; 0 if none did.
pub(super) fn last_turn(session: &Session) -> u32 {
    // A turn that a crash interrupted has not ended.
    session.turns + u32::from(matches!(session.phase, SessionPhase::Turn(_)))
}

/// The step that the session is at.
fn step(visit: &PageVisit<'_>, row: &SessionRow) -> Value {
    let record = now::of(visit.project(), &row.id);
    let hooks = record.iter().flat_map(|record| &record.hooks).map(|hook| {
        context! {
            name => now::shown(&hook.name),
            command => now::shown(&hook.command),
            lines => hook.lines.iter().map(|line| now::shown(line)).collect::<Vec<_>>(),
            is_quiet => hook.quiet_for(visit.now).is_some(),
            quiet => now::last_output(hook, visit.now),
        }
    });
    let lines = record.iter().flat_map(|record| &record.lines).map(|line| now::shown(line));
    let absent = if row.is_over() {
        "The session has ended."
    } else {
        "No process on this machine runs the session."
    };
    context! {
        step => record.as_ref().map(|record| now::line(record, visit.now)),
        hooks => hooks.collect::<Vec<_>>(),
        lines => lines.collect::<Vec<_>>(),
        absent,
    }
}

fn prompt(session: &Session) -> Option<&str> {
    match &session.plan.work {
        SessionWork::Prompt(prompt) if prompt.lines().count() > 1 => Some(prompt),
        _ => None,
    }
}

fn waiting(record: &SessionRecord) -> Value {
    let pending = &record.session.pending;
    let rows: Vec<Value> = pending
        .iter()
        .take(WAITING_MAX)
        .map(|piped| {
            let text = first_chars(&piped.text, WAITING_CHARS);
            let is_cut = text.len() < piped.text.len();
            context! { from => &piped.from, point => &piped.point, text, is_cut }
        })
        .collect();
    context! { rows, more => pending.len().saturating_sub(WAITING_MAX) }
}

/// Which parts of a session are on the page.
struct PartWindow {
    shown: std::ops::Range<usize>,
    /// By their place in all that the session has had.
    first: usize,
    count: usize,
}

impl PartWindow {
    /// Returns the last parts, or those before the requested one.
    fn of(visit: &PageVisit<'_>, record: &SessionRecord) -> PartWindow {
        let kept = record.timeline.parts.len();
        let dropped = record.timeline.parts_dropped;
        let end =
            visit.query.number::<usize>("before").map_or(kept, |end| end.saturating_sub(dropped));
        let end = end.clamp(usize::from(kept > 0), kept);
        let start = end.saturating_sub(ON_A_PAGE);
        PartWindow { shown: start..end, first: dropped + start, count: dropped + kept }
    }
}

fn iterations(visit: &PageVisit<'_>, record: &SessionRecord, window: &PartWindow) -> Value {
    // The last two parts are open: the end alone has little content.
    let open = record.timeline.parts.len().saturating_sub(2);
    let shown = record.timeline.parts.range(window.shown.clone()).enumerate();
    let rows: Vec<Value> = shown
        .map(|(i, part)| {
            let place = window.shown.start + i;
            steps::part(
                visit,
                part,
                &record.timeline.plan.limits,
                steps::PartPlace { key: window.first + i, is_open: place >= open },
            )
        })
        .collect();
    let end = window.first + rows.len();
    let before = |place: usize| visit.query.with("before", &place.to_string());
    context! {
        rows => rows.into_iter().rev().collect::<Vec<_>>(),
        older => (window.first > record.timeline.parts_dropped).then(|| before(window.first)),
        newer => (end < window.count).then(|| before((end + ON_A_PAGE).min(window.count))),
        dropped => record.timeline.parts_dropped,
    }
}
