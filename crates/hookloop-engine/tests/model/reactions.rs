//! The model's hooks: immediate and deferred effects of a command.

use std::collections::{HashMap, VecDeque};

use crate::facts::{About, Caused, Fact, What};
use crate::later::{Due, Run};
use crate::rules::{Declared, Goal, Handler, Hook, Setup, Target};
use crate::tasks::{Ask, Change, NOWHERE, Refused, Spec, State, Tasks};

/// A fact and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) fact: Fact,
    /// Number of the first event of the cascade, and number of hooks between it and this fact.
    pub(crate) root: usize,
    pub(crate) depth: u32,
}

/// An action of a hook, with its variables filled in.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Ask(Ask),
    /// A change of the task that has this name when the action runs.
    Named(usize, Change),
    Run(String),
    Record(Fact),
    Impossible,
}

pub(crate) struct Plan {
    hook: String,
    limited: bool,
    deeds: Option<Vec<Deed>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Maximum number of dependents that are released at once; `None` releases all of them later.
    at_once: Option<usize>,
    pub(crate) tasks: Tasks,
    pub(crate) setup: Setup,
    pub(crate) due: VecDeque<Due>,
    pub(crate) runs: Vec<Run>,
    queue: VecDeque<Happened>,
    roots: usize,
    /// Number of actions per root.
    pub(crate) counts: HashMap<usize, u32>,
    /// Facts since the last call of `news`.
    news: Vec<Caused>,
}

impl Model {
    pub(crate) fn new(setup: Setup, at_once: Option<usize>) -> Model {
        Model {
            at_once,
            tasks: Tasks::default(),
            setup,
            due: VecDeque::new(),
            runs: vec![],
            queue: VecDeque::new(),
            roots: 0,
            counts: HashMap::new(),
            news: vec![],
        }
    }

    pub(crate) fn news(&mut self) -> Vec<Caused> {
        std::mem::take(&mut self.news)
    }

    /// Returns the number of facts since the last call of `news`.
    pub(crate) fn facts(&self) -> usize {
        self.news.len()
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.due.is_empty() || self.runs.iter().any(|run| !run.over)
    }

    pub(crate) fn execute(&mut self, ask: &Ask) -> Result<(), Refused> {
        for fact in self.tasks.decide(ask)? {
            self.roots += 1;
            self.happen(fact, self.roots, 0, None);
        }
        self.react();
        Ok(())
    }

    pub(crate) fn happen(&mut self, fact: Fact, root: usize, depth: u32, hook: Option<&str>) {
        if let What::HookSwitched(name, enabled) = &fact.1 {
            let switched = self.setup.hooks.iter_mut().filter(|hook| hook.name == *name);
            switched.for_each(|hook| hook.enabled = *enabled);
        }
        self.tasks.apply(&fact);
        self.news.push((fact.clone(), hook.map(|hook| (hook.to_owned(), depth))));
        self.queue.push_back(Happened { fact, root, depth });
    }

    pub(crate) fn react(&mut self) {
        while let Some(event) = self.queue.pop_front() {
            match self.is_too_wide(&event) {
                true => self.due.push_back(Due { event, hooks_done: vec![], from: 0 }),
                false => self.react_to(&event),
            }
        }
    }

    /// Runs all hooks; each sees the state before the first of them acted.
    pub(crate) fn react_to(&mut self, event: &Happened) {
        let plans: Vec<Plan> =
            self.hooks_of(event).iter().map(|hook| self.plan(hook, event, 0, NOWHERE)).collect();
        plans.into_iter().for_each(|plan| self.carry_out(event, plan));
    }

    pub(crate) fn hooks_of(&self, event: &Happened) -> Vec<Hook> {
        let follows = |hook: &&Hook| hook.enabled && hook.event == event.fact.1.kind();
        let mut hooks: Vec<Hook> = self.setup.hooks.iter().filter(follows).cloned().collect();
        hooks.sort_by_key(|hook| hook.priority);
        hooks
    }

