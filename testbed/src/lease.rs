//! Ports, subnets and directories that belong to one process at a time.
//!
//! A lease is a locked file. The kernel releases the lock when the process ends. A lease that can
//! be acquired therefore has no living holder, and all resources with its number are left over.

use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::Range;
use std::path::PathBuf;

/// Below the kernel's range of ephemeral ports, so that no outgoing connection takes the port of a
/// stopped server.
const PORTS: Range<u16> = 21_000..29_000;

#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) number: u16,
    _lock: File,
}

impl Lease {
    /// Acquires the lease of this kind and number; returns `None` if another process holds it.
    pub(crate) fn take(kind: &str, number: u16) -> Option<Lease> {
        let lock = File::create(home().join(format!("{kind}-{number}.lock"))).unwrap();
        lock.try_lock().ok()?;
        Some(Lease { number, _lock: lock })
    }

    /// Returns a loopback port on which no process listens. A leased port is not probed, because
    /// the probe would occupy it while its server starts.
    pub(crate) fn port() -> Lease {
        PORTS
            .filter_map(|port| Lease::take("port", port))
            .find(|lease| TcpListener::bind(("127.0.0.1", lease.number)).is_ok())
            .expect("a free port")
    }

    /// Returns an empty directory that belongs to this lease.
    pub(crate) fn directory(&self) -> PathBuf {
        let path = home().join(format!("{}", self.number));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }
}

/// Returns the directory of leases and servers, one per user.
pub(crate) fn home() -> PathBuf {
    let user = rustix::process::getuid().as_raw();
    let path = std::env::temp_dir().join(format!("hookloop-testbed-{user}"));
    fs::create_dir_all(&path).unwrap();
    path
}
