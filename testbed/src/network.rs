//! Network namespaces on a bridge that can be partitioned. Needs root and `ip` of iproute2.
//!
//! There are two bridges, one for each side of a partition; a partition moves a namespace's cable
//! to the other one. Packets between the sides are silently dropped, as in a real partition. This
//! process is on both bridges with one address, so a test always reaches both sides.

use std::ffi::OsStr;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::lease::Lease;
use crate::process;

/// Prefix of the names of bridges, cables and namespaces, followed by the number of the lease.
const PREFIX: &str = "hltb";
/// Host number of this process in each subnet.
const HERE: u8 = 254;

/// Two bridges with their own subnet. Removed when it and its last namespace are dropped.
#[derive(Clone, Debug)]
pub struct Network(Arc<Bridges>);

#[derive(Debug)]
struct Bridges {
    lease: Lease,
    hosts: AtomicU8,
}

/// The bridge to which a namespace's cable is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Main,
    /// The part of the network that [`crate::Cluster::partition`] splits off.
    Other,
    /// No bridge: neither a node nor this process reaches the namespace.
    Unplugged,
}

/// A network namespace with one address.
#[derive(Debug)]
pub struct Netns {
    network: Network,
    host: u8,
}

impl Network {
    pub fn new() -> Network {
        sweep();
        let routes = process::run(Command::new("ip").args(["-4", "route"]));
        let taken = |number: u16| routes.contains(&format!("{} ", subnet(number)));
        let lease = (0..=u16::MAX >> 4)
            .filter(|number| !taken(*number))
            .find_map(|number| Lease::take("net", number))
            .expect("a free subnet");
        let network = Network(Arc::new(Bridges { lease, hosts: AtomicU8::new(1) }));
        let [main, other] = [network.bridge(Side::Main), network.bridge(Side::Other)];
        let number = network.0.lease.number;
        let here = host(number, HERE);
        // Both bridges have the same hardware address, so that the namespaces' ARP entries for this
        // process stay valid.
        let [high, low] = number.to_be_bytes();
        let mac = format!("02:68:6c:00:{high:02x}:{low:02x}");
        ip(&format!(
            "link add {main} address {mac} type bridge\n\
             link add {other} address {mac} type bridge\n\
             addr add {here}/24 dev {main}\n\
             addr add {here}/32 dev {other}\n\
             link set {main} up\n\
             link set {other} up\n"
        ));
        network
    }

    /// Creates a namespace on the main side, for a server or for a client that is partitioned too.
    pub fn netns(&self) -> Netns {
        let netns =
            Netns { network: self.clone(), host: self.0.hosts.fetch_add(1, Ordering::Relaxed) };
        let (name, cable, address) = (netns.name(), netns.cable(), netns.address());
        let bridge = self.bridge(Side::Main);
        ip(&format!("netns add {name}\n"));
        ip(&format!(
            "link add {cable} type veth peer name eth0 netns {name}\n\
             link set {cable} master {bridge} up\n"
        ));
        let inside = format!("addr add {address}/24 dev eth0\nlink set lo up\nlink set eth0 up\n");
        batch(netns.command("ip"), &inside);
        netns
    }

    /// Returns the address at which the namespaces reach this process.
    pub fn here(&self) -> IpAddr {
        IpAddr::V4(host(self.0.lease.number, HERE))
    }

    fn bridge(&self, side: Side) -> String {
        let number = self.0.lease.number;
        format!("{PREFIX}{number}{}", if side == Side::Main { 'm' } else { 'o' })
    }
}

impl Default for Network {
    fn default() -> Network {
        Network::new()
    }
}

impl Netns {
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(host(self.network.0.lease.number, self.host))
    }

    pub fn name(&self) -> String {
        format!("{PREFIX}{}-{}", self.network.0.lease.number, self.host)
    }

    /// Returns a command that runs inside the namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.enter();
        command.arg(program);
        command
    }

    /// Connects the namespace's cable to another side.
    pub fn plug(&self, side: Side) {
        let (cable, address) = (self.cable(), self.address());
        let bridge = self.network.bridge(side);
        ip(&match side {
            Side::Unplugged => format!("link set {cable} nomaster\n"),
            _ => format!(
                "link set {cable} master {bridge}\nroute replace {address}/32 dev {bridge}\n"
            ),
        });
    }

    /// Returns the start of a command line that enters the namespace and executes the rest of the
    /// line.
    pub(crate) fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name())).arg("--");
        command
    }

    fn cable(&self) -> String {
        format!("{PREFIX}{}v{}", self.network.0.lease.number, self.host)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        forget(&["link", "del", &self.cable()]);
        forget(&["netns", "del", &self.name()]);
    }
}

impl Drop for Bridges {
    fn drop(&mut self) {
        clear(self.lease.number);
    }
}

fn subnet(number: u16) -> String {
    format!("{}/24", host(number, 0))
}

fn host(number: u16, host: u8) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 201 + high, low, host)
}

/// Removes resources of dead processes: all whose number belongs to a free lease.
fn sweep() {
    let links = process::run(Command::new("ip").args(["-o", "link"]));
    let spaces = process::run(Command::new("ip").args(["netns", "list"]));
    let names = links.lines().filter_map(|line| line.split(' ').nth(1));
    let mut numbers: Vec<u16> = names.chain(spaces.lines()).filter_map(number_of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        if let Some(lease) = Lease::take("net", number) {
            clear(lease.number);
        }
    }
}

fn number_of(name: &str) -> Option<u16> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Removes everything with this number. The caller holds its lease.
fn clear(number: u16) {
    let spaces = process::run(Command::new("ip").args(["netns", "list"]));
    let names = spaces.lines().filter_map(|line| line.split(' ').next());
    for name in names.filter(|name| number_of(name) == Some(number)) {
        let cable = name.replace('-', "v");
        forget(&["link", "del", &cable]);
        forget(&["netns", "del", name]);
    }
    forget(&["link", "del", &format!("{PREFIX}{number}m")]);
    forget(&["link", "del", &format!("{PREFIX}{number}o")]);
}

/// Runs `ip` on a device that may no longer exist.
fn forget(args: &[&str]) {
    let _ = Command::new("ip").args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn ip(lines: &str) {
    batch(Command::new("ip"), lines);
}

fn batch(mut ip: Command, lines: &str) {
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ip.spawn().expect("ip of iproute2");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "namespaces need root: {said}\n{lines}");
}
