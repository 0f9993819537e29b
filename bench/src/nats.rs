//! The bare engine: events, claims and replays directly on JetStream, without the product.
//!
//! Every append carries an id and the expected last sequence of its subject, like those of the
//! product. Streams are led by the node to which the client is connected, so that runs are
//! comparable.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::header::{
    NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID,
};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull, push};
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures_util::StreamExt;
use hookloop_store::jetstream::NatsOptions;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::figures::Sample;
use crate::ours::Ours;
use crate::pair::Figure;

const EVENTS: &str = "HL_EV_000";
const QUEUE: &str = "HL_RQ_bench";
const REPLAY: &str = "HL_EV_001";
const WORKERS: &str = "workers";

/// Error code of the server while an earlier append to the subject is in flight; the append is
/// retried.
const IN_FLIGHT: u64 = 10164;

/// Hints per second: more than any way of claiming processes.
const HINTS_PER_SECOND: f64 = 30_000.0;

/// Setup of the servers, and duration of the measurement.
#[derive(Clone, Debug)]
pub struct Setup {
    /// URL of the server to which the client connects.
    pub url: String,
    /// Name of that server, which leads the streams; `None` for a single server.
    pub leader: Option<String>,
    pub replicas: usize,
    /// Duration of one pass.
    pub pass: Duration,
    /// Number of events that are replayed.
    pub replayed: u64,
    /// Directory of the product's view.
    pub dir: PathBuf,
    /// Monitoring URLs of the servers.
    pub monitors: Vec<String>,
}

/// A connection and its streams.
#[derive(Debug)]
pub struct Bench {
    pub setup: Setup,
    pub log: Log,
    queue: Stream,
    workers: PullConsumer,
    replay: Stream,
    /// The product on the same servers.
    pub ours: Ours,
}

/// The event stream as seen by one writer.
#[derive(Clone, Debug)]
pub struct Log {
    js: Context,
    next: Arc<AtomicU64>,
}

/// A task and the sequence of its last event.
#[derive(Clone, Debug)]
struct Task {
    subject: String,
    last: u64,
}

/// How a worker fetches a hint and acknowledges it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Every worker fetches one hint, claims, and waits until the queue confirms the
    /// acknowledgement.
    FetchOneDoubleAck,
    /// Every worker fetches one hint and claims, without waiting for the confirmation.
    FetchOne,
    /// One pull that stays open feeds all workers.
    Stream,
    /// One fetch for all workers, with all their claims in flight at once.
    Together,
    /// One fetch for all workers, with all their claims in one atomic batch.
    Batch,
    /// Four atomic batches, each for a quarter of the workers.
    FourBatches,
}

