//! The kinds of faults. A fault strikes and is healed while the workers continue.

use std::ops::Range;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hookloop_testbed::network::Side;
use hookloop_testbed::{Cluster, ClusterOptions, Disk, Placement, cut_power};
use hookloop_testkit::SeededRandom;

use crate::fleet::Process;
use crate::history::now_ms;
use crate::stream;

/// Interval at which the leader is killed.
const KILL_EVERY: Duration = Duration::from_secs(5);
/// Downtime of a killed leader.
const KILLED_FOR: Duration = Duration::from_secs(1);

/// Timeout for two nodes to elect a leader; some elections fail.
const AGREED: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum Scenario {
    /// The stream's leader is killed every five seconds and restarted.
    Leader,
    /// A node is frozen for some seconds.
    Pause,
    /// A node and some workers are partitioned from the others. Needs root.
    Partition,
    /// A partition that lasts longer than the product's timeouts, so that responses fail to arrive.
    Exile,
    /// A node loses its disk and joins again.
    Wipe,
    /// Nodes are restarted one after the other, which drops the connections of their clients.
    Restart,
    /// The power of all nodes is cut at once. Needs root.
    Power,
    /// Sixty-four claimants on thousands of tasks.
    Claims,
    /// A holder is frozen past its lease.
    Expiry,
}

/// Start and end of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) struck_ms: u64,
    pub(crate) healed_ms: u64,
}

impl Scenario {
    /// Returns whether nodes and workers are partitioned, and so need their own namespaces.
    pub(crate) fn parts(self) -> bool {
        matches!(self, Scenario::Partition | Scenario::Exile)
    }

    /// Returns how long faults strike in a round of CI's size; `None` if such a round is too short.
    pub(crate) fn quick_seconds(self) -> Option<u64> {
        match self {
            Scenario::Leader | Scenario::Partition => Some(18),
            Scenario::Pause | Scenario::Wipe | Scenario::Restart | Scenario::Expiry => Some(10),
            Scenario::Power | Scenario::Claims => Some(1),
            Scenario::Exile => None,
        }
    }
}

/// Environment of a scenario.
pub(crate) struct Ground {
    pub(crate) cluster: Cluster,
    disks: Vec<Disk>,
}

impl Ground {
    pub(crate) fn new(scenario: Scenario) -> Ground {
        let disks: Vec<Disk> = match scenario {
            Scenario::Power => (0..3).map(|_| Disk::new()).collect(),
            _ => vec![],
        };
        let placement = match scenario.parts() {
            true => Placement::Namespaces,
            false => Placement::Loopback,
        };
        let store_dirs = match disks.as_slice() {
            [a, b, c] => Some([a, b, c].map(|disk| disk.path().to_owned())),
            _ => None,
        };
        let options = ClusterOptions { placement, store_dirs, ..ClusterOptions::default() };
        Ground { cluster: Cluster::with(options), disks }
    }

    /// Injects one fault and heals it.
    pub(crate) fn strike(
        &self,
        scenario: Scenario,
        workers: &[Process],
        dice: &mut SeededRandom,
    ) -> Fault {
        match scenario {
            Scenario::Leader => self.kill_leader(),
            Scenario::Pause => self.pause(dice),
            Scenario::Partition => self.partition(workers, 5_000..12_000, dice),
            Scenario::Exile => self.partition(workers, 32_000..40_000, dice),
            Scenario::Wipe => self.wipe(dice),
            Scenario::Restart => self.restart(dice),
            Scenario::Power => self.cut_power(),
            Scenario::Claims | Scenario::Expiry => {
                unreachable!("these faults happen without an action")
            }
        }
    }

    fn kill_leader(&self) -> Fault {
        let end = Instant::now() + KILL_EVERY;
        let stream = stream::name(&self.cluster);
        let leader = self.cluster.wait_leader_of(&stream, None);
        let struck_ms = now_ms();
        self.cluster.kill9(leader);
        std::thread::sleep(KILLED_FOR);
        self.cluster.restart(leader);
        let healed_ms = now_ms();
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        Fault { struck_ms, healed_ms }
    }

    fn pause(&self, dice: &mut SeededRandom) -> Fault {
        let node = dice.below(3);
        let struck_ms = now_ms();
        self.cluster.stop_signal(node);
        wait(dice, 2_000..7_000);
        self.cluster.cont(node);
        let healed_ms = now_ms();
        wait(dice, 3_000..7_000);
        Fault { struck_ms, healed_ms }
    }

    fn partition(&self, workers: &[Process], millis: Range<u64>, dice: &mut SeededRandom) -> Fault {
        let node = dice.below(3);
        let struck_ms = now_ms();
        self.cluster.partition(&[node]);
        // A third of the workers is on the minority side.
        let parted = workers.iter().skip(dice.below(3)).step_by(3);
        parted.filter_map(|worker| worker.netns.as_ref()).for_each(|netns| netns.plug(Side::Other));
        wait(dice, millis);
        self.cluster.heal();
        let all = workers.iter().filter_map(|worker| worker.netns.as_ref());
        all.for_each(|netns| netns.plug(Side::Main));
        let healed_ms = now_ms();
        wait(dice, 5_000..10_000);
        Fault { struck_ms, healed_ms }
    }

    /// Wipes the disk of a node. The others elect a leader before it comes back, because an empty
    /// node must not vote on which of them is ahead. If they elect none, the disk is still needed
    /// and the node is only killed: servers that were wiped shortly before sometimes elect no
    /// leader without the third, although they have caught up.
    fn wipe(&self, dice: &mut SeededRandom) -> Fault {
        let stream = stream::name(&self.cluster);
        let node = dice.below(3);
        let struck_ms = now_ms();
        self.cluster.kill9(node);
        if self.cluster.leader_within(AGREED, &stream, Some(node)).is_some() {
            self.cluster.wipe(node);
        }
        self.cluster.restart(node);
        let healed_ms = now_ms();
        assert!(stream::wait_caught_up(&self.cluster, &stream), "node {node} does not catch up");
        wait(dice, 1_000..3_000);
        Fault { struck_ms, healed_ms }
    }

    fn restart(&self, dice: &mut SeededRandom) -> Fault {
        let node = dice.below(3);
        let struck_ms = now_ms();
        match dice.below(2) {
            0 => self.cluster.node(node).terminate(),
            _ => self.cluster.kill9(node),
        }
        self.cluster.restart(node);
        let healed_ms = now_ms();
        wait(dice, 1_000..4_000);
        Fault { struck_ms, healed_ms }
    }

    fn cut_power(&self) -> Fault {
        let struck_ms = now_ms();
        cut_power(self.cluster.nodes(), &self.disks);
        let healed_ms = now_ms();
        self.cluster.start_all();
        std::thread::sleep(Duration::from_secs(6));
        Fault { struck_ms, healed_ms }
    }
}

fn wait(dice: &mut SeededRandom, millis: Range<u64>) {
    std::thread::sleep(Duration::from_millis(dice.within(millis)));
}
