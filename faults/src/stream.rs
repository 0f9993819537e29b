//! The log, read from each node without the product, by direct gets, which a node serves from its
//! own replica.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode};
use futures_util::StreamExt;
use hookloop_testbed::{Cluster, Server, poll};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number of messages per request.
const AT_ONCE: u64 = 1_000;
/// Timeout of a node's response, and for replicas to become equal.
const PATIENCE: Duration = Duration::from_secs(10);
const CAUGHT_UP: Duration = Duration::from_secs(60);

/// An event as stored in the stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    /// Time at which the leader stored the event.
    pub(crate) at_ms: i64,
    pub(crate) project: String,
    /// The last token of the message's subject: a task, `_cur`, `_w-…`.
    pub(crate) subject: String,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) after: Option<u64>,
    pub(crate) data: Value,
    /// The batch of the event, and its number in the batch.
    pub(crate) batch: Option<(String, u64)>,
}

#[derive(Deserialize)]
struct Payload {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    actor: String,
    #[serde(default)]
    after: Option<u64>,
    data: Value,
}

/// Returns the name of the only stream of events.
pub(crate) fn name(cluster: &Cluster) -> String {
    let found = poll(CAUGHT_UP, || {
        let answer = cluster.nodes().iter().find_map(|node| ask(node, "$JS.API.STREAM.NAMES"))?;
        let names = answer["streams"].as_array()?;
        names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| name.starts_with("HL_EV_"))
            .map(str::to_owned)
    });
    found.expect("a stream of events")
}

/// Returns the stream that has the events of a project.
pub(crate) fn of_project(cluster: &Cluster, project: &str) -> Option<String> {
    let awake = || cluster.nodes().iter().filter(|node| node.is_awake());
    let names = awake().find_map(|node| ask(node, "$JS.API.STREAM.NAMES"))?;
    let filter = json!({ "subjects_filter": format!("hl.ev.*.{project}.>") }).to_string();
    let has_some = |name: &&str| {
        let subject = format!("$JS.API.STREAM.INFO.{name}");
        let info = awake().find_map(|node| node.request(&subject, &filter).ok());
        info.is_some_and(|info| info["state"]["subjects"].is_object())
    };
    let names = names["streams"].as_array()?.iter().filter_map(Value::as_str);
    names.filter(|name| name.starts_with("HL_EV_")).find(has_some).map(str::to_owned)
}

/// Returns the last sequence of the stream, as reported by its leader.
pub(crate) fn last(cluster: &Cluster, stream: &str) -> Option<u64> {
    info(cluster, stream)?["state"]["last_seq"].as_u64()
}

/// Waits until every replica of the stream has caught up with the leader.
pub(crate) fn wait_caught_up(cluster: &Cluster, stream: &str) -> bool {
    let caught_up = || {
        let info = info(cluster, stream)?;
        let replicas = info["cluster"]["replicas"].as_array()?;
        let current = |one: &Value| {
            one["current"] == true
                && one["lag"].as_u64().unwrap_or(0) == 0
                && one["offline"] != true
        };
        (replicas.len() == 2 && replicas.iter().all(current)).then_some(())
    };
    poll(CAUGHT_UP, caught_up).is_some()
}

fn info(cluster: &Cluster, stream: &str) -> Option<Value> {
    let subject = format!("$JS.API.STREAM.INFO.{stream}");
    let awake = cluster.nodes().iter().filter(|node| node.is_awake());
    awake.filter_map(|node| ask(node, &subject)).find(|answer| answer["error"].is_null())
}

fn ask(node: &Server, subject: &str) -> Option<Value> {
    node.request(subject, "").ok()
}

/// Returns the messages of the stream on `node` in this range of sequences.
pub(crate) fn read(
    node: &Server,
    stream: &str,
    places: RangeInclusive<u64>,
) -> Result<Vec<Stored>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(read_all(&node.url(), stream, places))
}

async fn read_all(
    url: &str,
    stream: &str,
    places: RangeInclusive<u64>,
) -> Result<Vec<Stored>, String> {
    let last = *places.end();
    let client = async_nats::connect(url).await.map_err(|error| error.to_string())?;
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
    let subject = format!("$JS.API.DIRECT.GET.{stream}");
    let mut log: Vec<Stored> = Vec::new();
    loop {
        let from = log.last().map_or(*places.start(), |stored| stored.seq + 1);
        if from > last {
            return Ok(log);
        }
        let request = json!({ "seq": from, "batch": AT_ONCE, "next_by_subj": ">" }).to_string();
        let sent = client.publish_with_reply(subject.clone(), inbox.clone(), request.into()).await;
        sent.map_err(|error| error.to_string())?;
        loop {
            let answer = tokio::time::timeout(PATIENCE, answers.next()).await;
            let message = answer.map_err(|_| format!("{url} is silent at {from}"))?;
            let message = message.ok_or("the connection ended")?;
            match message.status {
                None => log.push(stored(&message)?),
                Some(StatusCode::NO_RESPONDERS | StatusCode::NOT_FOUND) => {
                    return Err(format!("{url} has nothing at {from}, the stream ends at {last}"));
                }
                Some(_) => break,
            }
        }
    }
}

fn stored(message: &Message) -> Result<Stored, String> {
    let headers = message.headers.as_ref().ok_or("no headers")?;
    let needed = |name: &'static str| header(headers, name).ok_or(format!("no {name}"));
    let seq: u64 =
        needed("Nats-Sequence")?.parse().map_err(|_| "a sequence that is not a number")?;
    let at: jiff::Timestamp =
        needed("Nats-Time-Stamp")?.parse().map_err(|error| format!("{seq}: {error}"))?;
    let payload: Payload =
        serde_json::from_slice(&message.payload).map_err(|error| format!("{seq}: {error}"))?;
    let number = header(headers, "Nats-Batch-Sequence").and_then(|number| number.parse().ok());
    let mut words = needed("Nats-Subject")?.rsplit('.').map(str::to_owned);
    Ok(Stored {
        seq,
        at_ms: at.as_millisecond(),
        subject: words.next().unwrap_or_default(),
        project: words.next().unwrap_or_default(),
        id: payload.id,
        kind: payload.kind,
        actor: payload.actor,
        after: payload.after,
        data: payload.data,
        batch: header(headers, "Nats-Batch-Id").map(str::to_owned).zip(number),
    })
}

fn header<'h>(headers: &'h HeaderMap, name: &'static str) -> Option<&'h str> {
    headers.get(name).map(|value| value.as_str())
}

/// Returns the differences between the replicas.
pub(crate) fn differences(copies: &HashMap<String, Vec<Stored>>) -> Vec<String> {
    let mut all = copies.iter();
    let Some((first, reference)) = all.next() else { return vec![] };
    all.filter(|(_, copy)| copy != &reference)
        .map(|(name, copy)| {
            let at = reference.iter().zip(copy).position(|(a, b)| a != b);
            let place = at.unwrap_or(reference.len().min(copy.len()));
            format!("{first} and {name} differ from event {} on", place + 1)
        })
        .collect()
}
