//! A project that a worker serves, as its files are now.
//!
//! The files are checked before each claim, so that the worker claims no task that could not begin.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hookloop_agents as agents;
use hookloop_agents::BadAgent;
use hookloop_agents::agent_chain::AgentNames;
use hookloop_agents::readiness::check_ready;
use hookloop_agents::repo_consent::{self, AgentChoices};
use hookloop_config::channels::NotificationChannel;
use hookloop_config::paths::ProjectPaths;
use hookloop_config::policy::PolicyFile;
use hookloop_config::repository::RepositorySource;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{LaunchContext, LogLocation};
use hookloop_engine::project::Project;
use hookloop_engine::session::StartError;
use hookloop_engine::session::prompt_template::{PromptTemplateError, read_template};
use hookloop_engine::session::start_checks::check_gates;
use hookloop_git::repo::{RepoDirectories, RepoError, mirror};
use hookloop_process::{Cancel, KeeperPool};

use super::WorkerPlan;
use crate::fleet::{Fleet, FleetLedger, ServedProject};

/// Interval at which an ineligible project is checked again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Interval at which a clone is updated from its source.
const REFRESH: Duration = Duration::from_secs(60);
/// Directory of the bare mirrors, beside the clones.
const MIRRORS: &str = "mirrors";

/// The reason why the worker claims no task of a project.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProjectRefusal {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Agent(#[from] repo_consent::AgentRefusal),
    #[error(transparent)]
    BadAgent(#[from] BadAgent),
    #[error(transparent)]
    Template(#[from] PromptTemplateError),
    #[error("there is no directory to work in")]
    Nowhere,
    #[error(
        "work in a copy of a repository has to be delivered: write `delivery: {{}}` into its hookloop.yaml"
    )]
    NotDelivered,
}

#[derive(Debug)]
pub struct WorkerProject {
    name: String,
    place: ProjectPaths,
    weight: u32,
    surroundings: LaunchContext,
    /// The source of the clone, if this machine has one for its workers only.
    source: Option<RepositorySource>,
    /// Number of sessions that work in the project, or -1 while the clone is updated.
    users: AtomicI32,
    refreshed: Mutex<Instant>,
    now: Mutex<PostState>,
}

/// The parts from which a [`Post`] is opened.
#[derive(Debug)]
pub struct WorkerProjectParts {
    pub project: Project,
    pub place: ProjectPaths,
    pub weight: u32,
    pub source: Option<RepositorySource>,
    pub surroundings: LaunchContext,
}

#[derive(Debug)]
struct PostState {
    project: Arc<Project>,
    stamp: Vec<Option<ConfigStamp>>,
    unfit: Option<String>,
    looked: Instant,
    /// Whether the agents' versions and logins were checked since the project was last reloaded.
    is_ready: bool,
    /// Number of reloads.
    generation: u64,
}

/// Inode, size and modification time of a file, which change when the file does.
type ConfigStamp = (u64, u64, i64, i64);

