//! Three NATS servers that form a cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::network::{Network, Side};
use crate::server::{Member, Options, Ports, Server};
use crate::{poll, wait_for};

/// How long an election or a catch-up may take; followers give up on a leader after 4 to 9 seconds.
const SETTLED: Duration = Duration::from_secs(40);

const SIZE: usize = 3;

/// How long a first election may take before it is worth starting over; most take a third of a second.
const FIRST_TRIES: [Duration; 3] =
    [Duration::from_millis(1_000), Duration::from_millis(1_500), Duration::from_millis(3_000)];

/// Where the nodes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    #[default]
    Loopback,
    /// Each in a network namespace of its own, so that they can be parted. Needs root.
    Namespaces,
}

#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    pub placement: Placement,
    /// For every node; its `store_dir` is not used.
    pub server: Options,
    /// Where the data of each node is, if not in directories of its own.
    pub store_dirs: Option<[PathBuf; SIZE]>,
}

#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    network: Option<Network>,
}

impl Cluster {
    /// Three nodes on loopback that sync every write.
    pub fn three() -> Cluster {
        Cluster::with(ClusterOptions::default())
    }

    /// Three nodes in network namespaces.
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

    /// Three nodes on loopback with the configuration that `write` makes for each, told of all of them and
    /// which one it is for.
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

    /// Starts nodes without data. Two that stand for election at the same moment can split the vote, and
    /// the next one is up to nine seconds away: starting over is quicker.
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

    /// The address of every node, for a client.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// Node 0, 1 or 2, whose names are n1, n2 and n3.
    pub fn node(&self, i: usize) -> &Server {
        &self.nodes[i]
    }

    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The network of a cluster in namespaces, to add a client's namespace to it.
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("a cluster in namespaces")
    }

    /// Kills a node; `node(i)` has the other things that can happen to one.
    pub fn kill9(&self, i: usize) {
        self.nodes[i].kill9();
    }

    /// Starts a node again with its data, without waiting for it to catch up.
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

    /// Starts every node that does not run and waits until the cluster is whole.
    pub fn start_all(&self) {
        self.start_nodes();
        self.wait_whole();
    }

    /// Waits until all nodes agree on a leader and have caught up.
    pub fn wait_whole(&self) {
        let otherwise = || format!("the cluster is whole\n{}", self.logs());
        wait_for(SETTLED, otherwise, || self.is_whole().then_some(()));
    }

    /// All nodes agree on a leader, which sees them all, and have caught up.
    pub fn is_whole(&self) -> bool {
        let views: Vec<String> = self.nodes.iter().map_while(meta_leader_seen_by).collect();
        views.len() == SIZE
            && views.iter().all(|leader| *leader == views[0])
            && self.nodes.iter().any(sees_all_others_online)
            && self.nodes.iter().all(|node| node.monitor("/healthz").is_some())
    }

    /// The node that leads the cluster, by the word of most.
    pub fn meta_leader(&self) -> Option<usize> {
        self.majority(meta_leader_seen_by)
    }

    /// The node that leads a stream of any account, by the word of most.
    pub fn leader_of(&self, stream: &str) -> Option<usize> {
        self.majority(|node| stream_leader_seen_by(node, stream))
    }

    /// Waits for a leader of the stream among the nodes other than `except`.
    pub fn wait_leader_of(&self, stream: &str, except: Option<usize>) -> usize {
        let found = self.leader_within(SETTLED, stream, except);
        found.unwrap_or_else(|| panic!("{stream} has no leader\n{}", self.logs()))
    }

    /// The same, and none if there is no leader in time.
    pub fn leader_within(
        &self,
        limit: Duration,
        stream: &str,
        except: Option<usize>,
    ) -> Option<usize> {
        poll(limit, || self.leader_of(stream).filter(|leader| Some(*leader) != except))
    }

    /// Parts these nodes from the others. They still reach each other, and this process reaches all.
    pub fn partition(&self, nodes: &[usize]) {
        self.plug(nodes, Side::Other);
    }

    /// Cuts these nodes off from everything, this process included.
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
        // A node that is paused would be waited for in vain.
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
    // The default notices a dead route after a minute or more, and until then a partition is not over.
    let pings = "ping_interval: \"2s\"\n  ping_max: 2";
    format!(
        "cluster {{\n  name: hookloop\n  listen: \"{own}\"\n  routes: [{routes}]\n  {pings}\n}}"
    )
}

fn meta_leader_seen_by(node: &Server) -> Option<String> {
    let page = node.monitor("/jsz")?;
    named(&page["meta_cluster"]["leader"])
}

/// A leader that was elected a moment ago places no stream on a node that it has not heard of yet.
/// Only the leader knows that of the others.
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
