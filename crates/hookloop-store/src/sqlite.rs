//! The log in a SQLite file.
//!
//! WAL, `synchronous=FULL`: committed events are on disk. The last process to close the file moves
//! a large WAL into it. A small WAL stays, so that most short commands pay only for their own
//! write.
//!
//! - [`damage`]: losses and damage, and the errors that report them
//! - [`settings`]: how SQLite is set up
//! - [`event_rows`]: events as rows of a table
//! - [`replay`]: the view that the log leads to
//! - [`open`]: opens a file, and brings its tables up to date
//! - [`chain_check`]: checks of the chain and of the file
//! - [`heartbeats`]: heartbeats in a table
//! - [`file_follower`]: a follower of the log

mod chain_check;
mod damage;
mod event_rows;
mod file_follower;
mod heartbeats;
mod open;
mod replay;
mod settings;

pub(crate) use chain_check::{AcknowledgedHeads, check_file, verify_chain};
pub(crate) use damage::damage_of;
pub use damage::{FileDamage, LogDefect, LogLoss, LogOpenError};
pub(crate) use event_rows::{back_from, has_table, insert, last_place, read, read_at};
pub(crate) use file_follower::FileFollower;
pub(crate) use heartbeats::{beat, forget, last_beat, take, workers};
pub use hookloop_core::store_config::TABLES_VERSION as SCHEMA;
pub use open::is_file_empty;
pub(crate) use open::{check_not_emptied, open, open_in_memory, open_unless_lost};
pub(crate) use replay::{append_one, remake_view, scratch_view, verify_view};
pub(crate) use settings::{before_close, is_busy, is_wal_large};
