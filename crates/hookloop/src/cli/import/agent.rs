//! Hooks of coding agents: Claude Code's settings, which others adopted, and CodeMie's profiles.

use serde_json::{Value, json};

use super::ImportTool;
use super::script_command::is_script;
use super::source::SourceFile;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::{FoundHook, HERE, ImportReport};

pub(super) const CLAUDE: ImportTool =
    ImportTool { name: "claude", files: &[".claude/settings.json"], read: claude };
pub(super) const CODEMIE: ImportTool =
    ImportTool { name: "codemie", files: &[".codemie/codemie-cli.config.json"], read: codemie };

/// A larger timeout is in milliseconds: both units occur, and no hook takes a quarter of an hour.
const SECONDS_MAX: u64 = 900;
/// The moments of `SessionStart` and `SessionEnd` that a session has here, as a matcher names them.
const SESSION_MATCHERS: [&str; 4] = ["", "*", "startup", "other"];
/// Prompts that answer a gate are not the user's.
const OF_THE_USER: &str = "!stop_hook_active";
const WITH_THE_AGENT: &str = "left with the agent, which alone sees its tool calls";
/// Settings of Claude Code that are the agent's own business.
const OF_CLAUDE: [&str; 11] = [
    "$schema",
    "apiKeyHelper",
    "cleanupPeriodDays",
    "enabledPlugins",
    "env",
    "includeCoAuthoredBy",
    "model",
    "outputStyle",
    "permissions",
    "statusLine",
    "sandbox",
];
/// Settings of CodeMie about the user and the model.
const OF_CODEMIE: [&str; 17] = [
    "activeProfile",
    "apiKey",
    "authMethod",
    "baseUrl",
    "codeMieIntegration",
    "codeMieProject",
    "codeMieUrl",
    "codemieAssistants",
    "codemieSkills",
    "haikuModel",
    "metrics",
    "model",
    "name",
    "opusModel",
    "provider",
    "sonnetModel",
    "timeout",
];

/// How a file writes lengths of time.
#[derive(Clone, Copy)]
enum TimeoutUnit {
    /// Seconds, or milliseconds where they are many.
    Either,
    Milliseconds,
}

/// The rules for reading a file.
#[derive(Clone, Copy)]
struct HookDialect {
    unit: TimeoutUnit,
    /// The file switches all of its hooks off.
    is_off: bool,
}

const OF_CODEMIE_HOOKS: HookDialect =
    HookDialect { unit: TimeoutUnit::Milliseconds, is_off: false };

fn claude(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut file = SourceFields::of("", source.json()?)?;
    let is_off = file.is_true("disableAllHooks");
    events(file.object("hooks")?, HookDialect { unit: TimeoutUnit::Either, is_off }, report)?;
    retries(&mut file, report);
    of_the_agent(&mut file, &OF_CLAUDE, report);
    file.finish(report);
    Ok(())
}

fn codemie(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut file = SourceFields::of("", source.json()?)?;
    let active = file.text("activeProfile");
    file.take("version");
    let profiles = file.take("profiles").unwrap_or(json!({}));
    for (name, profile) in SourceFields::of("profiles", profiles)?.each() {
        let mut profile = SourceFields::of(format!("profiles.{name}"), profile)?;
        if active.as_deref().is_none_or(|active| active == name) {
            events(profile.object("hooks")?, OF_CODEMIE_HOOKS, report)?;
            retries(&mut profile, report);
        } else {
            profile.lose(report, &[("hooks", "of a profile that is not the active one")])
        }
        of_the_agent(&mut profile, &OF_CODEMIE, report);
        profile.finish(report);
    }
    events(file.object("hooks")?, OF_CODEMIE_HOOKS, report)?;
    retries(&mut file, report);
    of_the_agent(&mut file, &OF_CODEMIE, report);
    file.finish(report);
    Ok(())
}

fn retries(file: &mut SourceFields, report: &mut ImportReport) {
    if let Some(retries) = file.number("maxHookRetries") {
        report.set("limits", "gate_retries", json!(retries));
        report.kept(file.place_of("maxHookRetries"));
    }
}

fn of_the_agent(file: &mut SourceFields, names: &[&str], report: &mut ImportReport) {
    for name in names {
        file.lose(report, &[(name, "a setting of the agent, which keeps it")]);
    }
}

