//! Channels that notify the user.

use std::time::Duration;

use hookloop_core::inbox::ProblemKind;
use lettre::message::Mailbox;

use crate::secret_text::Given;

/// A channel for notifications.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    pub name: String,
    pub way: Way,
    pub mode: Mode,
    /// Names or directories of projects; empty for all.
    pub projects: Vec<String>,
    /// Kinds of problems; empty for all.
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
    /// Only on this machine.
    None,
}

/// Whether problems are sent one by one, or collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Each,
    Digest { every: Duration },
}
