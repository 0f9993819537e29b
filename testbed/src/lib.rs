//! Test environments: real NATS servers that can be killed, paused and partitioned; a model for
//! real agents; a forge with real git behind it.
//!
//! - [`server`]: one server with its ports, its data and its log
//! - [`cluster`]: a cluster of three servers
//! - [`disk`]: disks whose power can be cut
//! - [`github`]: the used part of a forge, on loopback
//! - [`http_proxy`]: an HTTP proxy that records its traffic
//! - [`model`]: a model on loopback that gives scripted responses to agents
//! - [`network`]: namespaces on a bridge that can be partitioned
//! - [`proxy`]: a NATS proxy that injects faults
//! - [`tokens`]: the size of a text in tokens
//! - [`tls`]: TLS in front of a server, with an unknown certificate authority
//! - [`wire`]: single requests over the NATS protocol, and the monitoring pages
//! - `binary`, `lease`, `process`: path of the server, ownership of ports, children that die with
//!   the test
//! - `http`: requests and responses on loopback
//!
//! No resource outlives the test process: servers are killed with it, and the next process with the
//! same lease removes its files and network devices. Every wait has a deadline, and panics with the
//! log of the server when it fails.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "for tests only: a failure ends the test"
)]

mod binary;
pub mod cluster;
pub mod disk;
pub mod github;
mod http;
pub mod http_proxy;
mod lease;
pub mod model;
pub mod network;
mod process;
pub mod proxy;
pub mod server;
pub mod tls;
pub mod tokens;
pub mod wire;

use std::time::{Duration, Instant};

pub use binary::nats_server;
pub use cluster::{Cluster, ClusterOptions, Placement};
pub use disk::{Disk, cut_power};
pub use network::{Netns, Network};
pub use proxy::{Fault, Plan, Proxy};
pub use server::{Options, Server, Sync};

/// Polls until `ask` returns a value; panics with the text of `otherwise` after `limit`.
pub fn wait_for<T>(
    limit: Duration,
    otherwise: impl FnOnce() -> String,
    ask: impl FnMut() -> Option<T>,
) -> T {
    poll(limit, ask).unwrap_or_else(|| panic!("not within {limit:?}: {}", otherwise()))
}

/// Polls until `ask` returns a value, or until `limit` has passed.
pub fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || start.elapsed() > limit {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
