//! The tools: one table each, of which schema and check of arguments are made.

mod checkpoints;
mod hooks;
mod iterations;
mod tasks;

use std::sync::Arc;

use hookloop_core::excerpt::first_chars;
use hookloop_engine::external::agent_tools::AgentTools;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::refusal::ToolRefusal;

type Arguments = Map<String, Value>;
pub(super) type ToolAnswer = Result<Value, ToolRefusal>;

/// All of them, in the order in which agents see them.
pub(super) const TOOLS: [&AgentTool; 14] = [
    &hooks::REGISTER,
    &hooks::EVALUATE,
    &hooks::LIST,
    &hooks::CLEAR,
    &iterations::START,
    &iterations::VALIDATE,
    &iterations::NEXT,
    &iterations::COMPLETE,
    &checkpoints::CREATE,
    &checkpoints::RESUME,
    &tasks::GET,
    &tasks::LIST,
    &tasks::ADD,
    &tasks::UPDATE,
];

pub(super) struct AgentTool {
    pub(super) name: &'static str,
    /// Static: nothing of a repository is ever in it.
    about: &'static str,
    fields: &'static [ToolField],
    /// An argument of the original tool that is refused.
    never: Option<RefusedField>,
    /// It can lead to reactions.
    pub(super) writes: bool,
    run: fn(&AgentTools, Arguments) -> ToolAnswer,
}

struct ToolField {
    name: &'static str,
    kind: ArgumentKind,
    is_needed: bool,
    about: &'static str,
    /// Another name that agents know it by.
    alias: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum ArgumentKind {
    Text,
    /// A whole number, 0 or more.
    Count,
    /// A whole number, 1 or more.
    Positive,
    Texts,
    Object,
    Anything,
    OneOf(&'static [&'static str]),
    /// A text. The schema has these words; the tool also accepts the words of the tools that agents know.
    Word(&'static [&'static str]),
    /// A list of such texts.
    Words(&'static [&'static str]),
}

struct RefusedField {
    field: &'static str,
    message: &'static str,
    next: &'static str,
}

const fn needed(name: &'static str, kind: ArgumentKind) -> ToolField {
    ToolField { name, kind, is_needed: true, about: "", alias: None }
}

const fn optional(name: &'static str, kind: ArgumentKind) -> ToolField {
    ToolField { name, kind, is_needed: false, about: "", alias: None }
}

/// The task that a tool is about. Some tools of others call it `id`, some `taskId`: each takes both.
const TASK: ToolField = needed("taskId", ArgumentKind::Text).alias("id").about("id of the task");
/// The iteration that a tool is about.
const ITERATION: ToolField =
    needed("iterationId", ArgumentKind::Text).about("id from iteration_start or iteration_next");
/// The signals by which an agent ends its work.
const PROMISES: &[&str] = &["COMPLETE", "BLOCKED", "ESCALATE"];

impl ToolField {
    const fn alias(self, alias: &'static str) -> ToolField {
        ToolField { alias: Some(alias), ..self }
    }

