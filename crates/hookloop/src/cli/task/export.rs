use hookloop_engine::bulk::{self, Line};

use super::Context;
use crate::error::Result;

/// Write all tasks as JSON lines, as `task import` reads them
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project_to_read()?;
        bulk::export(&project, |line: &Line| context.out.json(line))
    }
}
