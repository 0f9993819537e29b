//! `hookloop.yaml`, read strictly: an unknown key is an error with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hookloop_core::builtin::Builtin;
use hookloop_core::hook::{Hook, HookRegistry, HookSource};
use hookloop_core::id::ProjectName;
use hookloop_core::point::Point;
use hookloop_core::session::StopWhen;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::effective::{DeliveryRules, EffectiveConfig, SessionRules, TypeRules};
use crate::entries::hook_entry::{ActionEntry, HooksByPoint};
use crate::entries::hooks::{HookReader, WorkflowActions, read_workflows};
use crate::entries::limits::LimitEntries;
use crate::entries::looping::LoopEntry;
use crate::entries::room::RoomForm;
use crate::entries::values::{Located, OneOrMany, patterns_inside};
use crate::entries::{agents, delivery, scheduling};
use crate::user::{StoreName, UserConfig};
use crate::yaml::{
    ConfigComplaint, ConfigError, check_version, from_yaml, read, read_bytes, read_word,
};

/// The content of a project's file.
#[derive(Clone, Debug, Default)]
pub struct ProjectSettings {
    pub rules: EffectiveConfig,
    /// The project's name in a shared store.
    pub project: Option<ProjectName>,
    pub store: StoreName,
}

/// Reads a project's file, within the hooks and limits of the user.
pub fn settings(path: &Path, user: &UserConfig) -> Result<ProjectSettings, ConfigError> {
    read(path, |text| parse(text, user))
}

/// Reads a project's file from its bytes. Errors name `path`.
pub fn settings_from(path: &Path, bytes: &[u8]) -> Result<ProjectSettings, ConfigError> {
    read_bytes(path, bytes, |text| parse(text, &UserConfig::default()))
}

fn parse(text: &str, user: &UserConfig) -> Result<ProjectSettings, ConfigComplaint> {
    let mut file: ProjectFile = from_yaml(text)?;
    check_version(&file.version)?;
    let set_limits = file.limits.set()?;
    let wanted = file.limits.over(user.limits)?;
    let limits = wanted.within(user.limits);
    let workflows = read_workflows(&file.workflows)?;
    let mut hooks = hooks_of_user(user)?;
    let without_project = hooks.clone();
    let gatekeepers = delivery::gatekeepers(file.gatekeepers)?;
    let mut reader = HookReader::new(&mut hooks, &workflows, &gatekeepers, HookSource::Project);
    if let Some(room) = file.room {
        reader.set_room(RoomForm::read(room)?);
    }
    reader.read(file.hooks, None)?;
    let mut types = BTreeMap::new();
    for (name, task_type) in file.task_types {
        delivery::check_type_name(&name, &task_type)?;
        let TaskType { hooks, agents, no_changes_ok, may_change } = task_type.value;
        reader.read(hooks, Some(&name))?;
        let may_change = may_change.map(patterns_inside).transpose()?.unwrap_or_default();
        types.insert(name, TypeRules { agents, no_changes_ok, may_change });
    }
    for (name, hooks) in agents::own_hooks(&mut file.agents) {
        reader.read_of_agent(hooks, &name)?;
    }
    let is_listed = reader.has_list(&Point::BeforeSubmit);
    reader.check_needs()?;
    let deciding = hooks.resolve(Point::StopWhen.name(), None);
    let deciding: Vec<String> = deciding.into_iter().map(|hook| hook.name.clone()).collect();
    let mut session = file.session.read(&deciding, user.at_retry_limit)?;
    let of_project = agents::read(file.agents, HookSource::Project)?;
    // Repository hooks are parsed and validated even when the policy ignores them.
    let is_ignored = user.policy.no_repository_hooks().is_some();
    let (workflows, gatekeepers, of_project, is_listed) = if is_ignored {
        hooks = without_project;
        leave_out_project_hooks(&mut session, &hooks);
        (WorkflowActions::new(), Vec::new(), Vec::new(), false)
    } else {
        (workflows, gatekeepers, of_project, is_listed)
    };
    let delivery = match file.delivery {
        Some(entry) => Some(entry.read()?),
        None => delivery::has_delivery_hooks(&hooks).then(DeliveryRules::default),
    };
    if delivery.is_some() && !is_listed {
        add_default_submission(&mut hooks)?;
    }
    // A project cannot redefine an agent of the user.
    let is_theirs =
        |agent: &crate::agents::AgentSettings| user.agents.iter().all(|own| own.name != agent.name);
    let agents = user.agents.iter().cloned().chain(of_project.into_iter().filter(is_theirs));
    let (is_limited, agents) = (wanted != limits, agents.collect());
    Ok(ProjectSettings {
        rules: EffectiveConfig {
            hooks,
            workflows,
            limits,
            set_limits,
            is_limited,
            types,
            session,
            agents,
            delivery,
            gatekeepers,
            policy: user.policy.clone(),
            scheduling: file.scheduling.read()?,
            untrusted_actions: BTreeSet::new(),
            wants_no_gates: user.wants_no_gates,
            prices: user.prices.clone(),
        },
        project: file.project.map(read_word).transpose()?,
        store: file.store.map(read_word).transpose()?.unwrap_or_default(),
    })
}

