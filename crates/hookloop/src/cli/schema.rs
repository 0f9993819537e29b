//! `hookloop schema`

use super::Context;
use crate::output::Result;

/// Print the JSON Schema of hookloop.yaml
///
/// Editors complete and check the file with it: put `# yaml-language-server: $schema=PATH` on the
/// first line.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let schema = hookloop_engine::config::schema();
        context.out.line(format_args!("{schema:#}"))
    }
}