impl Bench {
    /// Connects, creates the streams, and writes the events to replay.
    pub async fn new(setup: Setup) -> Bench {
        let client = async_nats::connect(&setup.url).await.unwrap();
        let js = jetstream::new(client);
        let log = Log { js: js.clone(), next: Arc::default() };
        create(&setup, &js, events(EVENTS, "hl.ev.000.>")).await;
        let replay = create(&setup, &js, events(REPLAY, "hl.ev.001.>")).await;
        let queue = create(&setup, &js, hints()).await;
        let config = pull::Config {
            durable_name: Some(WORKERS.into()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 50_000,
            max_waiting: 5_000,
            ..Default::default()
        };
        let workers = queue.create_consumer(config).await.unwrap();
        lead(&setup, &js, "CONSUMER", &format!("{QUEUE}.{WORKERS}")).await;
        let ours = product(&setup).await;
        for stream in ours.streams() {
            lead(&setup, &js, "STREAM", &stream).await;
        }
        let bench = Bench { setup, log, queue, workers, replay, ours };
        bench.fill_replay().await;
        bench
    }

    async fn fill_replay(&self) {
        for start in (0..self.setup.replayed).step_by(1_000) {
            let end = self.setup.replayed.min(start + 1_000);
            let tasks =
                (start..end).map(|i| Task { subject: format!("hl.ev.001.p.t{i}"), last: 0 });
            self.log.append_all(&mut tasks.collect::<Vec<_>>()).await;
        }
    }

    /// Publishes hints to the queue; their tasks are not yet written.
    async fn fill_queue(&self, count: u64) {
        let mut under_way = std::collections::VecDeque::new();
        for _ in 0..count {
            let subject = format!("hl.rq.bench.code.2.p.{}", self.log.unique());
            let sent = self.log.js.publish(subject, Bytes::from_static(b"{}")).await.unwrap();
            under_way.push_back(sent);
            if under_way.len() == 256 {
                under_way.pop_front().unwrap().await.unwrap();
            }
        }
        for sent in under_way {
            sent.await.unwrap();
        }
    }

    /// Runs `count` workers on a full queue for one pass and returns the number of processed hints.
    async fn work<F>(&self, count: usize, work: impl Fn(Worker) -> F) -> Figure
    where
        F: Future<Output = u64> + Send + 'static,
    {
        self.fill_queue((HINTS_PER_SECOND * self.setup.pass.as_secs_f64()) as u64).await;
        let end = Instant::now() + self.setup.pass;
        let worker = Worker { log: self.log.clone(), queue: self.workers.clone(), end };
        let rate = side_by_side(count, || work(worker.clone())).await;
        self.queue.purge().await.unwrap();
        rate
    }
}

/// Resources of a worker, and the time at which it stops.
#[derive(Clone, Debug)]
struct Worker {
    log: Log,
    queue: PullConsumer,
    end: Instant,
}

impl Worker {
    /// Returns the next hints, at most `most`, or none after the end of the pass.
    async fn hints(&self, most: usize) -> Vec<jetstream::Message> {
        if Instant::now() > self.end {
            return Vec::new();
        }
        let hints = self.queue.fetch().max_messages(most).messages().await.unwrap();
        let hints: Vec<_> = hints.map(Result::unwrap).collect().await;
        assert!(!hints.is_empty(), "the queue ran dry: HINTS_PER_SECOND is too low");
        hints
    }

    /// Acknowledges a hint without waiting, except at the end. The queue handles acknowledgements
    /// in order, so the pass includes the cost of all earlier ones.
    async fn release(&self, hint: &jetstream::Message) {
        match Instant::now() > self.end {
            true => hint.double_ack().await.unwrap(),
            false => hint.ack().await.unwrap(),
        }
    }
}

impl Log {
    fn unique(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn task(&self) -> Task {
        Task { subject: format!("hl.ev.000.p.t{}", self.unique()), last: 0 }
    }

    async fn append(&self, task: &mut Task, kind: &str) {
        let id = format!("e{}", self.unique());
        let body = body(&task.subject, kind);
        loop {
            let sent = self.send(task, &id, body.clone()).await;
            match sent.await {
                Ok(ack) => return task.last = ack.sequence,
                Err(error) => retry(&error).await,
            }
        }
    }

    async fn send(&self, task: &Task, id: &str, body: Bytes) -> PublishAckFuture {
        let message = PublishMessage::build()
            .payload(body)
            .message_id(id)
            .expected_last_subject_sequence(task.last);
        self.js.send_publish(task.subject.clone(), message).await.unwrap()
    }

    /// Appends one event to each task, all or none.
    async fn append_all(&self, tasks: &mut [Task]) {
        loop {
            match self.send_all(tasks).await.await {
                Ok(ack) => {
                    let first = ack.sequence + 1 - tasks.len() as u64;
                    tasks.iter_mut().zip(first..).for_each(|(task, seq)| task.last = seq);
                    return;
                }
                Err(error) => retry(&error).await,
            }
        }
    }

    async fn send_all(&self, tasks: &[Task]) -> PublishAckFuture {
        let batch = format!("b{}", self.unique());
        let client = self.js.client();
        let (last, before) = tasks.split_last().unwrap();
        for (i, task) in before.iter().enumerate() {
            let headers = self.batched(&batch, i + 1, task);
            let body = body(&task.subject, "claimed");
            client.publish_with_headers(task.subject.clone(), headers, body).await.unwrap();
        }
        let mut headers = self.batched(&batch, tasks.len(), last);
        headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
        let body = body(&last.subject, "claimed");
        self.js.publish_with_headers(last.subject.clone(), headers, body).await.unwrap()
    }

    fn batched(&self, batch: &str, place: usize, task: &Task) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, format!("e{}", self.unique()));
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, task.last.to_string());
        headers.insert(NATS_BATCH_ID, batch);
        headers.insert(NATS_BATCH_SEQUENCE, place.to_string());
        headers
    }
}

