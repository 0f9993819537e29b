//! Channels that notify the user.

use std::time::Duration;

use hookloop_core::inbox::ProblemKind;
use lettre::message::Mailbox;

use crate::secret_text::SecretSource;

/// A channel for notifications.
#[derive(Clone, Debug, PartialEq)]
pub struct NotificationChannel {
    pub name: String,
    pub way: ChannelKind,
    pub mode: SendMode,
    /// Names or directories of projects; empty for all.
    pub projects: Vec<String>,
    /// Types of problems; empty for all.
    pub types: Vec<ProblemKind>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ChannelKind {
    Webhook(SecretSource),
    Slack(SecretSource),
    Desktop,
    Mail(Box<MailSettings>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct MailSettings {
    pub host: String,
    pub port: u16,
    pub security: MailSecurity,
    /// A name and a password.
    pub login: Option<(String, SecretSource)>,
    pub from: Mailbox,
    pub to: Vec<Mailbox>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailSecurity {
    StartTls,
    Tls,
    /// Only on this machine.
    None,
}

/// Whether problems are sent one by one, or collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    Each,
    Digest { every: Duration },
}
