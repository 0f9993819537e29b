//! Crashes hookloop at every durable step of a command, and again at every step of the recovery.
//!
//! The project must end in the same state as without a crash. An acknowledged or stored change is
//! complete. A change that was not stored has no effect and can be requested again.
//!
//! `cargo nextest run -p hookloop --test crash_recovery crash_points::`

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use hookloop_testkit::{SavedState, TestProject};
use serde_json::{Value, json};

use crate::support::account::Account;
use crate::support::project_with;

const SIGABRT: i32 = 6;
/// Tasks that depend on the hub: too many for the batch of its completion, and for one batch of the
/// dispatcher.
const DEPENDENTS: usize = 460;
/// Tasks that depend on a deleted task: too many to block in one batch.
const ORPHANS: usize = 600;
/// Actions of a hook with many actions.
const CHATTER: usize = 37;

/// A command, and the project in which it runs.
struct Scenario {
    config: String,
    tasks: Vec<Value>,
    command: &'static [&'static str],
    /// The minimum number of durable steps. With fewer, the scenario no longer tests anything.
    points_min: u64,
}

/// The project before the command, and after a run without a crash.
struct Course {
    project: TestProject,
    command: &'static [&'static str],
    points: u64,
    start: SavedState,
    start_events: u64,
    before: Account,
    after: Account,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stored {
    Nothing,
    Everything,
}

#[test]
fn adding_a_task_with_dependencies() {
    Course::of(Scenario {
        config: ANNOUNCED.to_owned(),
        tasks: vec![task("a", &[]), task("b", &[])],
        command: &[
            "task",
            "add",
            "New",
            "--id",
            "new",
            "--depends-on",
            "a",
            "--depends-on",
            "b",
            "--label",
            "agent",
        ],
        points_min: 2,
    })
    .crash_everywhere();
}

#[test]
fn completing_an_agents_task_with_three_dependents() {
    Course::of(Scenario {
        config: ANNOUNCED.to_owned(),
        tasks: vec![agent_task("a"), task("x", &["a"]), task("y", &["a"]), task("z", &["a"])],
        command: &["task", "complete", "a", "--result", "done"],
        points_min: 2,
    })
    .crash_everywhere();
}

#[test]
fn completing_a_task_with_more_dependents_than_a_batch_takes() {
    Course::of(Scenario {
        config: announced_at_length(),
        tasks: hub_and_dependents(DEPENDENTS),
        command: &["task", "complete", "hub", "--result", "done"],
        points_min: 10,
    })
    .crash_everywhere();
}

#[test]
fn running_workflows_that_hooks_ask_for() {
    Course::of(Scenario {
        config: SHIPPED.to_owned(),
        tasks: vec![agent_task("a"), task("x", &["a"])],
        command: &["task", "complete", "a", "--result", "done"],
        points_min: 16,
    })
    .crash_everywhere();
}

#[test]
fn a_crashed_deletion_is_finished_by_running_the_command_again() {
    Course::of(Scenario {
        config: ANNOUNCED.to_owned(),
        tasks: hub_and_dependents(ORPHANS),
        command: &["task", "delete", "hub"],
        points_min: 4,
    })
    .crash_and_ask_again();
}

#[test]
fn a_crashed_import_is_finished_by_running_the_command_again() {
    Course::of(Scenario {
        config: ANNOUNCED.to_owned(),
        tasks: vec![task("a", &[])],
        command: &["task", "import", "more.jsonl"],
        points_min: 2,
    })
    .crash_and_ask_again();
}

/// Row 9 of the bugs to beat: a crash between an event and its hook's command, and at every step
/// around it.
#[test]
fn a_hook_command_runs_after_a_crash_and_its_action_takes_effect_once() {
    let answer = r#"{"hookloop":{"actions":[{"type":"create_task","payload":{"goal":"Review"}}]}}"#;
    let config = "version: 1\nhooks:\n  on_task_complete:\n    - {name: check, command: [sh, -c, 'echo >> ran; cat answer']}\n";
    let mut crashed_after_the_fact = 0;
    for at in 1.. {
        let project = project_with(config);
        std::fs::write(project.root().join("answer"), answer).unwrap();
        project.trust();
        project.import_tasks(&[task("a", &[])]);
        let complete = &["task", "complete", "a", "--result", "done"];
        let mut command = project.json_command(complete);
        let output = command.env("HOOKLOOP_CRASH_AT", at.to_string()).output().unwrap();
        let crashed = output.status.signal() == Some(SIGABRT);
        let is_stored = || {
            let events = project.events_from(1);
            events.iter().filter(|event| event["type"] == "task_completed").count() == 1
        };
        // Any next command does the rest.
        project.settle();
        match is_stored() {
            true => crashed_after_the_fact += u32::from(crashed),
            false => drop(project.json(complete)),
        }
        project.settle();
        let ran = std::fs::read_to_string(project.root().join("ran")).unwrap();
        assert!((1..=2).contains(&ran.lines().count()), "crash at {at}: {ran:?}");
        let reviews = project.tasks().iter().filter(|task| task["goal"] == "Review").count();
        assert_eq!(reviews, 1, "crash at {at}");
        let events = project.events_from(1);
        let recorded = events.iter().filter(|event| event["type"] == "hook_ran").count();
        assert_eq!(recorded, 1, "crash at {at}");
        if !crashed {
            break;
        }
    }
    assert!(crashed_after_the_fact >= 2, "only {crashed_after_the_fact} crashes after the commit");
}