fn events(
    hooks: SourceFields,
    dialect: HookDialect,
    report: &mut ImportReport,
) -> Result<(), String> {
    for (event, groups) in hooks.each() {
        let Some((point, is_gate)) = point(&event) else {
            let why = match event.as_str() {
                "PreToolUse" | "PostToolUse" | "PermissionRequest" | "PostToolUseFailure" => {
                    WITH_THE_AGENT
                }
                _ => "there is no such point here; it stays with the agent",
            };
            report.lose(event, why);
            continue;
        };
        let groups = match groups {
            Value::Array(groups) => groups,
            _ => return Err(format!("`hooks.{event}` is not a list")),
        };
        for group in groups {
            let mut group = SourceFields::of(event.as_str(), group)?;
            let matcher = group.text("matcher").filter(|matcher| matcher != "*");
            if let Some(matcher) = matcher {
                let is_of_session = ["session_start", "session_end"].contains(&point);
                if is_of_session && !matcher.split('|').any(|m| SESSION_MATCHERS.contains(&m)) {
                    let why =
                        "a session here only starts and ends; hooks of other moments are left out";
                    report.lose(format!("{event}: matcher {matcher}"), why);
                    continue;
                }
                let (here, other): (Vec<&str>, Vec<&str>) =
                    matcher.split('|').partition(|m| SESSION_MATCHERS.contains(m));
                if is_of_session && !other.is_empty() {
                    let why = format!(
                        "here only at `{}`; a session here has no `{}`",
                        here.join("`, `"),
                        other.join("`, `")
                    );
                    report.changed(format!("{event}: matcher {matcher}"), why);
                }
                if !is_of_session {
                    let why = format!("`{matcher}` picks nothing here; its hooks always run");
                    report.changed(group.place_of("matcher"), why);
                }
            }
            for entry in group.list("hooks") {
                hook(
                    &event,
                    point,
                    is_gate,
                    dialect,
                    SourceFields::of(event.as_str(), entry)?,
                    report,
                );
            }
            group.finish(report);
        }
    }
    Ok(())
}

/// Where the hooks of an agent's event run here, and whether that is a gate.
fn point(event: &str) -> Option<(&'static str, bool)> {
    match event {
        "Stop" | "AfterAgent" => Some(("stop", true)),
        "SessionStart" => Some(("session_start", false)),
        "SessionEnd" => Some(("session_end", false)),
        "UserPromptSubmit" | "BeforeAgent" => Some(("pre_iteration", false)),
        _ => None,
    }
}

fn hook(
    event: &str,
    point: &str,
    is_gate: bool,
    dialect: HookDialect,
    mut entry: SourceFields,
    report: &mut ImportReport,
) {
    let kind = entry.text("type").unwrap_or_else(|| "command".to_owned());
    let Some(command) = entry.text("command").filter(|_| kind == "command") else {
        let why = match kind.as_str() {
            "command" => "it has no command",
            "prompt" | "agent" => {
                "a gate that asks a model is a `gatekeeper` here, at before_merge"
            }
            _ => "a hook of this type has no equivalent here",
        };
        return report.lose(format!("{event}: a hook of type `{kind}`"), why);
    };
    let mut found = FoundHook::new(event, &command).with("command", command.as_str());
    let mut changes = Vec::new();
    if let Some(timeout) = entry.number("timeout") {
        let timeout = match dialect.unit {
            TimeoutUnit::Either if timeout <= SECONDS_MAX => format!("{timeout}s"),
            _ => format!("{timeout}ms"),
        };
        found = found.with("timeout", timeout);
    }
    if is_gate {
        changes.push("`on_failure: open`: there, only exit code 2 stops the agent".to_owned());
        changes.push("`stop_when: turn`: it runs at each end of a turn, as there".to_owned());
        changes.push(HERE.to_owned());
        found = found.with("on_failure", "open").with("room", "here");
        if is_script(&command) {
            changes.push("`answers: json`: all parts of the JSON that it prints count".to_owned());
            found = found.with("answers", "json");
        }
    } else if point != "session_end" {
        // The output of such a hook goes to the agent.
        found = found.with("pipe_output", true);
    }
    if point == "pre_iteration" {
        changes.push(format!("`when: {OF_THE_USER}`: not before a prompt that answers a gate"));
        found = found.with("when", OF_THE_USER);
    }
    if dialect.is_off {
        changes.push("`enabled: false`: `disableAllHooks` switches it off there".to_owned());
        found = found.with("enabled", false);
    }
    entry.lose(
        report,
        &[("async", "hooks are waited for here"), ("statusMessage", "of the agent's screen")],
    );
    entry.finish(report);
    let is_taken = report.hook(point, found, &changes);
    if is_gate && is_taken && !dialect.is_off {
        // There, the end of a turn is the claim that the work is done.
        report.set("loop", "stop_when", json!("turn"));
    }
}
