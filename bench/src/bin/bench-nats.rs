//! `bench-nats [--quick] [--single] [NAME]…`: what JetStream does at best, in a cluster of three or on a
//! server of its own that syncs every write. A name picks the rows that contain it.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use std::time::Duration;

use hookloop_bench::figures::table;
use hookloop_bench::nats::{self, Bench, Claim, Setup};
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
    if flag("--single") {
        let server = Server::single();
        let setup = Setup { url: server.url(), leader: None, replicas: 1, pass, replayed };
        measure(&pairs, setup, passes).await;
    } else {
        let cluster = Cluster::three();
        let node = cluster.node(0);
        let leader = Some(node.name().to_owned());
        let setup = Setup { url: node.url(), leader, replicas: 3, pass, replayed };
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
        bare("append", |bench| Box::pin(nats::append(bench))),
        bare("append, 32 writers", |bench| Box::pin(nats::append_many(bench, 32))),
        bare("batch of 2", |bench| Box::pin(nats::batch(bench, 2))),
        bare("batch of 10", |bench| Box::pin(nats::batch(bench, 10))),
        bare("lifecycle, 1 worker", |bench| Box::pin(nats::lifecycle(bench, 1))),
        bare("lifecycle, 16 workers", |bench| Box::pin(nats::lifecycle(bench, 16))),
        bare("replay, push", |bench| Box::pin(nats::replay_push(bench))),
        bare("replay, pull", |bench| Box::pin(nats::replay_pull(bench))),
        bare("replay, direct", |bench| Box::pin(nats::replay_direct(bench))),
    ];
    for (name, how) in [
        ("fetch one, double ack", Claim::FetchOneDoubleAck),
        ("fetch one, ack", Claim::FetchOne),
        ("open pull, ack", Claim::Stream),
        ("fetch 64, ack", Claim::Together),
        ("fetch 64, one batch, ack", Claim::Batch),
        ("4 × fetch 16, one batch, ack", Claim::FourBatches),
    ] {
        let name = format!("claim, 64 workers: {name}");
        pairs.push(bare(&name, move |bench| Box::pin(nats::claim(bench, 64, how))));
    }
    pairs
}

fn bare<F>(name: &str, measure: F) -> Pair<Bench>
where
    F: for<'a> Fn(&'a mut Bench) -> std::pin::Pin<Box<dyn Future<Output = Figure> + 'a>> + 'static,
{
    let bare: Measure<Bench> = Box::new(measure);
    Pair { name: name.to_owned(), bare, ours: None }
}
