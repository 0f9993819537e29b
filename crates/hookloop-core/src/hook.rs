//! Hooks, their registry, and the order they run in.

use serde_json::Value;

use crate::action::Action;
use crate::builtin::Builtin;
use crate::event::{Event, HOOK_NAMESPACE, LIFECYCLE};
use crate::task::Task;
use crate::template::{TemplateValue, Values};

/// The priority of a hook that names none. Low runs first.
pub const DEFAULT_PRIORITY: i32 = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub name: String,
    /// Types of events it follows.
    pub events: Vec<String>,
    pub priority: i32,
    pub enabled: bool,
    pub metadata: Metadata,
    pub handler: Handler,
}

impl Hook {
    /// Whether it is on and follows events of type `kind`.
    fn follows(&self, kind: &str) -> bool {
        self.enabled && self.events.iter().any(|event| event == kind)
    }

    /// Whether `other` is the same hook but for the events it follows.
    pub fn is_alike(&self, other: &Hook) -> bool {
        *self == Hook { events: self.events.clone(), ..other.clone() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub description: Option<String>,
    pub author: Option<String>,
    pub version: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    Builtin(Builtin),
    /// Actions that the configuration spells out.
    Declared(Vec<DeclaredAction>),
}

/// An action whose texts hold variables.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredAction {
    pub kind: &'static str,
    pub payload: TemplateValue,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookFailure(pub String);

impl DeclaredAction {
    pub fn render(&self, event: &Event, task: Option<&Task>) -> Result<Action, HookFailure> {
        let failed = |error: &dyn std::fmt::Display| HookFailure(format!("{}: {error}", self.kind));
        let payload =
            self.payload.render(&Values::new(event, task)).map_err(|missing| failed(&missing))?;
        let action = serde_json::json!({ "type": self.kind, "payload": payload });
        serde_json::from_value(action).map_err(|error| failed(&error))
    }

    /// Whether the action would be one at all, whatever its variables hold.
    pub fn check(kind: &'static str, payload: &Value) -> Result<(), String> {
        let sample = sampled(payload);
        serde_json::from_value::<Action>(serde_json::json!({ "type": kind, "payload": sample }))
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// `payload` with every text that holds a variable replaced by a word that fits anywhere.
fn sampled(payload: &Value) -> Value {
    match payload {
        Value::String(text) if text.contains("{{") => Value::String("sample".to_owned()),
        Value::Array(items) => items.iter().map(sampled).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), sampled(v))).collect())
        }
        literal => literal.clone(),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("there are two hooks named `{0}`, and they differ")]
    NameTaken(String),
    #[error("hook `{0}` follows no event")]
    NoEvents(String),
    #[error("hook `{hook}` follows `{event}`, which is no event; there are {list}, and `hook.<name>.<type>`",
        list = LIFECYCLE.join(", "))]
    NoSuchEvent { hook: String, event: String },
}

/// Whether hooks can follow events of this type.
pub fn is_followable(kind: &str) -> bool {
    LIFECYCLE.contains(&kind) || kind.starts_with(HOOK_NAMESPACE)
}

/// The hooks of a project. Names are unique; the order is priority, then registration.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    hooks: Vec<Hook>,
}

impl Registry {
    /// The built-in hooks, as they come.
    pub fn builtin() -> Registry {
        Registry { hooks: Builtin::ALL.into_iter().map(Builtin::hook).collect() }
    }

    pub fn register(&mut self, hook: Hook) -> Result<(), RegistryError> {
        if self.get(&hook.name).is_some() {
            return Err(RegistryError::NameTaken(hook.name));
        }
        check_events(&hook.name, &hook.events)?;
        self.hooks.push(hook);
        Ok(())
    }

    pub fn unregister(&mut self, name: &str) -> Option<Hook> {
        let at = self.hooks.iter().position(|hook| hook.name == name)?;
        Some(self.hooks.remove(at))
    }

    pub fn get(&self, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.name == name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Hook> {
        self.hooks.iter_mut().find(|hook| hook.name == name)
    }

    pub fn list(&self) -> &[Hook] {
        &self.hooks
    }

    /// Whether any hook could have something to do when an event of type `kind` happens.
    pub fn follows(&self, kind: &str) -> bool {
        let acts = |hook: &Hook| match hook.handler {
            Handler::Builtin(builtin) => builtin.acts_on(kind),
            Handler::Declared(_) => true,
        };
        self.hooks.iter().any(|hook| hook.follows(kind) && acts(hook))
    }

    /// Enabled hooks that follow events of type `kind`, in the order they run.
    pub fn for_event(&self, kind: &str) -> Vec<&Hook> {
        let mut hooks: Vec<&Hook> = self.hooks.iter().filter(|hook| hook.follows(kind)).collect();
        hooks.sort_by_key(|hook| hook.priority);
        hooks
    }
}

/// Checks the list of events that a hook is to follow.
pub fn check_events(hook: &str, events: &[String]) -> Result<(), RegistryError> {
    if events.is_empty() {
        return Err(RegistryError::NoEvents(hook.to_owned()));
    }
    match events.iter().find(|event| !is_followable(event)) {
        Some(event) => {
            Err(RegistryError::NoSuchEvent { hook: hook.to_owned(), event: event.clone() })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, priority: i32) -> Hook {
        Hook {
            name: name.into(),
            events: vec!["task_completed".into()],
            priority,
            enabled: true,
            metadata: Metadata::default(),
            handler: Handler::Declared(vec![]),
        }
    }

    fn order(registry: &Registry) -> Vec<&str> {
        registry.for_event("task_completed").iter().map(|hook| hook.name.as_str()).collect()
    }

    #[test]
    fn low_priority_first_then_registration_and_zero_is_zero() {
        let mut registry = Registry::default();
        for (name, priority) in [("c", 100), ("a", 0), ("d", 100), ("b", 20), ("z", -1)] {
            registry.register(hook(name, priority)).unwrap();
        }
        assert_eq!(order(&registry), ["z", "a", "b", "c", "d"]);
        registry.get_mut("a").unwrap().enabled = false;
        registry.unregister("c").unwrap();
        assert_eq!(order(&registry), ["z", "b", "d"]);
        assert!(registry.for_event("task_created").is_empty());
    }

    #[test]
    fn names_are_unique_and_events_are_real() {
        let mut registry = Registry::builtin();
        let taken = registry.register(hook("auto-create-review-task", 1));
        assert_eq!(taken, Err(RegistryError::NameTaken("auto-create-review-task".into())));
        let none = Hook { events: vec![], ..hook("x", 1) };
        assert_eq!(registry.register(none), Err(RegistryError::NoEvents("x".into())));
        let unreal = Hook { events: vec!["task_done".into()], ..hook("x", 1) };
        assert!(matches!(registry.register(unreal), Err(RegistryError::NoSuchEvent { .. })));
        let custom = Hook { events: vec!["hook.other.note".into()], ..hook("x", 1) };
        registry.register(custom).unwrap();
        assert_eq!(registry.list().len(), 4);
    }
}
