//! Random hooks, workflows and limits, and the file that declares them.

use std::io::Write;

use hookloop_config::effective::EffectiveConfig;
use hookloop_config::project_file;
use hookloop_config::user::UserConfig;
use hookloop_testkit::SeededRandom;
use serde_json::{Map, Value, json};

use crate::tasks::Change;

/// A declared action.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    Create { goal: Goal, labels: Vec<String>, priority: u8, waits: bool, child: bool },
    Update { target: Target, change: Change },
    Run(String),
    Note { about: bool, result: bool, valid: bool },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    Fixed,
    OfTask,
    Result,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Subject,
    Named(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Handler {
    Review,
    Satisfaction,
    Metrics,
    Declared(Vec<Declared>),
}

#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) event: String,
    pub(crate) priority: i32,
    pub(crate) enabled: bool,
    pub(crate) handler: Handler,
}

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    is_default: bool,
    /// Hooks in the order of registration.
    pub(crate) hooks: Vec<Hook>,
    pub(crate) workflows: Vec<(String, Vec<Declared>)>,
    pub(crate) depth: u32,
    pub(crate) fan_out: u32,
    pub(crate) total: u32,
}

const BUILTINS: [(&str, i32, Handler); 3] = [
    ("auto-create-review-task", 10, Handler::Review),
    ("check-dependency-satisfaction", 20, Handler::Satisfaction),
    ("track-agent-task-lifecycle", 50, Handler::Metrics),
];

const POINTS: [&str; 11] = [
    "task_created",
    "task_started",
    "task_completed",
    "task_completed",
    "task_blocked",
    "task_deleted",
    "dependency_added",
    "dependency_removed",
    "dependency_satisfied",
    "hook.h0.note",
    "hook.h1.note",
];

impl Setup {
    /// Returns the setup without a configuration.
    pub(crate) fn builtin() -> Setup {
        let hook = |(name, priority, handler): (&str, i32, Handler)| Hook {
            name: name.to_owned(),
            event: "task_completed".to_owned(),
            priority,
            enabled: true,
            handler,
        };
        Setup {
            is_default: true,
            hooks: BUILTINS.map(hook).into(),
            workflows: vec![],
            depth: 8,
            fan_out: 64,
            total: 1_000,
        }
    }

    /// Returns the built-in hooks and up to four others, with limits that are reached.
    pub(crate) fn declared(rng: &mut SeededRandom) -> Setup {
        let mut setup = Setup { is_default: false, ..Setup::builtin() };
        for hook in &mut setup.hooks {
            hook.priority = *rng.pick(&[hook.priority, hook.priority, 0, -1, 100]);
            hook.enabled = rng.chance(85);
        }
        setup.depth = rng.below(4) as u32;
        setup.fan_out = 1 + rng.below(4) as u32;
        for i in 0..rng.below(3) {
            let steps = (0..1 + rng.below(3)).map(|_| step(rng, i)).collect();
            setup.workflows.push((format!("w{i}"), steps));
        }
        setup.total = 1 + rng.below(12) as u32;
        let workflows = setup.workflows.len();
        let mut hooks: Vec<Hook> =
            (0..1 + rng.below(4)).map(|i| declared(rng, i, workflows)).collect();
        hooks.sort_by(|a, b| a.event.cmp(&b.event));
        setup.hooks.extend(hooks);
        setup
    }

    /// Returns the built-in hooks in random order, and one that follows each announcement.
    pub(crate) fn wide(rng: &mut SeededRandom) -> Setup {
        let mut setup = Setup { is_default: false, ..Setup::builtin() };
        for hook in &mut setup.hooks {
            hook.priority = *rng.pick(&[hook.priority, hook.priority, 0]);
        }
        setup.hooks.push(Hook {
            name: "h0".to_owned(),
            event: "dependency_satisfied".to_owned(),
            priority: 0,
            enabled: rng.chance(50),
            handler: Handler::Declared(vec![Declared::Note {
                about: true,
                result: false,
                valid: true,
            }]),
        });
        setup
    }

