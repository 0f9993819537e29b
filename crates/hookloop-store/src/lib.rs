//! Stores events, and derives the view from them.
//!
//! The store never decides a command, and its queries about tasks get the time from the caller. The modules, from
//! bottom to top:
//!
//! - [`seq`]: places in a log
//! - [`crash`]: the points at which tests end the process
//! - [`chain`]: the hash that ties each stored event to the one before it
//! - [`log`]: the contract of a log, for every engine
//! - [`heartbeat`]: heartbeats of processes that hold something
//! - `recorded_head`: the last acknowledged event of a SQLite log, in a file beside it
//! - [`snapshot`]: a view as bytes, for a machine that starts
//! - [`view`]: tables derived from the log, and the queries on them
//! - [`memory`]: a log in memory, shared by its clones: for tests, and the model of a remote engine
//! - [`sqlite`]: the log in a SQLite file
//! - [`checkup`]: checks of that file from outside
//! - [`store`]: log and view together, the units of work that change them, group commit
//! - [`jetstream`]: the log on NATS JetStream

pub mod chain;
pub mod checkup;
pub mod crash;
pub mod heartbeat;
mod hex;
pub mod jetstream;
pub mod log;
pub mod memory;
mod recorded_head;
pub mod seq;
pub mod snapshot;
pub mod sqlite;
pub mod store;
pub mod view;
