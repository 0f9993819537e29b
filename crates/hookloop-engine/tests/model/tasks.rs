//! The model's tasks: a list that is scanned completely for every query.

use std::collections::BTreeSet;

use crate::facts::{About, Fact, What};

/// A task that does not exist.
pub(crate) const NOWHERE: usize = usize::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Open,
    Active,
    Submitted,
    Completed,
    Blocked,
    Deleted,
}

/// A task. Tasks are numbered in the order of their creation; deleted tasks keep their number.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The `n` of the id `tn`, for a task that a command added.
    pub(crate) name: Option<usize>,
    pub(crate) spec: Spec,
    pub(crate) state: State,
    pub(crate) on: BTreeSet<usize>,
    pub(crate) announced: bool,
    pub(crate) started: bool,
    pub(crate) result: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spec {
    pub(crate) goal: String,
    pub(crate) labels: Vec<String>,
    pub(crate) priority: u8,
    pub(crate) parent: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Start,
    Submit,
    Complete(Option<String>),
    Block,
    Unblock,
    ConfirmReady,
}

/// A command in the model's terms.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Add { name: Option<usize>, spec: Spec, on: Vec<usize> },
    Change(usize, Change),
    Delete { task: usize, release: bool, force: bool },
    Depend { task: usize, on: usize },
    Undepend { task: usize, on: usize },
    Switch { hook: String, enabled: bool },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(pub(crate) Vec<Task>);

/// The name of the expected refusal.
pub(crate) type Refused = &'static str;

impl Tasks {
    pub(crate) fn alive(&self, task: usize) -> Option<&Task> {
        self.0.get(task).filter(|t| t.state != State::Deleted)
    }

    pub(crate) fn named(&self, name: usize) -> usize {
        self.0.iter().position(|task| task.name == Some(name)).unwrap_or(NOWHERE)
    }

    /// Returns the number of dependencies that are not completed.
    pub(crate) fn open(&self, task: usize) -> usize {
        self.0[task].on.iter().filter(|on| self.0[**on].state != State::Completed).count()
    }

    pub(crate) fn is_free(&self, task: usize) -> bool {
        self.open(task) == 0
    }

