//! The log on NATS JetStream: many machines, one log.
//!
//! - [`unsafe_server`]: reasons not to trust a server with a log
//! - [`error`]: errors of a log on servers
//! - [`retry`]: limits and pauses of requests
//! - [`denials`]: requests that the server denied
//! - [`connect`]: connects to the servers of a store
//! - [`link`]: connections, one for each log or shared
//! - [`options`]: connection options of a process
//! - [`layout`]: names of streams and subjects
//! - [`message`]: an event as a message
//! - [`ack`]: acknowledgements of published messages
//! - [`written`]: the events that this log has appended, for its own reads
//! - [`client`]: a project's log, and requests over its connection
//! - [`direct`]: a few events in one request
//! - [`follow`]: events in order and without a gap
//! - [`reads`]: reads by any replica, or by the leader
//! - [`append`]: a batch into the stream
//! - [`event_log`], [`heartbeat`], [`snapshot`]: the traits of an engine
//! - [`safety`]: checks of a server before it is trusted
//! - [`permissions`]: the permissions that a user of the servers needs
//! - [`open`]: a project's log with its view on this machine
//!
//! The interface is synchronous, like that of every log, and a runtime of its own moves the bytes.
//! An asynchronous task must not call it.

mod ack;
mod append;
mod client;
mod connect;
mod denials;
mod direct;
mod error;
mod event_log;
mod follow;
mod heartbeat;
mod layout;
mod link;
mod message;
mod open;
mod options;
mod permissions;
mod reads;
mod retry;
mod safety;
mod snapshot;
mod unsafe_server;
mod written;

pub use client::JetStreamLog;
pub use error::JetStreamError;
pub use link::NatsLinks;
pub use open::{OpenedLog, open};
pub use options::NatsOptions;
pub use permissions::{NatsPermissions, NatsRole};
pub use safety::{MONITOR_PORT_ABOVE, ServerSafety, ServerStanding};
pub use unsafe_server::UnsafeServer;
