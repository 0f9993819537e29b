//! Detects whether an agent is logged in, by its files, by the environment and by the agent itself.
//!
//! A login may exist without a visible sign: in a keychain, or with a provider of the agent's own configuration. So
//! only the agent's own report that it is logged out prevents its start.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::agents::AgentSettings;
use hookloop_config::agents::profile::{AgentLogin, AgentProfile, OwnProviderSigns};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::{ExitReason, Job};

/// How long an agent may take to report its login. After that, the login is unknown.
const STATUS_WITHIN: Duration = Duration::from_secs(5);
/// The most of an agent's configuration that is read.
const CONFIG_MAX: u64 = 1024 * 1024;

/// Whether an agent is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// A file or a variable shows a login. Its validity is unknown.
    Shown,
    /// Nothing shows a login, and the agent does not report one.
    Unknown { command: &'static str },
    /// The agent reports that it is logged out.
    LoggedOut { command: &'static str },
}

/// Looks for a login of the agent. If nothing shows one, asks the agent.
pub fn login_state(settings: &AgentSettings, runner: &ExecContext) -> LoginState {
    let Some(known) = settings.known() else { return LoginState::Shown };
    let (signs, command) = (known.login, known.login.command);
    let is_configured = |name: &&str| {
        settings.env.iter().any(|(own, _)| own == *name)
            || settings.named.iter().any(|own| own == *name)
    };
    if signs.variables.iter().any(is_configured) || is_shown(signs, runner.environment()) {
        LoginState::Shown
    } else if says_logged_out(known, settings, runner) {
        LoginState::LoggedOut { command }
    } else {
        LoginState::Unknown { command }
    }
}

/// Returns how a person logs a known agent in.
pub(super) fn remedy(known: &AgentProfile) -> String {
    let AgentLogin { command, variables, .. } = known.login;
    match variables {
        [variable, ..] => format!("Run `{command}`, or set a valid {variable}"),
        [] => format!("Run `{command}`"),
    }
}

fn variable<'e>(environment: &'e [(OsString, OsString)], wanted: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| value.as_os_str())
}

fn is_shown(signs: &AgentLogin, environment: &[(OsString, OsString)]) -> bool {
    let has = |directory: &Path, file: &str| directory.join(file).is_file();
    let home = variable(environment, "HOME").map(PathBuf::from);
    let (name, file) = signs.elsewhere;
    signs.variables.iter().any(|name| variable(environment, name).is_some())
        || signs.files.iter().any(|file| home.as_deref().is_some_and(|home| has(home, file)))
        || variable(environment, name).is_some_and(|directory| has(Path::new(directory), file))
}

/// Returns whether the agent reports that it is logged out and needs a login.
fn says_logged_out(known: &AgentProfile, settings: &AgentSettings, runner: &ExecContext) -> bool {
    let Some((arguments, answer)) = known.login_status else { return false };
    // Another program may not understand the question.
    if settings.word() != Some(known.program[0]) {
        return false;
    }
    let own = known.login.own_provider;
    if own.is_some_and(|signs| has_own_provider(signs, settings, runner.environment())) {
        return false;
    }
    let words = std::iter::once(&known.program[0]).chain(arguments);
    let argv = words.map(|word| OsString::from(*word)).collect();
    let mut env = crate::without_diagnostics(runner);
    for (name, value) in &settings.env {
        env.retain(|(known, _)| known.to_str() != Some(name));
        env.push((name.into(), value.into()));
    }
    let job = Job { env, ..Job::new(argv, runner.root().to_owned(), STATUS_WITHIN) };
    runner.keepers().run(job).is_ok_and(|ran| {
        let said = format!(
            "{}{}",
            excerpt::of_output(&ran.output.stdout),
            excerpt::of_output(&ran.output.stderr)
        );
        ran.exit == ExitReason::Exited(1) && said.contains(answer)
    })
}

/// Returns whether the agent is configured for a provider of the user's own, which needs no login.
fn has_own_provider(
    signs: &OwnProviderSigns,
    settings: &AgentSettings,
    environment: &[(OsString, OsString)],
) -> bool {
    let names_one = |text: &str| signs.words.iter().any(|word| text.contains(word));
    if settings.args.iter().any(|argument| names_one(argument)) {
        return true;
    }
    let (name, below_home) = signs.directory;
    let home = variable(environment, "HOME").map(|home| Path::new(home).join(below_home));
    let own = variable(environment, name).map(PathBuf::from);
    let Some(directory) = own.or(home) else { return true };
    let config = directory.join(signs.file);
    match fs::metadata(&config) {
        Ok(file) if file.len() <= CONFIG_MAX => {
            fs::read_to_string(&config).map_or(true, |text| names_one(&text))
        }
        Ok(_) => true,
        Err(_) => false,
    }
}
