//! One NATS server with its ports, its data and its log.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::lease::Lease;
use crate::network::Netns;
use crate::{binary, process, wait_for, wire};

/// Timeout of a server's start; a cold start takes 50 ms.
const STARTED: Duration = Duration::from_secs(20);

/// Time at which an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Before it is acknowledged.
    #[default]
    Always,
    /// Within two minutes, the server's default.
    Default,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub sync: Sync,
    /// Additional configuration text: `tls { … }`, `accounts { … }`, `max_payload: …`.
    pub extra: String,
    /// Additional lines of the `jetstream` block: `domain: hub`.
    pub jetstream: String,
    /// Data directory, which is used as it is and kept; the default is a directory that is deleted
    /// with the server.
    pub store_dir: Option<PathBuf>,
}

/// Timeout for a server to react to a stop signal.
const STOPPED_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

/// A running, paused or killed server. Killed and removed when dropped.
#[derive(Debug)]
pub struct Server {
    name: String,
    address: IpAddr,
    ports: Ports,
    home: PathBuf,
    store_dir: PathBuf,
    netns: Option<Netns>,
    child: Mutex<Option<Child>>,
    paused: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) client: Lease,
    pub(crate) monitor: Lease,
    pub(crate) route: Lease,
}

impl Ports {
    pub(crate) fn take() -> Ports {
        Ports { client: Lease::port(), monitor: Lease::port(), route: Lease::port() }
    }
}

/// Properties of one member of a cluster.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) ports: Ports,
    pub(crate) netns: Option<Netns>,
    /// The `cluster` block, empty for a single server.
    pub(crate) cluster: String,
}

impl Server {
    /// Starts a single server that syncs every write.
    pub fn single() -> Server {
        Server::with(Options::default())
    }

    pub fn with(options: Options) -> Server {
        let member = Member {
            name: "single".into(),
            ports: Ports::take(),
            netns: None,
            cluster: String::new(),
        };
        let server = Server::configured(member, options);
        server.start();
        server.wait_started();
        server
    }

