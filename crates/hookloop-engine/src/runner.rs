//! One hook's process: its command, its environment, its input, and what came of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hookloop_core::command_line::Invocation;
use hookloop_core::event::Event;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookSource};
use hookloop_core::hook_protocol::ProcessExit;
use hookloop_core::id::TaskId;
use hookloop_core::options::EnvEntry;
use hookloop_core::point::{Point, PointKind};
use hookloop_core::redact::Redactor;
use hookloop_core::rule::Rule;
use hookloop_core::task::Task;
use hookloop_http::settings::UserNetwork;
use hookloop_http::{HttpClient, proxy_passwords};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::agents::Settings;
use crate::agents::repository::Ground;
use crate::artifacts;
use crate::delivery::workshop::Bench;
use crate::explain::task_value;
use crate::frozen_hooks::FrozenHooks;
use crate::process::{Cancel, Filter, Job, KeeperOwner, KeeperPool, Ran, Stored};
use crate::reactions::{CAUSE_VARIABLE, ReactionRun};
use crate::record::{self, Said};
use crate::run::HookRun;
use crate::sandbox::{Prepared, Surroundings};
use crate::secrets::{Around, SecretError, Vault};
use crate::session::now::NowBoard;
use crate::session::world::{Call, DeliveryFacts};
use crate::session::{StartError, session_of, validate};
use crate::trust::{self, HookOffer, Seen, Standing, Trust};
use crate::webhook;

/// Variables of the user's environment that every hook has.
pub(crate) const BASE: [&str; 8] =
    ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "TERM", "USER", "SHELL"];
/// Variables that select the project's log: with them, a hook's `hookloop` opens the same one.
pub(crate) const LOG_SELECTORS: [&str; 4] =
    ["HOOKLOOP_STORE", "HOOKLOOP_POLICY", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
/// Tells programs that nobody sits in front of them.
pub(crate) const CI_VARIABLE: &str = "CI";
/// What tells a process which span it works in (W3C Trace Context).
pub(crate) const TRACE_PARENT: &str = "TRACEPARENT";
/// Parts of the names of variables whose values are secret.
const SECRET: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "PRIVATE_KEY"];

/// What runs the hooks of one project.
#[derive(Clone)]
pub struct Runner {
    /// The project's own directory.
    home: PathBuf,
    /// Where the work is done: there, or in a worktree.
    root: PathBuf,
    state: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// Variables that the configuration sets for agents.
    configured: Vec<(String, OsString)>,
    keepers: Arc<KeeperPool>,
    trust: Trust,
    /// The hooks of the session that this is for; none outside of sessions.
    frozen: Option<Arc<FrozenHooks>>,
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

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runner in {}", self.root.display())
    }
}

/// Why a hook does not run that nobody trusts as it is.
const NOT_TRUSTED: &str = "it is not trusted";
const CHANGED: &str = "it changed since it was trusted";
/// The command that changes that, for people alone.
const TRUST_COMMAND: &str = "hookloop hooks trust";

/// The command that a person types about a recorded failure, if there is one.
pub(crate) fn command_for(failure: &str) -> Option<&'static str> {
    [NOT_TRUSTED, CHANGED].contains(&failure).then_some(TRUST_COMMAND)
}

/// Why a hook does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRefusal {
    /// For everyone, the agent among them.
    pub(crate) reason: String,
    /// For the user alone: a command that only a person may type.
    pub(crate) hint: Option<String>,
}

impl RunRefusal {
    fn untrusted(reason: &str) -> RunRefusal {
        RunRefusal { reason: reason.to_owned(), hint: Some(TRUST_COMMAND.to_owned()) }
    }
}

impl From<String> for RunRefusal {
    fn from(reason: String) -> RunRefusal {
        RunRefusal { reason, hint: None }
    }
}

