//! Random commands, and their form in the program.

use hookloop_core::claim::Fence;
use hookloop_core::command::{Command, DependentsOfDeleted};
use hookloop_core::task::{TaskObstacle, TaskOutcome, TaskSpec};
use hookloop_testkit::SeededRandom;

use crate::facts::Names;
use crate::rules::{Setup, change};
use crate::tasks::{Ask, Change, Spec, Tasks};

/// Number of tasks that are added first, and maximum number that commands add.
const FIRST_TASKS: usize = 3;
const MOST_TASKS: usize = 12;

const LABELS: [&[&str]; 4] = [&[], &["agent"], &["x", "agent"], &["agent", "review"]];

/// Returns a command that is likely, but not certain, to be accepted. `fresh` names a new task.
pub(crate) fn random(rng: &mut SeededRandom, tasks: &Tasks, setup: &Setup, fresh: usize) -> Ask {
    let len = tasks.0.len();
    let any = |rng: &mut SeededRandom| rng.below(len + 1);
    match rng.below(24) {
        _ if len == 0 || fresh < FIRST_TASKS => add(rng, len, fresh),
        0..4 if fresh < MOST_TASKS => add(rng, len, fresh),
        0..9 => Ask::Change(likely(rng, tasks, "ready"), change(rng)),
        9..14 => Ask::Change(likely(rng, tasks, "ready"), Change::Complete(Some("r".to_owned()))),
        14..16 => Ask::Change(likely(rng, tasks, "blocked"), Change::Unblock),
        16..18 => Ask::Depend { task: likely(rng, tasks, "ready"), on: any(rng) },
        18 => Ask::Depend { task: any(rng), on: any(rng) },
        19 => undepend(rng, tasks),
        20 | 21 => {
            let task = likely(rng, tasks, "created");
            Ask::Delete { task, release: rng.chance(40), force: rng.chance(50) }
        }
        22 => switch(rng, setup),
        _ => Ask::Delete { task: any(rng), release: rng.chance(40), force: rng.chance(50) },
    }
}

/// Returns a task that is mostly in the state `wanted`.
fn likely(rng: &mut SeededRandom, tasks: &Tasks, wanted: &str) -> usize {
    let all = 0..tasks.0.len();
    let fitting: Vec<usize> = all.filter(|task| tasks.shown(*task) == wanted).collect();
    match fitting.is_empty() || rng.chance(30) {
        true => rng.below(tasks.0.len() + 1),
        false => *rng.pick(&fitting),
    }
}

fn add(rng: &mut SeededRandom, len: usize, fresh: usize) -> Ask {
    let name = if rng.chance(5) { rng.below(fresh + 1) } else { fresh };
    let goal = if rng.chance(3) { " ".to_owned() } else { format!("goal {fresh}") };
    let labels = *rng.pick(&LABELS);
    let on = match len {
        0 => vec![],
        _ => {
            let end = len + usize::from(rng.chance(3));
            (0..rng.below(4)).map(|_| rng.below(end)).collect()
        }
    };
    let spec = Spec {
        goal,
        labels: labels.iter().map(ToString::to_string).collect(),
        priority: rng.below(10) as u8,
        parent: rng.chance(10).then(|| rng.below(len + 1)),
    };
    Ask::Add { name: Some(name), spec, on }
}

fn undepend(rng: &mut SeededRandom, tasks: &Tasks) -> Ask {
    let task = rng.below(tasks.0.len());
    let on: Vec<usize> = tasks.0[task].on.iter().copied().collect();
    match on.is_empty() {
        true => Ask::Undepend { task, on: rng.below(tasks.0.len() + 1) },
        false => Ask::Undepend { task, on: *rng.pick(&on) },
    }
}

fn switch(rng: &mut SeededRandom, setup: &Setup) -> Ask {
    Ask::Switch { hook: rng.pick(&setup.hooks).name.clone(), enabled: rng.chance(60) }
}

pub(crate) fn command(ask: &Ask, names: &Names) -> Command {
    match ask {
        Ask::Add { name, spec, on } => Command::AddTask {
            id: format!("t{}", name.unwrap()).parse().unwrap(),
            spec: TaskSpec {
                goal: spec.goal.clone(),
                labels: spec.labels.clone(),
                priority: spec.priority.try_into().unwrap(),
                parent_task_id: spec.parent.map(|parent| names.id(parent)),
                ..TaskSpec::default()
            },
            depends_on: on.iter().map(|on| names.id(*on)).collect(),
        },
        Ask::Change(task, change) => {
            let id = names.id(*task);
            match change {
                Change::Start => Command::StartTask { id, context: None },
                Change::Submit => Command::SubmitTask { id, fence: Fence::None, submission: None },
                Change::Complete(result) => {
                    let outcome = TaskOutcome { result: result.clone(), ..TaskOutcome::default() };
                    Command::CompleteTask { id, outcome, fence: Fence::None }
                }
                Change::Block => {
                    Command::BlockTask { id, obstacle: TaskObstacle::default(), fence: Fence::None }
                }
                Change::Unblock => Command::UnblockTask { id },
                Change::ConfirmReady => Command::ConfirmReady { id },
            }
        }
        Ask::Delete { task, release, force } => Command::DeleteTask {
            id: names.id(*task),
            dependents: match release {
                true => DependentsOfDeleted::Release,
                false => DependentsOfDeleted::Block,
            },
            force: *force,
        },
        Ask::Depend { task, on } => {
            Command::AddDependency { task: names.id(*task), on: names.id(*on) }
        }
        Ask::Undepend { task, on } => {
            Command::RemoveDependency { task: names.id(*task), on: names.id(*on) }
        }
        Ask::Switch { hook, enabled } => {
            Command::SwitchHook { name: hook.clone(), enabled: *enabled }
        }
    }
}
