//! What servers use while something is measured, by their own word and by the kernel's.

use std::time::{Duration, Instant};

use hookloop_testbed::Server;

/// What the kernel counts in, on every Linux there is.
const TICKS_PER_SECOND: f64 = 100.0;

/// Begun before what is measured.
#[derive(Debug)]
pub struct Gauge<'s> {
    nodes: &'s [Server],
    since: Instant,
    ticks: u64,
    own: u64,
    busy: u64,
    messages: (u64, u64),
}

/// All nodes together, of processors in cores.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub time: Duration,
    pub servers: f64,
    /// This process.
    pub own: f64,
    /// Whoever else is on the machine.
    pub others: f64,
    pub mib: f64,
    pub connections: u64,
    pub consumers: u64,
    /// A second, between servers too.
    pub messages_in: f64,
    pub messages_out: f64,
}

impl<'s> Gauge<'s> {
    pub fn start(nodes: &'s [Server]) -> Gauge<'s> {
        Gauge {
            nodes,
            since: Instant::now(),
            ticks: nodes.iter().map(processor_ticks).sum(),
            own: ticks_in("/proc/self/stat"),
            busy: busy_ticks(),
            messages: messages(nodes),
        }
    }

    pub fn read(&self) -> Used {
        let time = self.since.elapsed();
        let rate = |before: u64, after: u64| (after - before) as f64 / time.as_secs_f64();
        let cores = |before, after| rate(before, after) / TICKS_PER_SECOND;
        let servers = cores(self.ticks, self.nodes.iter().map(processor_ticks).sum());
        let own = cores(self.own, ticks_in("/proc/self/stat"));
        let all = cores(self.busy, busy_ticks());
        let (received, sent) = messages(self.nodes);
        let sum = |path: &str, field: &str| -> u64 {
            let pages = self.nodes.iter().filter_map(|node| node.monitor(path));
            pages.filter_map(|page| page[field].as_u64()).sum()
        };
        Used {
            time,
            servers,
            own,
            others: (all - servers - own).max(0.0),
            mib: self.nodes.iter().map(resident_mib).sum(),
            connections: sum("/varz", "connections"),
            consumers: sum("/jsz", "consumers"),
            messages_in: rate(self.messages.0, received),
            messages_out: rate(self.messages.1, sent),
        }
    }
}

fn messages(nodes: &[Server]) -> (u64, u64) {
    let pages = nodes.iter().filter_map(|node| node.monitor("/varz"));
    let read =
        |page: serde_json::Value| Some((page["in_msgs"].as_u64()?, page["out_msgs"].as_u64()?));
    pages.filter_map(read).fold((0, 0), |sum, page| (sum.0 + page.0, sum.1 + page.1))
}

/// Seconds of a processor that a server has used.
pub fn processor_seconds(server: &Server) -> f64 {
    processor_ticks(server) as f64 / TICKS_PER_SECOND
}

fn processor_ticks(server: &Server) -> u64 {
    ticks_in(&format!("/proc/{}/stat", server.pid()))
}

fn ticks_in(path: &str) -> u64 {
    let stat = std::fs::read_to_string(path).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = rest.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// What all processors of the machine have done, but for waiting.
fn busy_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    let fields: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    // User, nice, system, interrupts of both kinds; what others steal of the machine is not its own.
    [0, 1, 2, 5, 6].iter().map(|i| fields[*i]).sum()
}

pub fn resident_mib(server: &Server) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
