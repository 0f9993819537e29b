//! Where answers come from: the project, opened when it is first needed, asked on threads that may block.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use hookloop_config::paths::{Place, PlaceError};
use hookloop_core::authority::ActorKind;
use hookloop_engine::caller::{Caller, CallerIdentity};
use hookloop_engine::command_outcome::Done;
use hookloop_engine::error::EngineError;
use hookloop_engine::guest::desk::{Bound, Desk};
use hookloop_engine::kept::Surroundings;
use hookloop_engine::project::Project;
use hookloop_engine::session::real::Stop;
use hookloop_hooks::trust;

use super::lanes::{Lanes, Reply};
use super::refusal::Refusal;
use crate::cli::{directory, state_home, surroundings, user_name};
use crate::error::CliError;

/// How long it may take to leave the store.
const LEAVE_MAX: Duration = Duration::from_millis(200);

/// The way to a project, which need not be there yet.
#[derive(Debug)]
pub(crate) struct Door {
    directory: Option<PathBuf>,
    trust: Option<String>,
    bound: Option<Bound>,
    /// Agents that come this way may go without a word.
    is_shared: bool,
    opened: Mutex<Option<Opened>>,
}

#[derive(Debug)]
struct Opened {
    desk: Desk,
    /// Of what the project was read from.
    stamps: [Stamp; 3],
}

impl Door {
    pub(crate) fn new(directory: Option<PathBuf>, trust: Option<String>) -> Door {
        Door { directory, trust, bound: None, is_shared: false, opened: Mutex::new(None) }
    }

    /// For agents that are not this program's parents.
    pub(crate) fn shared(self) -> Door {
        Door { is_shared: true, ..self }
    }

    /// For an agent that a session started.
    pub(crate) fn bound(self, bound: Option<Bound>) -> Door {
        Door { bound, ..self }
    }

    /// The desk of the project as it is configured now. Blocks.
    fn desk(&self) -> Result<Desk, Refusal> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::find(&directory(self.directory.as_deref())?, &state_home()?);
        let place = place.map_err(|error| match error {
            PlaceError::NoProject(_) => {
                Refusal::new("no_project", error.to_string(), "ask your user to run: hookloop init")
            }
            error => CliError::from(error).into(),
        })?;
        let surroundings = Surroundings { trust: self.trust.clone(), ..surroundings()? };
        let stamps = [
            Stamp::of(&place.config()),
            surroundings.user_file.as_deref().map_or(Stamp::none(), Stamp::of),
            Stamp::of(&trust::file(&place.state)),
        ];
        // A server stays for hours; rules that were changed meanwhile hold from the next call on.
        if let Some(opened) = opened.as_ref().filter(|opened| opened.stamps == stamps) {
            return Ok(opened.desk.clone());
        }
        let project =
            Project::open(&place, self.caller(), &surroundings).map_err(CliError::from)?;
        let desk = match opened.as_ref() {
            // What is under way goes on under the new rules.
            Some(before) => before.desk.reopened(project),
            None => {
                let desk = Desk::new(project, self.bound.clone()).map_err(CliError::from)?;
                if self.is_shared { desk.shared() } else { desk }
            }
        };
        *opened = Some(Opened { desk: desk.clone(), stamps });
        Ok(desk)
    }

    /// Calls are an agent's, whoever started this program.
    fn caller(&self) -> Caller {
        match &self.bound {
            Some(bound) => {
                let name = bound.session.actor();
                Caller::known(&name, CallerIdentity::agent(ActorKind::SessionAgent))
            }
            None => {
                let identity = CallerIdentity::agent(ActorKind::ExternalSession);
                Caller::known(&user_name(), identity)
            }
        }
    }
}

/// Does the reactions and workflows that calls led to.
fn settle(project: &Project) -> Result<(), EngineError> {
    if project.has_pending()? {
        project.react_here(&mut Done::default())?;
    }
    project.tend()
}

/// What tells a file from what it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(u64, u64, i64, i64)>);

impl Stamp {
    /// Of no file.
    pub(crate) fn none() -> Stamp {
        Stamp(None)
    }

    pub(crate) fn of(path: &Path) -> Stamp {
        let stamp = |file: Metadata| (file.ino(), file.len(), file.mtime(), file.mtime_nsec());
        Stamp(std::fs::metadata(path).ok().map(stamp))
    }
}

/// Takes calls to the desk.
#[derive(Debug)]
pub(crate) struct Counter {
    door: Door,
    lanes: Lanes,
    tending: Mutex<()>,
    /// Something was written since reactions were last looked for, here or by a process that died.
    is_due: AtomicBool,
}

impl Counter {
    pub(crate) fn new(door: Door) -> Arc<Counter> {
        Arc::new(Counter {
            door,
            lanes: Lanes::new(),
            tending: Mutex::new(()),
            is_due: AtomicBool::new(true),
        })
    }

    /// Answers when the work is done, or when the caller is `gone`.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Counter>,
        gone: impl Future<Output = ()>,
        writes: bool,
        work: impl FnOnce(&Desk) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let counter = Arc::clone(self);
        let stop = Stop::new().map_err(CliError::from)?;
        let of_call = stop.clone();
        let work = move |reply: Reply<_>| {
            // Who has gone while it waited wants nothing any more.
            if reply.is_unwanted() {
                return;
            }
            let desk = match counter.door.desk() {
                Ok(desk) => desk.for_call(of_call),
                Err(refusal) => return reply.send(Err(refusal)),
            };
            reply.send(work(&desk));
            counter.is_due.fetch_or(writes, Ordering::AcqRel);
            counter.tend(desk.project());
        };
        let answered = self.lanes.run(gone, work).await;
        if answered.is_err() {
            // What it has begun is called off.
            stop.by_user();
        }
        answered.unwrap_or_else(|unanswered| Err(unanswered.into()))
    }

    /// Looks at the project, and does nothing in it; none if that can't be done now.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<Counter>,
        work: impl FnOnce(&Project) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let counter = Arc::clone(self);
        let work = move |reply: Reply<_>| {
            if !reply.is_unwanted() {
                reply.send(counter.door.desk().ok().and_then(|desk| work(desk.project())));
            }
        };
        self.lanes.run(std::future::pending(), work).await.ok().flatten()
    }

    /// Does the reactions that calls led to, after their answers, on one thread at a time.
    fn tend(&self, project: &Project) {
        while self.is_due.load(Ordering::Acquire) {
            let Ok(_turn) = self.tending.try_lock() else { return };
            while self.is_due.swap(false, Ordering::AcqRel) {
                // What stays undone is told by the next command that a person types.
                let _ = settle(project);
            }
        }
    }

    /// Before the process ends. A call that still runs may have the store, and is not waited for.
    pub(crate) fn leave(self: Arc<Counter>) {
        let (left, is_left) = mpsc::channel();
        thread::spawn(move || {
            let opened = self.door.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(opened) = opened {
                opened.desk.project().clone().leave();
            }
            let _ = left.send(());
        });
        let _ = is_left.recv_timeout(LEAVE_MAX);
    }
}
