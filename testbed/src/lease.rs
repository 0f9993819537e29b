//! Ports, subnets and directories that belong to one process at a time.
//!
//! A lease is a locked file. The kernel drops the lock with the process, so a lease that can be had is one
//! whose holder is gone, and what carries its number is left over.

use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;

/// Below the range that the kernel takes for outgoing connections, so a server that is down keeps its
/// port.
const PORTS: Range<u16> = 21_000..29_000;

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) number: u16,
    _lock: File,
}

impl Lease {
    /// The lease of that kind and number, if nobody holds it.
    pub(crate) fn take(kind: &str, number: u16) -> Option<Lease> {
        let lock = File::create(home().join(format!("{kind}-{number}.lock"))).unwrap();
        lock.try_lock().ok()?;
        Some(Lease { number, _lock: lock })
    }

    /// A loopback port that no process listens on. A port that is leased is not tried: the trial would
    /// occupy it in the moment in which its server starts.
    pub(crate) fn port() -> Lease {
        PORTS
            .filter_map(|port| Lease::take("port", port))
            .find(|lease| TcpListener::bind(("127.0.0.1", lease.number)).is_ok())
            .expect("a free port")
    }

    /// An empty directory that is this lease's own.
    pub(crate) fn directory(&self) -> PathBuf {
        let path = home().join(format!("{}", self.number));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }
}

/// Where leases and servers live: one directory per user.
pub(crate) fn home() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let path = std::env::temp_dir().join(format!("hookloop-testbed-{user}"));
    fs::create_dir_all(&path).unwrap();
    path
}
