//! `hookloop watch`

use hookloop_engine::session::lookup;

use super::resume;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::tui::{self, ScreenParting};

/// Watch and control sessions, tasks and the inbox in a TUI
///
/// Shows all sessions of the project, also those of other processes and machines. The last line lists keys; ? shows all.
#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// Session to show first: id, start of the id, or name
    session: Option<String>,
}

impl WatchArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        if context.out.json || !tui::is_possible() {
            let message = "the TUI needs a terminal on standard input and output";
            return Err(CliError::usage(message).hint("hookloop log --follow"));
        }
        let project = context.project_to_read()?;
        let wanted = self.session.as_deref();
        let session = wanted.map(|wanted| lookup::find(&project, wanted)).transpose()?;
        let parting = tui::watch(context.showing()?, session.map(|row| row.id))?;
        match parting {
            ScreenParting::Resume(id) => resume::ResumeArgs::of(&id).run(context),
            ScreenParting::Left | ScreenParting::Closed => Ok(()),
        }
    }
}
