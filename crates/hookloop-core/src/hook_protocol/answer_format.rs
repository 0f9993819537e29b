//! The JSON format of a hook's answer.

use serde::Deserialize;
use serde_json::Value;

use super::process::CapturedOutput;
use crate::action::{ACTION_TYPES, Action};

/// Standard output that is longer is no answer.
pub const ANSWER_MAX: usize = 1024 * 1024;

/// The largest `context` of an answer, as JSON.
pub(crate) const CONTEXT_MAX: usize = 64 * 1024;

/// Actions that one answer may request.
pub const ACTIONS_MAX: usize = 64;

/// The field of an answer by which a hook reports that it had nothing to do.
pub const SKIP: &str = "skip";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HookAnswer {
    pub(super) decision: Option<String>,
    pub(super) reason: Option<String>,
    #[serde(rename = "continue")]
    pub(super) goes_on: Option<bool>,
    pub(super) stop_reason: Option<String>,
    pub(super) system_message: Option<String>,
    pub(super) suppress_output: bool,
    pub(super) hook_specific_output: Option<SpecificFields>,
    pub(super) hookloop: Option<HookloopFields>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpecificFields {
    pub(super) additional_context: Option<String>,
}

/// The fields of hookloop in an answer. A misspelt field is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HookloopFields {
    pub(super) action: Option<RequestedStep>,
    pub(super) reason: Option<String>,
    pub(super) next_prompt: Option<String>,
    pub(super) checkpoint: Option<Value>,
    #[serde(deserialize_with = "read_actions")]
    pub(super) actions: Vec<Action>,
    pub(super) context: Value,
    pub(super) metadata: Value,
    pub(super) skip: bool,
}

/// Reads each action separately, so that an unreadable one voids no other.
pub(super) fn read_actions<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<Action>, D::Error> {
    let entries = Vec::<Value>::deserialize(from)?;
    Ok(entries.into_iter().map(Action::read).collect())
}

impl HookAnswer {
    /// Returns the answer with only the parts that make a gate stricter, and the names of the removed parts.
    pub(super) fn without_acts(mut self) -> (HookAnswer, Vec<&'static str>) {
        let Some(ours) = self.hookloop.take() else { return (self, Vec::new()) };
        let acts = [
            ("actions", !ours.actions.is_empty()),
            ("checkpoint", ours.checkpoint.is_some()),
            ("nextPrompt", ours.next_prompt.is_some()),
            ("context", !ours.context.is_null()),
            ("metadata", !ours.metadata.is_null()),
            (SKIP, ours.skip),
        ];
        let ignored = acts.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        let ignored = ignored.collect();
        let (action, reason) = (ours.action, ours.reason);
        self.hookloop = Some(HookloopFields { action, reason, ..HookloopFields::default() });
        (self, ignored)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RequestedStep {
    Complete,
    Continue,
    Escalate,
}

/// Whether standard output, or its beginning and end, has the form of an answer.
pub fn looks_like_answer(stdout: &str) -> bool {
    let text = stdout.trim();
    is_braced(text) || looks_like_action_list(text)
}

pub(super) fn is_braced(text: &str) -> bool {
    text.starts_with('{') && text.ends_with('}')
}

/// Whether a text has the form of a list of actions, whose entries have a type and a payload.
pub(super) fn looks_like_action_list(text: &str) -> bool {
    text.starts_with('[')
        && text.ends_with(']')
        && text.contains("\"type\"")
        && (text.contains("\"payload\"")
            || text.contains("_task\"")
            || text.contains("_workflow\""))
}

/// Returns the entries of a list that contains an action. Other lists, such as a linter's findings, are text.
pub(super) fn action_list(text: &str) -> Option<Vec<Value>> {
    let Ok(Value::Array(entries)) = serde_json::from_str(text) else { return None };
    let is_action = |entry: &Value| {
        let name = entry.get("type").and_then(Value::as_str);
        name.is_some_and(|name| {
            entry.get("payload").is_some() || (name != "log" && ACTION_TYPES.contains(&name))
        })
    };
    entries.iter().any(is_action).then_some(entries)
}

/// Returns the answer in standard output, if that is one JSON object or a list of actions.
pub(super) fn read_answer(
    printed: CapturedOutput<'_>,
    may_act: bool,
) -> Result<Option<HookAnswer>, String> {
    let text = printed.stdout.trim();
    let is_list = !is_braced(text) && looks_like_action_list(text);
    if !is_list && !is_braced(text) {
        return Ok(None);
    }
    // A list contains only actions. Without the right to act it is plain text.
    let is_cut = printed.is_cut || text.len() > ANSWER_MAX;
    if is_cut && (may_act || !is_list) {
        return Err(format!("its answer has more than {ANSWER_MAX} bytes"));
    }
    let unreadable = |error: serde_json::Error| format!("its answer can't be read: {error}");
    if is_list {
        if is_cut {
            return Ok(None);
        }
        let Some(entries) = action_list(text) else {
            return match serde_json::from_str::<Value>(text) {
                Err(error) if may_act => Err(unreadable(error)),
                _ => Ok(None),
            };
        };
        check_action_count(entries.len())?;
        let actions = entries.into_iter().map(Action::read).collect();
        let hookloop = Some(HookloopFields { actions, ..HookloopFields::default() });
        return Ok(Some(HookAnswer { hookloop, ..HookAnswer::default() }));
    }
    // Unknown fields have to be valid JSON too.
    let _: Value = serde_json::from_str(text).map_err(unreadable)?;
    let answer: HookAnswer = serde_json::from_str(text).map_err(unreadable)?;
    check_action_count(answer.hookloop.as_ref().map_or(0, |ours| ours.actions.len()))?;
    let is_large = |value: &Value| !value.is_null() && value.to_string().len() > CONTEXT_MAX;
    if answer
        .hookloop
        .as_ref()
        .is_some_and(|ours| is_large(&ours.context) || is_large(&ours.metadata))
    {
        return Err(format!("the `context` of its answer has more than {CONTEXT_MAX} bytes"));
    }
    if let Some(decision) = answer.decision.as_deref()
        && !["block", "approve", "allow"].contains(&decision)
    {
        return Err(format!("its answer decides `{decision}`, which means nothing; `block` does"));
    }
    Ok(Some(answer))
}

pub(super) fn check_action_count(actions: usize) -> Result<(), String> {
    if actions > ACTIONS_MAX {
        return Err(format!("{actions} actions in an answer; at most {ACTIONS_MAX}"));
    }
    Ok(())
}

/// Whether a line of the text would be an answer by itself.
pub(crate) fn has_answer_beside_text(stdout: &str) -> bool {
    let is_answer = |line: &str| {
        let words = ["\"decision\"", "\"continue\"", "\"hookSpecificOutput\"", "\"hookloop\""];
        let line = line.trim();
        line.starts_with('{')
            && line.ends_with('}')
            && words.iter().any(|word| line.contains(word))
            && serde_json::from_str::<HookAnswer>(line).is_ok()
    };
    let text = stdout.trim();
    !(text.starts_with('{') && text.ends_with('}')) && text.lines().any(is_answer)
}
