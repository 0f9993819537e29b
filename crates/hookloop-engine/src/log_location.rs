//! The location of a project's log, and how the log is opened there.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hookloop_config::ConfigError;
use hookloop_config::paths::ProjectPaths;
use hookloop_config::policy::{PolicyFile, PolicySet};
use hookloop_config::project_file::ProjectSettings;
use hookloop_config::user::{NamedBy, StoreName, UserConfig};
use hookloop_core::digest::short_sha256_hex;
use hookloop_core::id::ProjectName;
use hookloop_core::store_config::{NatsAccess, NatsCredentials};
use hookloop_http::HttpClient;
use hookloop_store::checkup::loss_of_emptied;
use hookloop_store::jetstream::{
    self, JetStreamError, NatsLinks, NatsOptions, OpenedLog, ServerStanding,
};
use hookloop_store::sqlite::{LogLoss, LogOpenError, is_file_empty};
use hookloop_store::store::{Store, StoreError};

use crate::callers_above::owners_above;
use crate::error::EngineError;

/// The environment and the files with which the process was started.
#[derive(Clone, Debug, Default)]
pub struct LaunchContext {
    /// The store that the user chose. It takes precedence over the repository's.
    pub store: Option<StoreName>,
    /// The user's own configuration.
    pub user_file: Option<PathBuf>,
    /// Policy files, which take precedence over the user.
    pub policies: Vec<PolicyFile>,
    /// The address from which a worker cloned the project.
    pub cloned_from: Option<String>,
    /// The user's environment. Hooks get only the variables that they may have.
    pub environment: Vec<(OsString, OsString)>,
    /// The digest of the hooks that may run this time.
    pub trust: Option<String>,
    /// The connections of a long-running process, which its threads share.
    pub stays: Option<NatsLinks>,
}

impl LaunchContext {
    /// Returns the address from which a project was cloned, if it is known.
    pub(crate) fn cloned_from<'s>(
        &'s self,
        user: &'s UserConfig,
        place: &ProjectPaths,
    ) -> Option<&'s str> {
        self.cloned_from.as_deref().or_else(|| user.cloned_from(place))
    }

    /// Loads the policies.
    pub fn policies(&self) -> Result<PolicySet, ConfigError> {
        hookloop_config::policy_file::load(&self.policies)
    }

    /// Loads the user's configuration, restricted by the policies.
    pub fn user(&self) -> Result<UserConfig, ConfigError> {
        let policies = self.policies()?;
        Ok(self.own()?.under(policies))
    }

    /// Loads the user's configuration without policies, for callers that run nothing.
    pub(crate) fn own(&self) -> Result<UserConfig, ConfigError> {
        match &self.user_file {
            Some(path) => hookloop_config::user_file::load(path),
            None => Ok(UserConfig::default()),
        }
    }

    fn access(
        &self,
        user: &UserConfig,
        place: &ProjectPaths,
        urls: &str,
        named_by: NamedBy,
    ) -> Result<NatsOptions, EngineError> {
        let access = user.access(urls, named_by)?;
        let local = || place.state.parent().and_then(|home| token_of_local_server(home, urls));
        let credentials = access.credentials.clone().or_else(local);
        let (brief, links) = (self.stays.is_none(), self.stays.clone());
        let http = HttpClient::new(&self.environment, &user.network);
        let access = NatsAccess { credentials, ..access };
        Ok(NatsOptions { access, brief, links, http })
    }
}

/// Returns the directory of the server that `hookloop nats up` starts on a port.
///
/// It is below the state directory of all projects.
pub fn local_server(state_home: &Path, port: u16) -> PathBuf {
    state_home.join(format!("nats-{port}"))
}

/// The file with the server's access token, in the server's directory.
pub const TOKEN_FILE: &str = "token";

/// Returns the token of this user's own server, if `urls` name it.
fn token_of_local_server(state_home: &Path, urls: &str) -> Option<NatsCredentials> {
    let address = urls.strip_prefix("nats://").filter(|one| !one.contains(','))?;
    let (host, port) = address.rsplit_once(':').unwrap_or((address, DEFAULT_PORT));
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let file = local_server(state_home, port.parse().ok()?).join(TOKEN_FILE);
    (is_loopback && file.is_file()).then_some(NatsCredentials::Token(file))
}

/// The default client port of NATS servers.
const DEFAULT_PORT: &str = "4222";

/// The location of an open project's log.
#[derive(Clone, Debug)]
pub enum LogLocation {
    /// In a file on this machine, or in memory.
    Here,
    Nats {
        urls: String,
        project: ProjectName,
        standing: ServerStanding,
    },
}