    /// Loads the rules that the program reads from the corresponding file.
    pub(crate) fn load(&self) -> EffectiveConfig {
        if self.is_default {
            return EffectiveConfig::default();
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(self.file().to_string().as_bytes()).unwrap();
        project_file::settings(file.path(), &UserConfig::default()).unwrap().rules
    }

    /// Returns the configuration file as JSON, which is valid YAML.
    fn file(&self) -> Value {
        let mut points: Map<String, Value> = Map::new();
        for hook in &self.hooks {
            let (priority, enabled) = (hook.priority, hook.enabled);
            let entry = match &hook.handler {
                Handler::Declared(actions) => {
                    let actions: Value = actions.iter().map(Declared::file).collect();
                    json!({"name": hook.name, "priority": priority, "enabled": enabled,
                        "actions": actions})
                }
                _ => json!({"use": hook.name, "priority": priority, "enabled": enabled}),
            };
            let point = points.entry(hook.event.clone()).or_insert_with(|| json!([]));
            point.as_array_mut().unwrap().push(entry);
        }
        let workflows: Map<String, Value> = self
            .workflows
            .iter()
            .map(|(name, steps)| (name.clone(), steps.iter().map(Declared::file).collect()))
            .collect();
        let cascade = json!({"depth": self.depth, "fan_out": self.fan_out, "total": self.total});
        json!({"version": 1, "hooks": points, "workflows": workflows,
            "limits": {"cascade": cascade}})
    }
}

fn declared(rng: &mut SeededRandom, i: usize, workflows: usize) -> Hook {
    Hook {
        name: format!("h{i}"),
        event: (*rng.pick(&POINTS)).to_owned(),
        priority: *rng.pick(&[0, 0, 15, 20, 100]),
        enabled: rng.chance(90),
        handler: Handler::Declared((0..1 + rng.below(3)).map(|_| action(rng, workflows)).collect()),
    }
}

/// Returns a workflow step that neither completes nor unblocks a task.
fn step(rng: &mut SeededRandom, workflows: usize) -> Declared {
    match action(rng, workflows) {
        Declared::Update { target, change: Change::Complete(_) | Change::Unblock } => {
            Declared::Update { target, change: Change::Block }
        }
        other => other,
    }
}

/// Returns an action that may run one of the first `workflows` workflows.
fn action(rng: &mut SeededRandom, workflows: usize) -> Declared {
    match rng.below(10) {
        0..3 => Declared::Create {
            goal: *rng.pick(&[Goal::Fixed, Goal::OfTask, Goal::Result]),
            labels: rng.pick(&[vec![], vec!["agent".to_owned()]]).clone(),
            priority: rng.below(10) as u8,
            waits: rng.chance(30),
            child: rng.chance(30),
        },
        3..6 => Declared::Update {
            target: if rng.chance(50) { Target::Subject } else { Target::Named(rng.below(8)) },
            change: change(rng),
        },
        6..8 if workflows > 0 => Declared::Run(format!("w{}", rng.below(workflows))),
        _ => {
            Declared::Note { about: rng.chance(70), result: rng.chance(40), valid: rng.chance(85) }
        }
    }
}

pub(crate) fn change(rng: &mut SeededRandom) -> Change {
    let result = rng.chance(60).then(|| "42 {{goal}}".to_owned());
    match rng.below(10) {
        0..3 => Change::Start,
        3 => Change::Submit,
        4..7 => Change::Complete(result),
        7 => Change::Block,
        8 => Change::Unblock,
        _ => Change::ConfirmReady,
    }
}

impl Declared {
    fn file(&self) -> Value {
        match self {
            Declared::Create { goal, labels, priority, waits, child } => {
                let mut payload = json!({"labels": labels, "priority": priority});
                payload["goal"] = match goal {
                    Goal::Fixed => json!("spawned"),
                    Goal::OfTask => json!("after {{goal}}"),
                    Goal::Result => json!("use {{ result }}"),
                };
                if *waits {
                    payload["depends_on"] = json!(["{{task_id}}"]);
                }
                if *child {
                    payload["parent_task_id"] = json!("{{task_id}}");
                }
                json!({ "create_task": payload })
            }
            Declared::Update { target, change } => {
                let id = match target {
                    Target::Subject => "{{task_id}}".to_owned(),
                    Target::Named(name) => format!("t{name}"),
                };
                json!({"update_task": change_file(id, change)})
            }
            Declared::Run(name) => json!({ "execute_workflow": name }),
            Declared::Note { about, result, valid } => {
                let mut data = json!({"event": "{{event}}"});
                if *about {
                    data["about"] = json!("{{task_id}}");
                }
                if *result {
                    data["result"] = json!("{{result}}");
                }
                let kind = if *valid { "note" } else { "no type" };
                json!({"log": {"type": kind, "data": data}})
            }
        }
    }
}

fn change_file(id: String, change: &Change) -> Value {
    match change {
        Change::Start => json!({"task_id": id, "action": "start"}),
        Change::Submit => json!({"task_id": id, "action": "submit"}),
        Change::Complete(None) => json!({"task_id": id, "action": "complete"}),
        Change::Complete(Some(_)) => {
            json!({"task_id": id, "action": "complete", "payload": {"result": "done"}})
        }
        Change::Block => json!({"task_id": id, "action": "block", "payload": {"reason": "hook"}}),
        Change::Unblock => json!({"task_id": id, "action": "unblock"}),
        Change::ConfirmReady => json!({"task_id": id, "action": "transition_to_ready"}),
    }
}