/// Measures one writer that waits for every response: the median.
pub async fn append(bench: &mut Bench) -> Figure {
    let mut task = bench.log.task();
    let mut sample = Sample::default();
    let end = Instant::now() + bench.setup.pass;
    for i in 0.. {
        // A task has about four events in its life.
        if i % 4 == 0 {
            task = bench.log.task();
        }
        let start = Instant::now();
        bench.log.append(&mut task, "claimed").await;
        sample.add(start.elapsed());
        if Instant::now() > end {
            break;
        }
    }
    Figure::Milliseconds(sample.median())
}

/// Measures concurrent writers, each of which waits for its own responses.
pub async fn append_many(bench: &mut Bench, writers: usize) -> Figure {
    let end = Instant::now() + bench.setup.pass;
    side_by_side(writers, || {
        let log = bench.log.clone();
        async move {
            let mut count = 0;
            while Instant::now() < end {
                let mut task = log.task();
                for kind in ["created", "ready", "claimed", "completed"] {
                    log.append(&mut task, kind).await;
                    count += 1;
                }
            }
            count
        }
    })
    .await
}

/// Measures atomic batches of `size`, one after the other: the median.
pub async fn batch(bench: &mut Bench, size: usize) -> Figure {
    let mut sample = Sample::default();
    let end = Instant::now() + bench.setup.pass;
    while Instant::now() < end {
        let mut tasks: Vec<Task> = (0..size).map(|_| bench.log.task()).collect();
        let start = Instant::now();
        bench.log.append_all(&mut tasks).await;
        sample.add(start.elapsed());
    }
    Figure::Milliseconds(sample.median())
}

/// Measures the life of a task: hint, claim, completion, and confirmed acknowledgement.
pub async fn lifecycle(bench: &mut Bench, workers: usize) -> Figure {
    let work = async |worker: Worker| {
        let mut count = 0;
        while let [hint] = worker.hints(1).await.as_slice() {
            let mut task = worker.log.task();
            worker.log.append(&mut task, "claimed").await;
            worker.log.append(&mut task, "completed").await;
            hint.double_ack().await.unwrap();
            count += 1;
        }
        count
    };
    bench.work(workers, work).await
}

/// Measures fetching hints and appending claims, with `workers` workers.
pub async fn claim(bench: &mut Bench, workers: usize, how: Claim) -> Figure {
    match how {
        Claim::FetchOneDoubleAck => bench.work(workers, |worker| claim_alone(worker, true)).await,
        Claim::FetchOne => bench.work(workers, |worker| claim_alone(worker, false)).await,
        Claim::Stream => bench.work(1, move |worker| claim_from_stream(worker, workers)).await,
        Claim::Together => bench.work(1, move |worker| claim_together(worker, workers)).await,
        Claim::Batch => bench.work(1, move |worker| claim_in_batches(worker, workers)).await,
        Claim::FourBatches => {
            bench.work(4, move |worker| claim_in_batches(worker, workers / 4)).await
        }
    }
}

async fn claim_alone(worker: Worker, wait: bool) -> u64 {
    let mut count = 0;
    while let [hint] = worker.hints(1).await.as_slice() {
        worker.log.append(&mut worker.log.task(), "claimed").await;
        match wait {
            true => hint.double_ack().await.unwrap(),
            false => worker.release(hint).await,
        }
        count += 1;
    }
    count
}

