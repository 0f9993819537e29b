//! Cases that random tests would rarely reach.

use std::sync::Arc;

use hookloop_config::effective::EffectiveConfig;
use hookloop_config::project_file;
use hookloop_config::user::UserConfig;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::task::TaskSpec;
use hookloop_engine::project::Project;
use hookloop_store::store::Store;
use hookloop_testkit::SeededRandom;
use serde_json::{Value, json};

use crate::add_wide;
use crate::rules::Setup;
use crate::schedule::Case;
use crate::tasks::{Ask, Change, Spec};
use crate::wire::{Loss, Wire};

/// Number of batches that no correct cascade of these tests reaches.
const ENDLESS: usize = 2_000;

/// Defines a test of each case over a log in memory, and the list of cases for remote logs.
macro_rules! directed {
    ($($name:ident),* $(,)?) => {
        mod in_memory {
            $(#[test]
            fn $name() {
                super::$name(crate::wire::Wire::default());
            })*
        }

        pub(crate) const DIRECTED: &[(&str, fn(Wire))] = &[$((stringify!($name), $name)),*];
    };
}

directed!(
    a_dependent_that_is_added_while_its_dependency_completes_is_announced,
    the_last_two_dependencies_that_complete_at_once_announce_their_dependent,
    each_satisfied_dependency_is_announced_by_a_separate_event,
    a_workflow_that_requests_itself_terminates,
    the_cascade_total_applies_across_workflows,
    a_cascade_larger_than_a_batch_ends_at_its_limit,
    an_action_larger_than_a_batch_is_refused,
    a_view_of_a_remote_log_is_rebuilt_unchanged,
);

fn rules(config: Value) -> EffectiveConfig {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    project_file::settings(file.path(), &UserConfig::default()).unwrap().rules
}

fn add(name: &str) -> Command {
    let spec = TaskSpec { goal: "g".into(), ..TaskSpec::default() };
    Command::AddTask { id: name.parse().unwrap(), spec, depends_on: vec![] }
}

/// Returns a project that loses its connection before an endless cascade fills the memory.
fn project(wire: Wire, rules: EffectiveConfig) -> Project {
    wire.plan_loss(Some(Loss { after: ENDLESS, stored: false }));
    Project::new(Store::over(Arc::new(wire)).unwrap(), rules, "someone")
}

fn count(project: &Project, kind: &str) -> usize {
    let events = project.log().read(1, 100_000).unwrap();
    events.iter().filter(|stored| stored.event.body.kind() == kind).count()
}

fn a_dependent_that_is_added_while_its_dependency_completes_is_announced(wire: Wire) {
    let mut case = Case::racing(SeededRandom::new(0), Setup::builtin(), wire);
    let spec = Spec { goal: "g".into(), ..Spec::default() };
    case.commands(&[Ask::Add { name: Some(0), spec: spec.clone(), on: vec![] }]);
    let dependent = Ask::Add { name: Some(1), spec, on: vec![0] };
    case.race(&Ask::Change(0, Change::Complete(None)), &dependent);
}

fn the_last_two_dependencies_that_complete_at_once_announce_their_dependent(wire: Wire) {
    let mut case = Case::racing(SeededRandom::new(0), Setup::builtin(), wire);
    let task = |name, on| {
        let spec = Spec { goal: "g".into(), ..Spec::default() };
        Ask::Add { name: Some(name), spec, on }
    };
    case.commands(&[task(0, vec![]), task(1, vec![])]);
    case.commands(&[task(2, vec![0, 1])]);
    case.race(&Ask::Change(0, Change::Complete(None)), &Ask::Change(1, Change::Complete(None)));
}

#[test]
fn disabling_a_hook_during_its_reaction_drops_and_repeats_nothing() {
    let wire = Wire::default();
    let mut case = Case::racing(SeededRandom::new(0), Setup::builtin(), wire);
    add_wide(&mut case, 1, 401);
    case.commands(&[Ask::Change(0, Change::Complete(None))]);
    case.dispatch_one_batch();
    let hook = "auto-create-review-task".to_owned();
    case.commands(&[Ask::Switch { hook, enabled: false }]);
    case.finish();
    case.compare_all();
}