    /// Returns the state as shown to users.
    pub(crate) fn shown(&self, task: usize) -> &'static str {
        match self.0[task].state {
            State::Open if self.is_free(task) => "ready",
            State::Open => "created",
            State::Active => "active",
            State::Submitted => "submitted",
            State::Completed => "completed",
            State::Blocked => "blocked",
            State::Deleted => "deleted",
        }
    }

    pub(crate) fn ready(&self) -> Vec<usize> {
        let ready = |task: &usize| self.shown(*task) == "ready";
        let mut ready: Vec<usize> = (0..self.0.len()).filter(ready).collect();
        ready.sort_by_key(|task| (self.0[*task].spec.priority, *task));
        ready
    }

    pub(crate) fn dependents(&self, on: usize) -> Vec<usize> {
        (0..self.0.len()).filter(|task| self.0[*task].on.contains(&on)).collect()
    }

    /// Returns whether `from` depends on `to`, directly or through others.
    fn leads(&self, from: usize, to: usize) -> bool {
        from == to || self.0[from].on.iter().any(|on| self.leads(*on, to))
    }

    pub(crate) fn decide(&self, ask: &Ask) -> Result<Vec<Fact>, Refused> {
        match ask {
            Ask::Add { name, spec, on } => self.add(*name, spec, on),
            Ask::Change(task, change) => self.change(*task, change),
            Ask::Delete { task, release, force } => self.delete(*task, *release, *force),
            Ask::Depend { task, on } => self.depend(*task, *on),
            Ask::Undepend { task, on } => match self.alive(*task) {
                None => Err("NoSuchTask"),
                Some(found) if !found.on.contains(on) => Err("NoSuchDependency"),
                Some(_) => Ok(vec![(About::Task(*task), What::DependencyRemoved(*on))]),
            },
            Ask::Switch { hook, enabled } => {
                Ok(vec![(About::Project, What::HookSwitched(hook.clone(), *enabled))])
            }
        }
    }

    fn add(&self, name: Option<usize>, spec: &Spec, on: &[usize]) -> Result<Vec<Fact>, Refused> {
        let taken = name.and_then(|name| self.0.get(self.named(name)));
        match taken.map(|task| task.state) {
            Some(State::Deleted) => return Err("IdUsed"),
            Some(_) => return Err("TaskExists"),
            None if spec.goal.trim().is_empty() => return Err("EmptyGoal"),
            None => {}
        }
        if on.iter().chain(&spec.parent).any(|other| self.alive(*other).is_none()) {
            return Err("NoSuchTask");
        }
        if (0..on.len()).any(|i| on[..i].contains(&on[i])) {
            return Err("DependencyExists");
        }
        let about = About::Task(self.0.len());
        let edges = on.iter().map(|on| (about, What::DependencyAdded(*on)));
        Ok([(about, What::TaskCreated(name, spec.clone()))].into_iter().chain(edges).collect())
    }

    fn change(&self, task: usize, change: &Change) -> Result<Vec<Fact>, Refused> {
        if self.alive(task).is_none() {
            return Err("NoSuchTask");
        }
        let what = match (change, self.shown(task)) {
            (Change::Start, "ready") => What::TaskStarted,
            (Change::Submit, "active") => What::TaskSubmitted,
            (Change::Complete(result), "ready" | "active" | "submitted") => {
                What::TaskCompleted(result.clone())
            }
            (Change::Block, "created" | "ready" | "active" | "submitted") => What::TaskBlocked,
            (Change::Unblock, "blocked") => What::TaskUnblocked,
            (Change::ConfirmReady, "ready") => return Ok(vec![]),
            (Change::Start, "active")
            | (Change::Submit, "submitted")
            | (Change::Complete(_), "completed")
            | (Change::Block, "blocked") => return Err("AlreadyThere"),
            (Change::Unblock, _) => return Err("WrongState"),
            (_, "created") => return Err("OpenDependencies"),
            _ => return Err("WrongState"),
        };
        Ok(vec![(About::Task(task), what)])
    }

    fn delete(&self, task: usize, release: bool, force: bool) -> Result<Vec<Fact>, Refused> {
        let found = self.alive(task).ok_or("NoSuchTask")?;
        if found.state == State::Active && !force {
            return Err("WrongState");
        }
        let dependents = self.dependents(task);
        let waits = |other: &&usize| {
            found.state != State::Completed && self.0[**other].state == State::Open
        };
        let freed = |other: &usize| match release {
            true => (About::Task(*other), What::DependencyRemoved(task)),
            false => (About::Task(*other), What::TaskBlocked),
        };
        let mut facts: Vec<Fact> = dependents.iter().filter(waits).map(freed).collect();
        let edges = found.on.len() + dependents.len() - if release { facts.len() } else { 0 };
        facts.push((About::Task(task), What::TaskDeleted(edges)));
        Ok(facts)
    }

    fn depend(&self, task: usize, on: usize) -> Result<Vec<Fact>, Refused> {
        let found = self.alive(task).ok_or("NoSuchTask")?;
        self.alive(on).ok_or("NoSuchTask")?;
        if task == on {
            return Err("SelfDependency");
        }
        if found.on.contains(&on) {
            return Err("DependencyExists");
        }
        if self.leads(on, task) {
            return Err("Cycle");
        }
        match found.state {
            State::Open | State::Blocked => {
                Ok(vec![(About::Task(task), What::DependencyAdded(on))])
            }
            _ => Err("WrongState"),
        }
    }

    pub(crate) fn apply(&mut self, (about, what): &Fact) {
        let About::Task(task) = *about else { return };
        match what {
            What::TaskCreated(name, spec) => self.0.push(Task {
                name: *name,
                spec: spec.clone(),
                state: State::Open,
                on: BTreeSet::new(),
                announced: false,
                started: false,
                result: None,
            }),
            What::TaskStarted => {
                self.0[task].state = State::Active;
                self.0[task].started = true;
            }
            What::TaskSubmitted => self.0[task].state = State::Submitted,
            What::TaskCompleted(result) => {
                self.0[task].state = State::Completed;
                self.0[task].result.clone_from(result);
            }
            What::TaskBlocked => self.0[task].state = State::Blocked,
            What::TaskUnblocked => self.0[task].state = State::Open,
            What::TaskDeleted(_) => {
                self.0[task].state = State::Deleted;
                self.0[task].on.clear();
                self.0.iter_mut().for_each(|other| other.on.retain(|on| *on != task));
            }
            What::DependencyAdded(on) => {
                self.0[task].on.insert(*on);
                self.0[task].announced &= self.is_free(task);
            }
            What::DependencyRemoved(on) => self.0[task].on.retain(|other| other != on),
            What::DependencySatisfied(_) => self.0[task].announced = true,
            _ => {}
        }
    }
}
