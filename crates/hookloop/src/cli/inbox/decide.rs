use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::LimitDecision;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::inbox::{self, DecisionResult, InboxError};
use hookloop_engine::project::Project;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::DIM;

/// Answer a question: the next prompt has it, and the work goes on
///
/// A blocked task is ready again, with the answer as a note; a submission that could not be merged goes back with it. A
/// session that is paused has it in its next prompt: `hookloop resume`. One that asks what to do has it there, too, and
/// its gates may send it back as often again.
#[derive(clap::Args)]
pub(crate) struct InboxAnswer {
    /// The problem's key, the start of it, or the start of the id of the task or session
    key: String,

    /// What to say
    text: String,
}

/// Take what a task has submitted, or the work of a session that asks what to do, as it is
///
/// A submission waits to be merged again, and reviewers are not asked about this commit any more. Tests before a merge are
/// run all the same. The work of a session is taken without proof, and its record says so.
#[derive(clap::Args)]
pub(crate) struct InboxApprove {
    /// The problem's key, the start of it, or the start of the id of the task or session
    key: String,
}

/// Have a session give up that asks what to do: a human is needed
#[derive(clap::Args)]
pub(crate) struct InboxQuit {
    /// The problem's key, the start of it, or the start of the session's id
    key: String,
}

/// Hear no more of a problem; everything stays as it is
#[derive(clap::Args)]
pub(crate) struct InboxDismiss {
    /// The problem's key, the start of it, or the start of the id of the task or session
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

impl InboxQuit {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        decide(context, &self.key, ("quit", "Given up:"), |project, key| {
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
            out.line(format_args!("  {DIM}try:{DIM:#} {next}"))?;
        }
    }
    if done.pending { context.finish(project) } else { Ok(()) }
}
