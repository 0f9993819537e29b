//! `hookloop import agent-hooks`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::cli::{Context, open_file};
use crate::error::CliError;
use crate::output::{Result, plain};

/// A timeout that is longer is in milliseconds: both are written, and nobody waits a quarter of an hour
/// for a hook.
const SECONDS_MAX: u64 = 900;

/// Hooks of a coding agent, from its JSON settings
///
/// Takes over what has a place here (`Stop`, `SessionStart`, `SessionEnd`, `UserPromptSubmit`) and says what
/// does not: hooks around tool calls stay with the agent. There, a hook that fails lets the agent go on,
/// so the hooks get `on_failure: open`; without it a failed gate blocks.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to read, such as .claude/settings.json
    file: PathBuf,
}

/// Of an agent's settings, what is about hooks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    hooks: BTreeMap<String, Vec<Group>>,
    max_hook_retries: Option<u32>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    matcher: String,
    hooks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    command: Option<String>,
    timeout: Option<u64>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let at = |error| CliError::usage(format!("{}: {error}", self.file.display()));
        let settings: Settings = serde_json::from_reader(open_file(&self.file)?).map_err(at)?;
        let (hooks, notes) = hooks_section(&settings);
        if hooks.is_empty() {
            let message = format!("{} has no hooks that have a place here", self.file.display());
            return Err(CliError::usage(message).hint(notes.join("; ")));
        }
        let mut yaml = format!("version: 1\nhooks:\n{hooks}");
        if let Some(retries) = settings.max_hook_retries {
            let _ = write!(yaml, "limits:\n  hook_retries: {retries}\n");
        }
        super::write_or_print(context, &self.file, &yaml)?;
        for note in notes {
            context.out.line(format_args!("# {}", plain(&note)))?;
        }
        Ok(())
    }
}

/// The hooks under their points, and what was left out or changed.
fn hooks_section(settings: &Settings) -> (String, Vec<String>) {
    let (mut section, mut notes) = (String::new(), Vec::new());
    for (event, groups) in &settings.hooks {
        let Some((point, is_gate)) = point(event) else {
            notes.push(format!("{event}: left with the agent, which alone sees its tool calls"));
            continue;
        };
        let mut entries = String::new();
        for group in groups {
            if !["", "*"].contains(&group.matcher.as_str()) {
                notes.push(format!(
                    "{event}: `{}` picks nothing here; its hooks always run",
                    group.matcher
                ));
            }
            for entry in &group.hooks {
                match hook(entry, is_gate) {
                    Ok(hook) => entries.push_str(&hook),
                    Err(note) => notes.push(format!("{event}: {note}")),
                }
            }
        }
        if !entries.is_empty() {
            let _ = write!(section, "  {point}:\n{entries}");
        }
    }
    (section, notes)
}

/// Where the hooks of an agent's event run here, and whether that is a gate.
fn point(event: &str) -> Option<(&'static str, bool)> {
    match event {
        "Stop" => Some(("stop", true)),
        "SessionStart" => Some(("session_start", false)),
        "SessionEnd" => Some(("session_end", false)),
        "UserPromptSubmit" => Some(("pre_iteration", false)),
        _ => None,
    }
}

fn hook(entry: &Entry, is_gate: bool) -> std::result::Result<String, String> {
    let Some(command) = entry.command.as_ref().filter(|_| entry.kind == "command") else {
        return Err(format!("a hook of type `{}` has no equivalent here", entry.kind));
    };
    // JSON's strings are YAML's.
    let mut hook = format!("    - command: {}\n", Value::from(command.as_str()));
    match entry.timeout {
        Some(ms) if ms > SECONDS_MAX => {
            let _ = writeln!(hook, "      timeout: {ms}ms");
        }
        Some(seconds) => {
            let _ = writeln!(hook, "      timeout: {seconds}s");
        }
        None => {}
    }
    if is_gate {
        hook.push_str("      on_failure: open\n");
    } else {
        // What such a hook prints is for the agent.
        hook.push_str("      pipe_output: true\n");
    }
    Ok(hook)
}