async fn claim_from_stream(worker: Worker, workers: usize) -> u64 {
    let hints = worker.queue.stream().max_messages_per_batch(workers * 2).messages().await.unwrap();
    let over = tokio::time::sleep_until(worker.end.into());
    let claimed = hints.take_until(over).map(|hint| async {
        worker.log.append(&mut worker.log.task(), "claimed").await;
        worker.release(&hint.unwrap()).await;
    });
    claimed.buffer_unordered(workers).count().await as u64
}

async fn claim_together(worker: Worker, workers: usize) -> u64 {
    let mut count = 0;
    loop {
        let hints = worker.hints(workers).await;
        if hints.is_empty() {
            return count;
        }
        count += hints.len() as u64;
        let claims = hints.iter().map(async |hint| {
            worker.log.append(&mut worker.log.task(), "claimed").await;
            worker.release(hint).await;
        });
        futures_util::future::join_all(claims).await;
    }
}

async fn claim_in_batches(worker: Worker, workers: usize) -> u64 {
    let mut count = 0;
    loop {
        let hints = worker.hints(workers).await;
        if hints.is_empty() {
            return count;
        }
        count += hints.len() as u64;
        let mut tasks: Vec<Task> = hints.iter().map(|_| worker.log.task()).collect();
        worker.log.append_all(&mut tasks).await;
        futures_util::future::join_all(hints.iter().map(|hint| worker.release(hint))).await;
    }
}

/// Replays every event of a stream with an ordered push consumer.
pub async fn replay_push(bench: &mut Bench) -> Figure {
    let start = Instant::now();
    let deliver_subject = bench.log.js.client().new_inbox();
    let config = push::OrderedConfig { deliver_subject, ..Default::default() };
    let consumer = bench.replay.create_consumer(config).await.unwrap();
    let events = consumer.messages().await.unwrap();
    let count = events.take(bench.setup.replayed as usize).map(Result::unwrap).count().await;
    per_second(count as u64, start)
}

/// Replays every event of a stream with an ordered pull consumer.
pub async fn replay_pull(bench: &mut Bench) -> Figure {
    let start = Instant::now();
    let consumer = bench.replay.create_consumer(pull::OrderedConfig::default()).await.unwrap();
    let events = consumer.messages().await.unwrap();
    let count = events.take(bench.setup.replayed as usize).map(Result::unwrap).count().await;
    per_second(count as u64, start)
}

/// Replays every event of a stream by direct reads, without a consumer.
pub async fn replay_direct(bench: &mut Bench) -> Figure {
    const AT_ONCE: u64 = 1_000;
    let start = Instant::now();
    let client = bench.log.js.client();
    let inbox = client.new_inbox();
    let mut events = client.subscribe(inbox.clone()).await.unwrap();
    let subject = format!("$JS.API.DIRECT.GET.{REPLAY}");
    let ask = async |first: u64| {
        let request = json!({ "seq": first, "batch": AT_ONCE, "next_by_subj": ">" }).to_string();
        client.publish_with_reply(subject.clone(), inbox.clone(), request.into()).await.unwrap();
    };
    // One request is in flight while the response to another is processed.
    ask(1).await;
    ask(1 + AT_ONCE).await;
    let (mut count, mut first) = (0, 1 + 2 * AT_ONCE);
    while count < bench.setup.replayed {
        let event = events.next().await.unwrap();
        match event.status {
            None => count += 1,
            Some(_) if first <= bench.setup.replayed => {
                ask(first).await;
                first += AT_ONCE;
            }
            Some(_) => (),
        }
    }
    per_second(count, start)
}

