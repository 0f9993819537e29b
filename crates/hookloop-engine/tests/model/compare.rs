//! Comparison of the program with the model.

use std::collections::BTreeSet;

use hookloop_core::task::TaskState;
use hookloop_core::urgency::PriorityAging;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_store::log::Seq;

use crate::facts::Caused;
use crate::schedule::{Answer, Case, Home};
use crate::tasks::{Ask, Refused, Task};

impl Case {
    /// Compares new events and the queries of every reader.
    pub(crate) fn compare(&mut self, after: &str) {
        let process = &self.processes[self.turn];
        let seen = self.events.last().map_or(0, |last| last.seq);
        let new = process.log().read(seen + 1, usize::MAX >> 1).unwrap();
        let mut real: Vec<Caused> = new.iter().filter_map(|e| self.names.read(&e.event)).collect();
        let grown = !new.is_empty();
        self.events.extend(new);
        let mut expected = self.model.news();
        real.sort();
        expected.sort();
        assert_eq!(real, expected, "events (left) and the model (right) after {after}");
        if grown {
            self.compare_view(after);
        }
    }

    fn compare_view(&self, after: &str) {
        let process = &self.processes[self.turn];
        assert_eq!(process.has_pending().unwrap(), self.model.is_pending(), "after {after}");
        let tasks = &self.model.tasks;
        let (totals, ready) = process
            .read(|view| Ok((view.totals()?, view.ready(PriorityAging::default(), usize::MAX)?)))
            .unwrap();
        let ready: Vec<usize> = ready.iter().map(|row| self.names.number(&row.task.id)).collect();
        assert_eq!(ready, tasks.ready(), "the ready set after {after}");
        for state in TaskState::ALL {
            let counted = (0..tasks.0.len()).filter(|task| tasks.shown(*task) == state.name());
            assert_eq!(totals.count(state), counted.count() as u64, "{state} after {after}");
        }
    }

    /// Compares every task and edge, and every view with a freshly built one.
    pub(crate) fn compare_all(&mut self) {
        self.compare_tasks();
        let ids: BTreeSet<_> = self.events.iter().map(|stored| stored.event.id).collect();
        assert_eq!(ids.len(), self.events.len(), "events that are in the log twice");
        let hash = |project: &Project| project.read(|view| view.state_hash()).unwrap();
        let fresh = Project::new(self.home.open(), self.rules.clone(), "fresh");
        assert_eq!(hash(self.next_process()), hash(&fresh), "a view and a fresh one");
        if let Home::File(_) = self.home {
            let (before, after) = fresh.store().rebuild(&mut |_| {}).unwrap();
            assert_eq!(before, after, "a view before and after a rebuild");
            assert_eq!(
                fresh.store().verify(&mut |_| {}).unwrap().unwrap(),
                self.events.len() as Seq
            );
            self.compare_tasks();
        }
    }

    fn compare_tasks(&mut self) {
        let (mut real, mut edges) = (vec![], vec![]);
        self.next_process();
        let read = self.processes[self.turn].read(|view| {
            view.each_task(|row| {
                let (number, task) = (self.names.number(&row.task.id), row.task);
                let open = task.open_dependencies as usize;
                real.push((number, task.state.name(), open, task.satisfaction_announced));
                true
            })?;
            // A view numbers tasks from 1.
            view.each_edge(|task, on| edges.push((task as usize - 1, on as usize - 1)))
        });
        read.unwrap();
        let tasks = &self.model.tasks;
        let alive = (0..tasks.0.len()).filter(|task| tasks.alive(*task).is_some());
        let expected: Vec<_> =
            alive.map(|n| (n, tasks.shown(n), tasks.open(n), tasks.0[n].announced)).collect();
        assert_eq!(real, expected, "tasks (left) and the model (right)");
        let of = |(n, task): (usize, &Task)| task.on.iter().map(move |on| (n, *on)).collect();
        let expected: Vec<Vec<_>> = tasks.0.iter().enumerate().map(of).collect();
        assert_eq!(edges, expected.concat(), "edges (left) and the model (right)");
    }
}

pub(crate) fn assert_lost<T: std::fmt::Debug>(answer: Result<T, EngineError>) {
    assert!(matches!(answer, Err(EngineError::Store(_))), "{answer:?}");
}

pub(crate) fn compare_answers(ask: &Ask, expected: Result<(), Refused>, real: Answer) {
    let real = match real {
        Ok(_) => "accepted".to_owned(),
        Err(EngineError::Refused(refusal)) => {
            let text = format!("{refusal:?}");
            text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
        }
        Err(other) => panic!("{ask:?}: {other}"),
    };
    assert_eq!(real, expected.err().unwrap_or("accepted"), "{ask:?}");
}
