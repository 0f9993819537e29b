//! A cluster of three NATS servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::network::{Network, Side};
use crate::server::{Member, Options, Ports, Server};
use crate::{poll, wait_for};

/// Timeout of an election or a catch-up; followers give up on a leader after 4 to 9 seconds.
const SETTLED: Duration = Duration::from_secs(40);

const SIZE: usize = 3;

/// Timeouts of a first election, after which the nodes are restarted; most elections take a third
/// of a second.
const FIRST_TRIES: [Duration; 3] =
    [Duration::from_millis(1_000), Duration::from_millis(1_500), Duration::from_millis(3_000)];

/// Network in which the nodes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    #[default]
    Loopback,
    /// Each node in its own network namespace, so that they can be partitioned. Needs root.
    Namespaces,
}

#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    pub placement: Placement,
    /// Options of every node; `store_dir` is ignored.
    pub server: Options,
    /// Data directories of the nodes; the default is a new directory for each.
    pub store_dirs: Option<[PathBuf; SIZE]>,
}

#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    network: Option<Network>,
}

impl Cluster {
    /// Starts three nodes on loopback that sync every write.
    pub fn three() -> Cluster {
        Cluster::with(ClusterOptions::default())
    }

    /// Starts three nodes in network namespaces.
    pub fn in_namespaces() -> Cluster {
        Cluster::with(ClusterOptions {
            placement: Placement::Namespaces,
            ..ClusterOptions::default()
        })
    }

    pub fn with(options: ClusterOptions) -> Cluster {
        let network = (options.placement == Placement::Namespaces).then(Network::new);
        let members: Vec<Member> = (1..=SIZE)
            .map(|number| Member {
                name: format!("n{number}"),
                ports: Ports::take(),
                netns: network.as_ref().map(Network::netns),
                cluster: String::new(),
            })
            .collect();
        let routes: Vec<SocketAddr> = members.iter().map(Member::route).collect();
        let nodes = members.into_iter().enumerate().map(|(i, mut member)| {
            member.cluster = cluster_block(routes[i], &routes);
            let store_dir = options.store_dirs.as_ref().map(|dirs| dirs[i].clone());
            Server::configured(member, Options { store_dir, ..options.server.clone() })
        });
        Cluster::started(Cluster { nodes: nodes.collect(), network })
    }

    /// Starts three nodes on loopback with the configurations that `write` returns; its arguments
    /// are all nodes and the index of one.
    pub fn written(write: impl Fn(&[Server], usize) -> String) -> Cluster {
        let nodes: Vec<Server> = (1..=SIZE)
            .map(|number| {
                let (name, ports) = (format!("n{number}"), Ports::take());
                let member = Member { name, ports, netns: None, cluster: String::new() };
                Server::configured(member, Options::default())
            })
            .collect();
        for (i, node) in nodes.iter().enumerate() {
            node.configure(&write(&nodes, i));
        }
        Cluster::started(Cluster { nodes, network: None })
    }

    fn started(cluster: Cluster) -> Cluster {
        match cluster.nodes.iter().any(Server::has_data) {
            true => cluster.start_all(),
            false => cluster.start_fresh(),
        }
        cluster
    }

    /// Starts nodes without data. Two simultaneous candidates can split the vote, and the next
    /// election is up to nine seconds away, so starting over is quicker.
    fn start_fresh(&self) {
        for patience in FIRST_TRIES {
            self.start_nodes();
            if poll(patience, || self.is_whole().then_some(())).is_some() {
                return;
            }
            self.kill9_all();
            self.nodes.iter().for_each(Server::wipe);
        }
        self.start_all();
    }

    fn start_nodes(&self) {
        self.nodes.iter().filter(|node| !node.is_running()).for_each(Server::start);
        self.nodes.iter().for_each(Server::wait_started);
    }

