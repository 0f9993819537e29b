use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Print completions for a shell
///
/// For example: hookloop completions bash > ~/.local/share/bash-completion/completions/hookloop
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "hookloop", &mut script);
        context.out.line(String::from_utf8_lossy(&script).trim_end())
    }
}
