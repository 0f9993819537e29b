//! The log on a real server and on a real cluster, and the suite that every log passes.
#![expect(clippy::unwrap_used, reason = "tests")]

use hookloop_store::conformance;
use hookloop_store::jetstream::{Access, JetStream, Safety};
use hookloop_testbed::{Cluster, Server};

/// A log on servers of its own, checked as a user's would be.
fn connect(servers: &[Server]) -> JetStream {
    let join = |part: fn(&Server) -> String| servers.iter().map(part).collect::<Vec<_>>();
    let access = Access {
        urls: join(Server::url).join(","),
        monitors: join(Server::monitor_url),
        ..Access::default()
    };
    let log = JetStream::connect(&access, &"demo".parse().unwrap()).unwrap();
    log.prepare().unwrap();
    log
}

fn on_one_server() -> (JetStream, Server) {
    let server = Server::single();
    (connect(std::slice::from_ref(&server)), server)
}

fn on_three_servers() -> (JetStream, Cluster) {
    let cluster = Cluster::three();
    (connect(cluster.nodes()), cluster)
}

conformance!(one_server, on_one_server());
conformance!(three_servers, on_three_servers());