impl Course {
    fn of(scenario: Scenario) -> Course {
        let Scenario { config, tasks, command, points_min } = scenario;
        let project = project_with(&config);
        project.write_lines("more.jsonl", &hub_and_dependents(ORPHANS));
        project.import_tasks(&tasks);
        let (start, before) = (project.save_state(), Account::of(&project));
        let start_events = project.count_events();
        project.json(command);
        project.settle();
        let after = Account::of(&project);
        assert_ne!(before, after);
        let mut course = Course { project, command, points: 0, start, start_events, before, after };
        course.points = course.count_points();
        assert!(course.points >= points_min, "only {} points", course.points);
        course
    }

    /// Returns the number of steps of a run without a crash.
    fn count_points(&self) -> u64 {
        let gets_through = |at: &u64| {
            self.project.restore_state(&self.start);
            !self.crashes(self.command, *at)
        };
        (1..).find(gets_through).unwrap_or(0) - 1
    }

    /// Crashes at each step of the command, and for each of these, at each step of the next
    /// process.
    fn crash_everywhere(&self) {
        let mut seen = Vec::new();
        for first in 1..=self.points {
            self.project.restore_state(&self.start);
            assert!(self.crashes(self.command, first));
            let stored = self.stored();
            let crashed = self.project.save_state();
            let recovery: &[&str] = match stored {
                Stored::Nothing => self.command,
                Stored::Everything => &["dispatch"],
            };
            let mut second = 1;
            while self.recover(&crashed, recovery, second) {
                self.assert_recovered(&format!("crash at {first}, then at {second}"));
                second += 1;
            }
            self.assert_recovered(&format!("crash at {first}"));
            self.assert_not_done_twice(&format!("crash at {first}"));
            self.recover_after_rebuild(&crashed, recovery);
            self.assert_recovered(&format!("crash at {first}, then a rebuild"));
            seen.push(stored);
        }
        assert!(seen.contains(&Stored::Nothing) && seen.contains(&Stored::Everything));
        assert!(seen.is_sorted_by_key(|stored| *stored == Stored::Everything), "{seen:?}");
    }

    /// Crashes commands that need more than one batch. Run again, they do the rest.
    fn crash_and_ask_again(&self) {
        for first in 1..=self.points {
            self.project.restore_state(&self.start);
            assert!(self.crashes(self.command, first));
            let crashed = self.project.save_state();
            let mut second = 1;
            while self.recover(&crashed, self.command, second) {
                // The command is refused if nothing is left to do.
                self.project.json_command(self.command).output().unwrap();
                self.assert_recovered(&format!("crash at {first}, then at {second}"));
                second += 1;
            }
            self.assert_recovered(&format!("crash at {first}"));
            self.assert_not_done_twice(&format!("crash at {first}"));
        }
    }

    /// Returns whether the crashed process stored the whole command or nothing.
    fn stored(&self) -> Stored {
        if self.project.count_events() > self.start_events {
            return Stored::Everything;
        }
        self.project.settle();
        Account::of(&self.project).assert_same(&self.before, "a crash before the commit");
        Stored::Nothing
    }

    /// Runs the process after the crash; returns whether it crashed at point `at`.
    fn recover(&self, crashed: &SavedState, recovery: &[&str], at: u64) -> bool {
        self.project.restore_state(crashed);
        self.crashes(recovery, at)
    }

    fn recover_after_rebuild(&self, crashed: &SavedState, recovery: &[&str]) {
        self.project.restore_state(crashed);
        self.project.rebuild();
        let output = self.project.json_command(recovery).output().unwrap();
        assert!(output.status.success(), "{recovery:?}: {output:?}");
    }

