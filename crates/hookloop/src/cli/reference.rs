//! `hookloop reference`

use clap::CommandFactory;

use super::Cli;
use crate::cli::context::Context;
use crate::error::Result;
use crate::reference::Page;

/// Print a page of the reference, as Markdown
#[derive(clap::Args)]
pub(crate) struct Args {
    page: Page,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        context.out.line(self.page.text(Cli::command()).trim_end())
    }
}