/// Returns the built-in hooks, those that the policy requires, and the user's.
fn hooks_of_user(user: &UserConfig) -> Result<HookRegistry, ConfigComplaint> {
    let mut hooks = HookRegistry::builtin();
    let required = user.policy.gates().map(|gate| &gate.value);
    for hook in required.chain(&user.hooks) {
        hooks.register(hook.clone()).map_err(|error| ConfigComplaint {
            at: None,
            message: format!("with {}: {error}", user.path.display()),
        })?;
    }
    Ok(hooks)
}

/// Removes the parts of the session's settings that come from hooks which the policy ignores.
fn leave_out_project_hooks(session: &mut SessionRules, hooks: &HookRegistry) {
    session.prompt_template = None;
    session.stop_when.retain(|way| match way {
        StopWhen::Hook(name) => hooks.get(name).is_some(),
        _ => true,
    });
    if session.stop_when.is_empty() {
        session.stop_when = vec![StopWhen::Default];
    }
}

/// Adds the default steps of a submission, for a project that lists none.
fn add_default_submission(hooks: &mut HookRegistry) -> Result<(), ConfigComplaint> {
    for step in Builtin::SUBMISSION {
        let step = Hook { points: vec![Point::BeforeSubmit], ..step.hook() };
        hooks
            .register(step)
            .map_err(|error| ConfigComplaint { at: None, message: error.to_string() })?;
    }
    Ok(())
}

/// Returns the JSON Schema of a project's file, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(ProjectFile).to_value()
}

/// `hookloop.yaml`: configuration of a project
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "hookloop.yaml", inline)]
pub(crate) struct ProjectFile {
    /// Version of the file format: 1
    #[schemars(with = "u64", range(min = 1, max = 1))]
    pub(crate) version: Spanned<u64>,
    /// Name of the project in a shared store [default: none]
    #[schemars(with = "Option<String>")]
    pub(crate) project: Option<Spanned<String>>,
    /// Store of the log: `sqlite`, or URLs such as `nats://host:port` [default: `sqlite`]
    #[schemars(with = "Option<String>")]
    pub(crate) store: Option<Spanned<String>>,
    /// Hooks by hook point [default: none]
    #[serde(default)]
    pub(crate) hooks: HooksByPoint,
    /// Directory in which gates run: `here` (the agent's working directory), `clean` (a clean room), or the settings of a
    /// clean room [default: `clean`]
    pub(crate) room: Option<Located<RoomForm>>,
    /// Settings of task types, by type [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, TaskType>")]
    pub(crate) task_types: BTreeMap<String, Spanned<TaskType>>,
    /// Lists of actions, by name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<ActionEntry>>")]
    pub(crate) workflows: BTreeMap<String, Spanned<Vec<Spanned<ActionEntry>>>>,
    /// Limits of sessions, of hooks that cause hooks, and of the shared budget
    #[serde(default)]
    pub(crate) limits: LimitEntries,
    /// Agents by name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, agents::AgentEntry>")]
    pub(crate) agents: agents::AgentEntries,
    /// Agents that review work, by name [default: none]
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, delivery::GatekeeperEntry>")]
    pub(crate) gatekeepers: delivery::GatekeeperEntries,
    /// Delivery of the work of tasks: a worktree and a branch for each task, submission and merge [default: none,
    /// unless a hook of a delivery is configured]
    pub(crate) delivery: Option<delivery::DeliveryEntry>,
    /// Order of tasks, and limits of work in progress
    #[serde(default)]
    pub(crate) scheduling: scheduling::SchedulingEntry,
    /// Settings of sessions
    #[serde(default, rename = "loop")]
    pub(crate) session: LoopEntry,
}

