//! `hookloop agents …`

mod list;
mod trust;

use clap::Subcommand;

use crate::cli::context::Context;
use crate::error::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Trust(trust::Args),
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self {
            Command::List(args) => args.run(context),
            Command::Trust(args) => args.run(context),
        }
    }
}
