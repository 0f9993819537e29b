//! The JSON of `sessions show`: a session with its turns and receipts.

use hookloop_core::event::EventBody;
use hookloop_core::promise::Promise;
use hookloop_core::session::{Receipt, TurnKind};
use hookloop_core::time::Timestamp;
use hookloop_engine::store::StoredEvent;
use serde::Serialize;

use super::SessionJson;

/// `sessions show`: the session, with its turns and receipts, oldest first.
#[derive(Serialize)]
pub(crate) struct SessionDetailJson<'a> {
    #[serde(flatten)]
    session: SessionJson<'a>,
    turns: Vec<TurnJson<'a>>,
    receipts: Vec<ReceiptJson<'a>>,
}

/// A turn that has ended.
#[derive(Serialize)]
struct TurnJson<'a> {
    /// Counts all turns of the session, from 1.
    number: usize,
    kind: TurnKind,
    /// The iteration in which the turn ended.
    iteration: u32,
    agent: &'a str,
    /// `finished`, `failed`, `rate_limited` or `cancelled`.
    result: &'static str,
    /// The start of the last attempt.
    started_at: Timestamp,
    ended_at: Timestamp,
    duration_ms: u64,
    /// The git tree of all files after the turn; none if it is unknown.
    tree: Option<&'a str>,
    /// The first files that changed in the turn.
    changed: &'a [String],
    tokens: u64,
    /// None if the cost is unknown.
    cost_micros: Option<u64>,
    promises: &'a [Promise],
    message: &'a str,
}

/// The receipt of a gate, as in the log, with its time.
#[derive(Serialize)]
struct ReceiptJson<'a> {
    at: Timestamp,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

impl<'a> SessionDetailJson<'a> {
    /// Describes a session by all of its events.
    pub(crate) fn new(
        session: SessionJson<'a>,
        events: &'a [StoredEvent],
    ) -> SessionDetailJson<'a> {
        let turns = turns(session.agent, events);
        SessionDetailJson { session, turns, receipts: receipts(events) }
    }
}

/// Returns the turns that have ended. Events of older versions name no agent: it is the session's.
fn turns<'a>(session_agent: &'a str, events: &'a [StoredEvent]) -> Vec<TurnJson<'a>> {
    let mut turns: Vec<TurnJson<'a>> = Vec::new();
    let mut iteration = 0;
    let mut started_at = None;
    for stored in events {
        let at = stored.event.at;
        match &stored.event.body {
            EventBody::IterationStarted(started) => {
                iteration = started.number;
                started_at = Some(at);
            }
            EventBody::TurnStarted(_) => started_at = Some(at),
            EventBody::TurnEnded(ended) => {
                let number = turns.len() + 1;
                turns.push(TurnJson {
                    number,
                    kind: ended.turn,
                    iteration,
                    agent: if ended.agent.is_empty() { session_agent } else { &ended.agent },
                    result: ended.result.name(),
                    started_at: started_at.take().unwrap_or(at),
                    ended_at: at,
                    duration_ms: ended.duration_ms,
                    tree: ended.tree.as_deref(),
                    changed: &ended.changed,
                    tokens: ended.usage.tokens(),
                    cost_micros: ended.cost().known_micros(),
                    promises: &ended.promises,
                    message: &ended.message,
                });
            }
            _ => {}
        }
    }
    turns
}

fn receipts(events: &[StoredEvent]) -> Vec<ReceiptJson<'_>> {
    let receipts = events.iter().filter_map(|stored| match &stored.event.body {
        EventBody::ReceiptRecorded(receipt) => Some(ReceiptJson { at: stored.event.at, receipt }),
        _ => None,
    });
    receipts.collect()
}
