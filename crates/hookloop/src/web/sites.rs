//! The projects that are shown: the one that is served, and the user's others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hookloop_engine::fleet::Fleet;
use hookloop_engine::kept::{AfterLoss, Surroundings};
use hookloop_engine::place::Place;
use hookloop_engine::project::{EngineError, Project};
use hookloop_engine::store::Links;
use hookloop_engine::trust;

use super::live::Live;
use super::records::Records;
use crate::environment::caller;
use crate::error::{CliError, Result};
use crate::mcp::FileStamp;

/// Projects that are listed.
const LISTED_MAX: usize = 50;
/// Projects that are open at the same time; with one more those that nobody looks at are closed.
const OPEN_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Sites {
    here: Place,
    home: PathBuf,
    surroundings: Surroundings,
    open: Mutex<HashMap<String, Arc<Site>>>,
}

/// A project that is looked at.
#[derive(Debug)]
pub(super) struct Site {
    /// Its name in addresses.
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) project: Project,
    /// Why nothing but its log could be opened.
    pub(super) trouble: Option<String>,
    pub(super) live: Arc<Live>,
    pub(super) records: Records,
    /// Opened when it is first looked at.
    pub(super) fleet: Mutex<Option<Fleet>>,
    /// Of what it was read from.
    stamps: [FileStamp; 3],
}

impl Sites {
    /// The project at `here`, and others that have their state in `home`.
    pub(crate) fn new(here: Place, home: PathBuf, surroundings: Surroundings) -> Sites {
        let surroundings = Surroundings { stays: Some(Links::default()), ..surroundings };
        Sites { here, home, surroundings, open: Mutex::default() }
    }

    /// The key of the project that is served.
    pub(super) fn here(&self) -> String {
        key(&self.here)
    }

    /// All of them, the one that is served first.
    pub(super) fn list(&self) -> Vec<Place> {
        let others = Place::all(&self.home, LISTED_MAX).into_iter();
        let others = others.filter(|place| place.root != self.here.root);
        [self.here.clone()].into_iter().chain(others).collect()
    }

    /// The project of that key, under what its files say now. Blocks.
    pub(super) fn get(&self, wanted: &str) -> Result<Option<Arc<Site>>> {
        let known = self.lock().get(wanted).map(|site| site.place.clone());
        let find = || self.list().into_iter().find(|place| key(place) == wanted);
        known.or_else(find).map(|place| self.at(&place)).transpose()
    }

    /// The project at a place.
    pub(super) fn at(&self, place: &Place) -> Result<Arc<Site>> {
        let key = key(place);
        let stamps = self.stamps(place);
        let known = self.lock().get(&key).cloned();
        if let Some(site) = known.as_ref().filter(|site| site.stamps == stamps) {
            return Ok(Arc::clone(site));
        }
        let (project, trouble) = self.open(place, known.as_deref())?;
        let site = Arc::new(Site {
            key: key.clone(),
            place: place.clone(),
            project,
            trouble,
            live: known.map(|site| Arc::clone(&site.live)).unwrap_or_default(),
            records: Records::default(),
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

    /// Whether a project is on this machine, so that a look at it costs little.
    pub(super) fn is_near(&self, place: &Place) -> bool {
        place.database().is_file() || self.lock().contains_key(&key(place))
    }

    /// A project whose files are wrong can still be looked at.
    fn open(&self, place: &Place, known: Option<&Site>) -> Result<(Project, Option<String>)> {
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

    fn stamps(&self, place: &Place) -> [FileStamp; 3] {
        let user_file = self.surroundings.user_file.as_deref();
        [
            FileStamp::of(&place.config()),
            user_file.map_or(FileStamp::none(), FileStamp::of),
            FileStamp::of(&trust::file(&place.state)),
        ]
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Site>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn home(&self) -> &std::path::Path {
        &self.home
    }

    pub(super) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }
}

/// The name of a project's state, which no other has.
pub(super) fn key(place: &Place) -> String {
    place.state.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
