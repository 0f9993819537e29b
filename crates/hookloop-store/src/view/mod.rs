//! Tables derived from the log, and the queries on them.
//!
//! - [`tables`]: the tables, and the values of their columns
//! - [`totals`]: the view of a connection, and its row of totals
//! - [`fold`]: the view while events are applied to it
//! - [`task_fold`]: events of a task
//! - [`apply`]: one event of any subject
//! - [`compare`]: the tables compared with those that the log leads to
//! - [`task_rows`]: tasks as rows
//! - [`task_graph`]: dependencies between tasks
//! - [`pending_work`]: versions of subjects, reactions that are due, and workflow runs
//! - [`facts`]: the facts that decide a command
//! - [`figures`]: metrics for observers outside the process
//! - [`ready_queue`]: tasks that can be started, and tasks that are claimed
//! - [`deliveries`]: the results of submitted work
//! - [`fleet`]: fleet directives that are in force, and the fleet's budget
//! - [`problems`]: problems that need a human, and the notifications about them
//! - [`quarantine`]: messages of a shared log that are no events
//! - [`task_annotations`]: stop hooks, notes and checkpoints of tasks
//! - [`runs`]: counts and durations of hook runs
//! - [`schedules`]: recurring tasks
//! - [`sessions`]: sessions that run, and sessions that ended
//! - [`usage`]: usage of turns, and reservations for turns
//! - [`hash`]: one hash of all tables, equal wherever the same events were applied

mod apply;
mod compare;
mod deliveries;
mod facts;
mod figures;
mod fleet;
mod fold;
mod hash;
mod pending_work;
mod problems;
mod quarantine;
mod ready_queue;
mod runs;
mod schedules;
mod sessions;
mod tables;
mod task_annotations;
mod task_fold;
mod task_graph;
mod task_rows;
mod totals;
mod usage;

pub use compare::ViewDifference;
pub(crate) use compare::differences;
pub use deliveries::WaitingSubmission;
pub use figures::{HookTimes, SessionCount};
pub(crate) use fold::ViewFold;
pub use problems::{NotificationRow, NotificationState};
pub use quarantine::QuarantineRow;
pub use ready_queue::{DelayedTasks, TypeFilter};
pub use runs::HookRuns;
pub use sessions::{REVIEW, SessionFilter, SessionRow};
pub use tables::RowResult;
pub(crate) use tables::{DROP, TABLES};
pub use task_annotations::TaskAnnotation;
pub use task_rows::{TaskFilter, TaskRow};
pub use totals::{RunTotals, View, ViewTotals};
pub use usage::{BudgetReservation, SpentAmount, UsageBy, UsageOfDay, UsageRow};
