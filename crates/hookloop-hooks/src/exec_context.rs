//! The context in which hookloop starts processes: directories, environment, keepers, secrets.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hookloop_config::agents::Settings;
use hookloop_config::known_secrets;
use hookloop_core::redact::Redactor;
use hookloop_http::settings::UserNetwork;
use hookloop_http::{HttpClient, proxy_passwords};
use hookloop_process::{
    JobResult, KeeperPool, OutputFilter, StoredOutput, lock_file, try_lock_file,
};

use crate::ancestry::KeeperOwner;
use crate::artifacts;
use crate::secrets::{Around, SecretError, Vault};

/// A lock of the project's state directory that could not be taken.
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
    secrets: Arc<Vault>,
    /// Made when it is needed first: most commands run no hook.
    redactor: Arc<OnceLock<Known>>,
    /// The client of requests to webhooks, channels and the forge.
    http: HttpClient,
}

/// What is known of secrets, and what was learnt after that. It only grows, so who looks for the secrets of
/// one moment can go on to those of the next.
struct Known {
    /// None if they are too many to look for.
    redactor: Option<Redactor>,
    more: OnceLock<Box<Known>>,
}

impl Known {
    fn new(redactor: Option<Redactor>) -> Known {
        Known { redactor, more: OnceLock::new() }
    }

    fn last(&self) -> &Known {
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

/// Keepers that name the project to what they run.
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

    /// The same with the user's own proxy and certificates. Agents and git have the proxy in their environment.
    pub fn set_network(&mut self, network: &UserNetwork) {
        network.add_to(&mut self.environment);
        known_secrets::remember_environment(&self.environment);
        self.http = HttpClient::new(&self.environment, network);
    }

    /// The same context, for work that is done in another directory.
    #[must_use]
    pub fn at(&self, root: PathBuf) -> ExecContext {
        ExecContext { root, ..self.clone() }
    }

    /// Refuses hooks and agents whose commands open another log of the project.
    pub fn set_log(&mut self, log: String) {
        self.keepers = keepers_of(owner(&self.home, &self.state, &self.environment, log));
    }

    /// Secrets among the variables that are configured for agents are kept out of everything that is stored, too.
    pub fn set_agents(&mut self, agents: &[Settings]) {
        let variables = agents.iter().flat_map(|settings| &settings.env);
        self.configured = variables.map(|(name, value)| (name.clone(), value.into())).collect();
        known_secrets::remember(self.told());
    }

    /// Hooks and agents that name one of these secrets get it.
    pub fn set_secrets(&mut self, secrets: Vault) {
        self.secrets = Arc::new(secrets);
        known_secrets::remember(self.told());
    }

    /// Returns the directories in which programs are looked up.
    pub fn path(&self) -> &OsStr {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.map_or(OsStr::new(""), |(_, path)| path)
    }

    /// Whether nothing has to be fetched for these names.
    pub fn has_secrets<'n>(&self, names: impl Iterator<Item = &'n str>) -> bool {
        self.secrets.has_all(names)
    }

    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// The project's own directory: what hooks are is decided there, wherever they run.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Fetches the secrets among these names. From then on they are kept out of everything that is stored.
    pub fn secrets<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<(OsString, OsString)>, SecretError> {
        let around = Around { environment: &self.environment, cwd: &self.state };
        self.secrets.get(names, around, |fetched| {
            let fetched = fetched.iter().map(|(name, value)| (name.as_str(), value.as_os_str()));
            known_secrets::remember(fetched.clone());
            let redactor = self.made_redactor(fetched);
            let redactor = redactor.ok_or("there are too many secrets to look for")?;
            // It is not set yet: the secrets are locked while they are fetched.
            let _ = self.known().last().more.set(Box::new(Known::new(Some(redactor))));
            Ok(())
        })
    }

    /// What keeps the values of secret variables, and of secrets that were fetched, out of everything that is
    /// stored; none if there are too many of them.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.known().last().redactor.as_ref()
    }

    /// A text without the secrets that are known; none if they are too many to look for.
    pub fn redacted(&self, text: &str) -> Option<String> {
        Some(self.redactor()?.text(text))
    }

    fn known(&self) -> &Known {
        self.redactor.get_or_init(|| Known::new(self.made_redactor(std::iter::empty())))
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
    pub fn alone(&self, name: &str) -> Result<File, LockError> {
        let path = self.state.join(name);
        lock_file(&path).map_err(|source| LockError { path, source })
    }

    /// The same without waiting; none if another process holds the lock.
    pub fn alone_now(&self, name: &str) -> Result<Option<File>, LockError> {
        let path = self.state.join(name);
        try_lock_file(&path).map_err(|source| LockError { path, source })
    }

    /// The user's environment.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Where the work is done.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn keepers(&self) -> &Arc<KeeperPool> {
        &self.keepers
    }

    /// Where this machine has the output of a run that an event names; none if it was made elsewhere, or is gone.
    pub fn artifacts_of(&self, artifact: &str) -> Option<PathBuf> {
        artifacts::find(&self.state, artifact)
    }

    /// Where the output of a run is kept.
    pub fn fresh_artifacts(&self) -> PathBuf {
        artifacts::fresh(&self.state)
    }
}

/// Where what was printed is kept, if anything was.
pub fn kept(ran: &JobResult, artifacts: &Path) -> Option<String> {
    let streams = [&ran.output.stdout, &ran.output.stderr];
    let is_kept = streams.into_iter().any(|stream| !matches!(stream.stored, StoredOutput::Nothing));
    is_kept.then(|| artifacts.display().to_string())
}

/// Lets a stream through without secrets, those among them that are fetched while it goes on. An empty piece
/// ends it.
pub fn redacting(context: &ExecContext) -> OutputFilter<'_> {
    let mut stream = context.redactor().map(Redactor::stream);
    Box::new(move |piece: &[u8], out: &mut Vec<u8>| {
        // Without anything to look with, nothing passes.
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
