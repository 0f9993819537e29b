//! Converts between the limits of a hook and those of a job.

use hookloop_core::limits::{Limit, Limits};
use hookloop_process::{ExceededLimit, ResourceLimits};

/// Returns the limits of the job that runs a hook.
pub(crate) fn of_hook(limits: Limits) -> ResourceLimits {
    let Limits { processes, memory_bytes, disk_bytes } = limits;
    ResourceLimits { processes, memory_bytes, disk_bytes }
}

/// Returns the limit of a hook that its job exceeded.
pub fn exceeded(limit: ExceededLimit) -> Limit {
    match limit {
        ExceededLimit::Processes(count) => Limit::Processes(count),
        ExceededLimit::Memory { bytes } => Limit::Memory { bytes },
        ExceededLimit::Disk { bytes } => Limit::Disk { bytes },
    }
}
