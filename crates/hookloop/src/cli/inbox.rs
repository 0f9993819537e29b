//! `hookloop inbox …`

mod decide;
mod list;
mod notify;
mod show;

use hookloop_core::inbox::{Problem, ProblemSubject};
use hookloop_engine::error::EngineError;
use hookloop_engine::inbox;
use hookloop_engine::project::Project;
use serde::Serialize;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

pub(super) use notify::tell;

/// List the tasks and sessions that need a person, and decide about them
///
/// Without a command, `hookloop inbox` lists the items.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(super) command: Option<InboxCommand>,

    #[command(flatten)]
    list: list::InboxListArgs,
}

impl InboxArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self.command {
            Some(command) => command.run(context),
            None => self.list.run(context),
        }
    }
}

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum InboxCommand {
    #[command(visible_alias = "ls")]
    List(list::InboxListArgs),
    Show(show::InboxShowArgs),
    Answer(decide::InboxAnswer),
    Approve(decide::InboxApprove),
    Abort(decide::InboxAbort),
    Dismiss(decide::InboxDismiss),
    Notify(notify::InboxNotifyArgs),
    Test(notify::NotifyTest),
}

impl InboxCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            InboxCommand::List(args) => args.run(context),
            InboxCommand::Show(args) => args.run(context),
            InboxCommand::Answer(args) => args.run(context),
            InboxCommand::Approve(args) => args.run(context),
            InboxCommand::Abort(args) => args.run(context),
            InboxCommand::Dismiss(args) => args.run(context),
            InboxCommand::Notify(args) => args.run(context),
            InboxCommand::Test(args) => args.run(context),
        }
    }
}

/// A problem in `--json`.
#[derive(Serialize)]
struct ProblemJson {
    key: String,
    r#type: &'static str,
    task: Option<String>,
    session: Option<String>,
    title: String,
    reason: String,
    since: String,
    by: String,
    dismissed: bool,
}

impl ProblemJson {
    fn new(project: &Project, problem: &Problem) -> std::result::Result<ProblemJson, EngineError> {
        let (task, session) = match &problem.key.about {
            ProblemSubject::Task(id) => (Some(id.to_string()), None),
            ProblemSubject::Session(id) => (None, Some(id.to_string())),
            ProblemSubject::Budget => (None, None),
        };
        Ok(ProblemJson {
            key: problem.key.to_string(),
            r#type: problem.kind.name(),
            task,
            session,
            title: inbox::title(project, problem)?,
            reason: problem.reason.clone(),
            since: problem.since.to_string(),
            by: problem.by.clone(),
            dismissed: problem.is_dismissed,
        })
    }
}