/// Whether a log that lost events is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterLoss {
    Refuse,
    /// Opens the log to report the rest. A missing or empty file is not created again.
    Check,
    /// Opens the log to continue with the rest, because a person accepts the loss.
    Accept,
}

/// Returns the loss of a log whose file is missing or empty although it had events.
///
/// The record beside the file, or the project's sessions, prove that it had events.
pub fn loss_of_emptied_log(place: &ProjectPaths) -> Option<LogLoss> {
    let path = place.database();
    if let Some(loss) = loss_of_emptied(&path) {
        return Some(loss);
    }
    let has_sessions = is_file_empty(&path) && place.has_sessions() && !place.has_remote_view();
    // Another process may have created the file since the first check.
    let is_lost = has_sessions && is_file_empty(&path);
    is_lost.then_some(LogLoss { path, found: None, acknowledged: None })
}

fn open_file(place: &ProjectPaths, after_loss: AfterLoss) -> Result<Store, StoreError> {
    let (path, loss) = (place.database(), loss_of_emptied_log(place));
    match (after_loss, loss) {
        (AfterLoss::Accept, loss) => Store::open_after_loss(&path, loss),
        (_, Some(loss)) => Err(LogOpenError::Lost(loss).into()),
        (AfterLoss::Refuse, None) => Store::open(&path),
        (AfterLoss::Check, None) => Store::open_to_check(&path),
    }
}

/// Opens the log of the fleet beside the log of one of its projects.
pub fn open_fleet(
    beside: &LogLocation,
    place: &ProjectPaths,
    user: &UserConfig,
    surroundings: &LaunchContext,
    after_loss: AfterLoss,
) -> Result<Store, EngineError> {
    place.prepare()?;
    let LogLocation::Nats { urls, .. } = beside else {
        return Ok(open_file(place, after_loss)?);
    };
    // The user opened the project, and so agreed to its store.
    let access = surroundings.access(user, place, urls, NamedBy::User)?;
    let name = ProjectName::of_fleet();
    let OpenedLog { store, lost, .. } = jetstream::open(&access, &name, &place.view())?;
    match lost {
        Some((seen, found)) if after_loss == AfterLoss::Refuse => {
            Err(StoreError::from(JetStreamError::Lost { found, seen }).into())
        }
        _ => Ok(store),
    }
}

pub(crate) fn open_store(
    place: &ProjectPaths,
    settings: &ProjectSettings,
    user: &UserConfig,
    surroundings: &LaunchContext,
    after_loss: AfterLoss,
) -> Result<(Store, LogLocation), EngineError> {
    check_log_above(place, settings, surroundings)?;
    place.prepare()?;
    let (store, named_by) = match &surroundings.store {
        Some(store) => (store, NamedBy::User),
        None => (&settings.store, NamedBy::Repository),
    };
    let StoreName::Nats(urls) = store else {
        return Ok((open_file(place, after_loss)?, LogLocation::Here));
    };
    let access = surroundings.access(user, place, urls, named_by)?;
    let project = settings.project.clone();
    let project = project.ok_or_else(|| EngineError::NoProjectName { path: place.config() })?;
    let OpenedLog { store, standing, lost } = jetstream::open(&access, &project, &place.view())?;
    match lost {
        Some((seen, found)) if after_loss == AfterLoss::Refuse => {
            Err(StoreError::from(JetStreamError::Lost { found, seen }).into())
        }
        _ => Ok((store, LogLocation::Nats { urls: urls.clone(), project, standing })),
    }
}

/// Returns a digest of the name of a project's log. The name itself may contain passwords.
pub fn log_digest(settings: &ProjectSettings, surroundings: &LaunchContext) -> String {
    let name = match surroundings.store.as_ref().unwrap_or(&settings.store) {
        StoreName::Nats(urls) => {
            let project = settings.project.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{project} {urls}")
        }
        _ => String::new(),
    };
    short_sha256_hex(name, 8)
}

/// Returns an error if this process would open another log than the hook or agent above it.
fn check_log_above(
    place: &ProjectPaths,
    settings: &ProjectSettings,
    surroundings: &LaunchContext,
) -> Result<(), EngineError> {
    for owner in owners_above().iter().flatten() {
        let what = if owner.project == place.root {
            if real(&owner.state) != real(&place.state) {
                Some("the state directory")
            } else if owner.log != log_digest(settings, surroundings) {
                Some("the store")
            } else {
                None
            }
        } else {
            // The directory is an unknown worktree of the project.
            real(&place.root).starts_with(real(&owner.state)).then_some("the state directory")
        };
        if let Some(what) = what {
            return Err(EngineError::OtherLog { project: owner.project.clone(), what });
        }
    }
    Ok(())
}

/// Resolves symbolic links, or returns the path unchanged if it does not exist.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
