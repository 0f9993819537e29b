//! The projects of the dashboard: the served one, and the user's others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hookloop_config::paths::ProjectPaths;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{AfterLoss, LaunchContext};
use hookloop_engine::project::Project;
use hookloop_engine::store::NatsLinks;
use hookloop_fleet::fleet::Fleet;
use hookloop_hooks::trust;

use super::live::LiveUpdates;
use super::records::SessionRecords;
use crate::environment::caller;
use crate::error::{CliError, CliResult};
use crate::mcp::FileStamp;

/// Projects that are listed at most.
const LISTED_MAX: usize = 50;
/// Projects that are open at the same time; above it, projects without a viewer are closed.
const OPEN_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct ProjectSites {
    here: ProjectPaths,
    home: PathBuf,
    surroundings: LaunchContext,
    open: Mutex<HashMap<String, Arc<ProjectSite>>>,
}

/// An open project.
#[derive(Debug)]
pub(super) struct ProjectSite {
    /// Its name in addresses.
    pub(super) key: String,
    pub(super) place: ProjectPaths,
    pub(super) project: Project,
    /// The error, if only its log could be opened.
    pub(super) trouble: Option<String>,
    pub(super) live: Arc<LiveUpdates>,
    pub(super) records: SessionRecords,
    /// Opened at the first view.
    pub(super) fleet: Mutex<Option<Fleet>>,
    /// The stamps of the files that configure the project.
    stamps: [FileStamp; 3],
}

impl ProjectSites {
    /// Returns the project at `here`, and the others with state in `home`.
    pub(crate) fn new(
        here: ProjectPaths,
        home: PathBuf,
        surroundings: LaunchContext,
    ) -> ProjectSites {
        let surroundings = LaunchContext { stays: Some(NatsLinks::default()), ..surroundings };
        ProjectSites { here, home, surroundings, open: Mutex::default() }
    }

    /// The key of the project that is served.
    pub(super) fn here(&self) -> String {
        key(&self.here)
    }

    /// Lists all projects, the served one first.
    pub(super) fn list(&self) -> Vec<ProjectPaths> {
        let others = ProjectPaths::all(&self.home, LISTED_MAX).into_iter();
        let others = others.filter(|place| place.root != self.here.root);
        [self.here.clone()].into_iter().chain(others).collect()
    }

    /// Returns the project of a key, with its current configuration. Blocks.
    pub(super) fn get(&self, wanted: &str) -> CliResult<Option<Arc<ProjectSite>>> {
        let known = self.lock().get(wanted).map(|site| site.place.clone());
        let find = || self.list().into_iter().find(|place| key(place) == wanted);
        known.or_else(find).map(|place| self.at(&place)).transpose()
    }

    /// The project at a place.
    pub(super) fn at(&self, place: &ProjectPaths) -> CliResult<Arc<ProjectSite>> {
        let key = key(place);
        let stamps = self.stamps(place);
        let known = self.lock().get(&key).cloned();
        if let Some(site) = known.as_ref().filter(|site| site.stamps == stamps) {
            return Ok(Arc::clone(site));
        }
        let (project, trouble) = self.open(place, known.as_deref())?;
        let site = Arc::new(ProjectSite {
            key: key.clone(),
            place: place.clone(),
            project,
            trouble,
            live: known.map(|site| Arc::clone(&site.live)).unwrap_or_default(),
            records: SessionRecords::default(),
            fleet: Mutex::default(),
            stamps,
        });
        let mut open = self.lock();
        if open.len() >= OPEN_MAX {
            open.retain(|_, site| Arc::strong_count(site) > 1);
        }
        open.insert(key, Arc::clone(&site));
        Ok(site)
    }

    /// Whether a project's log is on this machine, so that reading it is cheap.
    pub(super) fn is_near(&self, place: &ProjectPaths) -> bool {
        place.database().is_file() || self.lock().contains_key(&key(place))
    }

    /// Opens a project; if its configuration is invalid, only its log.
    fn open(
        &self,
        place: &ProjectPaths,
        known: Option<&ProjectSite>,
    ) -> CliResult<(Project, Option<String>)> {
        let opened = match known.filter(|site| site.trouble.is_none()) {
            Some(site) => site.project.renewed(place, &self.surroundings),
            None => Project::open(place, caller(place), &self.surroundings),
        };
        match opened {
            Ok(project) => Ok((project, None)),
            Err(
                error
                @ (EngineError::Config(_) | EngineError::Forbidden(_) | EngineError::Trust(_)),
            ) => {
                let project = match known {
                    Some(site) => site.project.clone(),
                    None => Project::open_log(
                        place,
                        caller(place),
                        &self.surroundings,
                        AfterLoss::Check,
                    )?,
                };
                Ok((project, Some(CliError::from(error).told())))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn stamps(&self, place: &ProjectPaths) -> [FileStamp; 3] {
        let user_file = self.surroundings.user_file.as_deref();
        [
            FileStamp::of(&place.config()),
            user_file.map_or(FileStamp::none(), FileStamp::of),
            FileStamp::of(&trust::file(&place.state)),
        ]
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<ProjectSite>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn home(&self) -> &std::path::Path {
        &self.home
    }

    pub(super) fn surroundings(&self) -> &LaunchContext {
        &self.surroundings
    }
}

/// Returns the unique name of a project's state directory.
pub(super) fn key(place: &ProjectPaths) -> String {
    place.state.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
