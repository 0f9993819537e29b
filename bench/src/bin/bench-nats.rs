//! `bench-nats [--quick] [--single] [NAME]…`: compares bare JetStream with the product on
//! JetStream, either in a cluster of three servers or on a single server that syncs every write. A
//! name selects the rows that contain it.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a measuring tool")]

use std::time::Duration;

use hookloop_bench::figures::table;
use hookloop_bench::nats::{self, Bench, Claim, Setup};
use hookloop_bench::ours::{self, Ours};
use hookloop_bench::pair::{self, Figure, Measure, Pair};
use hookloop_testbed::{Cluster, Server};

#[tokio::main]
async fn main() {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let flag = |name: &str| flags.iter().any(|flag| flag == name);
    let mut pairs = pairs();
    pairs.retain(|pair| names.is_empty() || names.iter().any(|name| pair.name.contains(name)));
    let replays = pairs.iter().any(|pair| pair.name.contains("replay"));
    let replayed = if replays { 200_000 } else { 0 };
    let (passes, pass, replayed) = match flag("--quick") {
        true => (2, Duration::from_millis(300), replayed / 10),
        false => (7, Duration::from_secs(1), replayed),
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    if flag("--single") {
        let server = Server::single();
        let (url, monitors) = (server.url(), vec![server.monitor_url()]);
        let dir = dir.path().to_owned();
        let setup = Setup { url, leader: None, replicas: 1, pass, replayed, dir, monitors };
        measure(&pairs, setup, passes).await;
    } else {
        let cluster = Cluster::three();
        let node = cluster.node(0);
        let leader = Some(node.name().to_owned());
        let (url, dir) = (node.url(), dir.path().to_owned());
        let monitors = cluster.nodes().iter().map(Server::monitor_url).collect();
        let setup = Setup { url, leader, replicas: 3, pass, replayed, dir, monitors };
        measure(&pairs, setup, passes).await;
    }
}

async fn measure(pairs: &[Pair<Bench>], setup: Setup, passes: usize) {
    println!("## {} × NATS, every write synced\n", setup.replicas);
    let mut bench = Bench::new(setup).await;
    table(&pair::HEADINGS, &pair::run(pairs, &mut bench, passes).await);
}

fn pairs() -> Vec<Pair<Bench>> {
    let mut pairs = vec![
        both("append", |bench| Box::pin(nats::append(bench)), ours::append),
        both(
            "append, 32 writers",
            |b| Box::pin(nats::append_many(b, 32)),
            |o| ours::append_many(o, 32),
        ),
        both("batch of 2", |bench| Box::pin(nats::batch(bench, 2)), |o| ours::batch(o, 2)),
        both("batch of 10", |bench| Box::pin(nats::batch(bench, 10)), |o| ours::batch(o, 10)),
        both("lifecycle, 1 worker", |b| Box::pin(nats::lifecycle(b, 1)), |o| ours::lifecycle(o, 1)),
        both(
            "lifecycle, 16 workers",
            |b| Box::pin(nats::lifecycle(b, 16)),
            |o| ours::lifecycle(o, 16),
        ),
        both("replay, push", |bench| Box::pin(nats::replay_push(bench)), ours::replay),
        both("replay into a view", |bench| Box::pin(nats::replay_push(bench)), ours::view),
    ];
    for (name, how) in [
        ("fetch one, ack", Claim::FetchOne),
        ("open pull, ack", Claim::Stream),
        ("fetch 64, one batch, ack", Claim::Batch),
    ] {
        let name = format!("claim, 64 workers: {name}");
        pairs.push(both(&name, move |b| Box::pin(nats::claim(b, 64, how)), |o| ours::claim(o, 64)));
    }
    pairs
}

fn both<F>(name: &str, bare: F, ours: fn(&Ours) -> Figure) -> Pair<Bench>
where
    F: for<'a> Fn(&'a mut Bench) -> std::pin::Pin<Box<dyn Future<Output = Figure> + 'a>> + 'static,
{
    let bare: Measure<Bench> = Box::new(bare);
    let ours: Measure<Bench> = Box::new(move |bench| Box::pin(nats::with_ours(bench, ours)));
    Pair { name: name.to_owned(), bare, ours: Some(ours) }
}