    /// Runs the command; returns whether it reached point `at` and crashed there.
    fn crashes(&self, command: &[&str], at: u64) -> bool {
        let mut process = self.project.json_command(command);
        let output = process.env("HOOKLOOP_CRASH_AT", at.to_string()).output().unwrap();
        match output.status.signal() {
            Some(signal) => {
                assert_eq!(signal, SIGABRT);
                self.assert_no_empty_promise(command, &output);
                true
            }
            None => false,
        }
    }

    /// Checks that a printed result is stored, even if the process crashed before it exited.
    fn assert_no_empty_promise(&self, command: &[&str], output: &Output) {
        if command == self.command && !output.stdout.is_empty() {
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(self.project.count_events() > self.start_events, "{answer}");
        }
    }

    /// Checks that after any crash, one more command leads to the same state as without a crash.
    fn assert_recovered(&self, how: &str) {
        self.project.settle();
        let mut found = Account::of(&self.project);
        if found == self.before {
            self.project.json(self.command);
            self.project.settle();
            found = Account::of(&self.project);
        }
        found.assert_same(&self.after, how);
        self.project.assert_intact();
    }

    /// Checks that running the command again changes nothing.
    fn assert_not_done_twice(&self, how: &str) {
        let events = self.project.count_events();
        self.project.json_command(self.command).output().unwrap();
        assert_eq!(self.project.count_events(), events, "run again after {how}");
    }
}

fn task(id: &str, depends_on: &[&str]) -> Value {
    json!({"id": id, "goal": format!("Goal of {id}"), "depends_on": depends_on})
}

fn agent_task(id: &str) -> Value {
    json!({"id": id, "goal": format!("Goal of {id}"), "labels": ["agent"]})
}

fn hub_and_dependents(count: usize) -> Vec<Value> {
    let dependents = (0..count).map(|n| task(&format!("leaf-{n}"), &["hub"]));
    [agent_task("hub")].into_iter().chain(dependents).collect()
}

const ANNOUNCED: &str = r#"
version: 1
hooks:
  task_created:
    - name: greet
      actions:
        - log: {type: created, data: {goal: "{{goal}}"}}
  dependency_added:
    - name: link
      actions:
        - log: {type: linked}
  task_completed:
    - name: announce
      priority: 5
      actions:
        - log: {type: done, data: {goal: "{{goal}}", result: "{{result}}"}}
        - create_task: {goal: "Tell about {{goal}}", labels: [news]}
    - name: failing
      actions:
        - update_task: {task_id: no-such-task, action: start}
  dependency_satisfied:
    - name: call
      actions:
        - log: {type: ready, data: {goal: "{{goal}}"}}
  hook.call.ready:
    - name: echo
      actions:
        - log: {type: heard}
"#;

/// Returns a configuration in which each released dependent is announced by one more event.
/// `chatter` fills so much of the batch before that a few announcements are left over.
fn announced_at_length() -> String {
    let chatter: String =
        (0..CHATTER).map(|n| format!("\n        - log: {{type: n{n}}}")).collect();
    ANNOUNCED_AT_LENGTH.replace("{chatter}", &chatter)
}

const ANNOUNCED_AT_LENGTH: &str = r#"
version: 1
hooks:
  task_completed:
    - name: before
      priority: 5
      actions: {chatter}
    - name: also-before
      priority: 6
      actions: {chatter}
    - name: ship
      priority: 60
      actions:
        - execute_workflow: ship
        - log: {type: shipped, data: {goal: "{{goal}}"}}
  dependency_satisfied:
    - name: call
      actions:
        - log: {type: ready, data: {goal: "{{goal}}"}}
  task_created:
    - name: greet
      actions:
        - log: {type: created, data: {goal: "{{goal}}"}}
workflows:
  ship:
    - log: {type: first}
    - create_task: {goal: "Archive {{goal}}"}
"#;

const SHIPPED: &str = r#"
version: 1
hooks:
  task_completed:
    - name: ship
      actions:
        - execute_workflow: {workflow_id: ship, context: {why: "{{result}}"}}
    - name: tidy
      actions:
        - execute_workflow: tidy
  task_blocked:
    - name: alarm
      actions:
        - create_task: {goal: "Look at {{goal}}"}
        - execute_workflow: tidy
workflows:
  ship:
    - create_task: {goal: "Package {{goal}}", labels: [release]}
    - log: {type: packaged}
    - update_task: {task_id: x, action: block, payload: {reason: "{{goal}} ships"}}
    - create_task: {goal: "Publish {{goal}}", depends_on: [x]}
  tidy:
    - log: {type: swept}
    - create_task: {goal: "Sweep after {{goal}}"}
"#;
