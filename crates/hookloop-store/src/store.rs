//! Log and view together, the units of work that change them, and group commit.
//!
//! A unit of work reads the view, stages events (which the view shows at once), and becomes one
//! atomic batch. With the log in the same file, batch and view are one transaction. With the log on
//! servers, the view is a copy that follows it. The unit's changes are undone, the batch is
//! appended, and the stored events are applied. On a conflict the work is done again on the new
//! state of the log.
//!
//! - [`error`]: errors of a store
//! - [`engine`]: the engine of a log on servers
//! - [`transaction`]: statements that begin, end or undo a transaction
//! - [`unit`]: a unit of work
//! - [`intake`]: events of a log into a view
//! - [`origin`]: the file of a view over a log on servers
//! - [`log_home`]: where the events of a store are
//! - [`append_queue`]: batches on their way to a log on servers
//! - [`progress`]: how far a view that follows its log is
//! - [`state`]: the state that a store guards, and group commit
//! - [`remote_check`]: a log on servers compared with the acknowledged events
//! - [`remote_view`]: events of a log on servers into the view
//! - [`handle`]: the handle that threads share
//! - [`remote_log`]: a store whose log is on servers
//! - [`group_append`]: units of many threads as one batch
//! - [`transact`]: units of work and reads
//! - [`open`]: opens stores
//! - [`rebuild`]: checks, and the view made again
//! - [`event_log`]: a store as a log
//! - [`subject_log`]: one subject as a log of its own

mod append_queue;
mod engine;
mod error;
mod event_log;
mod group_append;
mod handle;
mod intake;
mod log_home;
mod open;
mod origin;
mod progress;
mod rebuild;
mod remote_check;
mod remote_log;
mod remote_view;
mod state;
mod subject_log;
#[cfg(test)]
mod tests;
mod transact;
mod transaction;
mod unit;

pub use engine::LogEngine;
pub use error::StoreError;
pub use handle::Store;
pub use origin::{LogIdentity, ViewFile};
pub use rebuild::{RebuiltView, UNREADABLE_VIEW};
pub use unit::WorkUnit;
