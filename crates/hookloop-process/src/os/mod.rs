//! Differences between systems: the process table, resource usage, and waiting for the end of a process.
//!
//! Only Linux lets a process adopt orphans. Elsewhere a keeper gives its job a **mark**, an environment variable that
//! the job's processes inherit, and finds orphans by that.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod stat;
#[cfg(any(not(target_os = "linux"), test))]
mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
pub(crate) use stat::ProcessStat;

/// Returns whether a child has ended, without reaping it.
pub(crate) fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // An error means that the process is no child any more: it was reaped.
    waitid(WaitId::Pid(child), options).map_or(true, |ended| ended.is_some())
}

/// Returns the value of a `NAME=value` pair, if it has that name.
pub(crate) fn value_of(variable: &OsString, name: &str) -> Option<OsString> {
    let value = variable.as_encoded_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    Some(OsString::from_vec(value.to_vec()))
}