    /// Returns a server that is not started yet.
    pub(crate) fn configured(member: Member, options: Options) -> Server {
        let Member { name, ports, netns, cluster } = member;
        let home = ports.client.directory();
        let store_dir = options.store_dir.clone().unwrap_or_else(|| home.join("data"));
        let address = netns.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Netns::address);
        let child = Mutex::new(None);
        let paused = AtomicBool::new(false);
        let server = Server { name, address, ports, home, store_dir, netns, child, paused };
        server.configure(&server.configuration(&options, &cluster));
        server
    }

    /// Replaces the configuration, from the next start on.
    pub fn configure(&self, text: &str) {
        fs::write(self.home.join("server.conf"), text).unwrap();
    }

    /// Returns the directory of the configuration, to which included paths are relative.
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn configuration(&self, options: &Options, cluster: &str) -> String {
        let mut text = String::new();
        writeln!(text, "server_name: {}", self.name).unwrap();
        writeln!(text, "listen: \"{}\"", self.client_address()).unwrap();
        writeln!(text, "http: \"{}\"", self.monitor_address()).unwrap();
        writeln!(text, "jetstream {{\n  store_dir: \"{}\"", self.store_dir.display()).unwrap();
        writeln!(text, "  max_memory_store: 1GB\n  max_file_store: 20GB").unwrap();
        if options.sync == Sync::Always {
            writeln!(text, "  sync_interval: always").unwrap();
        }
        writeln!(text, "  limits {{ max_ha_assets: 1000 }}\n{}\n}}", options.jetstream).unwrap();
        writeln!(text, "{cluster}\n{}", options.extra).unwrap();
        text
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the client URL: `nats://127.0.0.1:21000`.
    pub fn url(&self) -> String {
        format!("nats://{}", self.client_address())
    }

    pub fn monitor_url(&self) -> String {
        format!("http://{}", self.monitor_address())
    }

    pub fn client_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.client.number)
    }

    pub fn monitor_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.monitor.number)
    }

    /// Returns the address for other nodes of a cluster.
    pub fn route_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.route.number)
    }

    pub fn store_dir(&self) -> &Path {
        &self.store_dir
    }

    /// Returns the namespace of the server, if it has its own.
    pub fn netns(&self) -> Option<&Netns> {
        self.netns.as_ref()
    }

    /// Returns the pid of the server. Panics if it was killed.
    pub fn pid(&self) -> u32 {
        self.child.lock().unwrap().as_ref().expect("the server runs").id()
    }

    pub fn is_running(&self) -> bool {
        self.child
            .lock()
            .unwrap()
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Returns whether the server runs and is not paused.
    pub fn is_awake(&self) -> bool {
        self.is_running() && !self.paused.load(Ordering::Relaxed)
    }

    /// Returns everything that the server has logged since its first start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Returns a page of the monitoring port, such as `/jsz?streams=true`; `None` unless its status
    /// is 200.
    pub fn monitor(&self, path: &str) -> Option<Value> {
        match wire::page(self.monitor_address(), path) {
            Ok((200, page)) => Some(page),
            _ => None,
        }
    }

    /// Sends one request, such as `$JS.API.INFO`, and waits for its response.
    pub fn request(&self, subject: &str, body: &str) -> std::io::Result<Value> {
        wire::request(self.client_address(), subject, body)
    }

    /// Kills the server at once, like a crash of the process.
    pub fn kill9(&self) {
        self.end(Signal::KILL);
    }

    /// Asks the server to shut down and waits until it has.
    pub fn terminate(&self) {
        self.end(Signal::TERM);
    }

    /// Freezes the server: its connections stay open, and it does not respond.
    pub fn stop_signal(&self) {
        self.signal(Signal::STOP);
        self.paused.store(true, Ordering::Relaxed);
        // The call returns before the signal has taken effect: running threads stop a little later.
        let begun = std::time::Instant::now();
        while !self.is_stopped() && begun.elapsed() < STOPPED_WITHIN {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Returns whether every thread of the server is stopped.
    fn is_stopped(&self) -> bool {
        let child = self.child.lock().unwrap();
        let id = child.as_ref().expect("the server runs").id();
        let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return true };
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('T'))
        })
    }

    /// Continues a frozen server.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
        self.paused.store(false, Ordering::Relaxed);
    }

    /// Restarts the server with the same ports and data, killing it first if it runs, and waits
    /// until it accepts clients.
    pub fn restart(&self) {
        self.kill9();
        self.start();
        self.wait_started();
    }

    /// Deletes the data of a stopped server.
    pub fn wipe(&self) {
        assert!(!self.is_running(), "{} runs: kill it before its data is wiped", self.name);
        let _ = fs::remove_dir_all(self.data());
    }

    pub fn has_data(&self) -> bool {
        self.data().exists()
    }

    /// Returns the only directory that the server creates in its `store_dir`.
    fn data(&self) -> PathBuf {
        self.store_dir.join("jetstream")
    }

    pub(crate) fn start(&self) {
        let log = File::options().create(true).append(true).open(self.home.join("log")).unwrap();
        let inside = self.netns.as_ref().map(|netns| netns.enter());
        let mut command = process::mortal(inside, binary::nats_server());
        command.arg("-c").arg(self.home.join("server.conf"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        *self.child.lock().unwrap() = Some(process::spawn(command));
        self.paused.store(false, Ordering::Relaxed);
    }

    /// Waits until JetStream is up and the server accepts clients. A member of a cluster may not
    /// have found the others yet.
    pub(crate) fn wait_started(&self) {
        wait_for(
            STARTED,
            || format!("{} starts\n{}", self.name, self.log()),
            || {
                assert!(self.is_running(), "{} ended\n{}", self.name, self.log());
                let info = wire::info(self.client_address()).ok()?;
                info["jetstream"].as_bool().unwrap_or(false).then_some(())
            },
        );
    }

    fn end(&self, signal: Signal) {
        if let Some(mut child) = self.child.lock().unwrap().take()
            && matches!(child.try_wait(), Ok(None))
        {
            process::signal(&child, signal);
            child.wait().unwrap();
        }
    }

    fn signal(&self, signal: Signal) {
        process::signal(self.child.lock().unwrap().as_ref().expect("the server runs"), signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill9();
        let _ = fs::remove_dir_all(&self.home);
    }
}
