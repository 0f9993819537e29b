//! Settings of the built-in hooks, as `data/automation-hooks.json` has them.

use hookloop_core::builtin::Builtin;
use serde::Deserialize;

use super::ImportTool;
use super::source::SourceFile;
use crate::cli::import::import_report::{FoundHook, ImportReport};

pub(super) const TOOL: ImportTool =
    ImportTool { name: "automation-hooks", files: &["data/automation-hooks.json"], read };

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

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let file: AutomationFile =
        serde_json::from_str(&source.text).map_err(|error| error.to_string())?;
    if file.version != "1.0" {
        return Err(format!("version {} is not known", file.version));
    }
    for hook in file.hooks {
        let known = Builtin::ALL.into_iter().find(|builtin| builtin.name() == hook.name);
        let Some(builtin) = known else {
            report.lose(format!("`{}`", hook.name), "it is not a built-in hook");
            continue;
        };
        let defaults = || builtin.hook().points.iter().map(ToString::to_string).collect();
        let events = hook.event_types.unwrap_or_else(defaults);
        if events.is_empty() {
            let message =
                format!("`{}` names no event: `enabled: false` disables a hook", hook.name);
            return Err(message);
        }
        for event in events {
            let mut found = FoundHook::new(&event, &hook.name).with("use", hook.name.as_str());
            if let Some(priority) = hook.priority {
                found = found.with("priority", priority);
            }
            if let Some(enabled) = hook.enabled {
                found = found.with("enabled", enabled);
            }
            report.hook(&event, found, &[]);
        }
    }
    Ok(())
}
