//! A worker: claims ready tasks, runs their sessions, and does the housekeeping of its projects.
//!
//! One thread decides which tasks begin and end (`run`). Each session has a thread, and each project has a few more
//! for its housekeeping. They share only the log: no thread has to be alive for another's work to be safe.
//!
//! - `post`: a project that the worker serves, as its files are now
//! - `hand`: one task from its claim to its end
//! - `tend`: expired claims, reactions, merges
//! - `choose`: the next project

mod choose;
mod hand;
mod post;
mod tend;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::Scope as Threads;
use std::time::{Duration, Instant};

use hookloop_config::clock::now;
use hookloop_core::event::FORMAT;
use hookloop_core::fleet::{FleetOrder, FleetOrders, FleetScope, StandingOrder, WorkerName};
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::time::Timestamp;
use hookloop_engine::delivery::train::Arrival;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_process::Cancel;

use crate::fleet::{Fleet, Presence, Running, WorkerState};

pub use hand::End;
pub use post::{Post, Site, check_out};

use hand::Hand;
use tend::Duty;

/// How often orders are looked at, and what is ready.
const TICK: Duration = Duration::from_millis(200);
/// How often the worker shows that it is there when nothing is new about it: several times until a list takes it for
/// gone, and until others look whether it was silent.
const SHOW: Duration = Duration::from_secs(5);
/// What ends a session has so long for it; then nothing of it may run any more.
const END_GRACE: Duration = Duration::from_secs(2);
/// After an error of the store.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Sessions at once, at most.
pub const SLOTS_MAX: u32 = 256;

/// What a worker is to do.
#[derive(Clone, Debug)]
pub struct WorkerPlan {
    pub name: WorkerName,
    pub machine: String,
    pub version: String,
    /// Sessions at once.
    pub slots: u32,
    pub agent: String,
    pub model: Option<String>,
    pub permissions: Option<String>,
    /// Only tasks of these types; any if there are none.
    pub types: Vec<String>,
    /// Only tasks with one of these labels; any if there are none.
    pub labels: Vec<String>,
    /// How long it may be silent until others take its tasks.
    pub lease: Duration,
    /// How long it has to finish when it is to end.
    pub drain: Duration,
    /// Whether it merges what was submitted.
    pub merges: bool,
    /// Whether it ends when there is nothing left to do.
    pub until_idle: bool,
}

/// What a worker tells as it goes.
#[derive(Debug)]
pub enum Told<'a> {
    Took {
        project: &'a str,
        task: &'a TaskId,
        session: &'a SessionId,
        is_resumed: bool,
    },
    Ended {
        project: &'a str,
        task: &'a TaskId,
        session: &'a SessionId,
        end: &'a End,
    },
    Arrived {
        project: &'a str,
        arrival: &'a Arrival,
    },
    /// A claim ended because its holder was silent.
    Expired {
        project: &'a str,
        task: &'a TaskId,
        agent: &'a str,
    },
    State(WorkerState),
    /// Nothing is taken of a project any more, or again.
    Unfit {
        project: &'a str,
        why: Option<&'a str>,
    },
    /// Something did not work out, and is tried again.
    Trouble {
        project: Option<&'a str>,
        why: String,
    },
}

