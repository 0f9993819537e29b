//! The session that runs in a checkout.

use std::path::PathBuf;

use hookloop_core::time::Timestamp;

/// The session that runs in a checkout, as far as its lock names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutHolder {
    pub directory: PathBuf,
    pub session: Option<String>,
    pub pid: Option<u32>,
    pub since: Option<Timestamp>,
}

impl std::fmt::Display for CheckoutHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CheckoutHolder { directory, session, pid, since } = self;
        match session {
            Some(session) => write!(f, "session {session}")?,
            None => f.write_str("another session")?,
        }
        if let (Some(pid), Some(since)) = (pid, since) {
            write!(f, " (process {pid}, since {since})")?;
        }
        write!(
            f,
            " works in {}: two sessions in one checkout take each other's changes for their own",
            directory.display()
        )
    }
}
