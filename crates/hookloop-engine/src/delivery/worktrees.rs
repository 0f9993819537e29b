//! Lists the worktrees of a project, and removes those that are no longer needed.

use std::time::SystemTime;

use hookloop_core::id::TaskId;
use hookloop_core::task::TaskState;
use hookloop_git::repo::{
    BranchFate, CommitId, RemovedWorktree, Repo, UnsavedWork, WorktreeInfo, WorktreeRemoval,
};
use hookloop_git::step_error::StepError;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::Cancel;

use super::train::TrainError;
use crate::delivery_context::repo_place;
use crate::project::Project;
use crate::session::checkout::{is_of_session, repo_wish};

/// A worktree and its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWorktree {
    pub info: WorktreeInfo,
    /// None if the project has no such task.
    pub state: Option<TaskState>,
    /// The delivered head of the task, if it was merged.
    delivered: Option<CommitId>,
}

/// The selection of worktrees to remove.
#[derive(Clone, Debug, Default)]
pub struct CleanupScope {
    /// Only this task's worktree, in any state of the task.
    pub task: Option<TaskId>,
    /// Only worktrees that were not used since this time.
    pub before: Option<SystemTime>,
    /// Removes commits and files even if they exist nowhere else.
    pub force: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupReport {
    pub task: TaskId,
    /// The reason why the worktree was not removed.
    pub stayed: Option<String>,
}

pub fn list(
    project: &Project,
    runner: &HookRunner,
    cancel: &Cancel,
) -> Result<Vec<TaskWorktree>, TrainError> {
    find(project, &open(project, runner, cancel)?)
}

/// Opens the project's repository. Sessions may have worktrees even without delivery.
fn open<'r>(
    project: &Project,
    runner: &'r HookRunner,
    cancel: &Cancel,
) -> Result<Repo<'r>, TrainError> {
    let repo = Repo::at(repo_place(runner), repo_wish(project.rules()), cancel);
    Ok(repo.map_err(StepError::from)?)
}

fn find(project: &Project, repo: &Repo<'_>) -> Result<Vec<TaskWorktree>, TrainError> {
    let mut found = Vec::new();
    for info in repo.worktrees().map_err(StepError::from)? {
        let (row, delivery) =
            project.read(|view| Ok((view.task(&info.task)?, view.delivery(&info.task)?)))?;
        let delivered = delivery.merged.and_then(|merged| merged.head.parse().ok());
        found.push(TaskWorktree { info, state: row.map(|row| row.task.state), delivered });
    }
    Ok(found)
}

/// Removes worktrees that are no longer needed, or the named one.
///
/// Without a name, worktrees of open tasks stay.
pub fn clean(
    project: &Project,
    runner: &HookRunner,
    cancel: &Cancel,
    wanted: &CleanupScope,
) -> Result<Vec<CleanupReport>, TrainError> {
    let repo = open(project, runner, cancel)?;
    let is_wanted = |kept: &TaskWorktree| match &wanted.task {
        Some(task) => *task == kept.info.task,
        // Only this branch refers to the session's commits, so a person must name it.
        None if is_of_session(&kept.info.task) => false,
        None => {
            matches!(kept.state, None | Some(TaskState::Completed))
                && wanted.before.is_none_or(|before| kept.info.last_used < before)
        }
    };
    let mut cleaned = Vec::new();
    for kept in find(project, &repo)?.into_iter().filter(is_wanted) {
        let task = kept.info.task;
        if kept.state == Some(TaskState::Active) && !wanted.force {
            let stayed = Some("somebody works on it".to_owned());
            cleaned.push(CleanupReport { task, stayed });
            continue;
        }
        let unsaved = match wanted.force {
            true => UnsavedWork::Goes,
            false => UnsavedWork::Stays { delivered: kept.delivered },
        };
        let branch = match kept.state {
            Some(TaskState::Submitted) => BranchFate::Kept,
            _ => BranchFate::Deleted,
        };
        let stayed = match repo.remove_worktree(&task, &WorktreeRemoval { branch, unsaved }) {
            Ok(RemovedWorktree::Done | RemovedWorktree::NotThere) => None,
            Ok(RemovedWorktree::Stayed { why }) => Some(why),
            Err(error) => Some(error.to_string()),
        };
        cleaned.push(CleanupReport { task, stayed });
    }
    Ok(cleaned)
}