/// When and for what a hook runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) point: &'a Point,
    pub(crate) event: Option<&'a Event>,
    pub(crate) task: Option<&'a Task>,
    pub(crate) session: Option<&'a SessionContext<'a>>,
    /// Ends what runs.
    pub(crate) cancel: Option<&'a Cancel>,
    /// What is delivered, if anything is.
    pub(crate) bench: Option<Bench<'a>>,
    /// What has changed since the work began, if a rule wants to know.
    pub(crate) changes: Option<&'a [(String, u64)]>,
    /// The branch that the work is on, and the one that it is for.
    pub(crate) branches: Option<(&'a str, &'a str)>,
    /// The delivery that it is part of, if it is part of one.
    pub(crate) delivery: Option<&'a DeliveryFacts>,
    /// The reaction that it is, if it is one to an event.
    pub(crate) reaction: Option<ReactionRun<'a>>,
    /// Where running hooks are shown.
    pub(crate) board: Option<&'a NowBoard>,
}

/// The session that a hook runs in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionContext<'a> {
    pub(crate) call: &'a Call<'a>,
    /// A file with the conversation so far, if there was any.
    pub(crate) transcript: Option<&'a Path>,
    /// Where the agent works.
    pub(crate) root: &'a Path,
    /// The span that its hooks are in, if the session is shown to a collector.
    pub(crate) trace_parent: Option<&'a str>,
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
    Arc::new(KeeperPool::of_this_program().working_for(owner))
}

/// Whether a hook looks at what has changed.
pub(crate) fn needs_changes(hook: &Hook) -> bool {
    matches!(hook.handler, HookHandler::Rule(Rule::Changed(_) | Rule::Diff(_)))
}

impl Occasion<'_> {
    /// The task that it is about, also if that is gone by now.
    fn task_id(&self) -> Option<&TaskId> {
        let of_event = || self.event?.subject.task();
        self.task.map(|task| &task.id).or_else(of_event)
    }

    /// The session that it is in, or that made the event.
    fn session_id(&self) -> Option<String> {
        let of_actor = || session_of(&self.event?.actor).map(|id| id.to_string());
        self.session.map(|session| session.call.id.to_string()).or_else(of_actor)
    }
}

impl Runner {
    pub fn new(
        root: PathBuf,
        state: PathBuf,
        environment: Vec<(OsString, OsString)>,
        trust: Trust,
    ) -> Runner {
        let keepers = keepers_of(owner(&root, &state, &environment, String::new()));
        let (home, redactor, configured) = (root.clone(), Arc::default(), Vec::new());
        let secrets = Arc::default();
        let frozen = None;
        let http = HttpClient::new(&environment, &UserNetwork::default());
        Runner {
            home,
            root,
            state,
            environment,
            configured,
            keepers,
            trust,
            frozen,
            secrets,
            redactor,
            http,
        }
    }

    /// The same with the user's own proxy and certificates. Agents and git have the proxy in their environment.
    #[must_use]
    pub fn with_network(mut self, network: &UserNetwork) -> Runner {
        network.add_to(&mut self.environment);
        self.http = HttpClient::new(&self.environment, network);
        self
    }

    pub fn http(&self) -> &HttpClient {
        &self.http
    }

    /// The same for a session, whose hooks are those that it froze.
    #[must_use]
    pub(crate) fn held_to(&self, frozen: Option<Arc<FrozenHooks>>) -> Runner {
        Runner { frozen, ..self.clone() }
    }

    /// The same hooks and agents, for work that is done in another directory.
    #[must_use]
    pub(crate) fn at(&self, root: PathBuf) -> Runner {
        Runner { root, ..self.clone() }
    }

    /// Hooks and agents whose commands open another log of the project are refused.
    #[must_use]
    pub(crate) fn with_log(mut self, log: String) -> Runner {
        self.keepers = keepers_of(owner(&self.home, &self.state, &self.environment, log));
        self
    }

    /// The project's own directory: what hooks are is decided there, wherever they run.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Secrets among what is configured for agents are kept out of what is stored, too.
    #[must_use]
    pub fn with_agents(mut self, agents: &[Settings]) -> Runner {
        let variables = agents.iter().flat_map(|settings| &settings.env);
        self.configured = variables.map(|(name, value)| (name.clone(), value.into())).collect();
        self
    }