/// Settings of a task type
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskType {
    /// Hooks by hook point, which replace the project's hooks of that point [default: none]
    #[serde(default)]
    pub(crate) hooks: HooksByPoint,
    /// Agents for tasks of the type, by role: `implementer` and `gatekeeper` [default: all]
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, Vec<String>>,
    /// Whether a task of the type may be complete without a change of files [default: false]
    #[serde(default)]
    pub(crate) no_changes_ok: bool,
    /// Paths or patterns of tests that work on a task of the type may change, one or a list, from the top of the
    /// repository [default: none]
    pub(crate) may_change: Option<Located<OneOrMany>>,
}

#[cfg(test)]
mod tests {
    use crate::yaml::{MAX_BYTES, REFUSED_KEYS};
    use hookloop_core::urgency::PriorityAging;

    use super::*;
    use crate::effective::SchedulingRules;

    fn names(hook: &hookloop_core::hook::Hook) -> Vec<&str> {
        hook.points.iter().map(hookloop_core::point::Point::name).collect()
    }

    fn complaint(text: &str) -> (u64, String) {
        match parse(text, &UserConfig::default()) {
            Ok(_) => panic!("accepted: {text}"),
            Err(complaint) => (complaint.at.map_or(0, |at| at.line()), complaint.message),
        }
    }

    #[test]
    fn a_builtin_hook_runs_only_at_the_points_that_list_its_name() {
        let rules = parse(
            "version: 1
hooks:
  task_created:
    - auto-create-review-task
  task_completed:
    - use: check-dependency-satisfaction
      priority: 0
    - {use: track-agent-task-lifecycle, enabled: false}
",
            &UserConfig::default(),
        );
        let hooks = rules.map_err(|c| c.message).unwrap().rules.hooks;
        let review = hooks.get("auto-create-review-task").unwrap();
        assert_eq!((names(review), review.priority), (vec!["task_created"], 10));
        assert_eq!(hooks.get("check-dependency-satisfaction").unwrap().priority, 0);
        let track = hooks.get("track-agent-task-lifecycle").unwrap();
        assert_eq!((track.points.len(), track.enabled), (1, false));
    }

