use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::LimitDecision;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::inbox::{self, DecisionResult, InboxError};
use hookloop_engine::project::Project;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::DIM;

/// Answer a question; the next prompt contains the answer
///
/// A blocked task becomes ready again, with the answer as a note. A submission that could not be merged returns with
/// the answer. A paused session gets the answer in its next prompt (`hookloop resume`). A session that waits for a
/// decision continues with the answer and with its full number of retries.
#[derive(clap::Args)]
pub(crate) struct InboxAnswer {
    /// Key of the item, start of the key, or start of the id of the task or session
    key: String,

    /// Text of the answer
    text: String,
}

/// Accept submitted work, the work of a session that waits, or changed tests
///
/// A submission waits to be merged again, and reviewers are not asked about this commit again. Tests before a merge
/// still run. The work of a session that waits for a decision is accepted without proof, and its record says so. If a
/// session ended because it changed tests, exactly these changes are allowed, and the gates judge the work again.
#[derive(clap::Args)]
pub(crate) struct InboxApprove {
    /// Key of the item, start of the key, or start of the id of the task or session
    key: String,
}

/// End a session that waits for a decision
#[derive(clap::Args)]
pub(crate) struct InboxAbort {
    /// Key of the item, start of the key, or start of the session's id
    key: String,
}

/// Dismiss an item, and change nothing else
#[derive(clap::Args)]
pub(crate) struct InboxDismiss {
    /// Key of the item, start of the key, or start of the id of the task or session
    key: String,
}

impl InboxAnswer {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let answer = |project: &Project, key: &ProblemKey| inbox::answer(project, key, &self.text);
        decide(context, &self.key, ("answered", "Answered"), answer)
    }
}

impl InboxApprove {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        decide(context, &self.key, ("approved", "Approved"), inbox::approve)
    }
}

impl InboxAbort {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        decide(context, &self.key, ("aborted", "Aborted"), |project, key| {
            inbox::settle(project, key, LimitDecision::Abort)
        })
    }
}

impl InboxDismiss {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        decide(context, &self.key, ("dismissed", "Dismissed"), |project, key| {
            inbox::dismiss(project, key)?;
            Ok(DecisionResult { done: CommandOutcome::default(), next: None })
        })
    }
}

/// Performs a person's decision about the problem that `wanted` names, and prints the result.
fn decide(
    context: &mut CommandContext,
    wanted: &str,
    words: (&str, &str),
    decision: impl FnOnce(&Project, &ProblemKey) -> std::result::Result<DecisionResult, InboxError>,
) -> CliResult {
    let project = context.project()?;
    let key = inbox::find(&project, wanted)?.key;
    let settled = decision(&project, &key)?;
    say(context, &project, words, &key.to_string(), settled)
}

fn say(
    context: &mut CommandContext,
    project: &Project,
    (word, text): (&str, &str),
    key: &str,
    settled: DecisionResult,
) -> CliResult {
    let DecisionResult { mut done, next } = settled;
    if done.pending {
        project.react_here(&mut done)?;
    }
    let state = done.task.as_ref().map(|task| task.state);
    let out = &mut context.out;
    if out.json {
        let state = state.map(|state| state.name());
        out.json(&json!({ "key": key, "decision": word, "state": state, "next": next }))?;
    } else {
        let state = state.map_or(String::new(), |state| format!("  {state}"));
        out.line(format_args!("{text} {key}{state}"))?;
        if let Some(next) = next {
            out.line(format_args!("  {DIM}run:{DIM:#} {next}"))?;
        }
    }
    if done.pending { context.finish(project) } else { Ok(()) }
}
