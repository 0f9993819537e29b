//! The name of this machine, and random words.

use hookloop_core::digest::hex;

/// Returns the name of this machine.
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn random_word() -> String {
    let bytes = uuid::Uuid::new_v4();
    hex(&bytes.as_bytes()[..8])
}
