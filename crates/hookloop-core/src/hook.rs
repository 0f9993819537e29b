//! Hooks, their registry, and the order they run in.

use serde_json::Value;

use crate::action::Action;
use crate::builtin::Builtin;
use crate::command_line::{CommandLine, CommandLineError};
use crate::event::Event;
use crate::options::HookOptions;
use crate::point::Point;
use crate::review::Quorum;
use crate::rule::Rule;
use crate::task::Task;
use crate::template::{TemplateValue, Values};

/// The priority of a hook that names none. Low runs first.
pub const DEFAULT_PRIORITY: i32 = 100;

#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub name: String,
    /// The points at which the hook runs.
    pub points: Vec<Point>,
    /// The list that contains the hook, or `None` for the project's list.
    ///
    /// It is the list of a task type, by its name, or of an agent ([`of_agent`]).
    pub task_type: Option<String>,
    pub source: HookSource,
    pub priority: i32,
    pub enabled: bool,
    pub metadata: HookMetadata,
    pub handler: HookHandler,
    pub options: HookOptions,
}

/// Returns the name of the list of an agent's hooks. No task type has such a name.
pub fn of_agent(agent: &str) -> String {
    format!("{AGENT_LIST}{agent}")
}

/// The prefix of the names of agents' lists.
pub const AGENT_LIST: &str = "agent:";

impl Hook {
    /// Whether the hook is enabled and runs at the point `name`.
    fn is_at(&self, name: &str) -> bool {
        self.enabled && self.points.iter().any(|point| point.name() == name)
    }

    /// Whether `other` is the same hook, apart from its points.
    pub fn is_alike(&self, other: &Hook) -> bool {
        *self == Hook { points: self.points.clone(), ..other.clone() }
    }
}

/// The origin of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookSource {
    /// The product.
    Builtin,
    /// A policy. No user can disable the hook.
    Operator,
    /// The user's own configuration.
    User,
    /// The project's file. Its hooks run only if the user trusts them.
    Project,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookMetadata {
    pub description: Option<String>,
    pub author: Option<String>,
    pub version: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HookHandler {
    Builtin(Builtin),
    /// Actions that the configuration spells out.
    Declared(Vec<DeclaredAction>),
    Command(CommandText),
    /// A webhook.
    Http {
        url: String,
    },
    /// Agents that review and give a verdict, by name.
    Gatekeepers {
        agents: Vec<String>,
        quorum: Quorum,
        /// The instructions and definitions of the agents, which are part of the trusted digest.
        terms: Vec<String>,
    },
    /// A condition on the project's files.
    Rule(Rule),
}

/// A command as the configuration has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandText {
    /// A shell line.
    Shell(String),
    /// A program and its arguments.
    Exec(Vec<String>),
}