/// Who hears it; from several threads at once.
pub type Listener<'l> = &'l (dyn Fn(&Told<'_>) + Sync);

/// What ends a worker from outside.
#[derive(Clone, Debug)]
pub struct Quit {
    /// It takes nothing more, and finishes what it has.
    pub drain: Cancel,
    /// It gives back what it has.
    pub now: Cancel,
}

/// Why a worker can't begin.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(Debug)]
pub struct Worker {
    plan: WorkerPlan,
    posts: Vec<Post>,
    fleet: Fleet,
}

/// What the threads of a worker share while it runs.
struct Shift<'w> {
    worker: &'w Worker,
    listener: Listener<'w>,
    quit: &'w Quit,
    /// On when all threads are to end.
    over: Cancel,
    done: Sender<(SessionId, TaskId, usize, End)>,
    started: Timestamp,
    /// For each project.
    duties: Vec<Duty>,
}

/// Where the thread that decides is.
struct Desk {
    hands: Vec<Hand>,
    orders: FleetOrders,
    /// Since when the worker is to end.
    draining: Option<Instant>,
    state: WorkerState,
    shown: Option<Instant>,
    /// For each post: when it was served last, and until when it is left alone.
    served: Vec<u64>,
    rests: Vec<Option<Instant>>,
    /// When there was nothing to take of it.
    dry: Vec<Option<Instant>>,
    /// There was not enough for another turn, when that was looked at last.
    is_broke: bool,
    count: u64,
}

impl Worker {
    pub fn new(plan: WorkerPlan, posts: Vec<Post>, fleet: Fleet) -> Worker {
        Worker { plan, posts, fleet }
    }

    /// Works until it is told to end, or there is nothing left to do.
    pub fn run(&self, quit: &Quit, listener: Listener<'_>) -> Result<(), WorkerError> {
        self.fleet.go_live()?;
        for post in &self.posts {
            post.project().store().go_live().map_err(EngineError::from)?;
        }
        let (done, ended) = mpsc::channel();
        let shift = Shift {
            worker: self,
            listener,
            quit,
            over: Cancel::new()?,
            done,
            started: now(),
            duties: self.posts.iter().map(|_| Duty::default()).collect(),
        };
        std::thread::scope(|scope| {
            shift.begin_tending(scope);
            let worked = shift.work(scope, &ended);
            shift.over.trigger();
            worked
        })?;
        // Who looks at the list need not wait until it is silent.
        self.fleet.leave(&self.plan.name)?;
        // It has done what it was told; the next one of that name was not.
        let scope = FleetScope::Worker(self.plan.name.to_string());
        let orders = self.fleet.orders()?;
        let is_drain = |standing: &StandingOrder| {
            standing.ordered.scope == scope && standing.ordered.order == FleetOrder::Drain
        };
        if orders.0.iter().any(is_drain) {
            self.fleet.clear(scope)?;
        }
        Ok(())
    }
}

impl<'w> Shift<'w> {
    fn tell(&self, told: &Told<'_>) {
        (self.listener)(told);
    }

    fn trouble(&self, post: usize, error: &dyn std::fmt::Display) {
        let project = Some(self.worker.posts[post].name());
        self.tell(&Told::Trouble { project, why: error.to_string() });
    }

    /// A project as its files say now, if tasks of it can be worked on; tells when that is not as it was.
    fn look(&self, post: usize) -> Option<Arc<Project>> {
        let served = &self.worker.posts[post];
        let (project, was_fit) = (served.name(), served.is_fit());
        match served.look(&self.worker.plan) {
            Ok(found) => {
                if !was_fit {
                    self.tell(&Told::Unfit { project, why: None });
                }
                Some(found)
            }
            Err(news) => {
                if let Some(why) = &news {
                    self.tell(&Told::Unfit { project, why: Some(why) });
                }
                None
            }
        }
    }

    fn work<'s, 'e>(
        &'e self,
        scope: &'s Threads<'s, 'e>,
        ended: &Receiver<(SessionId, TaskId, usize, End)>,
    ) -> Result<(), WorkerError> {
        let posts = self.worker.posts.len();
        let mut desk = Desk {
            hands: Vec::new(),
            orders: FleetOrders::default(),
            draining: None,
            state: WorkerState::Working,
            shown: None,
            served: vec![0; posts],
            rests: vec![None; posts],
            dry: vec![None; posts],
            is_broke: false,
            count: 0,
        };
        self.heed_orders(&mut desk);
        // Who is not on the list is taken for gone.
        self.show(&mut desk);
        self.pick_up(scope, &mut desk);
        // Who started it by mistake for what it can't do need not wait for a task to hear so.
        for post in 0..posts {
            self.look(post);
        }
        loop {
            self.heed_orders(&mut desk);
            let is_dry = desk.state == WorkerState::Working && self.fill(scope, &mut desk);
            self.show(&mut desk);
            let is_over = desk.draining.is_some()
                || self.worker.plan.until_idle && is_dry && self.is_idle(&desk);
            if is_over && desk.hands.is_empty() {
                return Ok(());
            }
            self.hear(&mut desk, ended);
        }
    }

    /// Waits for a moment, or until a session is over.
    fn hear(&self, desk: &mut Desk, ended: &Receiver<(SessionId, TaskId, usize, End)>) {
        let mut next = ended.recv_timeout(TICK);
        while let Ok((session, task, post, end)) = next {
            desk.hands.retain(|hand| hand.session != session);
            desk.shown = None;
            let project = self.worker.posts[post].name();
            if let Some(rest) = end.rest() {
                desk.rests[post] = Some(Instant::now() + rest);
            }
            self.tell(&Told::Ended { project, task: &task, session: &session, end: &end });
            next = ended.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        }
    }

    /// Does what those who run the fleet want, and what its own program was told.
    fn heed_orders(&self, desk: &mut Desk) {
        match self.worker.fleet.orders() {
            Ok(orders) => desk.orders = orders,
            // What was ordered before holds.
            Err(error) => self.tell(&Told::Trouble { project: None, why: error.to_string() }),
        }
        let plan = &self.worker.plan;
        let name = plan.name.as_str();
        let order = desk.orders.of_worker(name).map(|standing| standing.ordered.order);
        if desk.draining.is_none()
            && (self.quit.drain.is_triggered() || order == Some(FleetOrder::Drain))
        {
            desk.draining = Some(Instant::now());
        }
        let is_late = desk.draining.is_some_and(|since| since.elapsed() >= plan.drain);
        let ends_all = is_late || self.quit.now.is_triggered();
        if ends_all {
            desk.draining.get_or_insert_with(Instant::now);
        }
        for rest in &mut desk.rests {
            *rest = rest.filter(|until| Instant::now() < *until);
        }
        let of_post =
            |post: &Post| desk.orders.of(name, post.name()).map(|standing| standing.ordered.order);
        let of_posts: Vec<Option<FleetOrder>> = self.worker.posts.iter().map(of_post).collect();
        for hand in &mut desk.hands {
            let order = of_posts[hand.post];
            hand.rest.set(order == Some(FleetOrder::Pause));
            if ends_all
                || order == Some(FleetOrder::Stop)
                || hand.is_lost(&self.worker.posts[hand.post])
            {
                hand.end();
            }
        }
        for (duty, order) in self.duties.iter().zip(of_posts) {
            duty.hold(order.is_some() || desk.draining.is_some());
            if ends_all || order == Some(FleetOrder::Stop) {
                duty.halt();
            }
        }
        let state = match (desk.draining, order) {
            (Some(_), _) => WorkerState::Draining,
            (None, Some(order)) => order.into(),
            (None, None) => WorkerState::Working,
        };
        if state != desk.state {
            desk.state = state;
            desk.shown = None;
            self.tell(&Told::State(state));
        }
    }

    fn show(&self, desk: &mut Desk) {
        if desk.shown.is_some_and(|shown| shown.elapsed() < SHOW) {
            return;
        }
        desk.shown = Some(Instant::now());
        let plan = &self.worker.plan;
        let running = desk.hands.iter().map(|hand| Running {
            project: self.worker.posts[hand.post].name().to_owned(),
            task: hand.task.to_string(),
            session: hand.session.to_string(),
            since: hand.since,
        });
        let presence = Presence {
            name: plan.name.clone(),
            machine: plan.machine.clone(),
            pid: std::process::id(),
            version: plan.version.clone(),
            format: FORMAT,
            state: desk.state,
            slots: plan.slots,
            agent: plan.agent.clone(),
            projects: self.worker.posts.iter().map(Post::served).collect(),
            running: running.collect(),
            started: self.started,
            seen: now(),
        };
        if let Err(error) = self.worker.fleet.show(&presence) {
            self.tell(&Told::Trouble { project: None, why: error.to_string() });
        }
    }

    /// Whether nothing is under way, here or in a train.
    fn is_idle(&self, desk: &Desk) -> bool {
        let posts = 0..self.worker.posts.len();
        desk.hands.is_empty() && posts.into_iter().all(|post| !self.is_merging(post))
    }
}
