//! The context in which hookloop starts processes: directories, environment, keepers, secrets.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hookloop_config::agents::AgentSettings;
use hookloop_config::known_secrets;
use hookloop_core::redact::Redactor;
use hookloop_http::settings::UserNetwork;
use hookloop_http::{HttpClient, proxy_passwords};
use hookloop_process::{
    JobResult, KeeperPool, OutputFilter, StoredOutput, lock_file, try_lock_file,
};

use crate::ancestry::KeeperOwner;
use crate::artifacts;
use crate::secrets::{FetchContext, SecretError, SecretVault};

/// A lock in the project's state directory could not be acquired.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct LockError {
    pub path: PathBuf,
    pub source: std::io::Error,
}

/// The directories, the environment, the keepers and the secrets of one project's processes.
#[derive(Clone)]
pub struct ExecContext {
    /// The project's own directory.
    home: PathBuf,
    /// The directory of the work: the project's own, or a worktree.
    root: PathBuf,
    state: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// Variables that the configuration sets for agents.
    configured: Vec<(String, OsString)>,
    keepers: Arc<KeeperPool>,
    secrets: Arc<SecretVault>,
    /// Created on first use, as most commands run no hook.
    redactor: Arc<OnceLock<RedactorChain>>,
    /// The HTTP client for webhooks, channels and the forge.
    http: HttpClient,
}

/// The redactor of the secrets known so far, and its later replacement.
///
/// The chain only grows, so a reader of an older redactor can continue with the newest.
struct RedactorChain {
    /// `None` if there are too many secrets to search for.
    redactor: Option<Redactor>,
    more: OnceLock<Box<RedactorChain>>,
}

impl RedactorChain {
    fn new(redactor: Option<Redactor>) -> RedactorChain {
        RedactorChain { redactor, more: OnceLock::new() }
    }

    fn last(&self) -> &RedactorChain {
        let mut last = self;
        while let Some(more) = last.more.get() {
            last = more;
        }
        last
    }
}

impl std::fmt::Debug for ExecContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ExecContext in {}", self.root.display())
    }
}

fn owner(
    project: &Path,
    state: &Path,
    environment: &[(OsString, OsString)],
    log: String,
) -> KeeperOwner {
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map(|(_, home)| PathBuf::from(home));
    KeeperOwner { project: project.to_owned(), state: state.to_owned(), log, home }
}

/// Returns keepers that name the project in their environment.
fn keepers_of(owner: KeeperOwner) -> Arc<KeeperPool> {
    Arc::new(KeeperPool::of_this_program().with_environment(owner.variables()))
}

impl ExecContext {
    pub fn new(
        root: PathBuf,
        state: PathBuf,
        environment: Vec<(OsString, OsString)>,
    ) -> ExecContext {
        known_secrets::remember_environment(&environment);
        let keepers = keepers_of(owner(&root, &state, &environment, String::new()));
        let http = HttpClient::new(&environment, &UserNetwork::default());
        ExecContext {
            home: root.clone(),
            root,
            state,
            environment,
            configured: Vec::new(),
            keepers,
            secrets: Arc::default(),
            redactor: Arc::default(),
            http,
        }
    }

    /// Adds the user's proxy and certificates. Agents and git get the proxy in their environment.
    #[must_use]
    pub fn with_network(mut self, network: &UserNetwork) -> ExecContext {
        network.add_to(&mut self.environment);
        known_secrets::remember_environment(&self.environment);
        self.http = HttpClient::new(&self.environment, network);
        self
    }

    /// Returns the context for work in another directory.
    #[must_use]
    pub fn at(&self, root: PathBuf) -> ExecContext {
        ExecContext { root, ..self.clone() }
    }

    /// Refuses hooks and agents whose commands open another log of the project.
    #[must_use]
    pub fn with_log(mut self, log: String) -> ExecContext {
        self.keepers = keepers_of(owner(&self.home, &self.state, &self.environment, log));
        self
    }

    /// Removes secrets among the variables of these agents from everything that is stored.
    #[must_use]
    pub fn with_agents(mut self, agents: &[AgentSettings]) -> ExecContext {
        let variables = agents.iter().flat_map(|settings| &settings.env);
        self.configured = variables.map(|(name, value)| (name.clone(), value.into())).collect();
        known_secrets::remember(self.told());
        self
    }

    /// Gives these secrets to the hooks and agents that name them.
    #[must_use]
    pub fn with_secrets(mut self, secrets: SecretVault) -> ExecContext {
        self.secrets = Arc::new(secrets);
        known_secrets::remember(self.told());
        self
    }

