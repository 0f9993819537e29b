//! One case: processes that take turns, lose connections and repeat batches, compared with the
//! model.

use std::sync::{Arc, Mutex};

use hookloop_config::effective::EffectiveConfig;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_store::log::{AppendError, AppendOutcome, NewEvent, Seq, StoredEvent};
use hookloop_store::store::Store;
use hookloop_testkit::SeededRandom;
use tempfile::TempDir;

use crate::asks;
use crate::compare::{assert_lost, compare_answers};
use crate::facts::Names;
use crate::reactions::Model;
use crate::rules::Setup;
use crate::tasks::Ask;
use crate::wire::{Loss, Wire};

/// The log that the processes of a case share.
pub(crate) enum Home {
    Elsewhere(Wire),
    File(TempDir),
}

impl Home {
    pub(crate) fn open(&self) -> Store {
        match self {
            Home::Elsewhere(wire) => Store::over(Arc::new(wire.clone())).unwrap(),
            Home::File(dir) => Store::open(&dir.path().join("hookloop.db")).unwrap(),
        }
    }
}

pub(crate) type Answer = Result<CommandOutcome, EngineError>;

pub(crate) struct Case {
    pub(crate) rng: SeededRandom,
    pub(crate) model: Model,
    pub(crate) names: Names,
    pub(crate) home: Home,
    pub(crate) rules: EffectiveConfig,
    pub(crate) processes: Vec<Project>,
    /// Index of the current process; the views of the others are stale.
    pub(crate) turn: usize,
    /// The part of the log that was compared.
    pub(crate) events: Vec<StoredEvent>,
    /// Ranges of the command batches in it.
    batches: Vec<(usize, usize)>,
    /// Number of the next task name.
    pub(crate) fresh: usize,
}

impl Case {
    pub(crate) fn in_memory(rng: SeededRandom, setup: Setup) -> Case {
        Case::over(rng, setup, Wire::default())
    }

    /// Creates a case with a few processes over the log behind `wire`.
    pub(crate) fn over(mut rng: SeededRandom, setup: Setup, wire: Wire) -> Case {
        let processes = *rng.pick(&[1, 1, 1, 1, 2, 2, 2, 3]);
        Case::new(rng, setup, Home::Elsewhere(wire), processes)
    }

    /// Creates a case with two processes that overtake each other.
    pub(crate) fn racing(rng: SeededRandom, setup: Setup, wire: Wire) -> Case {
        Case::new(rng, setup, Home::Elsewhere(wire), 2)
    }

    pub(crate) fn in_file(rng: SeededRandom, setup: Setup) -> Case {
        Case::new(rng, setup, Home::File(tempfile::tempdir().unwrap()), 2)
    }

    fn new(rng: SeededRandom, setup: Setup, home: Home, processes: usize) -> Case {
        let rules = setup.load();
        let open = |_| Project::new(home.open(), rules.clone(), "someone");
        let processes = (0..processes).map(open).collect();
        let at_once = match home {
            Home::Elsewhere(_) => None,
            Home::File(_) => Some(200),
        };
        Case {
            rng,
            model: Model::new(setup, at_once),
            names: Names::default(),
            home,
            rules,
            processes,
            turn: 0,
            events: vec![],
            batches: vec![],
            fresh: 0,
        }
    }

    /// Takes `turns` random turns, and compares after each.
    pub(crate) fn play(&mut self, turns: usize) {
        for _ in 0..turns {
            match self.rng.below(80) {
                0..56 => {
                    let ask = self.ask();
                    self.command(&ask);
                }
                56..65 => self.dispatch(),
                65..74 => self.run_workflows(),
                74..79 => self.repeat_a_batch(),
                _ => self.restart_a_process(),
            }
        }
    }

    pub(crate) fn ask(&mut self) -> Ask {
        asks::random(&mut self.rng, &self.model.tasks, &self.model.setup, self.fresh)
    }

    pub(crate) fn next_process(&mut self) -> &Project {
        self.turn = self.rng.below(self.processes.len());
        &self.processes[self.turn]
    }

    pub(crate) fn command(&mut self, ask: &Ask) {
        let command = asks::command(ask, &self.names);
        self.fresh += usize::from(matches!(ask, Ask::Add { .. }));
        let loss = self.plan_loss(1);
        let answer = self.next_process().execute(&command);
        let before = self.events.len();
        match self.came(loss) {
            Some(Loss { stored: false, .. }) => assert_lost(answer),
            Some(_) => {
                assert_lost(answer);
                self.model.execute(ask).unwrap();
            }
            None => compare_answers(ask, self.model.execute(ask), answer),
        }
        self.compare(&format!("{ask:?}"));
        if self.events.len() > before {
            self.batches.push((before, self.events.len()));
        }
    }

    /// Executes commands without faults, and compares after the last.
    pub(crate) fn commands(&mut self, asks: &[Ask]) {
        for ask in asks {
            let command = asks::command(ask, &self.names);
            let answer = self.next_process().execute(&command);
            compare_answers(ask, self.model.execute(ask), answer);
        }
        self.fresh += asks.len();
        self.compare("several commands");
    }

    /// Executes a command whose append another process overtakes with its own.
    pub(crate) fn overtaken_command(&mut self) {
        let (slow, quick) = (self.ask(), self.ask());
        let (slow, quick) = (self.renamed(slow), self.renamed(quick));
        self.race(&slow, &quick);
    }

    pub(crate) fn race(&mut self, slow: &Ask, quick: &Ask) {
        let (slow_answer, quick_answer) = self.overtake(slow, quick);
        if let Some(answer) = quick_answer {
            compare_answers(quick, self.model.execute(quick), answer);
        }
        compare_answers(slow, self.model.execute(slow), slow_answer);
        self.compare(&format!("{slow:?}, overtaken by {quick:?}"));
    }

