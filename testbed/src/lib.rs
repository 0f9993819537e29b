//! Real NATS servers for tests and figures: started, killed, paused, cut off from each other; a model for
//! real agents; a forge with real git behind it.
//!
//! - [`server`]: one server with its ports, its data and its log
//! - [`cluster`]: three of them
//! - [`disk`]: disks whose power can be cut
//! - [`github`]: a forge on loopback, as much of it as is used
//! - [`http_proxy`]: a proxy for HTTP that records what passes it
//! - [`model`]: what agents ask, on loopback, with answers from a script
//! - [`network`]: namespaces on a bridge that can be parted
//! - [`proxy`]: a way to a server on which things go wrong when a test says so
//! - [`tokens`]: the size of a text as models count it
//! - [`tls`]: TLS in front of a server, by an authority that nobody knows
//! - [`wire`]: one request over the NATS protocol, and the monitoring pages
//! - `binary`, `lease`, `process`: where the server is, whose ports are whose, children that die with us
//! - `http`: requests and answers on loopback
//!
//! Nothing here outlives the test process: servers are killed with it, and what it leaves on disk or in
//! the network is cleared by the next one that takes the same lease. Every wait has a deadline, and a
//! wait that fails panics with the log of the server.
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

/// Asks until there is an answer; panics with what `otherwise` says when `limit` is over.
pub fn wait_for<T>(
    limit: Duration,
    otherwise: impl FnOnce() -> String,
    ask: impl FnMut() -> Option<T>,
) -> T {
    poll(limit, ask).unwrap_or_else(|| panic!("not within {limit:?}: {}", otherwise()))
}

/// Asks until there is an answer or `limit` is over.
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
