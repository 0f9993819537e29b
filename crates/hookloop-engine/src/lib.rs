//! Makes things happen: commands in, events out, reactions run.
//!
//! - [`place`]: where a project is, and where its state lives
//! - [`kept`]: where a project's log is kept, and how it is opened there
//! - [`config`]: the file `hookloop.yaml`, read strictly
//! - [`condition`]: whether a hook has anything to do this time
//! - [`user`]: the user's own configuration: stores, and who one is to them
//! - [`policy`]: what an operator decided, above users and projects
//! - [`secrets`]: secrets by reference, fetched for who names them
//! - [`rules`]: what the configuration and the user's switches amount to
//! - [`caller`]: the actor that gives commands, and whether it is a person
//! - [`project`]: the one door for commands
//! - [`work`]: a command and what follows from it, as one batch
//! - [`session`]: the loop: sessions, gates, receipts
//! - [`agents`]: who does the work
//! - [`delivery`]: from finished work to a branch that is merged
//! - [`fleet`]: all workers that share a store; [`worker`]: one of them
//! - [`forge`]: where branches are asked to be merged
//! - `integrity`: what a person decides about a log that is damaged
//! - [`inbox`]: what needs a human, and what people decide about it
//! - [`notify`]: telling people of it, once
//! - [`guest`]: agents that come by themselves: by tools, or by hooks of their own
//! - [`delivery`]: how finished work gets into the branch that it is for
//! - [`files`]: what the project's files are; `git`: the repository that they are in
//! - [`explain`]: what would run at a point, in order, and why
//! - `environment`: the parts of a project's files that explain why a command can't run here
//! - [`doctor`]: what is likely to go wrong, of everything that takes part
//! - [`survey`]: what a repository that is no project yet says about itself
//! - [`gate_agreement`]: the gates that a person agreed to, kept for each branch of a repository
//! - [`trust`]: which of a repository's hooks the user has agreed to
//! - [`react`]: the hooks an event has, and what they ask for
//! - [`run`]: hooks that start something, and the batch that records it
//! - `scripts`: the files of a project that a command runs
//! - [`artifacts`]: where the output of runs is kept, and for how long
//! - `turns`: the hooks of a point in their order, or side by side
//! - [`runner`]: one hook's process: command, environment, input, outcome
//! - [`sandbox`]: what a hook is kept from in one run
//! - [`dispatch`]: reactions and workflows that were left for later
//! - [`claim`]: taking a task, the most urgent first
//! - [`schedules`]: tasks that come again
//! - `spread`: how contended claims were of late
//! - [`lease`]: whether a holder is still there; [`lifeline`]: that this process is
//! - [`seat`]: a place that one process at a time has
//! - [`reactions`]: which process runs the hooks of due events
//! - [`dispatcher`]: one dispatcher at a time, on one of many machines
//! - `webhook`: the same by HTTP; `record`: what a hook said, as the log keeps it
//! - [`telemetry`]: sessions as traces, for a collector
//! - [`process`]: runs a hook's process, and ends all that it started
//! - [`bulk`]: tasks by the million, in and out
//!
//! The engine never prints.

pub mod agents;
pub mod artifacts;
pub mod bulk;
pub mod caller;
pub mod claim;
pub mod condition;
pub mod config;
pub mod delivery;
pub mod dispatch;
pub mod dispatcher;
pub mod doctor;
mod environment;
pub mod explain;
pub mod files;
pub mod fleet;
pub mod forge;
mod frozen_hooks;
pub mod gate_agreement;
mod git;
pub mod guest;
pub mod inbox;
mod integrity;
pub mod kept;
pub mod lease;
pub mod lifeline;
pub mod notify;
pub mod place;
pub mod policy;
pub mod process;
pub mod project;
pub mod react;
pub mod reactions;
mod record;
pub mod rules;
pub mod run;
pub mod runner;
pub mod sandbox;
pub mod schedules;
mod scripts;
pub mod seat;
pub mod secrets;
pub mod session;
mod sought;
mod spread;
pub mod survey;
pub mod telemetry;
pub mod trust;
mod turns;
pub mod user;
pub mod user_database;
mod webhook;
pub mod work;
pub mod worker;

/// What callers of the engine see of the layers below it.
pub mod store {
    pub use hookloop_core::refusal::Refusal;
    pub use hookloop_store::jetstream::{
        JetStream, JetStreamError, Links, MONITOR_PORT_ABOVE, Permissions, Role, Standing, Unsafe,
    };
    pub use hookloop_store::log::{EventLog, Follow, LogError, Seq, StoredEvent};
    pub use hookloop_store::sqlite::{Broken, FileDamage, LogLoss, OpenError};
    pub use hookloop_store::store::{Rebuilt, StoreError, UNREADABLE_VIEW};
    pub use hookloop_store::view::{
        Early, HookRuns, HookTimes, QuarantineRow, Remarked, Reservation, SessionCount,
        SessionFilter, SessionRow, Spent, TaskFilter, TaskRow, UsageBy, UsageOfDay, UsageRow, View,
    };
}
