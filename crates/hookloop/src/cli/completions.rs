//! `hookloop completions`

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::{PROGRAM, complete};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

/// Print the completion script of a shell
///
/// Commands and options are completed, and names of tasks, sessions, hooks and agents.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let shell = self.shell.to_string();
        let shells = Shells::builtins();
        let unknown = || CliError::usage(format!("no completions for `{shell}`"));
        let completer = shells.completer(&shell).ok_or_else(unknown)?;
        let mut script = Vec::new();
        completer.write_registration(complete::VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
        context.out.line(String::from_utf8_lossy(&script).trim_end())
    }
}
