//! Resource usage of servers during a measurement, as reported by the servers and by the kernel.

use std::time::{Duration, Instant};

use hookloop_testbed::Server;

/// Clock ticks per second of the kernel, the same on all Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running measurement of resource usage; start it before the measured work.
#[derive(Debug)]
pub struct Gauge<'s> {
    nodes: &'s [Server],
    since: Instant,
    ticks: u64,
    own: u64,
    busy: u64,
    messages: (u64, u64),
}

/// Total usage of all nodes; processor usage in cores.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub time: Duration,
    pub servers: f64,
    /// Processor usage of this process.
    pub own: f64,
    /// Processor usage of all other processes on the machine.
    pub others: f64,
    pub mib: f64,
    pub connections: u64,
    pub consumers: u64,
    /// Messages per second, including those between servers.
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

/// Returns the processor time that a server has used, in seconds.
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

/// Returns the busy time of all processors of the machine, in ticks.
fn busy_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace().skip(1);
    let fields: Vec<u64> = fields.map(|field| field.parse().unwrap()).collect();
    // User, nice, system, and both kinds of interrupts. Steal time does not count, because the
    // machine did not have it.
    [0, 1, 2, 5, 6].iter().map(|i| fields[*i]).sum()
}

pub fn resident_mib(server: &Server) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