/// Runs `count` copies of `work` concurrently; each returns the number of operations it completed.
async fn side_by_side<F>(count: usize, work: impl Fn() -> F) -> Figure
where
    F: Future<Output = u64> + Send + 'static,
{
    let start = Instant::now();
    let mut tasks: JoinSet<u64> = (0..count).map(|_| work()).collect();
    let mut done = 0;
    while let Some(one) = tasks.join_next().await {
        done += one.unwrap();
    }
    per_second(done, start)
}

fn per_second(count: u64, start: Instant) -> Figure {
    Figure::PerSecond(count as f64 / start.elapsed().as_secs_f64())
}

/// Waits briefly if the append can be retried; any other error ends the benchmark.
async fn retry(error: &PublishError) {
    let source = std::error::Error::source(error);
    let code = source.and_then(|source| source.downcast_ref::<jetstream::Error>());
    let again = code.is_some_and(|error| error.error_code().0 == IN_FLIGHT);
    assert!(again, "{error}: {source:?}");
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Returns an event of about 300 bytes: the change, and the task after it.
fn body(subject: &str, kind: &str) -> Bytes {
    let task = json!({
        "id": subject, "state": kind, "priority": 2, "attempt": 1, "worker": "worker-17",
        "goal": "write the release notes for the next version", "labels": ["docs", "release"],
        "depends_on": ["t1", "t2"], "created_at": "2026-01-01T00:00:00.000Z",
    });
    json!({ "type": kind, "at": "2026-01-01T00:00:00.000Z", "task": task }).to_string().into()
}

fn events(name: &str, subjects: &str) -> Config {
    Config {
        name: name.into(),
        subjects: vec![subjects.into()],
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        allow_atomic_publish: true,
        allow_direct: true,
        deny_delete: true,
        duplicate_window: Duration::from_secs(120),
        ..Default::default()
    }
}

fn hints() -> Config {
    Config {
        name: QUEUE.into(),
        subjects: vec!["hl.rq.bench.>".into()],
        storage: StorageType::Memory,
        retention: RetentionPolicy::WorkQueue,
        discard: DiscardPolicy::New,
        max_messages_per_subject: 1,
        discard_new_per_subject: true,
        ..Default::default()
    }
}

/// Sets up the product on a separate thread, because it is synchronous.
async fn product(setup: &Setup) -> Ours {
    let Setup { url, dir, pass, replayed, monitors, .. } = setup.clone();
    let access = NatsOptions::at(url, monitors);
    tokio::task::spawn_blocking(move || Ours::new(&access, &dir, pass, replayed)).await.unwrap()
}

/// Runs one pass of the product on a separate thread.
pub async fn with_ours(
    bench: &mut Bench,
    measure: impl FnOnce(&Ours) -> Figure + Send + 'static,
) -> Figure {
    let ours = bench.ours.clone();
    tokio::task::spawn_blocking(move || measure(&ours)).await.unwrap()
}

async fn create(setup: &Setup, js: &Context, config: Config) -> Stream {
    let name = config.name.clone();
    let config = Config { num_replicas: setup.replicas, ..config };
    let stream = js.create_stream(config).await.unwrap();
    lead(setup, js, "STREAM", &name).await;
    stream
}

/// Makes the configured server the leader of a stream or consumer; `what` is `STREAM` or
/// `CONSUMER`.
async fn lead(setup: &Setup, js: &Context, what: &str, name: &str) {
    let Some(leader) = &setup.leader else { return };
    let wanted = json!({ "placement": { "preferred": leader } }).to_string();
    let ask = async |subject: String, body: String| -> Option<Value> {
        let answer = js.client().request(subject, body.into()).await.ok()?;
        serde_json::from_slice(&answer.payload).ok()
    };
    for _ in 0..50 {
        let info = ask(format!("$JS.API.{what}.INFO.{name}"), String::new()).await;
        match info.as_ref().and_then(|info| info["cluster"]["leader"].as_str()) {
            Some(now) if now == leader => return,
            Some(_) => {
                ask(format!("$JS.API.{what}.LEADER.STEPDOWN.{name}"), wanted.clone()).await;
            }
            None => (),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{leader} does not lead {what} {name}");
}
