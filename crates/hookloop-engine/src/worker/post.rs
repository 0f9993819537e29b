//! A project that a worker serves, as its files say now.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::agents::crew::Roll;
use crate::agents::repository::{self, Wanted};
use crate::agents::{self, BadAgent};
use crate::fleet::{Books, Fleet, Served};
use crate::kept::{Kept, Surroundings};
use crate::notify::Channel;
use crate::place::Place;
use crate::project::{EngineError, Project};
use crate::session::StartError;
use crate::session::open::check_trust;

use super::WorkerPlan;

/// How often a project of which nothing can be taken is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Why nothing is taken of a project.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Agent(#[from] repository::Unfit),
    #[error(transparent)]
    BadAgent(#[from] BadAgent),
    #[error("there is no directory to work in")]
    Nowhere,
}

#[derive(Debug)]
pub struct Post {
    name: String,
    place: Place,
    weight: u32,
    surroundings: Surroundings,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    project: Project,
    stamp: Option<Stamp>,
    unfit: Option<String>,
    looked: Instant,
}

/// What tells a file from what it was.
type Stamp = (u64, u64, i64, i64);

impl Post {
    /// A project whose sessions are in the books of the fleet.
    pub fn open(
        project: Project,
        place: Place,
        fleet: &Fleet,
        weight: u32,
        surroundings: &Surroundings,
    ) -> Post {
        let name = name_of(&project, &place);
        let stamp = stamp(&place.config());
        let project = project.with_books(Books::new(fleet.clone(), &name));
        let surroundings = surroundings.clone();
        let now = Now { project, stamp, unfit: None, looked: Instant::now() };
        Post { name, place, weight: weight.max(1), surroundings, now: Mutex::new(now) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// How the user of this machine is told of what needs a human.
    pub(super) fn channels(&self) -> Vec<Channel> {
        self.surroundings.user().map(|user| user.channels).unwrap_or_default()
    }

    pub(super) fn weight(&self) -> u64 {
        u64::from(self.weight)
    }

    /// The project as it was opened last.
    pub(super) fn project(&self) -> Project {
        self.lock().project.clone()
    }

    pub(super) fn served(&self) -> Served {
        Served { project: self.name.clone(), unfit: self.lock().unfit.clone() }
    }

    /// Looks whether tasks of it can be worked on by the agent, as its files are now. Answers the project, or what is
    /// new about why not.
    pub(super) fn look(&self, plan: &WorkerPlan) -> Result<Project, Option<String>> {
        let mut now = self.lock();
        let stamp = stamp(&self.place.config());
        let is_same = stamp == now.stamp;
        if is_same && now.unfit.is_some() && now.looked.elapsed() < LOOK_AGAIN {
            return Err(None);
        }
        now.looked = Instant::now();
        if !is_same || now.unfit.is_some() {
            match now.project.renewed(&self.place, &self.surroundings) {
                Ok(project) => (now.project, now.stamp) = (project, stamp),
                Err(error) => return Err(now.unfit_because(error.to_string())),
            }
        }
        match check(&now.project, plan) {
            Ok(()) => {
                now.unfit = None;
                Ok(now.project.clone())
            }
            Err(unfit) => Err(now.unfit_because(unfit.to_string())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Now {
    /// Remembers why; answers it if it is news.
    fn unfit_because(&mut self, why: String) -> Option<String> {
        let is_news = self.unfit.as_ref() != Some(&why);
        self.unfit = Some(why.clone());
        is_news.then_some(why)
    }
}

/// Whether a session could be started.
pub(super) fn check(project: &Project, plan: &WorkerPlan) -> Result<(), Unfit> {
    let runner = project.runner().ok_or(Unfit::Nowhere)?;
    check_trust(runner, &project.hooks()?)?;
    let wanted = Wanted { model: plan.model.clone(), permissions: plan.permissions.clone() };
    let fallback = project.rules().session.fallback.iter();
    let fallback = fallback.flat_map(|fallback| fallback.agents.clone()).collect();
    let roll = Roll { agent: plan.agent.clone(), wanted, fallback };
    for (_, fit) in roll.muster(project.rules(), runner.ground())? {
        agents::open(fit.settings, runner.root())?;
    }
    Ok(())
}

/// What the fleet calls a project: the name that machines share, else that of its directory.
fn name_of(project: &Project, place: &Place) -> String {
    match project.kept() {
        Kept::Nats { project, .. } => project.to_string(),
        Kept::Here => {
            let state = place.state.file_name().unwrap_or_default();
            state.to_string_lossy().into_owned()
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}
