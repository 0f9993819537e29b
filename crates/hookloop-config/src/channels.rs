//! Channels that notify the user.

use std::time::Duration;

use hookloop_core::inbox::ProblemKind;
use lettre::message::Mailbox;

use crate::secret_text::Given;

/// A way to tell a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    pub name: String,
    pub way: Way,
    pub mode: Mode,
    /// Names or directories of projects; none for all of them.
    pub projects: Vec<String>,
    /// None for all of them.
    pub kinds: Vec<ProblemKind>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    Webhook(Given),
    Slack(Given),
    Desktop,
    Mail(Box<Mail>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mail {
    pub host: String,
    pub port: u16,
    pub security: Security,
    /// A name and a password.
    pub login: Option<(String, Given)>,
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    StartTls,
    Tls,
    /// On this machine alone.
    None,
}

/// Whether each problem is told at once, or all of a while together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Each,
    Digest { every: Duration },
}
