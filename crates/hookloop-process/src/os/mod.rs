//! What systems have in different ways: who there is, what they use, and how an end is noticed.
//!
//! Where orphans can't be adopted (everywhere but on Linux), a keeper gives its hooks a **mark**, a variable that
//! their processes inherit, and finds by that who left it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(any(not(target_os = "linux"), test))]
mod table;

#[cfg(target_os = "linux")]
pub(super) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(super) use other::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Whether a child has ended; it is not waited for by this.
pub(super) fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Who is not a child any more has been waited for.
    waitid(WaitId::Pid(child), options).map_or(true, |ended| ended.is_some())
}

/// The value of a variable, if it has that name.
pub(super) fn value_of(variable: &OsString, name: &str) -> Option<OsString> {
    let value = variable.as_encoded_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    Some(OsString::from_vec(value.to_vec()))
}
