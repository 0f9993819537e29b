//! The model's dispatcher and workflows, one batch at a time.

use crate::facts::{About, What};
use crate::reactions::{Deed, Happened, Model};
use crate::rules::Handler;

/// Number of dependents that one batch handles.
const AT_ONCE: usize = 400;
/// Number of due entries that one batch handles, and number of facts after which it handles no
/// more.
const DUE_AT_ONCE: usize = 128;
const ENOUGH: usize = 136;

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) steps: Vec<Deed>,
    pub(crate) next: usize,
    pub(crate) over: bool,
    pub(crate) hook: String,
    pub(crate) root: usize,
    pub(crate) depth: u32,
}

/// A completion with too many dependents for one batch.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) event: Happened,
    pub(crate) hooks_done: Vec<String>,
    /// Dependents before this one are done.
    pub(crate) from: usize,
}

impl Model {
    /// Handles due entries in at most `batches` batches; returns the number of batches.
    pub(crate) fn dispatch(&mut self, batches: usize) -> usize {
        let mut taken = 0;
        while taken < batches && self.dispatch_one() {
            taken += 1;
        }
        taken
    }

    /// Runs workflow steps in at most `batches` batches; returns the number of batches.
    pub(crate) fn run_workflows(&mut self, batches: usize) -> usize {
        let mut taken = 0;
        while taken < batches && self.run_step() {
            taken += 1;
            taken += self.dispatch(batches - taken);
        }
        taken
    }

    /// Handles one batch of the entries that were due before it.
    fn dispatch_one(&mut self) -> bool {
        let (due, before) = (self.due.len().min(DUE_AT_ONCE), self.facts());
        for _ in 0..due {
            if !self.dispatch_next() || self.facts() - before > ENOUGH {
                break;
            }
        }
        due > 0
    }

    /// Handles the next due entry as far as one batch allows; returns whether it is done.
    fn dispatch_next(&mut self) -> bool {
        let Some(mut due) = self.due.pop_front() else { return false };
        let finished = match due.hooks_done.is_empty() && due.from == 0 {
            true if !self.is_too_wide(&due.event) => {
                self.react_to(&due.event);
                true
            }
            _ => self.dispatch_part(&mut due),
        };
        if !finished {
            self.due.push_front(due);
        }
        self.react();
        finished
    }

    /// Runs the hooks one after the other, until one has more dependents than a batch allows.
    fn dispatch_part(&mut self, due: &mut Due) -> bool {
        for hook in self.hooks_of(&due.event) {
            if due.hooks_done.contains(&hook.name) {
                continue;
            }
            let plan = self.plan(&hook, &due.event, due.from, AT_ONCE);
            let rest = match (&hook.handler, due.event.fact.0) {
                (Handler::Satisfaction, About::Task(task)) => self.tasks.dependents(task),
                _ => vec![],
            };
            self.carry_out(&due.event, plan);
            let mut rest = rest.into_iter().filter(|task| *task >= due.from);
            if let Some(last) = rest.nth(AT_ONCE - 1) {
                due.from = last + 1;
                return false;
            }
            due.from = 0;
            due.hooks_done.push(hook.name);
        }
        true
    }

    fn run_step(&mut self) -> bool {
        let Some(number) = self.runs.iter().position(|run| !run.over) else { return false };
        let run = self.runs[number].clone();
        let (root, depth, step, about) = (run.root, run.depth + 1, run.next, About::Run(number));
        let fact = (about, What::WorkflowStepCompleted(step));
        let about_step = Happened { fact, root, depth };
        let mut deeds = vec![run.steps[step].clone()];
        let cut = self.cut(root, depth, &mut deeds);
        *self.counts.entry(root).or_default() += 1;
        let outcome = match (cut, deeds.pop()) {
            (None, Some(deed)) => self.act(deed, &about_step, root, depth, &run.hook),
            _ => Err("workflow"),
        };
        let mut facts = vec![match outcome {
            Ok(()) => (about, What::WorkflowStepCompleted(step)),
            Err(_) => (about, What::WorkflowFailed(step)),
        }];
        let is_last = step + 1 == run.steps.len();
        if outcome.is_ok() && is_last {
            facts.push((about, What::WorkflowCompleted));
        }
        self.runs[number].next += 1;
        self.runs[number].over = outcome.is_err() || is_last;
        facts.into_iter().for_each(|fact| self.happen(fact, root, depth, Some(&run.hook)));
        self.react();
        true
    }
}
