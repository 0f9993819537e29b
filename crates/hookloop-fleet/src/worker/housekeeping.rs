//! The housekeeping of a project beside its tasks.
//!
//! Each duty has a thread, because each may take long. A hook that runs for minutes must not delay the detection of
//! a dead worker.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::id::SessionId;
use hookloop_core::task::TaskState;
use hookloop_engine::delivery::train::{self, TrainError, TrainReport};
use hookloop_engine::dispatcher::{DispatchRound, Dispatcher};
use hookloop_engine::error::EngineError;
use hookloop_engine::launch::{self, SessionAttendance};
use hookloop_engine::leader_lease::{BEAT, LeaderLease, LeaseStanding, SEAT_LEASE};
use hookloop_engine::lease::ExpiredClaim;
use hookloop_engine::project::Project;
use hookloop_engine::session::abandoned;
use hookloop_engine::session::observer::NoObserver;
use hookloop_engine::session::stop_switch::{RestSwitch, StopSwitch};
use hookloop_engine::store::SessionRow;
use hookloop_process::Cancel;
use hookloop_store::heartbeat::HeldResource;

use super::task_run::OPEN_MAX;
use super::{AFTER_ERROR, WorkerLoop, WorkerUpdate};
use crate::notify::Notifier;

/// Interval between two searches for sessions whose process has ended without ending them.
const SWEEP: Duration = Duration::from_secs(15);
/// Pause after a merge train that merged or rejected nothing. Each further one doubles it.
const WAIT: Duration = Duration::from_secs(2);
const WAIT_MAX: Duration = Duration::from_secs(300);

/// State that the housekeeping threads of one project share.
#[derive(Debug, Default)]
pub(super) struct Housekeeping {
    /// This worker has the leader lease, so it runs the reactions.
    leads: AtomicBool,
    /// This worker has the lease of the merge train.
    drives: AtomicBool,
    /// The head of the log after the last merge train.
    rode: AtomicU64,
    /// Another worker has the lease of the merge train.
    is_others: AtomicBool,
    /// A directive forbids new work, or the worker drains.
    is_held: AtomicBool,
    /// Cancels the merge train that is running.
    train: Mutex<Option<Cancel>>,
    /// Held by the thread that ends the session of a lost process.
    ending_abandoned: Mutex<()>,
}

impl Housekeeping {
    pub(super) fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::SeqCst);
    }

    fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// Cancels the merge train that is running, if any.
    pub(super) fn halt(&self) {
        if let Some(train) = &*self.train.lock().unwrap_or_else(PoisonError::into_inner) {
            train.trigger();
        }
    }

    fn set_train(&self, train: Option<Cancel>) {
        *self.train.lock().unwrap_or_else(PoisonError::into_inner) = train;
    }
}