impl CommandText {
    /// Returns the command with places for the `known` variables.
    pub fn compile(&self, known: &[&'static str]) -> Result<CommandLine, CommandLineError> {
        match self {
            CommandText::Shell(line) => CommandLine::shell(line, known),
            CommandText::Exec(args) => CommandLine::exec(args, known),
        }
    }
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

    /// Whether the action may complete or unblock a task, which is a person's decision. A workflow does
    /// neither.
    pub fn decides(&self) -> bool {
        if self.kind != "update_task" {
            return false;
        }
        let TemplateValue::Map(fields) = &self.payload else { return true };
        let change = fields.iter().find(|(name, _)| name == "action");
        let harmless = ["transition_to_ready", "start", "submit", "block"];
        !change.is_some_and(|(_, change)| harmless.iter().any(|word| change.is_plain_text(word)))
    }

    /// Checks that the action is valid for any values of its variables.
    pub fn check(kind: &'static str, payload: &Value) -> Result<(), String> {
        let sample = sampled(payload);
        serde_json::from_value::<Action>(serde_json::json!({ "type": kind, "payload": sample }))
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Returns `payload` with every text that has a variable replaced by a word that fits anywhere.
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
    #[error("hook `{0}` runs nowhere: it has no point")]
    NoPoints(String),
}

/// The hooks of a project, ordered by priority and then by registration.
///
/// Names are unique among the hooks of a task type, and among the others.
#[derive(Clone, Debug, Default)]
pub struct HookRegistry {
    hooks: Vec<Hook>,
    /// Points for which a task type has a list of its own, which may be empty.
    typed: Vec<(String, Point)>,
}

impl HookRegistry {
    /// Returns the built-in reactions with their default settings.
    pub fn builtin() -> HookRegistry {
        let hooks = Builtin::REACTIONS.into_iter().map(Builtin::hook).collect();
        HookRegistry { hooks, typed: Vec::new() }
    }

    pub fn register(&mut self, hook: Hook) -> Result<(), RegistryError> {
        if self.get_for(hook.task_type.as_deref(), &hook.name).is_some() {
            return Err(RegistryError::NameTaken(hook.name));
        }
        if hook.points.is_empty() {
            return Err(RegistryError::NoPoints(hook.name));
        }
        self.hooks.push(hook);
        Ok(())
    }

    pub fn unregister(&mut self, name: &str) -> Option<Hook> {
        let at = self.hooks.iter().position(|hook| hook.name == name)?;
        Some(self.hooks.remove(at))
    }

    /// Records that tasks of a type have their own hooks at a point instead of the project's.
    pub fn set_typed(&mut self, task_type: &str, point: &Point) {
        let key = (task_type.to_owned(), point.clone());
        if !self.typed.contains(&key) {
            self.typed.push(key);
        }
    }

    /// Returns the project's hook of that name.
    pub fn get(&self, name: &str) -> Option<&Hook> {
        self.get_for(None, name)
    }

    pub fn get_for(&self, task_type: Option<&str>, name: &str) -> Option<&Hook> {
        self.hooks.iter().find(|hook| hook.task_type.as_deref() == task_type && hook.name == name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Hook> {
        self.get_mut_for(None, name)
    }

    pub fn get_mut_for(&mut self, task_type: Option<&str>, name: &str) -> Option<&mut Hook> {
        let mut hooks = self.hooks.iter_mut();
        hooks.find(|hook| hook.task_type.as_deref() == task_type && hook.name == name)
    }

    pub fn list(&self) -> &[Hook] {
        &self.hooks
    }

    /// Whether a hook could act on an event of type `kind`.
    pub fn follows(&self, kind: &str) -> bool {
        let acts = |hook: &Hook| match hook.handler {
            HookHandler::Builtin(builtin) => builtin.acts_on(kind),
            _ => true,
        };
        self.hooks.iter().any(|hook| hook.is_at(kind) && acts(hook))
    }

    /// Returns the enabled hooks at a point for a task of a type, in order. A list of the type replaces the
    /// project's list. The user's and the operator's hooks always run, and the operator's run first.
    pub fn resolve(&self, point: &str, task_type: Option<&str>) -> Vec<&Hook> {
        self.resolve_for(point, task_type, None)
    }

    /// Returns the hooks of a point for an agent, whose own list for the point takes precedence.
    pub fn resolve_for(
        &self,
        point: &str,
        task_type: Option<&str>,
        agent: Option<&str>,
    ) -> Vec<&Hook> {
        let own = agent.map(of_agent).filter(|list| self.is_typed(point, Some(list)));
        let scope = own.as_deref().or(task_type.filter(|_| self.is_typed(point, task_type)));
        let is_in_scope = |hook: &Hook| {
            matches!(hook.source, HookSource::User | HookSource::Operator)
                || hook.task_type.as_deref() == scope
        };
        let mut hooks: Vec<&Hook> =
            self.hooks.iter().filter(|hook| hook.is_at(point) && is_in_scope(hook)).collect();
        hooks.sort_by_key(|hook| (hook.source != HookSource::Operator, hook.priority));
        hooks
    }

    /// Returns the lists that replace the project's, each with its owner and its point.
    ///
    /// The owner is a task type or an agent ([`of_agent`]).
    pub fn own_lists(&self) -> &[(String, Point)] {
        &self.typed
    }

    /// Whether a task type has a list of its own for a point.
    pub fn is_typed(&self, point: &str, task_type: Option<&str>) -> bool {
        self.typed.iter().any(|(name, at)| Some(name.as_str()) == task_type && at.name() == point)
    }
}

impl Builtin {
    /// Returns the hook with its default settings.
    pub fn hook(self) -> Hook {
        let completed: &[&str] = &["task_completed"];
        let (priority, events, description) = match self {
            Builtin::AutoCreateReviewTask => {
                (10, completed, "Adds a review task when an agent's task completes")
            }
            Builtin::CheckDependencySatisfaction => {
                (20, completed, "Announces tasks whose last dependency completed")
            }
            Builtin::TrackAgentTaskLifecycle => (
                50,
                &["task_created", "task_started", "task_completed"][..],
                "Records how long agents' tasks took",
            ),
            Builtin::RebaseOnMain => (DEFAULT_PRIORITY, &[][..], "Brings a branch up to its base"),
            Builtin::RunTests => (DEFAULT_PRIORITY, &[][..], "Runs the project's tests"),
            Builtin::CreatePr => {
                (DEFAULT_PRIORITY, &[][..], "Pushes a branch and asks for a merge")
            }
            Builtin::Merge => (DEFAULT_PRIORITY, &[][..], "Merges what was submitted"),
        };
        Hook {
            name: self.name().to_owned(),
            points: events.iter().map(|kind| Point::Event((*kind).to_owned())).collect(),
            task_type: None,
            source: HookSource::Builtin,
            priority,
            enabled: true,
            metadata: HookMetadata {
                description: Some(description.to_owned()),
                author: Some("hookloop".to_owned()),
                version: Some("1".to_owned()),
            },
            handler: HookHandler::Builtin(self),
            options: HookOptions::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, priority: i32) -> Hook {
        Hook {
            name: name.into(),
            points: vec![completed()],
            task_type: None,
            source: HookSource::Project,
            priority,
            enabled: true,
            metadata: HookMetadata::default(),
            handler: HookHandler::Declared(vec![]),
            options: HookOptions::default(),
        }
    }

    fn completed() -> Point {
        Point::Event("task_completed".into())
    }

    fn order<'a>(registry: &'a HookRegistry, task_type: Option<&str>) -> Vec<&'a str> {
        let hooks = registry.resolve("task_completed", task_type);
        hooks.iter().map(|hook| hook.name.as_str()).collect()
    }

    #[test]
    fn hooks_are_ordered_by_priority_and_then_by_registration() {
        let mut registry = HookRegistry::default();
        for (name, priority) in [("c", 100), ("a", 0), ("d", 100), ("b", 20), ("z", -1)] {
            registry.register(hook(name, priority)).unwrap();
        }
        assert_eq!(order(&registry, None), ["z", "a", "b", "c", "d"]);
        registry.get_mut("a").unwrap().enabled = false;
        registry.unregister("c").unwrap();
        assert_eq!(order(&registry, None), ["z", "b", "d"]);
        assert!(registry.resolve("task_created", None).is_empty());
    }

    #[test]
    fn hooks_of_a_task_type_replace_those_of_the_project() {
        let mut registry = HookRegistry::default();
        let typed = |name: &str| Hook { task_type: Some("fix".into()), ..hook(name, 1) };
        registry.register(hook("a", 1)).unwrap();
        registry.register(typed("a")).unwrap();
        registry.register(typed("b")).unwrap();
        registry.set_typed("fix", &completed());
        registry.set_typed("quiet", &completed());
        assert_eq!(order(&registry, None), ["a"]);
        assert_eq!(order(&registry, Some("fix")), ["a", "b"]);
        assert_eq!(order(&registry, Some("quiet")), [""; 0]);
        assert_eq!(order(&registry, Some("other")), ["a"]);
        registry.register(Hook { source: HookSource::User, ..hook("own", 0) }).unwrap();
        for task_type in [None, Some("fix"), Some("quiet")] {
            assert_eq!(order(&registry, task_type)[0], "own", "no list takes it away");
        }
        registry.register(Hook { source: HookSource::Operator, ..hook("required", 200) }).unwrap();
        for task_type in [None, Some("fix"), Some("quiet")] {
            assert_eq!(
                order(&registry, task_type)[..2],
                ["required", "own"],
                "whatever its priority"
            );
        }
        assert_eq!(registry.register(typed("b")), Err(RegistryError::NameTaken("b".into())));
    }

    #[test]
    fn hooks_of_an_agent_replace_those_of_the_task_type() {
        let mut registry = HookRegistry::default();
        let list = |list: &str, name: &str| Hook { task_type: Some(list.into()), ..hook(name, 1) };
        registry.register(hook("project", 1)).unwrap();
        registry.register(list("fix", "type")).unwrap();
        registry.set_typed("fix", &completed());
        registry.register(list(&of_agent("claude"), "agent")).unwrap();
        registry.set_typed(&of_agent("claude"), &completed());
        let names = |task_type, agent| {
            let hooks = registry.resolve_for("task_completed", task_type, agent);
            hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(None, None), ["project"]);
        assert_eq!(names(Some("fix"), Some("codex")), ["type"]);
        assert_eq!(names(Some("fix"), Some("claude")), ["agent"]);
        assert_eq!(names(None, Some("claude")), ["agent"]);
    }

    #[test]
    fn hooks_with_a_taken_name_or_without_points_are_refused() {
        let mut registry = HookRegistry::builtin();
        let taken = registry.register(hook("auto-create-review-task", 1));
        assert_eq!(taken, Err(RegistryError::NameTaken("auto-create-review-task".into())));
        let none = Hook { points: vec![], ..hook("x", 1) };
        assert_eq!(registry.register(none), Err(RegistryError::NoPoints("x".into())));
        registry.register(hook("x", 1)).unwrap();
        assert_eq!(registry.list().len(), 4);
    }
}