    /// Returns the results of two commands; the quick one runs between the decision and the append
    /// of the slow one, if it appends.
    fn overtake(&mut self, slow: &Ask, quick: &Ask) -> (Answer, Option<Answer>) {
        let Home::Elsewhere(wire) = &self.home else { panic!("a file cannot be overtaken") };
        let (wire, heard) = (wire.clone(), Arc::new(Mutex::new(None)));
        let slow = asks::command(slow, &self.names);
        let quick = asks::command(quick, &self.names);
        self.next_process();
        let rival = self.processes[(self.turn + 1) % self.processes.len()].clone();
        let hear = heard.clone();
        wire.plan_rival(Box::new(move || {
            *hear.lock().unwrap() = Some(rival.execute(&quick));
        }));
        let slow_answer = self.processes[self.turn].execute(&slow);
        wire.forget_rival();
        let quick_answer = heard.lock().unwrap().take();
        (slow_answer, quick_answer)
    }

    fn renamed(&mut self, mut ask: Ask) -> Ask {
        if let Ask::Add { name, .. } = &mut ask {
            *name = Some(self.fresh);
            self.fresh += 1;
        }
        ask
    }

    pub(crate) fn dispatch(&mut self) {
        let loss = self.plan_loss(3);
        self.dispatch_until(loss);
    }

    /// Dispatches until the planned loss, if there is one.
    fn dispatch_until(&mut self, loss: Option<Loss>) {
        let answer = self.next_process().dispatch();
        let batches = self.batches_through(loss, answer);
        let taken = self.model.dispatch(batches.unwrap_or(usize::MAX));
        assert_eq!(taken, batches.unwrap_or(taken), "batches of a dispatcher that was lost");
        self.compare("dispatch");
    }

    /// Dispatches with a loss of the connection after the first batch.
    pub(crate) fn dispatch_one_batch(&mut self) {
        let Home::Elsewhere(wire) = &self.home else { return self.dispatch() };
        let loss = Loss { after: 0, stored: true };
        wire.plan_loss(Some(loss));
        self.dispatch_until(Some(loss));
    }

    pub(crate) fn run_workflows(&mut self) {
        let loss = self.plan_loss(4);
        let answer = self.next_process().run_workflows();
        let batches = self.batches_through(loss, answer);
        let taken = self.model.run_workflows(batches.unwrap_or(usize::MAX));
        assert_eq!(taken, batches.unwrap_or(taken), "batches of a runner that was lost");
        self.compare("run workflows");
    }

    fn batches_through(
        &self,
        loss: Option<Loss>,
        answer: Result<(), EngineError>,
    ) -> Option<usize> {
        match self.came(loss) {
            Some(loss) => {
                assert_lost(answer);
                Some(loss.batches())
            }
            None => {
                answer.unwrap();
                None
            }
        }
    }

    /// Sometimes plans a loss of the connection within the next `most` batches.
    fn plan_loss(&mut self, most: usize) -> Option<Loss> {
        let Home::Elsewhere(wire) = &self.home else { return None };
        let planned = self.rng.chance(10);
        let loss = Loss { after: self.rng.below(most), stored: self.rng.chance(50) };
        let loss = planned.then_some(loss);
        wire.plan_loss(loss);
        loss
    }

    /// Returns the planned loss, if it happened.
    fn came(&self, loss: Option<Loss>) -> Option<Loss> {
        let Home::Elsewhere(wire) = &self.home else { return None };
        let loss = loss.filter(|_| !wire.is_loss_pending());
        wire.plan_loss(None);
        loss
    }

    /// Delivers a stored batch again, or a forged copy of it.
    fn repeat_a_batch(&mut self) {
        if self.batches.is_empty() {
            return;
        }
        let (start, end) = *self.rng.pick(&self.batches);
        let mut batch: Vec<NewEvent> = self.events[start..end]
            .iter()
            .map(|stored| NewEvent {
                expected: self.version_before(stored),
                event: stored.event.clone(),
            })
            .collect();
        let forged = self.rng.chance(30);
        if forged {
            batch.iter_mut().for_each(|new| new.event.id.0[15] ^= 1);
        }
        match self.next_process().log().append(&batch) {
            Ok(AppendOutcome::Before(seq)) if !forged => assert_eq!(seq, self.events[start].seq),
            Err(AppendError::Conflict { .. }) if forged => {}
            other => panic!("a batch again (forged: {forged}): {other:?}"),
        }
        self.compare("a batch again");
    }

    fn version_before(&self, stored: &StoredEvent) -> Seq {
        let same = |e: &&StoredEvent| e.event.subject == stored.event.subject && e.seq < stored.seq;
        self.events.iter().rev().find(same).map_or(0, |e| e.seq)
    }

    fn restart_a_process(&mut self) {
        let at = self.rng.below(self.processes.len());
        self.processes[at] = Project::new(self.home.open(), self.rules.clone(), "someone else");
    }

    /// Finishes the remaining work with any processes, more often than necessary.
    pub(crate) fn finish(&mut self) {
        for _ in 0..2 {
            self.run_workflows();
            self.dispatch();
        }
        if let Home::Elsewhere(wire) = &self.home {
            wire.plan_loss(None);
        }
        for process in &self.processes {
            process.run_workflows().unwrap();
            process.dispatch().unwrap();
        }
        self.model.run_workflows(usize::MAX);
        self.model.dispatch(usize::MAX);
        self.compare("the end");
        assert!(!self.model.is_pending());
    }
}
