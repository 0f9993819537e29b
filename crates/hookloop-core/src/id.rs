//! Names of tasks, events, workflow runs, and the subjects of events.

mod event_id;
mod names;
mod subject;
mod task_id;
#[cfg(test)]
mod tests;

pub use event_id::{BadEventId, EventId};
#[cfg(test)]
pub(crate) use names::SCHEDULE_NAME_MAX;
pub use names::{
    BadProjectName, BadScheduleName, BadSessionId, NoticeId, ProjectName, RunId, ScheduleName,
    SessionId,
};
pub use subject::{BadSubject, NewerSubject, Subject};
pub use task_id::{BadTaskId, TASK_ID_MAX, TaskId};