    /// Returns the client URL of every node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// Returns node 0, 1 or 2; their names are n1, n2 and n3.
    pub fn node(&self, i: usize) -> &Server {
        &self.nodes[i]
    }

    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the network of a cluster in namespaces, to which a client's namespace can be added.
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("a cluster in namespaces")
    }

    /// Kills a node; for other faults use `node(i)`.
    pub fn kill9(&self, i: usize) {
        self.nodes[i].kill9();
    }

    /// Restarts a node with its data, without waiting until it has caught up.
    pub fn restart(&self, i: usize) {
        self.nodes[i].restart();
    }

    pub fn stop_signal(&self, i: usize) {
        self.nodes[i].stop_signal();
    }

    pub fn cont(&self, i: usize) {
        self.nodes[i].cont();
    }

    pub fn wipe(&self, i: usize) {
        self.nodes[i].wipe();
    }

    /// Kills every node, one right after the other.
    pub fn kill9_all(&self) {
        self.nodes.iter().for_each(Server::kill9);
    }

    /// Starts every stopped node and waits until the cluster is complete.
    pub fn start_all(&self) {
        self.start_nodes();
        self.wait_whole();
    }

    /// Waits until all nodes agree on a leader and have caught up.
    pub fn wait_whole(&self) {
        let otherwise = || format!("the cluster is whole\n{}", self.logs());
        wait_for(SETTLED, otherwise, || self.is_whole().then_some(()));
    }

    /// Returns whether all nodes agree on a leader, are visible to it, and have caught up.
    pub fn is_whole(&self) -> bool {
        let views: Vec<String> = self.nodes.iter().map_while(meta_leader_seen_by).collect();
        views.len() == SIZE
            && views.iter().all(|leader| *leader == views[0])
            && self.nodes.iter().any(sees_all_others_online)
            && self.nodes.iter().all(|node| node.monitor("/healthz").is_some())
    }

    /// Returns the node that leads the cluster according to a majority of the nodes.
    pub fn meta_leader(&self) -> Option<usize> {
        self.majority(meta_leader_seen_by)
    }

    /// Returns the node that leads a stream of any account according to a majority of the nodes.
    pub fn leader_of(&self, stream: &str) -> Option<usize> {
        self.majority(|node| stream_leader_seen_by(node, stream))
    }

    /// Waits for a leader of the stream among the nodes other than `except`.
    pub fn wait_leader_of(&self, stream: &str, except: Option<usize>) -> usize {
        let found = self.leader_within(SETTLED, stream, except);
        found.unwrap_or_else(|| panic!("{stream} has no leader\n{}", self.logs()))
    }

    /// Waits for a leader like `wait_leader_of`; returns `None` after `limit`.
    pub fn leader_within(
        &self,
        limit: Duration,
        stream: &str,
        except: Option<usize>,
    ) -> Option<usize> {
        poll(limit, || self.leader_of(stream).filter(|leader| Some(*leader) != except))
    }

    /// Partitions these nodes from the others. They still reach each other, and this process
    /// reaches all.
    pub fn partition(&self, nodes: &[usize]) {
        self.plug(nodes, Side::Other);
    }

    /// Disconnects these nodes from everything, including this process.
    pub fn unplug(&self, nodes: &[usize]) {
        self.plug(nodes, Side::Unplugged);
    }

    /// Ends every partition.
    pub fn heal(&self) {
        self.plug(&[0, 1, 2], Side::Main);
    }

    pub fn logs(&self) -> String {
        let log = |node: &Server| format!("--- {}\n{}", node.name(), node.log());
        self.nodes.iter().map(log).collect()
    }

    fn plug(&self, nodes: &[usize], side: Side) {
        for i in nodes {
            self.nodes[*i].netns().expect("a cluster in namespaces").plug(side);
        }
    }

    fn majority(&self, ask: impl Fn(&Server) -> Option<String>) -> Option<usize> {
        let mut votes: BTreeMap<String, usize> = BTreeMap::new();
        // A paused node would not respond.
        for leader in self.nodes.iter().filter(|node| node.is_awake()).filter_map(ask) {
            *votes.entry(leader).or_default() += 1;
        }
        let (leader, _) = votes.into_iter().find(|(_, votes)| *votes > SIZE / 2)?;
        self.nodes.iter().position(|node| node.name() == leader)
    }
}

impl Member {
    fn route(&self) -> SocketAddr {
        let local = std::net::Ipv4Addr::LOCALHOST.into();
        let address = self.netns.as_ref().map_or(local, crate::Netns::address);
        SocketAddr::new(address, self.ports.route.number)
    }
}

fn cluster_block(own: SocketAddr, all: &[SocketAddr]) -> String {
    let routes: Vec<String> = all.iter().map(|route| format!("\"nats-route://{route}\"")).collect();
    let routes = routes.join(", ");
    // By default a dead route is detected after a minute or more, which would prolong a partition.
    let pings = "ping_interval: \"2s\"\n  ping_max: 2";
    format!(
        "cluster {{\n  name: hookloop\n  listen: \"{own}\"\n  routes: [{routes}]\n  {pings}\n}}"
    )
}

fn meta_leader_seen_by(node: &Server) -> Option<String> {
    let page = node.monitor("/jsz")?;
    named(&page["meta_cluster"]["leader"])
}

/// Returns whether this leader sees all other nodes online. A new leader places no stream on a node
/// that it has not seen yet, and only the leader knows which nodes it has seen.
fn sees_all_others_online(node: &Server) -> bool {
    let Some(page) = node.monitor("/jsz") else { return false };
    let others = page["meta_cluster"]["replicas"].as_array().map_or(&[][..], Vec::as_slice);
    let is_online = |other: &Value| other["current"] == true && other["offline"] != true;
    others.len() == SIZE - 1 && others.iter().all(is_online)
}

fn stream_leader_seen_by(node: &Server, stream: &str) -> Option<String> {
    let page = node.monitor("/jsz?accounts=true&streams=true")?;
    let accounts = page["account_details"].as_array()?;
    let mut streams = accounts.iter().filter_map(|account| account["stream_detail"].as_array());
    let found = streams.find_map(|all| all.iter().find(|one| one["name"] == stream))?;
    named(&found["cluster"]["leader"])
}

fn named(leader: &Value) -> Option<String> {
    leader.as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}