    /// Hooks and agents that name one of these have it.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Vault) -> Runner {
        self.secrets = Arc::new(secrets);
        self
    }

    /// Fetches the secrets among these names. From then on they are kept out of everything that is stored.
    pub(crate) fn secrets<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<(OsString, OsString)>, SecretError> {
        let around = Around { environment: &self.environment, cwd: &self.state };
        self.secrets.get(names, around, |fetched| {
            let fetched = fetched.iter().map(|(name, value)| (name.as_str(), value));
            let redactor = self.made_redactor(fetched);
            let redactor = redactor.ok_or("there are too many secrets to look for")?;
            // Nobody else is here: what was fetched is locked.
            let _ = self.known().last().more.set(Box::new(Known::new(Some(redactor))));
            Ok(())
        })
    }

    /// The secrets that a hook names, for its environment.
    pub(crate) fn secrets_of(&self, hook: &Hook) -> Result<Vec<(OsString, OsString)>, SecretError> {
        self.secrets(named(hook))
    }

    /// Whether a hook can be started without anything being fetched.
    pub(crate) fn has_secrets_of(&self, hook: &Hook) -> bool {
        self.secrets.has_all(named(hook))
    }

    /// What keeps the values of secret variables, and of secrets that were fetched, out of everything that is
    /// stored; none if there are too many of them.
    pub(crate) fn redactor(&self) -> Option<&Redactor> {
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
        fetched: impl Iterator<Item = (&'v str, &'v OsString)>,
    ) -> Option<Redactor> {
        let own = self.environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
        let configured = self.configured.iter().map(|(name, value)| (name.as_str(), value));
        let is_secret =
            |name: &str| SECRET.iter().any(|part| name.to_ascii_uppercase().contains(part));
        let is_known = |name: &str| is_secret(name) || self.secrets.names(name);
        let told = own.chain(configured).filter(|(name, _)| is_known(name));
        let secrets = fetched.chain(told);
        let mut secrets: Vec<(&str, &[u8])> =
            secrets.map(|(name, value)| (name, value.as_encoded_bytes())).collect();
        let passwords = proxy_passwords(&self.environment);
        secrets.extend(passwords.iter().map(|password| ("proxy password", password.as_bytes())));
        Redactor::new(secrets).ok()
    }

    /// Has something of the project's state to itself until what this gives is dropped.
    pub(crate) fn alone(&self, name: &str) -> Result<File, StartError> {
        self.lock(name, FlockOperation::LockExclusive)
    }

    /// The same without waiting; none if somebody else has it.
    pub(crate) fn alone_now(&self, name: &str) -> Result<Option<File>, StartError> {
        match self.lock(name, FlockOperation::NonBlockingLockExclusive) {
            Ok(file) => Ok(Some(file)),
            Err(StartError::Io { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn lock(&self, name: &str, how: FlockOperation) -> Result<File, StartError> {
        let path = self.state.join(name);
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let locked = options.open(&path).and_then(|file| {
            flock(&file, how)?;
            Ok(file)
        });
        locked.map_err(|source| StartError::Io { path, source })
    }

    /// How a hook stands, as it is now.
    pub fn standing(&self, hook: &Hook) -> Standing {
        if hook.source == HookSource::Builtin {
            return Standing::Own;
        }
        match Seen::look(&self.home, hook) {
            Ok(seen) => self.standing_of(hook, &seen),
            Err(_) => Standing::Untrusted,
        }
    }

    pub(crate) fn standing_of(&self, hook: &Hook, seen: &Seen) -> Standing {
        match trust::needs_trust(hook, seen) {
            true => self.trust.standing(seen),
            false => Standing::Own,
        }
    }

    /// The same runner, where somebody agreed to the digest of these hooks and gates elsewhere.
    #[must_use]
    pub(crate) fn agreed_elsewhere(mut self, offer: &HookOffer, digest: &str) -> Runner {
        if self.trust.by_digest().is_none() {
            self.trust.accept_if(offer, |found| found == digest);
        }
        self
    }

    /// What the user agreed to.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The ground that agents stand on.
    pub fn ground(&self) -> Ground<'_> {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or(OsStr::new(""), |(_, path)| path);
        Ground { root: &self.root, trust: &self.trust, path }
    }

    /// The user's environment.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// Where the work is done.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The program of a command, if there is none of that name.
    pub(crate) fn missing_program(&self, hook: &Hook) -> Option<String> {
        const WORDS: [&str; 13] = [
            "if", "for", "while", "until", "case", "cd", "exit", "test", "set", "export", "trap",
            "eval", "[",
        ];
        let HookHandler::Command(text) = &hook.handler else { return None };
        let word = match text {
            CommandText::Exec(args) => args.first()?.as_str(),
            CommandText::Shell(line) => line.split_whitespace().find(|word| !word.contains('='))?,
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !word.chars().all(is_plain) || WORDS.contains(&word) {
            return None;
        }
        let base = self.root.join(hook.options.cwd.as_deref().unwrap_or(""));
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.clone()).unwrap_or_default();
        let is_there = match word.contains('/') {
            true => base.join(word).is_file(),
            false => crate::doctor::is_on_path(word, &path),
        };
        (!is_there).then(|| word.to_owned())
    }

    pub(crate) fn keepers(&self) -> &Arc<KeeperPool> {
        &self.keepers
    }

    /// Sends what a hook's process would read to its address.
    pub(crate) fn send(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
        url: &str,
        (attempt, context): (u32, &Value),
    ) -> HookRun {
        let input = self.input(hook, occasion, (attempt, context), &self.root);
        let timeout = hook.options.timeout_at(occasion.point.kind());
        let said = webhook::send(&self.http, url, &input, Duration::from_millis(timeout));
        record::judged(hook, occasion.point, self.without_secrets(said), attempt)
    }

    /// An answer over the network, as it may be stored.
    fn without_secrets(&self, said: Said) -> Said {
        let Some(redactor) = self.redactor() else { return said };
        let (stdout, whole) =
            (redactor.text(&said.stdout), said.whole.map(|text| redactor.text(&text)));
        Said { stdout, whole, ..said }
    }

    /// Looks whether a rule holds, as if that was a program that says so.
    pub(crate) fn check(&self, hook: &Hook, rule: &Rule, occasion: &Occasion<'_>) -> HookRun {
        let began = std::time::Instant::now();
        let changes = || occasion.changes.map(<[_]>::to_vec);
        let (code, stderr) = match validate::holds(rule, &self.root, changes) {
            Ok(()) => (0, String::new()),
            Err(why) => (2, why),
        };
        let said = Said {
            ended: ProcessExit::Exited(code),
            duration: began.elapsed(),
            stdout: String::new(),
            whole: Some(String::new()),
            stdout_bytes: 0,
            stderr_bytes: stderr.len() as u64,
            left_out: Vec::new(),
            both: None,
            quiet_for: Duration::ZERO,
            stderr,
            artifact: None,
        };
        record::judged(hook, occasion.point, said, 1)
    }

    /// The hook as it is now, if it may run; the bytes that were looked at are the ones that run.
    pub(crate) fn may_run(&self, hook: &Hook) -> Result<Seen, RunRefusal> {
        if let Some(frozen) = self.frozen.as_ref().filter(|_| hook.source != HookSource::Builtin) {
            return Ok(frozen.may_run(&self.home, hook)?);
        }
        let seen = Seen::look(&self.home, hook).map_err(|error| error.to_string())?;
        match self.standing_of(hook, &seen) {
            Standing::Own | Standing::Trusted => Ok(seen),
            Standing::Modified => Err(RunRefusal::untrusted(CHANGED)),
            Standing::Untrusted => Err(RunRefusal::untrusted(NOT_TRUSTED)),
        }
    }

    /// What a hook's command comes to on an occasion, if it may run.
    pub(crate) fn invocation(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
    ) -> Result<Invocation, RunRefusal> {
        let seen = self.may_run(hook)?;
        let HookHandler::Command(text) = &hook.handler else {
            return Err("it is not a hook that starts something".to_owned().into());
        };
        // Who looks again when it runs may find another file there.
        if let Some(absent) = &seen.named.absent {
            return Err(format!("it runs `{absent}`, which is not there").into());
        }
        let kept = self.trust.keep(&seen).map_err(|error| error.to_string())?;
        let text = seen.named.pinned(&self.home, text, &kept)?;
        let line = text.compile(occasion.point.variables()).map_err(|error| error.to_string())?;
        let values = self.values(occasion);
        let value = |name: &'static str| values.get(name).map(|value| value.clone().into_bytes());
        Ok(line.invocation(&value).map_err(|error| error.to_string())?)
    }

    /// The variables of the occasion. What has no value there is empty.
    fn values(&self, occasion: &Occasion<'_>) -> BTreeMap<&'static str, String> {
        let spec = occasion.task.map(|task| &task.spec);
        let outcome = occasion.task.and_then(|task| task.outcome.as_ref());
        let obstacle = occasion.task.and_then(|task| task.obstacle.as_ref());
        let call = occasion.session.map(|session| session.call);
        let delivery = occasion.delivery;
        let value = |name: &'static str| match name {
            "session" => {
                let name = call.map(|call| call.session.plan.name.clone());
                name.or_else(|| occasion.session_id())
            }
            "iteration" => call.map(|call| call.iteration().to_string()),
            "error" => call.and_then(|call| call.error).map(str::to_owned),
            "point" => Some(occasion.point.to_string()),
            "event" => occasion.event.map(|event| event.body.kind().to_owned()),
            "project" => Some(self.root.display().to_string()),
            "task_id" => occasion.task_id().map(TaskId::to_string),
            "task_content" => spec.map(|spec| spec.goal.clone()),
            "task_type" => spec.and_then(|spec| spec.kind.clone()),
            "priority" => spec.map(|spec| spec.priority.get().to_string()),
            "labels" => spec.map(|spec| spec.labels.join(",")),
            "result" => outcome.and_then(|outcome| outcome.result.clone()),
            "branch" => occasion.branches.map(|(branch, _)| branch.to_owned()),
            "base_branch" => occasion.branches.map(|(_, base)| base.to_owned()),
            "pr_url" => delivery.and_then(|delivery| delivery.url.clone()),
            "agent" => delivery.and_then(|delivery| delivery.agent.clone()),
            "commits" => delivery.and_then(|delivery| delivery.commits).map(|n| n.to_string()),
            "reason" => obstacle.map(|obstacle| obstacle.reason.clone()),
            _ => None,
        };
        let known = occasion.point.variables().iter();
        known.map(|name| (*name, value(name).unwrap_or_default())).collect()
    }

    /// Where this machine has the output of a run that an event names; none if it was made elsewhere, or is gone.
    pub fn artifacts_of(&self, artifact: &str) -> Option<PathBuf> {
        artifacts::find(&self.state, artifact)
    }

    /// Where the output of a run is kept.
    pub(crate) fn fresh_artifacts(&self) -> PathBuf {
        artifacts::fresh(&self.state)
    }

    /// An attempt at a hook's command.
    pub(crate) fn job<'a>(
        &self,
        hook: &Hook,
        occasion: &Occasion<'a>,
        invocation: &Invocation,
        sandbox: &Prepared,
        (attempt, context): (u32, &Value),
    ) -> Job<'a> {
        let cwd = match &hook.options.cwd {
            Some(cwd) => self.root.join(cwd),
            None => self.root.clone(),
        };
        let os = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let timeout = hook.options.timeout_at(occasion.point.kind());
        let mut env = self.environment_of(hook, occasion, invocation);
        // Of two variables of one name the last holds.
        env.extend(sandbox.variable());
        Job {
            env,
            confinement: sandbox.confinement.clone(),
            limits: hook.options.limits,
            cancel: occasion.cancel,
            hold: occasion.reaction.and_then(|reaction| reaction.lock),
            stdin: self.input(hook, occasion, (attempt, context), &cwd).to_string().into_bytes(),
            ..Job::new(
                invocation.argv.iter().map(os).collect(),
                cwd,
                Duration::from_millis(timeout),
            )
        }
    }

    /// Refuses a `cwd` that leads out of the project by a link. One that does not exist fails when the hook starts.
    pub(crate) fn check_directory(&self, hook: &Hook) -> Result<(), String> {
        let Some(cwd) = &hook.options.cwd else { return Ok(()) };
        let (Ok(root), Ok(directory)) =
            (self.root.canonicalize(), self.root.join(cwd).canonicalize())
        else {
            return Ok(());
        };
        if directory.starts_with(&root) {
            return Ok(());
        }
        Err(format!(
            "`cwd: {cwd}` is a link that leads out of the project: name a directory inside of it"
        ))
    }

    /// The hook's sandbox, ready for a run.
    pub(crate) fn sandbox(&self, hook: &Hook) -> Result<Prepared, String> {
        let (root, state) = (self.root.as_path(), self.state.as_path());
        let own = self.environment.iter().find(|(name, _)| name == "TMPDIR");
        let temporary_files = own.map(|(_, value)| Path::new(value));
        let around = Surroundings { root, state, temporary_files };
        Prepared::new(hook.options.sandbox.as_ref(), around)
    }

    /// Exactly what a hook's process has of an environment.
    fn environment_of(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
        invocation: &Invocation,
    ) -> Vec<(OsString, OsString)> {
        let own = |name: &str| {
            let found = self.environment.iter().find(|(known, _)| known.to_str() == Some(name));
            found.map(|(_, value)| value.clone())
        };
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        // Test runners that watch files run once instead. A hook whose `env` names the variable decides itself.
        if !hook.options.env.iter().any(|entry| entry.name() == CI_VARIABLE) {
            env.insert(CI_VARIABLE.into(), "1".into());
        }
        for name in BASE.iter().chain(&LOG_SELECTORS) {
            if let Some(value) = own(name) {
                env.insert(name.into(), value);
            }
        }
        // A hook may run in another directory than this program.
        if let Some(policy) = env.get_mut(OsStr::new("HOOKLOOP_POLICY"))
            && let Ok(absolute) = std::path::absolute(&*policy)
        {
            *policy = absolute.into();
        }
        for entry in &hook.options.env {
            match entry {
                EnvEntry::Inherited(name) => {
                    if let Some(value) = own(name) {
                        env.insert(name.into(), value);
                    }
                }
                EnvEntry::Set { name, value } => {
                    env.insert(name.into(), value.into());
                }
            }
        }
        let task = occasion.task_id().map(TaskId::to_string).unwrap_or_default();
        let root = self.root.as_os_str();
        env.insert("CLAUDE_PROJECT_DIR".into(), root.into());
        env.insert("HOOKLOOP_PROJECT".into(), root.into());
        env.insert("HOOKLOOP_TASK_ID".into(), task.into());
        env.insert("HOOKLOOP_POINT".into(), occasion.point.name().into());
        env.insert("HOOKLOOP_HOOK".into(), hook.name.clone().into());
        if let Some(reaction) = &occasion.reaction {
            env.insert(CAUSE_VARIABLE.into(), reaction.variable(&hook.name));
        }
        if let Some(id) = occasion.session_id() {
            env.insert("HOOKLOOP_SESSION".into(), id.into());
        }
        if let Some(SessionContext { call, trace_parent, .. }) = occasion.session {
            let iteration = call.iteration().to_string();
            env.insert("HOOKLOOP_ITERATION".into(), iteration.into());
            if let Some(parent) = trace_parent {
                env.insert(TRACE_PARENT.into(), parent.into());
            }
        }
        for (name, value) in &invocation.env {
            env.insert(name.into(), OsString::from_vec(value.clone()));
        }
        env.into_iter().collect()
    }

    /// What the hook reads: one JSON object.
    fn input(
        &self,
        hook: &Hook,
        occasion: &Occasion<'_>,
        (attempt, context): (u32, &Value),
        cwd: &Path,
    ) -> Value {
        let task = occasion.task;
        let event = occasion.event.map(|event| {
            json!({
                "id": event.id.to_string(),
                "type": event.body.kind(),
                "timestamp": event.at,
                "actor": event.actor,
                "data": event.body.data(),
            })
        });
        let mut input = json!({
            "session_id": occasion.session_id().unwrap_or_default(),
            "transcript_path": null,
            "cwd": cwd,
            "hook_event_name": occasion.point.event_name(),
            "task_id": occasion.task_id(),
            "task_subject": task.map(|task| task.spec.goal.clone()),
            "task_description": task.map(|task| task.spec.description.clone()),
            "hookloop": {
                "point": occasion.point.name(),
                "hook": hook.name,
                "attempt": attempt,
                "max_attempts": hook.options.retry.attempts,
                "task": task.map(task_value),
                "event": event,
            },
        });
        if let Some(session) = occasion.session {
            add_session(&mut input, session, occasion.point);
        }
        if let Some((branch, base)) = occasion.branches {
            let ours = &mut input["hookloop"];
            ours["branch"] = json!(branch);
            ours["base_branch"] = json!(base);
            ours["worktree"] = json!(self.root);
        }
        if let Some(delivery) = occasion.delivery {
            let ours = &mut input["hookloop"];
            ours["delivery"] = json!({
                "url": delivery.url,
                "number": delivery.number,
                "head": delivery.head,
                "commits": delivery.commits,
                "agent": delivery.agent,
            });
            ours["context"] = if context.is_null() { json!({}) } else { context.clone() };
        }
        input
    }
}

