//! `{{name}}` in the actions that a configuration declares.
//!
//! Names are checked when the configuration is read. Values are inserted once, so a value that
//! looks like a placeholder stays text.

use serde_json::Value;

use crate::event::{Event, EventBody};
use crate::hook_vars::HookVariable;
use crate::task::Task;

/// The variables that a declared action may use, with their names there.
fn action_variables() -> impl Iterator<Item = (HookVariable, &'static str)> {
    HookVariable::ALL.iter().filter_map(|variable| Some((*variable, variable.action_name()?)))
}

fn action_names() -> Vec<&'static str> {
    action_variables().map(|(_, name)| name).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("there is no variable `{0}`; there are {list}", list = action_names().join(", "))]
    Unknown(String),
    #[error("`{{{{` without `}}}}` in `{0}`")]
    Unclosed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{{{{{0}}}}}` has no value here")]
pub struct MissingValue(pub &'static str);

/// The values that an event provides.
#[derive(Debug)]
pub struct Values<'a> {
    event: &'a Event,
    task: Option<&'a Task>,
}

impl<'a> Values<'a> {
    pub fn new(event: &'a Event, task: Option<&'a Task>) -> Values<'a> {
        Values { event, task }
    }

    fn get(&self, variable: HookVariable, name: &'static str) -> Result<String, MissingValue> {
        let spec = self.task.map(|task| &task.spec);
        let value = match variable {
            HookVariable::Event => Some(self.event.body.kind().to_owned()),
            HookVariable::TaskId => self.event.subject.task().map(ToString::to_string),
            HookVariable::TaskContent => spec.map(|spec| spec.goal.clone()),
            HookVariable::Description => spec.map(|spec| spec.description.clone()),
            HookVariable::TaskType => spec.and_then(|spec| spec.kind.clone()),
            HookVariable::Priority => spec.map(|spec| spec.priority.get().to_string()),
            HookVariable::Labels => spec.map(|spec| spec.labels.join(",")),
            HookVariable::Result => self.result(),
            HookVariable::Reason => self.reason(),
            HookVariable::Session
            | HookVariable::Iteration
            | HookVariable::StopHookActive
            | HookVariable::Error
            | HookVariable::Task
            | HookVariable::Branch
            | HookVariable::BaseBranch
            | HookVariable::PrUrl
            | HookVariable::Agent
            | HookVariable::Commits
            | HookVariable::Point
            | HookVariable::Project => None,
        };
        value.ok_or(MissingValue(name))
    }

    fn result(&self) -> Option<String> {
        match &self.event.body {
            EventBody::TaskCompleted(outcome) => outcome.result.clone(),
            _ => self.task?.outcome.as_ref()?.result.clone(),
        }
    }

    fn reason(&self) -> Option<String> {
        match &self.event.body {
            EventBody::TaskBlocked(obstacle) => Some(obstacle.reason.clone()),
            _ => Some(self.task?.obstacle.as_ref()?.reason.clone()),
        }
    }
}

/// A text with places for values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Variable(HookVariable, &'static str),
}

impl Template {
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) =
                after.split_once("}}").ok_or_else(|| TemplateError::Unclosed(text.to_owned()))?;
            let name = name.trim();
            let known = action_variables().find(|(_, known)| *known == name);
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            let (variable, name) = known.ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
            parts.push(TemplatePart::Variable(variable, name));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    pub fn render(&self, values: &Values<'_>) -> Result<String, MissingValue> {
        self.0.iter().try_fold(String::new(), |text, part| {
            Ok(match part {
                TemplatePart::Text(part) => text + part,
                TemplatePart::Variable(variable, name) => text + &values.get(*variable, name)?,
            })
        })
    }
}

/// JSON whose texts are templates.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateValue {
    Literal(Value),
    Text(Template),
    List(Vec<TemplateValue>),
    Map(Vec<(String, TemplateValue)>),
}

impl TemplateValue {
    pub fn parse(value: &Value) -> Result<TemplateValue, TemplateError> {
        Ok(match value {
            Value::String(text) => TemplateValue::Text(Template::parse(text)?),
            Value::Array(items) => TemplateValue::List(
                items.iter().map(TemplateValue::parse).collect::<Result<_, _>>()?,
            ),
            Value::Object(map) => TemplateValue::Map(
                map.iter()
                    .map(|(key, value)| Ok((key.clone(), TemplateValue::parse(value)?)))
                    .collect::<Result<_, _>>()?,
            ),
            literal => TemplateValue::Literal(literal.clone()),
        })
    }

    /// Whether the value is this text, independent of variables.
    pub fn is_plain_text(&self, text: &str) -> bool {
        match self {
            TemplateValue::Text(Template(parts)) => {
                matches!(parts.as_slice(), [TemplatePart::Text(part)] if part == text)
            }
            _ => false,
        }
    }

    /// Returns the value as it was written.
    pub fn source(&self) -> Value {
        match self {
            TemplateValue::Literal(value) => value.clone(),
            TemplateValue::Text(Template(parts)) => {
                let part = |part: &TemplatePart| match part {
                    TemplatePart::Text(text) => text.clone(),
                    TemplatePart::Variable(_, name) => format!("{{{{{name}}}}}"),
                };
                Value::String(parts.iter().map(part).collect())
            }
            TemplateValue::List(items) => items.iter().map(TemplateValue::source).collect(),
            TemplateValue::Map(map) => Value::Object(
                map.iter().map(|(key, value)| (key.clone(), value.source())).collect(),
            ),
        }
    }

    pub fn render(&self, values: &Values<'_>) -> Result<Value, MissingValue> {
        Ok(match self {
            TemplateValue::Literal(value) => value.clone(),
            TemplateValue::Text(template) => Value::String(template.render(values)?),
            TemplateValue::List(items) => Value::Array(
                items.iter().map(|item| item.render(values)).collect::<Result<_, _>>()?,
            ),
            TemplateValue::Map(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| Ok((key.clone(), value.render(values)?)))
                    .collect::<Result<_, MissingValue>>()?,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EventId, Subject};
    use crate::task::TaskObstacle;
    use crate::time::Timestamp;

    fn blocked(reason: &str) -> Event {
        Event {
            id: EventId([0; 16]),
            at: Timestamp(0),
            subject: Subject::Task("t1".parse().unwrap()),
            actor: String::new(),
            cause: None,
            due: false,
            body: EventBody::TaskBlocked(TaskObstacle {
                reason: reason.into(),
                required_knowledge: None,
            }),
        }
    }

    #[test]
    fn inserted_values_are_not_expanded_again() {
        let event = blocked("{{task_id}} $(touch x)");
        let template = Template::parse("{{event}}: {{ reason }}!").unwrap();
        let text = template.render(&Values::new(&event, None)).unwrap();
        assert_eq!(text, "task_blocked: {{task_id}} $(touch x)!");
    }

    #[test]
    fn unknown_and_unclosed_template_names_are_parse_errors() {
        assert_eq!(Template::parse("{{goall}}"), Err(TemplateError::Unknown("goall".into())));
        assert!(matches!(Template::parse("a {{goal"), Err(TemplateError::Unclosed(_))));
    }

    #[test]
    fn a_missing_template_value_is_an_error() {
        let event = blocked("r");
        let template = Template::parse("{{result}}").unwrap();
        assert_eq!(template.render(&Values::new(&event, None)), Err(MissingValue("result")));
    }
}