    /// Returns the directories in which programs are looked up.
    pub fn path(&self) -> &OsStr {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.map_or(OsStr::new(""), |(_, path)| path)
    }

    /// Whether all secrets with these names were already read.
    pub fn has_secrets<'n>(&self, names: impl Iterator<Item = &'n str>) -> bool {
        self.secrets.has_all(names)
    }

    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// Returns the project's own directory, where hooks are defined and trusted.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Reads the secrets among these names. From then on the redactor removes them from stored
    /// text.
    pub fn secrets<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<(OsString, OsString)>, SecretError> {
        let around = FetchContext { environment: &self.environment, cwd: &self.state };
        self.secrets.get(names, around, |fetched| {
            let fetched = fetched.iter().map(|(name, value)| (name.as_str(), value.as_os_str()));
            known_secrets::remember(fetched.clone());
            let redactor = self.made_redactor(fetched);
            let redactor = redactor.ok_or("there are too many secrets to look for")?;
            // It is not set yet: the secrets are locked while they are fetched.
            let _ = self.known().last().more.set(Box::new(RedactorChain::new(Some(redactor))));
            Ok(())
        })
    }

    /// Returns the redactor of all known secrets, or `None` if there are too many.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.known().last().redactor.as_ref()
    }

    /// Returns a text without the known secrets, or `None` if there are too many to search for.
    pub fn redacted(&self, text: &str) -> Option<String> {
        Some(self.redactor()?.text(text))
    }

    fn known(&self) -> &RedactorChain {
        self.redactor.get_or_init(|| RedactorChain::new(self.made_redactor(std::iter::empty())))
    }

    fn made_redactor<'v>(
        &'v self,
        fetched: impl Iterator<Item = (&'v str, &'v OsStr)>,
    ) -> Option<Redactor> {
        let secrets = fetched.chain(self.told());
        let mut secrets: Vec<(&str, &[u8])> =
            secrets.map(|(name, value)| (name, value.as_encoded_bytes())).collect();
        let passwords = proxy_passwords(&self.environment);
        secrets.extend(passwords.iter().map(|password| ("proxy password", password.as_bytes())));
        Redactor::new(secrets).ok()
    }

    /// The secrets among the variables of the user and of the configuration.
    fn told(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        let own = self.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
        let configured = self.configured.iter().map(|(name, value)| (name.as_str(), value));
        let is_known = |name: &str| known_secrets::is_secret_name(name) || self.secrets.names(name);
        let told = own.chain(configured).filter(move |(name, _)| is_known(name));
        told.map(|(name, value)| (name, value.as_os_str()))
    }

    /// Locks a file of the project's state until the returned file is dropped.
    pub fn lock_exclusive(&self, name: &str) -> Result<File, LockError> {
        let path = self.state.join(name);
        lock_file(&path).map_err(|source| LockError { path, source })
    }

    /// Locks a file without waiting. Returns `None` if another process holds the lock.
    pub fn try_lock_exclusive(&self, name: &str) -> Result<Option<File>, LockError> {
        let path = self.state.join(name);
        try_lock_file(&path).map_err(|source| LockError { path, source })
    }

    /// Returns the user's environment.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Returns the directory of the work.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn keepers(&self) -> &Arc<KeeperPool> {
        &self.keepers
    }

    /// Returns this machine's directory with the output of a run that an event names, if it exists.
    pub fn artifacts_of(&self, artifact: &str) -> Option<PathBuf> {
        artifacts::find(&self.state, artifact)
    }

    /// Returns a new directory for the output of a run.
    pub fn fresh_artifacts(&self) -> PathBuf {
        artifacts::fresh(&self.state)
    }
}

/// Returns the directory with the output of a run, if there was any output.
pub fn kept(ran: &JobResult, artifacts: &Path) -> Option<String> {
    let streams = [&ran.output.stdout, &ran.output.stderr];
    let is_kept = streams.into_iter().any(|stream| !matches!(stream.stored, StoredOutput::Nothing));
    is_kept.then(|| artifacts.display().to_string())
}

/// Returns a filter that removes secrets from a stream, including those that are read meanwhile.
///
/// An empty piece ends the stream.
pub fn redacting(context: &ExecContext) -> OutputFilter<'_> {
    let mut stream = context.redactor().map(Redactor::stream);
    Box::new(move |piece: &[u8], out: &mut Vec<u8>| {
        // Without a redactor the filter discards all output.
        let Some((mut open, redactor)) = stream.take().zip(context.redactor()) else { return };
        open = open.with(redactor);
        match piece.is_empty() {
            true => open.finish(out),
            false => {
                open.push(piece, out);
                stream = Some(open);
            }
        }
    })
}
