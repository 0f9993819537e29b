//! The events of the project, the latest first.

use hookloop_core::excerpt::first_chars;
use hookloop_core::id::Subject;
use hookloop_engine::store::{Seq, StoredEvent};
use minijinja::context;
use minijinja::value::Value;

use super::super::page::PagePart;
use super::super::topics::Topic;
use super::super::words::PageTime;
use super::{PageTitle, PageVisit};
use crate::error::CliResult;

/// Events on a page.
const ON_A_PAGE: usize = 100;
/// Positions of the log that one read covers, and reads of one page: positions are not dense on every engine.
const READ_AT_ONCE: Seq = 400;
const READS_MAX: usize = 50;
/// Characters of an event's data.
const DATA_CHARS: usize = 400;

const LIST: PagePart = PagePart::new("list", "Log", &[Topic::Log]);

pub(in super::super) fn log(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(LIST, "log.html", || list(visit))?;
    visit.finish(page, &PageTitle::new("Log", "log"))
}

fn list(visit: &PageVisit<'_>) -> CliResult<Value> {
    let head = visit.project().read(|view| Ok(view.totals()?.head))?;
    let wanted = visit.query.get("type");
    let before = visit.query.number::<Seq>("before");
    let (found, next) = latest(visit, before.unwrap_or(Seq::MAX).min(head + 1), wanted)?;
    let rows: Vec<Value> = found.iter().map(|stored| event_line(visit, stored)).collect();
    Ok(context! {
        rows, head,
        kind => wanted.unwrap_or_default(),
        newest => before.map(|_| visit.query.with("before", "")),
        older => next.map(|seq| visit.query.with("before", &seq.to_string())),
    })
}

/// Returns the last events before position `end`, the latest first, and the end of the page before.
fn latest(
    visit: &PageVisit<'_>,
    mut end: Seq,
    kind: Option<&str>,
) -> CliResult<(Vec<StoredEvent>, Option<Seq>)> {
    let is_wanted = |stored: &StoredEvent| match kind {
        Some(kind) => stored.event.body.kind() == kind,
        None => !stored.event.body.is_bookkeeping(),
    };
    let mut found = Vec::new();
    for _ in 0..READS_MAX {
        if end <= 1 {
            return Ok((found, None));
        }
        let start = end.saturating_sub(READ_AT_ONCE).max(1);
        let limit = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut events = visit.project().log().read(start, limit)?;
        events.retain(|stored| stored.seq < end);
        for stored in events.into_iter().rev().filter(|stored| is_wanted(stored)) {
            if found.len() == ON_A_PAGE {
                let next = found.last().map(|last: &StoredEvent| last.seq);
                return Ok((found, next));
            }
            found.push(stored);
        }
        end = start;
    }
    Ok((found, Some(end)))
}

/// Returns an event for a line of a table.
pub(super) fn event_line(visit: &PageVisit<'_>, stored: &StoredEvent) -> Value {
    let event = &stored.event;
    let data = match event.body.data() {
        serde_json::Value::Object(map) if map.is_empty() => String::new(),
        data => data.to_string(),
    };
    let shown = first_chars(&data, DATA_CHARS);
    let (about, link) = match &event.subject {
        Subject::Task(id) => (id.to_string(), Some(visit.address(&format!("tasks/{id}")))),
        Subject::Session(id) => (id.to_string(), Some(visit.address(&format!("sessions/{id}")))),
        _ => (String::new(), None),
    };
    context! {
        seq => stored.seq, at => PageTime::new(event.at, visit.now), kind => event.body.kind(),
        actor => &event.actor, is_cut => shown.len() < data.len(), data => shown, about, link,
        hook => event.cause.as_ref().map(|cause| cause.hook.as_str()),
    }
}