impl<'w> WorkerLoop<'w> {
    pub(super) fn begin_tending<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>) {
        for place in 0..self.worker.served_projects.len() {
            scope.spawn(move || self.watch(scope, place));
            scope.spawn(move || self.tidy(scope, place));
            scope.spawn(move || self.react(place));
            if self.worker.served_projects[place].is_copy() {
                scope.spawn(move || self.keep_fresh(place));
            }
            if self.worker.plan.merges {
                scope.spawn(move || self.merge(place));
            }
        }
    }

    /// Renews the leases of this project, and ends the claims of lost workers.
    fn watch<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>, place: usize) {
        let served = &self.worker.served_projects[place];
        let (mut project, mut generation) = (served.project(), served.generation());
        let name = format!("{} {}", self.worker.plan.name, fresh_id());
        // Each worker runs a notifier. The log ensures that each problem is sent once for each
        // channel.
        let notifier = match Notifier::start(&project, served.channels()) {
            Ok(notifier) => notifier,
            Err(error) => {
                self.trouble(place, &error);
                None
            }
        };
        let mut dispatcher = match Dispatcher::new(&project, &name) {
            Ok(dispatcher) => dispatcher,
            Err(error) => return self.trouble(place, &error),
        };
        let mut train = LeaderLease::new(HeldResource::Train, name);
        while !self.over.wait(BEAT) {
            let began = Instant::now();
            for report in notifier.iter().flat_map(Notifier::reports) {
                match report {
                    Ok(report) => {
                        for failure in &report.failed {
                            let why = format!("{}: {}", failure.channel, failure.reason);
                            self.trouble(place, &why);
                        }
                    }
                    Err(error) => self.trouble(place, &error),
                }
            }
            if served.generation() != generation {
                (project, generation) = (served.project(), served.generation());
                dispatcher.renew((*project).clone());
            }
            let looked = self.keep_places(place, &project, &mut dispatcher, &mut train);
            if let Err(error) = looked {
                self.trouble(place, &error);
                self.over.wait(AFTER_ERROR);
                continue;
            }
            for ExpiredClaim { id, claim } in dispatcher.take_expired() {
                let name = served.name();
                self.tell(&WorkerUpdate::Expired { project: name, task: &id, agent: &claim.agent });
                if let Some(session) = SessionId::of_actor(&claim.agent) {
                    self.end_abandoned_aside(scope, place, session);
                }
            }
            if began.elapsed() >= SEAT_LEASE {
                let seconds = began.elapsed().as_secs();
                self.trouble(place, &format!("a look at all claims took {seconds} s"));
            }
        }
        // The next one need not wait until it is silent. If this can't be said, it does.
        if let Err(error) = dispatcher.leave().and_then(|()| train.leave(project.store())) {
            let project = project.name();
            tracing::warn!(project, %error, "the leases stay until they expire");
        }
    }

    /// Reloads the project's files and ends abandoned sessions, at intervals.
    ///
    /// Both can take long. `watch` must not wait for them, so they run on a thread of their own.
    fn tidy<'s, 'e>(&'e self, scope: &'s Scope<'s, 'e>, place: usize) {
        let mut seen = HashMap::new();
        while !self.over.wait(SWEEP) {
            // Merge trains and reactions use the current configuration, too.
            self.look(place);
            let project = self.worker.served_projects[place].project();
            if self.duties[place].leads.load(Ordering::SeqCst)
                && let Err(error) = self.sweep(scope, place, &project, &mut seen)
            {
                self.trouble(place, &error);
            }
        }
    }

    fn keep_places(
        &self,
        place: usize,
        project: &Project,
        dispatcher: &mut Dispatcher,
        train: &mut LeaderLease,
    ) -> Result<(), EngineError> {
        let duty = &self.duties[place];
        let submitted = project.read(|view| Ok(view.totals()?.count(TaskState::Submitted)))?;
        if !duty.is_held() {
            project.fire_schedules(now())?;
        }
        let leads = dispatcher.stand_by()? == DispatchRound::Leading;
        duty.leads.store(leads, Ordering::SeqCst);
        let delivers = self.worker.plan.merges && project.rules().delivery.is_some();
        let kept = match delivers && submitted > 0 {
            true => Some(train.keep(project.store())?),
            false => {
                train.leave(project.store())?;
                None
            }
        };
        let drives = matches!(kept, Some(LeaseStanding::Had | LeaseStanding::Beaten));
        duty.drives.store(drives, Ordering::SeqCst);
        duty.is_others.store(kept == Some(LeaseStanding::Not), Ordering::SeqCst);
        Ok(())
    }

    /// Updates the worker's clone of a repository at intervals.
    fn keep_fresh(&self, place: usize) {
        while !self.over.wait(BEAT) {
            if let Err(error) = self.worker.served_projects[place].refresh(&self.over) {
                // Sessions continue with the present clone.
                self.trouble(place, &error);
            }
        }
    }

    /// Runs reactions and workflows while this worker is the leader.
    fn react(&self, place: usize) {
        let duty = &self.duties[place];
        let mut known = 0;
        while !self.over.is_triggered() {
            let project = self.worker.served_projects[place].project();
            let done = match duty.leads.load(Ordering::SeqCst) && !duty.is_held() {
                true => project.lead_reactions(),
                false => Ok(()),
            };
            let waited = done.and_then(|()| Ok(project.store().wait_for_news(known, BEAT)?));
            match waited {
                Ok(head) if head > known => known = head,
                // No new events. `wait_for_news` has already waited, so this loop need not.
                Ok(_) => {}
                Err(error) => {
                    self.trouble(place, &error);
                    self.over.wait(AFTER_ERROR);
                }
            }
        }
    }

    /// Runs merge trains for submitted tasks.
    fn merge(&self, place: usize) {
        let duty = &self.duties[place];
        let (mut pause, mut until) = (WAIT, Instant::now());
        let mut known = 0;
        while !self.over.wait(BEAT / 4) {
            let project = self.worker.served_projects[place].project();
            let waiting = project.read(|view| view.totals());
            let waiting = waiting.map(|totals| (totals.count(TaskState::Submitted), totals.head));
            let Ok((waiting, head)) = waiting else { continue };
            let is_due =
                duty.drives.load(Ordering::SeqCst) && (Instant::now() >= until || head > known);
            let is_fit = self.worker.served_projects[place].is_fit();
            if waiting == 0 || !is_due || !is_fit || duty.is_held() {
                continue;
            }
            let rode = self.ride(place, &project);
            // Events that the train wrote must not start the next one.
            known = project.read(|view| view.totals()).map_or(head, |totals| totals.head);
            duty.rode.store(known, Ordering::SeqCst);
            pause = match rode {
                Ok(true) => WAIT,
                Ok(false) => (pause * 2).min(WAIT_MAX),
                Err(error) => {
                    self.trouble(place, &error);
                    (pause * 2).min(WAIT_MAX)
                }
            };
            until = Instant::now() + pause;
        }
    }

    /// Whether submitted tasks wait for a merge train that this worker would run.
    pub(super) fn is_merging(&self, place: usize) -> bool {
        let project = self.worker.served_projects[place].project();
        let delivers = self.worker.plan.merges && project.rules().delivery.is_some();
        let totals = project.read(|view| view.totals());
        let duty = &self.duties[place];
        let rode = duty.rode.load(Ordering::SeqCst);
        delivers
            && !duty.is_others.load(Ordering::SeqCst)
            && totals
                .is_ok_and(|totals| totals.count(TaskState::Submitted) > 0 && totals.head > rode)
    }

    /// Runs one merge train. Returns whether any entry got a final result.
    fn ride(&self, place: usize, project: &Project) -> Result<bool, TrainError> {
        let Some(runner) = project.runner() else { return Ok(false) };
        let name = self.worker.served_projects[place].name();
        let mut told = |arrival: &TrainReport| {
            self.tell(&WorkerUpdate::MergeResult { project: name, arrival })
        };
        let Ok(cancel) = Cancel::new() else { return Ok(false) };
        self.duties[place].set_train(Some(cancel.clone()));
        let arrivals = train::merge(project, runner, &cancel, &mut told);
        self.duties[place].set_train(None);
        let arrivals = arrivals?;
        Ok(arrivals.iter().any(|arrival| !arrival.fate.is_pending()))
    }

    /// Ends the open sessions of lost workers.
    ///
    /// Expired claims end most of them. This sweep finds the rest, for example if the worker that
    /// ended the claim died, too. A worker with a new heartbeat since the last sweep is alive.
    fn sweep<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        place: usize,
        project: &Project,
        seen: &mut HashMap<String, u64>,
    ) -> Result<(), EngineError> {
        let open = project.read(|view| view.open_sessions(OPEN_MAX))?;
        // A user without the right to list all workers leaves the sweep to workers with that right.
        let Ok(signs) = self.worker.fleet.signs() else { return Ok(()) };
        let signs = signs.into_iter().map(|(worker, count)| (worker.name.to_string(), count));
        let before = std::mem::replace(seen, signs.collect());
        let is_left = |row: &&SessionRow| match seen.get(&row.machine) {
            Some(count) => before.get(&row.machine) == Some(count),
            None => !before.contains_key(&row.machine),
        };
        for row in open.iter().filter(is_left) {
            self.end_abandoned_aside(scope, place, row.id.clone());
        }
        // Releases reservations of sessions that another process has ended.
        match project.fleet_budget() {
            Some(books) => books.settle_all(project),
            None => Ok(()),
        }
    }

    /// Ends a session on a thread of its own, because its hooks can take long.
    ///
    /// One session at a time ends for each project.
    pub(super) fn end_abandoned_aside<'s, 'e>(
        &'e self,
        scope: &'s Scope<'s, 'e>,
        place: usize,
        session: SessionId,
    ) {
        scope.spawn(move || {
            let ending_abandoned = self.duties[place].ending_abandoned.lock();
            let _one_at_a_time = ending_abandoned.unwrap_or_else(PoisonError::into_inner);
            self.end_abandoned(place, &session);
        });
    }

    /// Ends a session whose worker missed its heartbeats for the lease of the task.
    fn end_abandoned(&self, place: usize, session: &SessionId) {
        let served = &self.worker.served_projects[place];
        let project = served.project();
        let Some(runner) = project.runner() else { return };
        let name = self.worker.plan.name.as_str();
        let opened = match abandoned::end_abandoned(&project, runner, session, name) {
            Ok(Some(opened)) => opened,
            Ok(None) => return,
            // Its worker was not dead, and has just said so.
            Err(error) => {
                tracing::info!(%session, %error, "a session is not ended for its worker");
                return;
            }
        };
        if let Err(error) = self.follow(&project, session) {
            return self.trouble(place, &error);
        }
        let stop = match StopSwitch::new() {
            Ok(stop) => stop,
            Err(error) => return self.trouble(place, &error),
        };
        // The processes of this session must end with the worker.
        let following = stop.follows_to_the_end(&self.over);
        let config = served.place().config();
        let around = SessionAttendance {
            observer: NoObserver,
            stop,
            rest: RestSwitch::default(),
            config: &config,
        };
        if let Err(error) = launch::perform(&project, &opened, around) {
            self.trouble(place, &error);
        }
        drop(following);
    }
}
