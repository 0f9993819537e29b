//! `hookloop inbox …`

mod decide;
mod list;
mod notify;
mod show;

use hookloop_core::inbox::{About, Problem};
use hookloop_engine::inbox;
use hookloop_engine::project::{EngineError, Project};
use serde::Serialize;

use crate::cli::context::Context;
use crate::error::Result;
pub(super) use notify::tell;

/// List the tasks and sessions that need a person, and decide about them
///
/// Without a command, `hookloop inbox` lists the items.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    #[command(flatten)]
    list: list::Args,
}

impl InboxArgs {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self.command {
            Some(command) => command.run(context),
            None => self.list.run(context),
        }
    }
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "ls")]
    List(list::Args),
    Show(show::Args),
    Answer(decide::Answer),
    Approve(decide::Approve),
    Quit(decide::Quit),
    Dismiss(decide::Dismiss),
    Notify(notify::Args),
    Test(notify::Test),
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self {
            Command::List(args) => args.run(context),
            Command::Show(args) => args.run(context),
            Command::Answer(args) => args.run(context),
            Command::Approve(args) => args.run(context),
            Command::Quit(args) => args.run(context),
            Command::Dismiss(args) => args.run(context),
            Command::Notify(args) => args.run(context),
            Command::Test(args) => args.run(context),
        }
    }
}

/// A problem in `--json`.
#[derive(Serialize)]
struct ProblemJson {
    key: String,
    kind: &'static str,
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
            About::Task(id) => (Some(id.to_string()), None),
            About::Session(id) => (None, Some(id.to_string())),
            About::Purse => (None, None),
        };
        Ok(ProblemJson {
            key: problem.key.to_string(),
            kind: problem.kind.name(),
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
