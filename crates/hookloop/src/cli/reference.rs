//! `hookloop reference`

use clap::CommandFactory;

use super::{Cli, examples};
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::reference::ReferencePage;

/// Print a page of the reference as Markdown
#[derive(clap::Args)]
pub(crate) struct ReferenceArgs {
    /// Name of the page
    page: ReferencePage,
}

impl ReferenceArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        context.out.line(self.page.text(examples::with_examples(Cli::command())).trim_end())
    }
}
