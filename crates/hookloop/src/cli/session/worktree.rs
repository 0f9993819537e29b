//! Sessions with a git worktree of their own: `hookloop run --worktree`.

use std::io::Write;

use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::{self, CheckoutUse, SessionWorktree};
use hookloop_engine::session::open::{self, SessionHandle, SessionRequest};
use hookloop_engine::session::stop_switch::StopSwitch;
use hookloop_git::repo::RepoError;
use serde_json::json;

use super::{SessionDisplay, perform, runner};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::DIM;
use crate::sanitize::plain;

/// Makes a worktree and runs a new session there.
pub(in crate::cli) fn run(
    context: &mut CommandContext,
    project: &Project,
    request: SessionRequest,
    stop: StopSwitch,
    look: SessionDisplay,
) -> CliResult {
    let runner = runner(project)?;
    let id = open::fresh_session();
    let cancel = stop.cancel().clone();
    let worktree = checkout::worktree(project, runner, &id, &cancel).map_err(failed)?;
    let request = SessionRequest { checkout: CheckoutUse::Worktree(worktree.path), ..request };
    let opened = match open::start_as(project, runner, request, id.clone()) {
        Ok(opened) => opened,
        Err(error) => {
            // A worktree that can't be removed now is listed by `hookloop worktrees list`.
            if let Err(error) = checkout::remove_worktree(project, runner, &id, &cancel) {
                tracing::warn!(session = %id, %error, "the worktree of a session is not removed");
            }
            return Err(error.into());
        }
    };
    perform_where_it_works(context, project, &opened, stop, look)
}

/// Performs a session in its own worktree, if it has one, else in the project's directory.
pub(in crate::cli) fn perform_where_it_works(
    context: &mut CommandContext,
    project: &Project,
    opened: &SessionHandle,
    stop: StopSwitch,
    look: SessionDisplay,
) -> CliResult {
    let moved = open::in_worktree(project, runner(project)?, opened, stop.cancel());
    let Some((project, worktree)) = moved.map_err(failed)? else {
        return perform(context, project, opened, stop, look);
    };
    perform(context, &project, opened, stop, look)?;
    tell(context, &worktree)
}

/// Prints where the work is, and the commands that merge and remove it.
fn tell(context: &mut CommandContext, worktree: &SessionWorktree) -> CliResult {
    let SessionWorktree { path, branch, name, base, .. } = worktree;
    if context.out.json || context.log.is_some() {
        let worktree = json!({ "path": path, "branch": branch, "base": base, "name": name });
        // Standard output has events alone. If standard error is closed, `hookloop worktrees list` has the path.
        let _ = writeln!(std::io::stderr(), "{}", json!({ "worktree": worktree }));
        return Ok(());
    }
    let path = path.display().to_string();
    let path = plain(&path);
    let branch = plain(branch);
    let out = &mut context.out;
    out.line(format_args!("the work is in {path} on branch {branch}, which starts at {base}"))?;
    out.line(format_args!(
        "  {DIM}commit:{DIM:#} git -C {path} add --all && git -C {path} commit"
    ))?;
    out.line(format_args!("  {DIM}merge:{DIM:#}  git merge {branch}"))?;
    out.line(format_args!("  {DIM}remove:{DIM:#} hookloop worktrees clean {name}"))
}

fn failed(error: RepoError) -> CliError {
    let message = format!("the worktree of the session can't be created: {error}");
    match error {
        RepoError::NeedsHuman { hint, .. } => CliError::refused(message).advice(hint),
        _ => CliError::refused(message),
    }
}
