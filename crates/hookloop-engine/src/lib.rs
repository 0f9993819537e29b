//! Makes things happen: commands in, events out, reactions run.
//!
//! - [`kept`]: where a project's log is kept, and how it is opened there
//! - [`caller`]: the actor that gives commands, and whether it is a person
//! - [`project`]: the one door for commands
//! - [`work`]: a command and what follows from it, as one batch
//! - [`session`]: the loop: sessions, gates, receipts
//! - [`delivery`]: from finished work to a branch that is merged
//! - `integrity`: what a person decides about a log that is damaged
//! - [`inbox`]: what needs a human, and what people decide about it
//! - [`guest`]: agents that come by themselves: by tools, or by hooks of their own
//! - [`delivery`]: how finished work gets into the branch that it is for
//! - [`gate_agreement`]: the gates that a person agreed to, kept for each branch of a repository
//! - [`react`]: the hooks an event has, and what they ask for
//! - [`run`]: hooks that start something, and the batch that records it
//! - [`dispatch`]: reactions and workflows that were left for later
//! - [`claim`]: taking a task, the most urgent first
//! - [`schedules`]: tasks that come again
//! - `spread`: how contended claims were of late
//! - [`lease`]: whether a holder is still there; [`lifeline`]: that this process is
//! - [`seat`]: a place that one process at a time has
//! - [`reactions`]: which process runs the hooks of due events
//! - [`dispatcher`]: one dispatcher at a time, on one of many machines
//! - [`process`]: runs a hook's process, and ends all that it started; `ancestry`: the projects of keepers above this process
//! - [`bulk`]: tasks by the million, in and out
//!
//! The engine never prints.

pub mod bulk;
pub mod caller;
mod callers_above;
pub mod claim;
pub mod command_outcome;
pub mod delivery;
pub mod delivery_context;
pub mod dispatch;
pub mod dispatcher;
pub mod error;
pub mod gate_agreement;
pub mod guest;
pub mod inbox;
mod integrity;
pub mod kept;
pub mod launch;
pub mod lease;
pub mod lifeline;
pub mod machine;
pub mod project;
mod protected_files;
pub mod react;
pub mod reactions;
pub mod schedules;
pub mod seat;
pub mod session;
mod session_history;
pub mod session_record;
mod sought;
mod spread;
pub mod user_database;
pub mod work;

/// What callers of the engine see of the layers below it.
pub mod store {
    pub use hookloop_core::refusal::Refusal;
    pub use hookloop_store::jetstream::{
        JetStreamError, JetStreamLog, MONITOR_PORT_ABOVE, NatsLinks, NatsPermissions, NatsRole,
        ServerStanding, UnsafeServer,
    };
    pub use hookloop_store::log::{EventFollower, EventLog, LogError, Seq, StoredEvent};
    pub use hookloop_store::sqlite::{FileDamage, LogDefect, LogLoss, LogOpenError};
    pub use hookloop_store::store::{RebuiltView, StoreError, UNREADABLE_VIEW};
    pub use hookloop_store::view::{
        BudgetReservation, DelayedTasks, HookRuns, HookTimes, QuarantineRow, SessionCount,
        SessionFilter, SessionRow, SpentAmount, TaskAnnotation, TaskFilter, TaskRow, UsageBy,
        UsageOfDay, UsageRow, View,
    };
}
