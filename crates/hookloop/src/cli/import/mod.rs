//! `hookloop import …`: hooks that were written for something else.

mod agent_hooks;
mod automation_hooks;

use std::io::Write as _;
use std::path::Path;

use clap::Subcommand;
use hookloop_engine::config;
use hookloop_engine::user::User;

use super::Context;
use crate::error::CliError;
use crate::output::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    AutomationHooks(automation_hooks::Args),
    AgentHooks(agent_hooks::Args),
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self {
            Command::AutomationHooks(args) => args.run(context),
            Command::AgentHooks(args) => args.run(context),
        }
    }
}

/// Makes `yaml` the project's file if there is none, else prints it to be put there by hand.
fn write_or_print(context: &mut Context, source: &Path, yaml: &str) -> Result {
    let path = match context.place() {
        Ok(place) => place.config(),
        Err(_) => context.directory()?.join(config::FILE_NAME),
    };
    if path.exists() {
        let note = format!("# {} exists: put this into it.", path.display());
        return context.out.line(format_args!("{note}\n{}", yaml.trim_end()));
    }
    let failed = |error| CliError::system(format!("{}: {error}", path.display()));
    // A link that leads nowhere yet is not followed.
    let mut file = std::fs::File::create_new(&path).map_err(failed)?;
    file.write_all(yaml.as_bytes()).map_err(failed)?;
    // What was written is read back, so that a mistake in the source is said now.
    if let Err(error) = config::settings(&path, &User::default()) {
        std::fs::remove_file(&path).map_err(failed)?;
        return Err(CliError::usage(format!("{}: {}", source.display(), error.message)));
    }
    context.out.line(format_args!("Wrote {}", path.display()))
}
