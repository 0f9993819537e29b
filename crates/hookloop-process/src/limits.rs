//! Limits on the resources that the processes of a job use together.

use std::fmt;

/// Limits of a job. A limit that is `None` has a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Processes at the same time [default: 1,024].
    pub processes: Option<u64>,
    /// Memory of all processes together, shared pages counted once [default: three quarters of the machine's].
    pub memory_bytes: Option<u64>,
    /// Bytes written to disks, and the largest size of one file [default: three quarters of the free space].
    pub disk_bytes: Option<u64>,
}

/// A limit that a job exceeded, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    Processes(u64),
    Memory { bytes: u64 },
    Disk { bytes: u64 },
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ExceededLimit::Processes(count) => write!(f, "more than {count} processes"),
            ExceededLimit::Memory { bytes } => write!(f, "more than {bytes} bytes of memory"),
            ExceededLimit::Disk { bytes } => write!(f, "more than {bytes} bytes written to disk"),
        }
    }
}
