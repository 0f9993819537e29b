//! `hookloop schema`

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Print the JSON Schema of a configuration file
///
/// The default is the schema of hookloop.yaml. Editors complete and check a file with its schema: put
/// `# yaml-language-server: $schema=PATH` on the first line.
#[derive(clap::Args)]
pub(crate) struct SchemaArgs {
    /// Schema of policy.yaml
    #[arg(long, conflicts_with = "user")]
    policy: bool,

    /// Schema of your own config.yaml
    #[arg(long)]
    user: bool,
}

impl SchemaArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let schema = match (self.policy, self.user) {
            (true, _) => hookloop_config::policy_file::schema(),
            (_, true) => hookloop_config::user_file::schema(),
            _ => hookloop_config::project_file::schema(),
        };
        context.out.line(format_args!("{schema:#}"))
    }
}
