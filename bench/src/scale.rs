//! Growth of a server's cost with its load: subjects, streams, followers, ids, shards.
//!
//! Each is measured at several sizes, which gives a slope and not only a point.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use async_nats::jetstream::{self, Context};
use bytes::Bytes;
use futures_util::StreamExt;
use hookloop_testbed::{Cluster, Options, Server, Sync};
use tokio::task::JoinSet;

use crate::servers::{self, processor_seconds};

/// Number of appends in flight at once.
const IN_FLIGHT: usize = 512;
/// Approximate size of an event of the product.
const BODY: &[u8] = &[b'x'; 240];
/// Idle time before a server is measured, and duration of the measurement.
const SETTLE: Duration = Duration::from_secs(3);
const IDLE: Duration = Duration::from_secs(10);
/// Delay before an append is retried, because another one is in flight or an election is in
/// progress.
const AGAIN: Duration = Duration::from_millis(1);

/// Size of each measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub subjects: [u64; 4],
    pub streams: [usize; 4],
    pub followers: [usize; 4],
    pub ids: u64,
    pub pass: Duration,
}

pub const FULL: Sizes = Sizes {
    subjects: [0, 250_000, 500_000, 1_000_000],
    streams: [0, 50, 100, 200],
    followers: [0, 100, 500, 1_000],
    ids: 500_000,
    pass: Duration::from_secs(4),
};

pub const QUICK: Sizes = Sizes {
    subjects: [0, 2_000, 4_000, 8_000],
    streams: [0, 2, 4, 8],
    followers: [0, 5, 10, 20],
    ids: 5_000,
    pass: Duration::from_millis(300),
};

type Rows = Vec<Vec<String>>;

/// Measures a stream with one event per subject: memory, the index on disk, the start-up time.
pub async fn subjects(sizes: Sizes) -> Rows {
    let server = careless();
    let mut rows = Rows::new();
    let mut have = 0;
    for size in sizes.subjects {
        let js = connect(&server).await;
        if have == 0 {
            make(&js, "HL_EV_000", "hl.ev.000.>", 1).await;
        }
        fill(&js, have..size, |n| (format!("hl.ev.000.p{}.t{n}", n / 1_000), HeaderMap::new()))
            .await;
        have = size.max(1);
        let loaded = resident_mib(&server).await;
        server.terminate();
        let index = index_bytes(&server);
        let start = Instant::now();
        server.restart();
        let took = start.elapsed();
        let clean = resident_mib(&server).await;
        // The server finds events written since the last clean shutdown by reading them.
        let js = connect(&server).await;
        let seen = |n| (format!("hl.ev.000.p0.t{n}"), HeaderMap::new());
        fill(&js, 0..size.min(1_000), seen).await;
        server.kill9();
        let start = Instant::now();
        server.restart();
        rows.push(vec![
            size.to_string(),
            format!("{loaded:.0} MiB"),
            format!("{clean:.0} MiB"),
            format!("{:.1} MiB", index as f64 / MIB),
            format!("{:.2} s", took.as_secs_f64()),
            format!("{:.2} s", start.elapsed().as_secs_f64()),
        ]);
    }
    rows
}

pub const SUBJECTS: [&str; 6] = [
    "subjects",
    "memory, loaded",
    "memory, restarted",
    "index",
    "start, clean",
    "start, after kill -9",
];

/// Measures message ids, which the server remembers for two minutes: the same events with and
/// without ids.
pub async fn ids(sizes: Sizes) -> Rows {
    let mut rows = Rows::new();
    for with_ids in [false, true] {
        let server = careless();
        let js = connect(&server).await;
        make(&js, "HL_EV_000", "hl.ev.000.>", 1).await;
        let before = resident_mib(&server).await;
        fill(&js, 0..sizes.ids, |n| {
            let mut headers = HeaderMap::new();
            if with_ids {
                // The length of an event's id.
                headers.insert(NATS_MESSAGE_ID, format!("{n:032x}"));
            }
            (format!("hl.ev.000.p.t{}", n % 1_000), headers)
        })
        .await;
        let after = resident_mib(&server).await;
        rows.push(vec![
            format!("{} {}", sizes.ids, if with_ids { "with ids" } else { "without" }),
            format!("{before:.0} MiB"),
            format!("{after:.0} MiB"),
        ]);
    }
    rows
}

pub const IDS: [&str; 3] = ["events on 1000 subjects", "memory before", "memory after"];

/// Measures empty streams with three replicas.
pub async fn streams(sizes: Sizes) -> Rows {
    let cluster = Cluster::three();
    let js = connect(cluster.node(0)).await;
    let mut rows = Rows::new();
    let mut have = 0;
    for size in sizes.streams {
        let start = Instant::now();
        for n in have..size {
            make(&js, &format!("HL_EV_{n:03}"), &format!("hl.ev.{n:03}.>"), 3).await;
        }
        let made = start.elapsed().as_secs_f64() / (size - have).max(1) as f64;
        have = size;
        let Idle { mib, cpu } = idle(cluster.nodes()).await;
        rows.push(vec![
            size.to_string(),
            format!("{mib:.0} MiB"),
            format!("{cpu:.1} %"),
            if size == 0 { String::new() } else { format!("{:.0} ms", made * 1e3) },
        ]);
    }
    rows
}

pub const STREAMS: [&str; 4] =
    ["streams × 3", "memory of a node", "idle processor of a node", "to make one"];