    const fn about(self, about: &'static str) -> ToolField {
        ToolField { about, ..self }
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            ArgumentKind::Text => json!({ "type": "string" }),
            ArgumentKind::Count => json!({ "type": "integer" }),
            ArgumentKind::Positive => json!({ "type": "integer", "minimum": 1 }),
            ArgumentKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            ArgumentKind::Object => json!({ "type": "object" }),
            ArgumentKind::Anything => json!({}),
            ArgumentKind::OneOf(words) | ArgumentKind::Word(words) => {
                json!({ "type": "string", "enum": words })
            }
            ArgumentKind::Words(words) => {
                json!({ "type": "array", "items": { "type": "string", "enum": words } })
            }
        };
        if !self.about.is_empty() {
            schema["description"] = json!(self.about);
        }
        schema
    }

    /// Returns the expected type if the value has another.
    fn mismatch(&self, value: &Value) -> Option<String> {
        let is_texts = |list: &Vec<Value>| list.iter().all(Value::is_string);
        let (fits, kind) = match self.kind {
            ArgumentKind::Text | ArgumentKind::Word(_) => (value.is_string(), "a text".to_owned()),
            ArgumentKind::Count => {
                let fits = value.as_u64().is_some_and(|n| u32::try_from(n).is_ok());
                (fits, "a whole number, 0 or more".to_owned())
            }
            ArgumentKind::Positive => {
                let fits = value.as_u64().is_some_and(|n| n > 0 && u32::try_from(n).is_ok());
                (fits, "a whole number, 1 or more".to_owned())
            }
            ArgumentKind::Texts | ArgumentKind::Words(_) => {
                (value.as_array().is_some_and(is_texts), "a list of texts".to_owned())
            }
            ArgumentKind::Object => (value.is_object(), "an object".to_owned()),
            ArgumentKind::Anything => (true, String::new()),
            ArgumentKind::OneOf(words) => {
                let fits = value.as_str().is_some_and(|text| words.contains(&text));
                (fits, format!("one of {}", words.join(", ")))
            }
        };
        (!fits).then(|| format!("`{}` should be {kind}", self.name))
    }
}

impl AgentTool {
    pub(super) fn named(name: &str) -> Option<&'static AgentTool> {
        TOOLS.into_iter().find(|tool| tool.name == name)
    }

    /// As agents see it.
    pub(super) fn listed(&self) -> rmcp::model::Tool {
        rmcp::model::Tool::new(self.name, self.about, Arc::new(self.schema()))
    }

    fn schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> =
            self.fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
        let needed: Vec<&str> =
            self.fields.iter().filter(|field| field.is_needed).map(|field| field.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !needed.is_empty() {
            schema.insert("required".to_owned(), json!(needed));
        }
        schema
    }

    /// The arguments without those that are null, which is how some clients leave one out.
    pub(super) fn check(&self, arguments: Arguments) -> Result<Arguments, ToolRefusal> {
        let mut given: Arguments =
            arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
        for ToolField { name, alias, .. } in self.fields {
            let Some((alias, value)) = alias.and_then(|alias| Some((alias, given.remove(alias)?)))
            else {
                continue;
            };
            if given.get(*name).is_some_and(|known| *known != value) {
                return Err(ToolRefusal::argument(format!("`{name}` and `{alias}` are different")));
            }
            given.insert((*name).to_owned(), value);
        }
        if let Some(never) = self.never.as_ref().filter(|never| given.contains_key(never.field)) {
            return Err(ToolRefusal::new("not_allowed", never.message, never.next));
        }
        for (name, value) in &given {
            let field = self.fields.iter().find(|field| field.name == name);
            if let Some(wrong) = field.ok_or_else(|| self.unknown(name))?.mismatch(value) {
                return Err(ToolRefusal::argument(wrong));
            }
        }
        let is_missing = |field: &&ToolField| field.is_needed && !given.contains_key(field.name);
        match self.fields.iter().find(is_missing) {
            Some(field) => Err(ToolRefusal::argument(format!("`{}` is missing", field.name))),
            None => Ok(given),
        }
    }

    fn unknown(&self, name: &str) -> ToolRefusal {
        let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
        let name = first_chars(name, NAME_SHOWN);
        let message =
            format!("`{}` does not know `{name}`; it takes {}", self.name, known.join(", "));
        ToolRefusal::argument(message)
    }

    /// Blocks: it reads and writes the project, and may run gates for minutes.
    pub(super) fn call(&self, tools: &AgentTools, checked: Arguments) -> ToolAnswer {
        (self.run)(tools, checked)
    }
}

/// Characters of a name nobody knows that are said again.
const NAME_SHOWN: usize = 64;

/// Converts checked arguments to the tool's type.
fn read<T: DeserializeOwned>(checked: Arguments) -> Result<T, ToolRefusal> {
    serde_json::from_value(Value::Object(checked))
        .map_err(|error| ToolRefusal::argument(error.to_string()))
}

/// The fields that have a value.
fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests;
