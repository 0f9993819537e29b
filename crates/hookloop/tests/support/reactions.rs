//! The expected effects of hooks on events, and a check that each happened once.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

/// Hooks whose every effect is an event that names its cause.
pub(crate) const CONFIG: &str = r#"
version: 1
hooks:
  task_completed:
    - name: announce
      actions:
        - log: {type: done, data: {goal: "{{goal}}"}}
    - name: ship
      actions:
        - execute_workflow: ship
  task_blocked:
    - name: alarm
      actions:
        - log: {type: stuck, data: {reason: "{{reason}}"}}
  dependency_satisfied:
    - name: call
      actions:
        - log: {type: ready}
workflows:
  ship:
    - create_task: {goal: "Package {{goal}}", labels: [release]}
    - log: {type: packaged}
    - create_task: {goal: "Publish {{goal}}", labels: [release]}
"#;

/// Steps of the workflow that every completion requests.
const STEPS: u64 = 3;

/// Events by the event that caused them and the hook that requested them.
struct Followers<'e>(HashMap<(String, String), Vec<&'e Value>>);

impl<'e> Followers<'e> {
    fn of(events: &'e [Value]) -> Followers<'e> {
        let mut followers: HashMap<_, Vec<&Value>> = HashMap::new();
        for event in events {
            let cause = (&event["metadata"]["caused_by"], &event["metadata"]["hook"]);
            if let (Some(by), Some(hook)) = (cause.0.as_str(), cause.1.as_str()) {
                followers.entry((by.to_owned(), hook.to_owned())).or_default().push(event);
            }
        }
        Followers(followers)
    }

    /// Returns the types of the events that `hook` created because of `event`, in order.
    fn types(&self, event: &Value, hook: &str) -> Vec<&'e str> {
        self.get(event, hook).iter().map(|event| text(&event["type"])).collect()
    }

    fn get(&self, event: &Value, hook: &str) -> &[&'e Value] {
        let key = (text(&event["id"]).to_owned(), hook.to_owned());
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// Checks the effects of every event that a hook follows. All reactions must be done.
///
/// Returns the number of completed tasks.
pub(crate) fn assert_done_once(events: &[Value]) -> usize {
    let followers = Followers::of(events);
    let mut graph = Graph::default();
    let mut agents = HashSet::new();
    let mut followed = 0;
    for event in events {
        let task = text(&event["node_id"]);
        let released = graph.apply(event);
        match text(&event["type"]) {
            "task_created" if has_label(event, "agent") && !has_label(event, "review") => {
                agents.insert(task);
            }
            "task_completed" => {
                assert_completion(&followers, event, agents.contains(task), &released);
                followed += 1;
            }
            "task_blocked" => {
                assert_eq!(followers.types(event, "alarm"), ["hook.alarm.stuck"], "{event}");
            }
            "dependency_satisfied" => {
                assert_eq!(followers.types(event, "call"), ["hook.call.ready"], "{event}");
            }
            "hook_error" | "action_error" | "cascade_limit_reached" | "workflow_failed" => {
                panic!("{event}")
            }
            _ => {}
        }
    }
    followed
}

fn assert_completion(
    followers: &Followers<'_>,
    event: &Value,
    by_agent: bool,
    released: &BTreeSet<&str>,
) {
    let (reviews, metrics): (&[&str], &[&str]) = match by_agent {
        true => (&["task_created"], &["agent_metrics"]),
        false => (&[], &[]),
    };
    assert_eq!(followers.types(event, "auto-create-review-task"), reviews, "{event}");
    assert_eq!(followers.types(event, "track-agent-task-lifecycle"), metrics, "{event}");
    assert_eq!(followers.types(event, "announce"), ["hook.announce.done"], "{event}");
    let satisfied = followers.get(event, "check-dependency-satisfaction");
    let announced: BTreeSet<&str> = satisfied.iter().map(|event| text(&event["node_id"])).collect();
    assert_eq!(&announced, released, "{event}");
    assert_eq!(satisfied.len(), released.len(), "{event}");
    assert_shipped(followers.get(event, "ship"));
}

/// Checks that a workflow ran once: each of its steps, and its end.
fn assert_shipped(run: &[&Value]) {
    let of_type = |kind| run.iter().filter(move |event| event["type"] == kind);
    let steps: Vec<u64> = of_type("workflow_step_completed")
        .map(|event| event["data"]["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, (0..STEPS).collect::<Vec<_>>(), "{run:?}");
    let once = ["workflow_requested", "workflow_completed", "hook.ship.packaged"];
    for kind in once {
        assert_eq!(of_type(kind).count(), 1, "{kind} in {run:?}");
    }
    assert_eq!(of_type("task_created").count(), 2, "{run:?}");
}

/// The open dependencies between tasks at a position of the log.
#[derive(Default)]
struct Graph<'e> {
    /// The open dependencies of each task.
    open: HashMap<&'e str, HashSet<&'e str>>,
    completed: HashSet<&'e str>,
    /// Blocked or deleted tasks, which are not announced as ready.
    asleep: HashSet<&'e str>,
}

impl<'e> Graph<'e> {
    /// Applies an event; returns the tasks that become ready because of it.
    fn apply(&mut self, event: &'e Value) -> BTreeSet<&'e str> {
        let task = text(&event["node_id"]);
        match text(&event["type"]) {
            "dependency_added" => {
                let on = text(&event["data"]["to_id"]);
                if !self.completed.contains(on) {
                    self.open.entry(task).or_default().insert(on);
                }
            }
            "task_blocked" => drop(self.asleep.insert(task)),
            "task_unblocked" => drop(self.asleep.remove(task)),
            "task_deleted" => {
                self.asleep.insert(task);
                self.release(task);
            }
            "task_completed" => {
                self.completed.insert(task);
                return self.release(task);
            }
            _ => {}
        }
        BTreeSet::new()
    }

    fn release(&mut self, task: &str) -> BTreeSet<&'e str> {
        let mut released = BTreeSet::new();
        for (waiting, open) in &mut self.open {
            if open.remove(task) && open.is_empty() && !self.asleep.contains(waiting) {
                released.insert(*waiting);
            }
        }
        released
    }
}

fn has_label(event: &Value, label: &str) -> bool {
    event["data"]["labels"].as_array().is_some_and(|labels| labels.iter().any(|l| l == label))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