/// Measures idle followers: each has a connection and a consumer, like `dispatch --daemon`.
pub async fn followers(sizes: Sizes) -> Rows {
    let cluster = Cluster::three();
    let js = connect(cluster.node(0)).await;
    make(&js, "HL_EV_000", "hl.ev.000.>", 3).await;
    let mut rows = Rows::new();
    let mut following: JoinSet<()> = JoinSet::new();
    let mut have = 0;
    for size in sizes.followers {
        let start = Instant::now();
        for n in have..size {
            let mut messages = follow(cluster.node(n % 3), n).await;
            following.spawn(async move { while messages.next().await.is_some() {} });
        }
        let made = start.elapsed().as_secs_f64() / (size - have).max(1) as f64;
        have = size;
        let Idle { mib, cpu } = idle(cluster.nodes()).await;
        rows.push(vec![
            size.to_string(),
            format!("{mib:.0} MiB"),
            format!("{cpu:.1} %"),
            if size == 0 { String::new() } else { format!("{:.1} ms", made * 1e3) },
        ]);
    }
    rows
}

pub const FOLLOWERS: [&str; 4] =
    ["followers", "memory of a node", "idle processor of a node", "to start one"];

/// Measures appends with an id and an expected sequence by 64 writers, spread over a growing number
/// of streams.
pub async fn shards(sizes: Sizes) -> Rows {
    let cluster = Cluster::three();
    let js = connect(cluster.node(0)).await;
    let mut rows = Rows::new();
    let mut one = 0.0;
    for n in 0..16 {
        make(&js, &format!("HL_EV_{n:03}"), &format!("hl.ev.{n:03}.>"), 3).await;
    }
    for shards in [1, 2, 4, 8, 16] {
        let appended = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + sizes.pass;
        let mut writers = JoinSet::new();
        for writer in 0..64_usize {
            let (js, appended) = (js.clone(), appended.clone());
            let subject = format!("hl.ev.{:03}.p.w{shards}-{writer}", writer % shards);
            writers.spawn(async move {
                let mut last = 0;
                while Instant::now() < end {
                    let mut headers = HeaderMap::new();
                    headers.insert(NATS_MESSAGE_ID, format!("{subject}-{last}"));
                    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, last.to_string());
                    let body = Bytes::from_static(BODY);
                    let sent = js.publish_with_headers(subject.clone(), headers, body).await;
                    match sent.unwrap().await {
                        Ok(ack) => {
                            last = ack.sequence;
                            appended.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(_) => tokio::time::sleep(AGAIN).await,
                    }
                }
            });
        }
        writers.join_all().await;
        let rate = appended.load(Ordering::Relaxed) as f64 / sizes.pass.as_secs_f64();
        if shards == 1 {
            one = rate;
        }
        rows.push(vec![
            shards.to_string(),
            format!("{rate:.0}"),
            crate::figures::times(rate / one),
        ]);
    }
    rows
}

pub const SHARDS: [&str; 3] = ["shards", "appends a second", "against one"];

const MIB: f64 = 1024.0 * 1024.0;

/// Starts a server that does not sync every write: memory and idle load do not depend on syncing,
/// and filling is faster.
fn careless() -> Server {
    Server::with(Options { sync: Sync::Default, ..Options::default() })
}

async fn connect(server: &Server) -> Context {
    jetstream::new(async_nats::connect(server.url()).await.unwrap())
}

async fn make(js: &Context, name: &str, subjects: &str, replicas: usize) {
    let config = Config {
        name: name.to_owned(),
        subjects: vec![subjects.to_owned()],
        num_replicas: replicas,
        discard: DiscardPolicy::New,
        allow_atomic_publish: true,
        allow_direct: true,
        deny_delete: true,
        duplicate_window: Duration::from_secs(120),
        ..Config::default()
    };
    js.create_stream(config).await.unwrap();
}

async fn follow(server: &Server, n: usize) -> Ordered {
    let client = async_nats::connect(server.url()).await.unwrap();
    let config = OrderedConfig {
        name: Some(format!("f{n}")),
        deliver_subject: client.new_inbox(),
        filter_subject: format!("hl.ev.000.p{n}.>"),
        ..OrderedConfig::default()
    };
    let js = jetstream::new(client);
    js.create_consumer_on_stream(config, "HL_EV_000").await.unwrap().messages().await.unwrap()
}

/// Publishes a message for each number.
async fn fill(
    js: &Context,
    numbers: std::ops::Range<u64>,
    message: impl Fn(u64) -> (String, HeaderMap),
) {
    let mut under_way = VecDeque::new();
    for n in numbers {
        let (subject, headers) = message(n);
        let body = Bytes::from_static(BODY);
        under_way.push_back(js.publish_with_headers(subject, headers, body).await.unwrap());
        if under_way.len() == IN_FLIGHT {
            under_way.pop_front().unwrap().await.unwrap();
        }
    }
    for sent in under_way {
        sent.await.unwrap();
    }
}

/// Resource usage of the average node while idle.
struct Idle {
    mib: f64,
    /// Share of one core.
    cpu: f64,
}

async fn idle(nodes: &[Server]) -> Idle {
    tokio::time::sleep(SETTLE).await;
    let seconds = || nodes.iter().map(processor_seconds).sum::<f64>();
    let before = seconds();
    tokio::time::sleep(IDLE).await;
    let used = seconds() - before;
    let mib = nodes.iter().map(servers::resident_mib).sum::<f64>() / nodes.len() as f64;
    Idle { mib, cpu: used / IDLE.as_secs_f64() / nodes.len() as f64 * 100.0 }
}

async fn resident_mib(server: &Server) -> f64 {
    tokio::time::sleep(SETTLE).await;
    servers::resident_mib(server)
}

/// Returns the size of the server's index of the stream's subjects on disk.
fn index_bytes(server: &Server) -> u64 {
    let mut directories = vec![server.store_dir().to_owned()];
    let mut bytes = 0;
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false if entry.file_name() == "index.db" => {
                    bytes += entry.metadata().unwrap().len()
                }
                false => (),
            }
        }
    }
    bytes
}
