//! `hookloop watch`

use hookloop_engine::session::lookup;

use super::resume;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::tui::{self, ScreenParting};

/// Watch what runs, and act on it: problems, sessions, tasks on a screen
///
/// Shows all sessions of the project, those of other processes and machines, too. Keys are at the bottom; ? has all.
#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// The session to begin with: its id, the start of it, or its name
    session: Option<String>,
}

impl WatchArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        if context.out.json || !tui::is_possible() {
            let message = "a screen needs a terminal, on standard input and output";
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