/// What a hook is told about the session that it runs in.
fn add_session(input: &mut Value, context: &SessionContext<'_>, point: &Point) {
    let Call { id, session, error, validated, .. } = context.call;
    let last = session.last.as_ref();
    input["session_id"] = json!(id);
    input["transcript_path"] = json!(context.transcript);
    if let Some(error) = error {
        input["error"] = json!(error);
    }
    if point.kind() == PointKind::Gate || *point == Point::PostIteration {
        input["last_assistant_message"] = json!(last.map(|last| last.message.as_str()));
    }
    if *point == Point::Stop {
        input["stop_hook_active"] = json!(session.was_sent_back);
    }
    let limits = &session.plan.limits;
    let results = validated
        .iter()
        .map(|result| json!({ "ruleName": result.rule, "passed": result.has_passed() }));
    let promises =
        context.call.promises().iter().map(|promise| json!({ "type": promise, "detected": true }));
    let ours = &mut input["hookloop"];
    ours["iteration"] = json!(context.call.iteration());
    ours["worktree"] = json!(context.root);
    ours["files_modified"] = json!(last.map_or(&[][..], |last| &last.changed));
    ours["validation_results"] = results.collect();
    ours["promises"] = promises.collect();
    ours["budget"] = json!({
        "iterations": limits.iterations,
        "retries": session.retries,
        "hook_retries": limits.hook_retries,
        "tokens": session.usage.tokens(),
        "cost_micros": session.cost().known_micros(),
    });
}

/// Where what was printed is kept, if anything was.
pub(crate) fn kept(ran: &Ran, artifacts: &Path) -> Option<String> {
    let streams = [&ran.output.stdout, &ran.output.stderr];
    let is_kept = streams.into_iter().any(|stream| !matches!(stream.stored, Stored::Nothing));
    is_kept.then(|| artifacts.display().to_string())
}

/// Lets a stream through without secrets, those among them that are fetched while it goes on. An empty piece
/// ends it.
pub(crate) fn redacting(runner: &Runner) -> Filter<'_> {
    let mut stream = runner.redactor().map(Redactor::stream);
    Box::new(move |piece: &[u8], out: &mut Vec<u8>| {
        // Without anything to look with, nothing passes.
        let Some((mut open, redactor)) = stream.take().zip(runner.redactor()) else { return };
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

/// The variables that a hook wants from elsewhere.
fn named(hook: &Hook) -> impl Iterator<Item = &str> {
    hook.options.env.iter().filter_map(|entry| match entry {
        EnvEntry::Inherited(name) => Some(name.as_str()),
        EnvEntry::Set { .. } => None,
    })
}