    pub(crate) fn is_too_wide(&self, event: &Happened) -> bool {
        let releases = |hook: &Hook| matches!(hook.handler, Handler::Satisfaction);
        let About::Task(task) = event.fact.0 else { return false };
        let fits = |most| self.tasks.dependents(task).len() <= most;
        self.hooks_of(event).iter().any(releases) && !self.at_once.is_some_and(fits)
    }

    /// Returns the actions of `hook` after `event`, for at most `most` dependents from number
    /// `from` on.
    pub(crate) fn plan(&self, hook: &Hook, event: &Happened, from: usize, most: usize) -> Plan {
        let task = match event.fact.0 {
            About::Task(task) => task,
            _ => NOWHERE,
        };
        let deeds = match &hook.handler {
            Handler::Review => Some(self.review(task)),
            Handler::Satisfaction => Some(self.announcements(task, from, most)),
            Handler::Metrics => Some(self.metrics(task)),
            Handler::Declared(actions) => actions.iter().map(|a| self.fill(a, event)).collect(),
        };
        let limited = !matches!(hook.handler, Handler::Satisfaction);
        Plan { hook: hook.name.clone(), limited, deeds }
    }

    fn review(&self, task: usize) -> Vec<Deed> {
        let Some(found) = self.tasks.alive(task) else { return vec![] };
        let has = |label: &str| found.spec.labels.iter().any(|l| l == label);
        if !has("agent") || has("review") {
            return vec![];
        }
        let mut spec = found.spec.clone();
        spec.goal = format!("Review: {}", spec.goal);
        spec.labels.insert(0, "review".to_owned());
        spec.parent = Some(task);
        vec![Deed::Ask(Ask::Add { name: None, spec, on: vec![] })]
    }

    fn announcements(&self, completed: usize, from: usize, most: usize) -> Vec<Deed> {
        let is_ready = |task: usize| self.tasks.shown(task) == "ready";
        let is_begun = |task: usize| {
            let begun = ["active", "submitted", "completed"];
            begun.contains(&self.tasks.shown(task)) && self.tasks.is_free(task)
        };
        let unannounced =
            |task: &usize| (is_ready(*task) || is_begun(*task)) && !self.tasks.0[*task].announced;
        let all = self.tasks.dependents(completed).into_iter().filter(|task| *task >= from);
        let announce = |task: usize| {
            let satisfied = (About::Task(task), What::DependencySatisfied(completed));
            let confirm = Deed::Ask(Ask::Change(task, Change::ConfirmReady));
            let confirm = is_ready(task).then_some(confirm);
            confirm.into_iter().chain([Deed::Record(satisfied)])
        };
        all.take(most).filter(unannounced).flat_map(announce).collect()
    }

    fn metrics(&self, task: usize) -> Vec<Deed> {
        match self.tasks.alive(task) {
            Some(found) if found.spec.labels.iter().any(|l| l == "agent") => {
                vec![Deed::Record((About::Task(task), What::AgentMetrics(found.started)))]
            }
            _ => vec![],
        }
    }

    /// Returns a declared action with the values of `event`; `None` if a value is missing.
    fn fill(&self, action: &Declared, event: &Happened) -> Option<Deed> {
        let subject = match event.fact.0 {
            About::Task(task) => Some(task),
            _ => None,
        };
        let task = subject.and_then(|task| self.tasks.alive(task));
        let result = match &event.fact.1 {
            What::TaskCompleted(result) => result.clone(),
            _ => task.filter(|t| t.state == State::Completed).and_then(|t| t.result.clone()),
        };
        Some(match action {
            Declared::Create { goal, labels, priority, waits, child } => {
                let goal = match goal {
                    Goal::Fixed => "spawned".to_owned(),
                    Goal::OfTask => format!("after {}", task?.spec.goal),
                    Goal::Result => format!("use {}", result?),
                };
                let parent = if *child { Some(subject?) } else { None };
                let on = if *waits { vec![subject?] } else { vec![] };
                let spec = Spec { goal, labels: labels.clone(), priority: *priority, parent };
                Deed::Ask(Ask::Add { name: None, spec, on })
            }
            Declared::Update { target: Target::Named(name), change } => {
                Deed::Named(*name, in_hook(change))
            }
            Declared::Update { target: Target::Subject, change } => {
                Deed::Ask(Ask::Change(subject?, in_hook(change)))
            }
            Declared::Run(name) => Deed::Run(name.clone()),
            Declared::Note { about, result: wanted, valid } => {
                let note = What::Note {
                    kind: "note".to_owned(),
                    about: if *about { Some(subject?) } else { None },
                    event: event.fact.1.kind().to_owned(),
                    result: if *wanted { Some(result?) } else { None },
                };
                if *valid { Deed::Record((About::Project, note)) } else { Deed::Impossible }
            }
        })
    }