    #[test]
    fn one_hook_may_run_at_several_points() {
        let log = |kind| format!("    - name: a\n      actions: [{{log: {{type: {kind}}}}}]\n");
        let file = |second| {
            format!(
                "version: 1\nhooks:\n  task_created:\n{}  task_started:\n{}",
                log("x"),
                log(second)
            )
        };
        let hooks =
            parse(&file("x"), &UserConfig::default()).map_err(|c| c.message).unwrap().rules.hooks;
        assert_eq!(names(hooks.get("a").unwrap()), ["task_created", "task_started"]);
        assert!(complaint(&file("y")).1.contains("two hooks named `a`"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, line: u64, part: &str| {
            let (at, message) = complaint(text);
            assert!(at == line && message.contains(part), "{text}\n-> line {at}: {message}");
        };
        check("version: 2\n", 1, "version 2 is not known");
        check("hooks: {}\n", 1, "begin the file with `version: 1`");
        check("version: 1\nhook: {}\n", 2, "hook");
        check("version: 1\nhooks: {}\nhooks: {}\n", 3, "`hooks` is there twice");
        check(
            "version: 1\nlimits:\n  max_cost: lots # more\n",
            3,
            "expected a number, such as 5, found `lots`",
        );
        check("version: 1\nlimits:\n\tmax_cost: 5\n", 3, "indent with spaces, not tabs");
        check(
            "version: 1\nhooks:\n  stop:\n  - name: x\n\tcommand: a\n",
            4,
            "line 5 begins with a tab",
        );
        check("version: 1\nhooks:\n  task_done:\n    - auto-create-review-task\n", 3, "task_done");
        check("version: 1\nhooks:\n  stop: []\n  task_done:\n\n    - a\n", 4, "task_done");
        check(
            "version: 1\ntask_types:\n  bug:\n    hooks:\n      stop: []\n      stopp: []\n",
            6,
            "`stopp` is not a hook point",
        );
        check(
            "version: 1\nagents:\n  claude:\n    hooks:\n      stop:\n        - {command: a}\n",
            5,
            "not at `stop`",
        );
        check("version: 1\nhooks:\n  task_created:\n    - no-such\n", 4, "no-such");
        check(
            "version: 1\nhooks:\n  task_created:\n    - {use: x, actions: []}\n",
            4,
            "exactly one",
        );
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions:\n        - log: {typ: x}\n",
            6,
            "typ",
        );
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions:\n        - create_task: {goal: '{{gaol}}'}\n",
            6,
            "gaol",
        );
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions: [{execute_workflow: w}]\n",
            5,
            "no workflow `w`",
        );
        check("version: 1\nhooks: &a\n  task_created: []\n", 3, "anchors");
        check("version: 1\nworkflows: {w: []}\n", 2, "steps");
        check("version: 1\nscheduling:\n  priority_aging: soon\n", 3, "or `never`");
        check("version: 1\nscheduling:\n  wip: 0\n", 3, "`wip` is 1 or more");
        check("version: 1\nscheduling:\n  wip_by_type:\n    bug: 0\n", 4, "`bug` is 1 or more");
        check("version: 1\nscheduling:\n  limit: 1\n", 3, "limit");
        check("version: 1\nloop:\n  stop_when: []\n", 3, "`stop_when` needs a stop condition");
        check("version: 1\nhooks:\n  task_done: []\n", 3, "task_done");
        check(
            "version: 1\nhooks:\n  stop:\n    - command: 'true'\n      needs: b\n",
            5,
            "no other hook",
        );
    }

    /// The list of known keys must not suggest a key that is refused.
    #[test]
    fn refused_keys_are_not_suggested_as_known_keys() {
        let (line, message) = complaint("version: 1\nsecret: {}\n");
        assert!(
            line == 2 && message.starts_with("unknown key `secret`; known keys: "),
            "{message}"
        );
        for (key, reason) in REFUSED_KEYS {
            assert!(!message.split([' ', ',']).any(|word| word == key), "{key}: {message}");
            assert_eq!(complaint(&format!("version: 1\n{key}: {{}}\n")), (2, reason.to_owned()));
        }
        let (_, message) = complaint("version: 1\nlimitz: {}\n");
        assert!(message.contains("did you mean `limits`?"), "{message}");
        // `network` is a valid key of a sandbox, although it is refused at the top level.
        let (_, message) =
            complaint("version: 1\nhooks:\n  stop:\n    - {command: a, sandbox: {netwrk: none}}\n");
        assert!(message.contains("did you mean `network`?"), "{message}");
        let (_, message) =
            complaint("version: 1\nhooks:\n  stop:\n    - {command: a, network: none}\n");
        assert!(message.starts_with("unknown key `network`"), "{message}");
    }

    #[test]
    fn cost_limits_must_be_non_negative_amounts() {
        for amount in ["-1", ".nan", ".inf", "-.inf", "-0.01"] {
            for text in [
                format!("limits:\n  max_cost: {amount}\n"),
                format!("limits:\n  budget: {{cost: {amount}}}\n"),
            ] {
                let (line, message) = complaint(&format!("version: 1\n{text}"));
                assert!(line == 3 && message.contains("is not an amount of dollars"), "{message}");
            }
        }
        for amount in ["-1", ".nan", ".inf"] {
            let text = format!("version: 1\nlimits: {{reserve_per_turn: {{cost: {amount}}}}}\n");
            let (_, message) = complaint(&text);
            assert!(message.contains("is not an amount of dollars"), "{message}");
        }
        let text = "version: 1\nlimits: {max_cost: 2.5, budget: {cost: 10}}\n";
        let limits = parse(text, &UserConfig::default()).map_err(|wrong| wrong.message).unwrap();
        assert_eq!(limits.rules.limits.session.max_cost_micros, 2_500_000);
        assert_eq!(limits.rules.limits.budget.day.cost_micros, Some(10_000_000));
    }

    #[test]
    fn a_duration_without_a_unit_is_in_seconds() {
        for length in ["45", "'45'", "45s", "'45 s'"] {
            let text =
                format!("version: 1\nlimits: {{max_duration: {length}, turn_timeout: {length}}}\n");
            let limits =
                parse(&text, &UserConfig::default()).map_err(|wrong| wrong.message).unwrap();
            let session = limits.rules.limits.session;
            assert_eq!(
                (session.max_duration_ms, session.turn_timeout_ms),
                (45_000, 45_000),
                "{length}"
            );
        }
    }

    #[test]
    fn scheduling_settings_are_parsed() {
        let check = |yaml: &str, aging: PriorityAging, wip: Option<u32>, of_bug: Option<u32>| {
            let text = format!("version: 1\nscheduling: {yaml}\n");
            let rules = parse(&text, &UserConfig::default()).map_err(|c| c.message).unwrap().rules;
            let SchedulingRules { priority_aging: real, slots } = rules.scheduling;
            let bugs = slots.of_type.get("bug").copied();
            assert_eq!((real, slots.all, bugs), (aging, wip, of_bug), "{yaml}");
        };
        check("{}", PriorityAging::default(), None, None);
        check("{priority_aging: never, wip: 4}", PriorityAging::Never, Some(4), None);
        check("{priority_aging: 2d}", PriorityAging::Each { ms: 172_800_000 }, None, None);
        let yaml = "{priority_aging: 60, wip_by_type: {bug: 2}}";
        check(yaml, PriorityAging::Each { ms: 60_000 }, None, Some(2));
    }

    #[test]
    fn an_unreadable_file_is_reported_with_line_and_column() {
        let check = |bytes: &[u8], line: u64, column: u64| {
            let error = settings_from(Path::new("f"), bytes).map(drop).unwrap_err();
            assert_eq!((error.line, error.column), (Some(line), Some(column)), "{error}");
        };
        check(b"version: 1\n# \xc3\xa9 \xff\n", 2, 5);
        check(b"", 1, 1);
        check(b"hooks: {}\n", 1, 1);
        let long = "version: 1\n".to_owned() + &"#\n".repeat(MAX_BYTES as usize);
        check(long.as_bytes(), 131_068, 2);
    }

    /// Parsing an untrusted file is fast, even if the file is hostile.
    #[test]
    fn hostile_files_are_parsed_within_a_time_limit() {
        let many = |entry: &dyn Fn(usize) -> String| -> String { (0..19_000).map(entry).collect() };
        for text in [
            format!("version: 1\nhooks: {{{}}}\n", many(&|n| format!("p{n}: [], "))),
            format!(
                "version: 1\nhooks: {{stop: [{{command: 'true', env: {{{}}}}}]}}\n",
                many(&|n| format!("v{n}: a, "))
            ),
        ] {
            // Measures the CPU time of this thread, so that a busy machine is no failure.
            let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let begun = now();
            assert!(parse(&text, &UserConfig::default()).is_err());
            let took = std::time::Duration::try_from(now() - begun).unwrap();
            assert!(took.as_millis() < 500, "{took:?}");
        }
    }
}