impl WorkerProject {
    /// Opens a project whose sessions are recorded in the fleet ledger.
    pub fn open(site: WorkerProjectParts, fleet: &Fleet) -> WorkerProject {
        let WorkerProjectParts { project, place, weight, source, surroundings } = site;
        let name = name_of(&project, &place);
        let stamp = stamps(&place, &surroundings);
        let project =
            Arc::new(project.with_books(Arc::new(FleetLedger::new(fleet.clone(), &name))));
        let (unfit, looked, is_ready, generation) = (None, Instant::now(), false, 0);
        let now = PostState { project, stamp, unfit, looked, is_ready, generation };
        WorkerProject {
            name,
            place,
            weight: weight.max(1),
            surroundings,
            source,
            users: AtomicI32::new(0),
            refreshed: Mutex::new(Instant::now()),
            now: Mutex::new(now),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a clone of the project with its current configuration.
    pub fn clone_project(&self) -> Project {
        (*self.project()).clone()
    }

    pub(super) fn place(&self) -> &ProjectPaths {
        &self.place
    }

    /// Returns the channels on which this machine's user gets notifications.
    pub(super) fn channels(&self) -> Vec<NotificationChannel> {
        self.surroundings.user().map(|user| user.channels).unwrap_or_default()
    }

    pub(super) fn weight(&self) -> u64 {
        u64::from(self.weight)
    }

    /// Registers a session that works in the project. Returns `false` while the clone is updated.
    pub(super) fn enter(&self) -> bool {
        let more = |users: i32| (users >= 0).then_some(users + 1);
        self.users.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Whether the clone is being updated.
    pub(super) fn is_refreshing(&self) -> bool {
        self.users.load(Ordering::SeqCst) < 0
    }

    pub(super) fn exit(&self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn is_copy(&self) -> bool {
        self.source.is_some()
    }

    /// Updates the clone from its source, if that is due and no session works in it.
    pub(super) fn refresh(&self, cancel: &Cancel) -> Result<(), RepoError> {
        let Some(source) = &self.source else { return Ok(()) };
        let mut refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = refreshed.elapsed() >= REFRESH;
        let alone = || self.users.compare_exchange(0, -1, Ordering::SeqCst, Ordering::SeqCst);
        if !is_due || alone().is_err() {
            return Ok(());
        }
        *refreshed = Instant::now();
        let done = check_out(&self.place, source, &self.surroundings, cancel);
        self.users.store(0, Ordering::SeqCst);
        done
    }

    /// Whether the project was eligible at the last check.
    pub(super) fn is_fit(&self) -> bool {
        self.lock().unfit.is_none()
    }

    /// Returns a number that changes with each reload.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Returns the project as it was loaded last.
    pub(super) fn project(&self) -> Arc<Project> {
        Arc::clone(&self.lock().project)
    }

    pub(super) fn served(&self) -> ServedProject {
        ServedProject { project: self.name.clone(), ineligible: self.lock().unfit.clone() }
    }

    /// Checks whether the agent can work on tasks of this project, with its current files.
    ///
    /// Returns the project, or the reason why not if the reason is new.
    pub(super) fn look(&self, plan: &WorkerPlan) -> Result<Arc<Project>, Option<String>> {
        let mut now = self.lock();
        let stamp = stamps(&self.place, &self.surroundings);
        let is_same = stamp == now.stamp;
        if is_same && now.unfit.is_some() && now.looked.elapsed() < LOOK_AGAIN {
            return Err(None);
        }
        now.looked = Instant::now();
        if !is_same || now.unfit.is_some() {
            match now.project.renewed(&self.place, &self.surroundings) {
                Ok(project) => {
                    (now.project, now.stamp) = (Arc::new(project), stamp);
                    now.generation += 1;
                    now.is_ready = false;
                }
                Err(error) => return Err(now.unfit_because(error.to_string())),
            }
        }
        let checked = match (&self.source, &now.project.rules().delivery) {
            (Some(_), None) => Err(ProjectRefusal::NotDelivered),
            _ => check(&now.project, plan, now.is_ready),
        };
        match checked {
            Ok(()) => {
                (now.unfit, now.is_ready) = (None, true);
                Ok(Arc::clone(&now.project))
            }
            Err(unfit) => Err(now.unfit_because(unfit.to_string())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PostState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostState {
    /// Records the reason. Returns it if it is new.
    fn unfit_because(&mut self, why: String) -> Option<String> {
        let is_news = self.unfit.as_ref() != Some(&why);
        self.unfit = Some(why.clone());
        is_news.then_some(why)
    }
}

/// Creates or updates the clone of a repository that this machine's workers share.
pub fn check_out(
    place: &ProjectPaths,
    source: &RepositorySource,
    surroundings: &LaunchContext,
    cancel: &Cancel,
) -> Result<(), RepoError> {
    let mirrors = place.root.with_file_name(MIRRORS);
    let keepers = KeeperPool::of_this_program();
    let environment = &surroundings.environment;
    let grounds =
        RepoDirectories { root: &place.root, state: &mirrors, environment, keepers: &keepers };
    mirror::check_out(grounds, source, cancel).map(drop)
}

/// Checks that a session could start.
///
/// If `is_ready` is set, the versions and logins of the agents are not checked again.
pub(super) fn check(
    project: &Project,
    plan: &WorkerPlan,
    is_ready: bool,
) -> Result<(), ProjectRefusal> {
    let runner = project.runner().ok_or(ProjectRefusal::Nowhere)?;
    check_gates(project, runner, &project.hooks()?)?;
    read_template(project, runner)?;
    let wanted = AgentChoices { model: plan.model.clone(), permissions: plan.permissions.clone() };
    let fallback = project.rules().session.fallback.iter();
    let fallback = fallback.flat_map(|fallback| fallback.agents.clone()).collect();
    let roll = AgentNames { agent: plan.agent.clone(), wanted, fallback };
    for (_, fit) in roll.muster(project.rules(), runner.ground())? {
        if !is_ready {
            check_ready(&fit.settings, runner).map_err(repo_consent::AgentRefusal::from)?;
        }
        agents::open(fit.settings, runner.root())?;
    }
    Ok(())
}

/// Returns the fleet's name of a project: its shared name, or else the name of its directory.
fn name_of(project: &Project, place: &ProjectPaths) -> String {
    match project.kept() {
        LogLocation::Nats { project, .. } => project.to_string(),
        LogLocation::Here => {
            let state = place.state.file_name().unwrap_or_default();
            state.to_string_lossy().into_owned()
        }
    }
}

/// Returns the stamps of all configuration files: policies, user and project.
fn stamps(place: &ProjectPaths, surroundings: &LaunchContext) -> Vec<Option<ConfigStamp>> {
    let policies = surroundings.policies.iter().map(|policy| match policy {
        PolicyFile::System(path) | PolicyFile::Named(path) => path.as_path(),
    });
    let config = place.config();
    let paths = policies.chain(surroundings.user_file.as_deref()).chain([config.as_path()]);
    paths.map(stamp).collect()
}

fn stamp(path: &Path) -> Option<ConfigStamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}
