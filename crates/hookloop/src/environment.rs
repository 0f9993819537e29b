//! The user's environment: directories, the caller's identity, and the launch context that they make.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_config::paths;
use hookloop_config::paths::ProjectPaths;
use hookloop_config::policy::{PolicyFile, SYSTEM_FILE};
use hookloop_config::user::BadStoreName;
use hookloop_core::time::Timestamp;
use hookloop_engine::caller::{Caller, CallerScope};
use hookloop_engine::log_location::LaunchContext;
pub(crate) use hookloop_engine::machine::machine;

use crate::error::{CliError, CliResult};

/// Returns the scope of the caller's identity: its state directory, project and session.
pub(crate) fn scope(place: Option<&ProjectPaths>) -> CallerScope {
    CallerScope {
        state_home: match place {
            Some(place) => place.state.parent().map(Path::to_owned),
            // Without a home directory no state is compared; the command itself reports that.
            None => state_home().ok(),
        },
        project: place.map(|place| place.root.clone()),
        home: None,
        session: env::var_os("HOOKLOOP_SESSION").map(|id| id.to_string_lossy().into_owned()),
        is_hook: env::var_os("HOOKLOOP_HOOK").is_some(),
    }
}

/// Returns the actor that gives the commands.
pub(crate) fn caller(place: &ProjectPaths) -> Caller {
    Caller::of_process(&user_name(), scope(Some(place)))
}

/// Whether a person, and no agent or hook, gives the commands about a project.
pub(crate) fn is_person(place: &ProjectPaths) -> bool {
    scope(Some(place)).identify().is_person()
}

/// Returns the named directory, else the current one.
pub(crate) fn directory(named: Option<&Path>) -> CliResult<PathBuf> {
    match named {
        Some(directory) => Ok(directory.to_owned()),
        None => Ok(env::current_dir()?),
    }
}

pub(crate) fn state_home() -> CliResult<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let xdg = variable("XDG_STATE_HOME");
    let home = variable("HOME");
    Ok(paths::state_home(xdg.as_deref(), home.as_deref())?)
}

/// Returns the launch context that the user's environment describes: store, files, policies.
pub(crate) fn surroundings() -> CliResult<LaunchContext> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let store = match env::var("HOOKLOOP_STORE") {
        Ok(store) if !store.is_empty() => {
            let wrong = |error: BadStoreName| CliError::usage(format!("HOOKLOOP_STORE: {error}"));
            Some(store.parse().map_err(wrong)?)
        }
        _ => None,
    };
    let xdg = variable("XDG_CONFIG_HOME");
    let home = variable("HOME");
    let user_file = hookloop_config::user_file::user_file(xdg.as_deref(), home.as_deref());
    let named = variable("HOOKLOOP_POLICY").filter(|path| !path.as_os_str().is_empty());
    let system = PolicyFile::System(PathBuf::from(SYSTEM_FILE));
    let policies = [system].into_iter().chain(named.map(PolicyFile::Named)).collect();
    let environment = env::vars_os().collect();
    let trust = None;
    let cloned_from = None;
    let stays = None;
    Ok(LaunchContext { store, user_file, policies, cloned_from, environment, trust, stays })
}

/// Returns the user's name from the environment, else from the system; a user without a name has a number.
pub(crate) fn user_name() -> String {
    let variable = |name| env::var(name).ok().filter(|name: &String| !name.is_empty());
    let name = variable("USER").or_else(|| variable("LOGNAME"));
    name.unwrap_or_else(|| hookloop_engine::user_database::user_name().to_owned())
}

/// Opens a file; the error names its path.
pub(crate) fn open_file(path: &Path) -> CliResult<std::fs::File> {
    let failed = |error| CliError::usage(format!("{}: {error}", path.display()));
    std::fs::File::open(path).map_err(failed)
}

/// Returns the time of the system's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
