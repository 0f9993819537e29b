//! Hooks and agents that run hookloop themselves.

use super::lines_of;
use crate::cli::Project;

#[test]
fn a_hook_that_calls_hookloop_runs_once() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - command: echo run >> runs; hookloop task show {{task_id}} > shown; hookloop task note {{task_id}} seen\n",
    );
    project.trust();
    let id = project.add("work", &[]);
    project.ok(&["task", "complete", &id]);
    assert_eq!(project.runs(), ["run"]);
    assert!(lines_of(&project.root(), "shown").concat().contains(&id));
    let events = project.events_of("hook_ran");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["data"]["exit_code"], 0, "{events:?}");
}

#[test]
fn reactions_to_a_hooks_commands_run_in_the_process_that_runs_the_hook() {
    let config = "hooks:
  task_completed:
    - name: adds
      command: hookloop task add follow-up --id follow-up
  task_created:
    - name: sees
      command: echo {{task_id}} >> created
";
    let project = Project::with_config(config);
    project.trust();
    project.ok(&["task", "add", "work", "--id", "work"]);
    project.ok(&["task", "complete", "work"]);
    assert_eq!(lines_of(&project.root(), "created"), ["work", "follow-up"]);
    let added = project.events_of("task_created");
    assert_eq!(added[1]["metadata"]["hook"], "adds", "{added:?}");
}

#[test]
fn a_hook_that_adds_a_task_for_each_task_ends_at_the_cascade_limit() {
    let project = Project::with_config(
        "hooks:\n  task_created:\n    - name: adds\n      command: hookloop task add more\n",
    );
    project.trust();
    project.ok(&["task", "add", "first"]);
    // The first task, and one for each of the eight levels.
    assert_eq!(project.goals().len(), 9);
    let cuts = project.events_of("cascade_limit_reached");
    assert_eq!(cuts.len(), 1, "{cuts:?}");
    assert_eq!(cuts[0]["data"]["limit"], "depth");
    assert_eq!(project.json(&["status"])["reactions_due"], 0);
}

#[test]
fn reactions_to_a_turns_commands_run_after_the_turn() {
    let project = Project::with_config(
        "hooks:\n  task_created:\n    - command: echo {{task_id}} >> created; [ ! -f in-turn ] || touch too-early\n  post_iteration:\n    - command: cp created seen-after-turn\n",
    );
    project.write(
        "agent.sh",
        "cat > /dev/null; touch in-turn; hookloop task add made --id made; sleep 0.2; rm in-turn
echo '<promise>COMPLETE</promise>'\n",
    );
    project.trust();
    project.run(&["run", "work", "--agent", "command:sh agent.sh"]);
    assert_eq!(lines_of(&project.root(), "created"), ["made"]);
    assert_eq!(lines_of(&project.root(), "seen-after-turn"), ["made"]);
    assert!(!project.root().join("too-early").exists(), "the agent's command ran the hook");
}

#[test]
fn a_hook_cannot_start_a_dispatcher() {
    let project = Project::with_config(
        "hooks:\n  task_created:\n    - command: hookloop dispatch 2> refusal; echo $? >> refusal\n",
    );
    project.trust();
    project.ok(&["task", "add", "work"]);
    let refusal = lines_of(&project.root(), "refusal");
    assert!(refusal[0].contains("only a person can dispatch reactions"), "{refusal:?}");
    assert_eq!(refusal.last().unwrap(), "1");
}
