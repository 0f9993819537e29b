//! `hookloop agents …`

mod list;
mod trust;

use clap::Subcommand;
pub(super) use list::names;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum AgentsCommand {
    List(list::AgentListArgs),
    Trust(trust::AgentTrustArgs),
}

impl AgentsCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            AgentsCommand::List(args) => args.run(context),
            AgentsCommand::Trust(args) => args.run(context),
        }
    }
}
