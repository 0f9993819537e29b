//! The configuration of a project's log: its servers, credentials and durability.
//!
//! The store uses these values, and the configuration creates them. Neither depends on the other.

use std::path::PathBuf;

/// The version of the tables of a log or a view in SQLite. Files with newer tables are refused.
pub const TABLES_VERSION: i64 = 13;

/// The addresses of NATS servers, and this user's credentials for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsAccess {
    /// `nats://host:port` or `tls://host:port`, several with commas between.
    pub urls: String,
    pub credentials: Option<NatsCredentials>,
    /// The certificate that signed the servers' certificates.
    pub ca: Option<PathBuf>,
    /// This client's certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Monitoring URLs of the servers, such as `http://host:8222`. If empty, the usual port of each server's host.
    pub monitoring_urls: Vec<String>,
    /// The prefix of the subjects on which answers arrive. A user's permissions may name it.
    pub inbox_prefix: Option<String>,
    pub durability: NatsDurability,
}

/// A file that identifies a user to NATS servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NatsCredentials {
    /// A file with a user's JWT and its seed.
    File(PathBuf),
    /// A file with an nkey's seed.
    NKey(PathBuf),
    /// A file with the token of the servers.
    Token(PathBuf),
}

/// Whether a server must show that acknowledged messages are on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatsDurability {
    #[default]
    Safe,
    /// The user accepts servers that may lose acknowledged messages.
    Unsafe,
}
