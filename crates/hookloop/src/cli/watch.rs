//! `hookloop watch`

use hookloop_engine::session::open;

use super::resume;
use crate::cli::context::Context;
use crate::error::{CliError, Result};
use crate::tui::{self, Parting};

/// Watch what runs, and act on it: problems, sessions, tasks on a screen
///
/// Shows all sessions of the project, those of other processes and machines, too. Keys are at the bottom; ? has all.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The session to begin with: its id, the start of it, or its name
    session: Option<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        if context.out.json || !tui::is_possible() {
            let message = "a screen needs a terminal, on standard input and output";
            return Err(CliError::usage(message).hint("hookloop log --follow"));
        }
        let project = context.project_to_read()?;
        let wanted = self.session.as_deref();
        let session = wanted.map(|wanted| open::find(&project, wanted)).transpose()?;
        let parting = tui::watch(context.showing()?, session.map(|row| row.id))?;
        match parting {
            Parting::Resume(id) => resume::Args::of(&id).run(context),
            Parting::Left | Parting::Closed => Ok(()),
        }
    }
}
