//! `hookloop import …`

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use hookloop_core::builtin::Builtin;
use serde::Deserialize;

use super::{Context, open_file};
use crate::error::CliError;
use crate::output::Result;

#[derive(Subcommand)]
pub(crate) enum Command {
    AutomationHooks(AutomationHooks),
}

impl Command {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        match self {
            Command::AutomationHooks(args) => args.run(context),
        }
    }
}

/// Settings of built-in hooks, from a file like `data/automation-hooks.json`
///
/// Writes hookloop.yaml if there is none; otherwise prints the `hooks` section to put into it.
#[derive(clap::Args)]
pub(crate) struct AutomationHooks {
    /// The file to read
    file: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AutomationFile {
    version: String,
    hooks: Vec<AutomationHook>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AutomationHook {
    name: String,
    enabled: Option<bool>,
    priority: Option<i32>,
    event_types: Option<Vec<String>>,
}

impl AutomationHooks {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let at = |error| CliError::usage(format!("{}: {error}", self.file.display()));
        let file: AutomationFile = serde_json::from_reader(open_file(&self.file)?).map_err(at)?;
        if file.version != "1.0" {
            let message = format!("{}: version {} is not known", self.file.display(), file.version);
            return Err(CliError::usage(message));
        }
        let yaml = format!("version: 1\n{}", hooks_section(&file.hooks)?);
        let path = match context.place() {
            Ok(place) => place.config(),
            Err(_) => context.directory()?.join(hookloop_engine::config::FILE_NAME),
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
        if let Err(error) = hookloop_engine::config::load(&path) {
            std::fs::remove_file(&path).map_err(failed)?;
            return Err(CliError::usage(format!("{}: {}", self.file.display(), error.message)));
        }
        context.out.line(format_args!("Wrote {}", path.display()))
    }
}

/// The hooks under the events they follow.
fn hooks_section(hooks: &[AutomationHook]) -> Result<String> {
    let mut points: Vec<(String, String)> = Vec::new();
    for hook in hooks {
        let known = Builtin::ALL.into_iter().find(|builtin| builtin.name() == hook.name);
        let Some(builtin) = known else {
            let message =
                format!("`{}` is not a built-in hook and has no equivalent here", hook.name);
            return Err(CliError::usage(message).hint("hookloop hooks list"));
        };
        let mut entry = format!("    - use: {}\n", hook.name);
        if let Some(priority) = hook.priority {
            let _ = writeln!(entry, "      priority: {priority}");
        }
        if let Some(enabled) = hook.enabled {
            let _ = writeln!(entry, "      enabled: {enabled}");
        }
        let defaults = || builtin.hook().points.iter().map(ToString::to_string).collect();
        let events = hook.event_types.clone().unwrap_or_else(defaults);
        if events.is_empty() {
            let message = format!("`{}` follows no event; `enabled: false` says that", hook.name);
            return Err(CliError::usage(message));
        }
        for event in events {
            match points.iter_mut().find(|(point, _)| *point == event) {
                Some((_, entries)) => entries.push_str(&entry),
                None => points.push((event, entry.clone())),
            }
        }
    }
    let sections = points.iter().map(|(point, entries)| format!("  {point}:\n{entries}"));
    Ok(format!("hooks:\n{}", sections.collect::<String>()))
}