fn each_satisfied_dependency_is_announced_by_a_separate_event(wire: Wire) {
    let on_announcement = json!([{"name": "h", "actions": [{"create_task": {"goal": "next"}}]}]);
    let rules = rules(json!({"version": 1, "hooks": {"dependency_satisfied": on_announcement}}));
    let project = project(wire, rules);
    let mut batch = Vec::new();
    project.execute(&add("hub")).unwrap();
    for i in 0..401 {
        batch.push(json!({"id": format!("t{i}"), "goal": "g", "depends_on": ["hub"]}).to_string());
    }
    let input = std::io::Cursor::new(batch.join("\n"));
    hookloop_engine::bulk::import(&project, input, &mut |_, _| {}).unwrap();
    let outcome = hookloop_core::task::TaskOutcome::default();
    project
        .execute(&Command::CompleteTask { id: "hub".parse().unwrap(), outcome, fence: Fence::None })
        .unwrap();
    project.dispatch().unwrap();
    assert_eq!(count(&project, "dependency_satisfied"), 401);
    assert_eq!(count(&project, "action_error"), 0);
    assert_eq!(count(&project, "task_created"), 1 + 401 + 401);
}

fn a_workflow_that_requests_itself_terminates(wire: Wire) {
    let project = project(
        wire,
        rules(json!({
            "version": 1,
            "hooks": {"task_created": [{"name": "h", "actions": [{"execute_workflow": "w"}]}]},
            "workflows": {"w": [{"execute_workflow": "w"}]},
        })),
    );
    project.execute(&add("t")).unwrap();
    project.run_workflows().unwrap();
}

fn the_cascade_total_applies_across_workflows(wire: Wire) {
    let project = project(
        wire,
        rules(json!({
            "version": 1,
            "hooks": {"task_created": [{"name": "h", "actions": [{"execute_workflow": "w"}]}]},
            "workflows": {"w": [{"create_task": {"goal": "again"}}]},
            "limits": {"cascade": {"depth": 20, "total": 5}},
        })),
    );
    project.execute(&add("t")).unwrap();
    project.run_workflows().unwrap();
    let actions = count(&project, "workflow_requested") + count(&project, "task_created") - 1;
    assert!(actions <= 5, "{actions} actions");
}

fn a_cascade_larger_than_a_batch_ends_at_its_limit(wire: Wire) {
    ends_at_its_limit(&project(wire, cascade_larger_than_a_batch()));
}

#[test]
fn a_cascade_larger_than_a_batch_ends_at_its_limit_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = Store::open(&dir.path().join("hookloop.db")).unwrap();
    ends_at_its_limit(&Project::new(file, cascade_larger_than_a_batch(), "someone"));
}

fn cascade_larger_than_a_batch() -> EffectiveConfig {
    let three = json!([{"create_task": {"goal": "a"}}, {"create_task": {"goal": "b"}},
        {"create_task": {"goal": "c"}}]);
    let hooks = json!({"task_created": [{"name": "h", "actions": three}]});
    rules(json!({"version": 1, "hooks": hooks}))
}

fn ends_at_its_limit(project: &Project) {
    assert!(project.execute(&add("t")).unwrap().pending);
    project.dispatch().unwrap();
    assert!(!project.has_pending().unwrap());
    assert_eq!(count(project, "task_created"), 1 + 1_000);
    assert!(count(project, "cascade_limit_reached") > 0);
}

fn an_action_larger_than_a_batch_is_refused(wire: Wire) {
    let names: Vec<String> = (0..950).map(|i| format!("x{i}")).collect();
    let create = json!({"create_task": {"goal": "g", "depends_on": names}});
    let hooks = json!({"task_created": [{"name": "h", "actions": [create]}]});
    let project = project(wire, rules(json!({"version": 1, "hooks": hooks})));
    project.execute(&add("t")).unwrap();
    project.dispatch().unwrap();
    assert_eq!(count(&project, "action_error"), 1);
}

fn a_view_of_a_remote_log_is_rebuilt_unchanged(wire: Wire) {
    let project = project(wire, EffectiveConfig::default());
    project.execute(&add("t")).unwrap();
    let next = Command::AddTask {
        id: "next".parse().unwrap(),
        spec: TaskSpec { goal: "g".into(), ..TaskSpec::default() },
        depends_on: vec!["t".parse().unwrap()],
    };
    project.execute(&next).unwrap();
    let (id, outcome) = ("t".parse().unwrap(), hookloop_core::task::TaskOutcome::default());
    project.execute(&Command::CompleteTask { id, outcome, fence: Fence::None }).unwrap();
    for is_pending in [true, false] {
        assert_eq!(project.has_pending().unwrap(), is_pending);
        let (before, after) = project.store().rebuild(&mut |_| {}).unwrap();
        assert_eq!(before, after);
        assert_eq!(project.has_pending().unwrap(), is_pending);
        project.dispatch().unwrap();
    }
    assert_eq!(count(&project, "dependency_satisfied"), 1);
}