    pub(crate) fn carry_out(&mut self, event: &Happened, plan: Plan) {
        let (root, depth, hook) = (event.root, event.depth + 1, plan.hook.as_str());
        let Some(mut deeds) = plan.deeds else {
            return self.happen((event.fact.0, What::HookError), root, depth, Some(hook));
        };
        let cut = if plan.limited { self.cut(root, depth, &mut deeds) } else { None };
        for deed in deeds {
            let (before, counted) = (self.news.len(), u32::from(plan.limited));
            *self.counts.entry(root).or_default() += counted;
            if let Err(kind) = self.act(deed, event, root, depth, hook) {
                let error = What::ActionError(kind.to_owned());
                self.happen((About::Project, error), root, depth, Some(hook));
            }
            if self.news.len() == before {
                *self.counts.entry(root).or_default() -= counted;
            }
        }
        if let Some((limit, dropped)) = cut {
            let cut = What::CascadeLimitReached(limit.to_owned(), dropped);
            self.happen((About::Project, cut), root, depth, Some(hook));
        }
    }

    /// Drops the actions that exceed a limit; returns the limit and the number of dropped actions.
    pub(crate) fn cut(
        &self,
        root: usize,
        depth: u32,
        deeds: &mut Vec<Deed>,
    ) -> Option<(&'static str, u32)> {
        let left = self.setup.total.saturating_sub(self.counts.get(&root).copied().unwrap_or(0));
        let (allowed, limit) = match left < self.setup.fan_out {
            _ if depth > self.setup.depth => (0, "Depth"),
            true => (left, "Total"),
            false => (self.setup.fan_out, "FanOut"),
        };
        let dropped = deeds.len().saturating_sub(allowed as usize) as u32;
        deeds.truncate(allowed as usize);
        (dropped > 0).then_some((limit, dropped))
    }

    /// Runs one action, or returns the type of the failed action.
    pub(crate) fn act(
        &mut self,
        deed: Deed,
        event: &Happened,
        root: usize,
        depth: u32,
        hook: &str,
    ) -> Result<(), &'static str> {
        let facts = match deed {
            Deed::Impossible => return Err("log"),
            Deed::Ask(ask) => {
                let kind = match ask {
                    Ask::Add { .. } => "create_task",
                    _ => "update_task",
                };
                self.tasks.decide(&ask).map_err(|_| kind)?
            }
            Deed::Named(name, change) => {
                let ask = Ask::Change(self.tasks.named(name), change);
                self.tasks.decide(&ask).map_err(|_| "update_task")?
            }
            Deed::Record((_, What::Note { kind, about, event: e, result })) => {
                let kind = format!("hook.{hook}.{kind}");
                vec![(event.fact.0, What::Note { kind, about, event: e, result })]
            }
            Deed::Record(fact) => vec![fact],
            Deed::Run(name) => {
                let (_, steps) = self.setup.workflows.iter().find(|(n, _)| *n == name).unwrap();
                let steps: Option<Vec<Deed>> = steps.iter().map(|s| self.fill(s, event)).collect();
                let steps = steps.ok_or("execute_workflow")?;
                let hook = hook.to_owned();
                self.runs.push(Run { steps, next: 0, over: false, hook, root, depth });
                vec![(About::Run(self.runs.len() - 1), What::WorkflowRequested(name))]
            }
        };
        facts.into_iter().for_each(|fact| self.happen(fact, root, depth, Some(hook)));
        Ok(())
    }
}

/// Returns the change with the result that a hook uses for a completion.
fn in_hook(change: &Change) -> Change {
    match change {
        Change::Complete(Some(_)) => Change::Complete(Some("done".to_owned())),
        other => other.clone(),
    }
}
