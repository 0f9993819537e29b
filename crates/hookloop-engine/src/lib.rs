//! Runs commands, reactions, sessions and deliveries: commands in, events out.
//!
//! The engine never prints: the program shows its results. The modules, from bottom to top:
//!
//! - [`error`], [`command_outcome`]: errors and outcomes of commands
//! - [`machine`]: the name of this machine
//! - [`user_database`]: the name of the user in the system's database
//! - `in_flight_claims`, `claim_backoff`: claims in flight in this process, and how contended claims were recently
//! - [`caller`]: the actor of a command, and whether it is a person
//! - `callers_above`: the hooks and agents that this process runs below
//! - [`batch`]: a command and its reactions as one batch
//! - [`react`]: the hooks of an event, and the actions that they request
//! - [`log_location`]: the location of a project's log
//! - [`project`]: the entry for all commands
//! - [`bulk`]: imports and exports of tasks as JSON lines
//! - [`claim`]: claims of ready tasks, the most urgent first
//! - [`schedules`]: recurring tasks
//! - [`lease`], [`heartbeat`]: detection of silent holders, and this process's own heartbeats
//! - [`leader_lease`]: leader leases
//! - [`gate_agreement`]: the trusted gates of each branch
//! - `integrity`: decisions of a person about a damaged log
//! - `session_history`, [`session_record`]: a session's events, and its timeline
//! - [`check_history`]: the results of single checks over time
//! - [`delivery_context`], `protected_files`: repository and forge of a project, and the files of
//!   its gates
//! - [`dispatcher`]: one dispatcher at a time among many machines
//! - [`reactions`]: the right of one process to run the hooks of due events
//! - [`session`]: the loop: turns, gates, receipts, submissions
//! - [`delivery`]: delivery steps, reviews and the merge train
//! - [`inbox`]: problems that need a person, and their decisions
//! - [`dispatch`]: deferred reactions and workflows
//! - [`external`]: external sessions: agents that hookloop did not start
//! - [`launch`]: a session with everything around it, to its end
//!
//! [`store`] re-exports the parts of lower crates that callers of the engine use.

pub mod batch;
pub mod bulk;
pub mod caller;
mod callers_above;
pub mod check_history;
pub mod claim;
mod claim_backoff;
pub mod command_outcome;
pub mod delivery;
pub mod delivery_context;
pub mod dispatch;
pub mod dispatcher;
pub mod error;
pub mod external;
pub mod gate_agreement;
pub mod heartbeat;
mod in_flight_claims;
pub mod inbox;
mod integrity;
pub mod launch;
pub mod leader_lease;
pub mod lease;
pub mod log_location;
pub mod machine;
pub mod project;
mod protected_files;
pub mod react;
pub mod reactions;
pub mod schedules;
pub mod session;
mod session_history;
pub mod session_record;
pub mod user_database;

/// The types of lower crates that callers of the engine use.
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
