//! The actor that gives commands: a person, or a process that hookloop knows not to be one.
//!
//! [`hookloop_core::authority`] lists the actions that each kind of actor may take. This module
//! detects the kind of an actor. It relies on the processes above this one, and not on a claim that
//! the process makes about itself:
//!
//! - A process below a keeper is a hook or an agent of the keeper's project. Projects in other
//!   state directories are not affected: a test suite that an agent runs may start hookloop on
//!   projects of its own.
//! - The hooks and the MCP server of an agent that a person started record the process of that
//!   agent.
//! - A process whose ancestors are hidden never counts as a person.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hookloop_core::authority::{ActorKind, ControlledAction};
use hookloop_core::id::SessionId;
use hookloop_hooks::ancestry::{CallerAncestry, KeeperOwner, agent_above, ancestry};
use hookloop_process::ProcessIdentity;

use crate::error::{NotPerson, UnauthorizedAction};

/// The prefix, before the user's name, of an agent without a known session in the log.
const AGENT: &str = "agent:";
/// The directory of recorded agent processes, below the directory of all states.
const AGENTS: &str = "_agents";
/// Records that one cleanup of ended agents examines at most.
const RECORDS_MAX: usize = 1_000;

/// The kind of actor that a process works for, and the reason if it is no person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    pub kind: ActorKind,
    /// None for a person.
    pub why: Option<NotPerson>,
}

impl CallerIdentity {
    pub fn person() -> CallerIdentity {
        CallerIdentity { kind: ActorKind::Person, why: None }
    }

    /// An agent that calls through MCP tools or through its own hooks.
    pub fn agent(kind: ActorKind) -> CallerIdentity {
        CallerIdentity { kind, why: Some(NotPerson::Agent) }
    }

    pub fn service(kind: ActorKind) -> CallerIdentity {
        CallerIdentity { kind, why: Some(NotPerson::Service) }
    }

    pub fn is_person(&self) -> bool {
        self.kind == ActorKind::Person
    }

    /// Returns an error if this actor may not take the action.
    pub fn check(&self, action: ControlledAction) -> Result<(), UnauthorizedAction> {
        if action.is_allowed_to(self.kind) {
            return Ok(());
        }
        let why = self.why.clone().unwrap_or(NotPerson::Agent);
        Err(UnauthorizedAction { action, why })
    }
}

/// The part of the machine that a command is about.
#[derive(Clone, Debug, Default)]
pub struct CallerScope {
    /// The directory of all projects' states, if the machine has one.
    pub state_home: Option<PathBuf>,
    /// The project's directory.
    pub project: Option<PathBuf>,
    /// The home directory, if the command changes something there.
    pub home: Option<PathBuf>,
    /// The session that started the command, according to the environment.
    pub session: Option<String>,
    /// Whether the environment names a hook.
    pub is_hook: bool,
}

impl CallerScope {
    /// Finds out the kind of actor that this process works for.
    pub fn identify(&self) -> CallerIdentity {
        let above = match ancestry() {
            Ok(above) => above,
            Err(hidden) => {
                let why = Some(NotPerson::Hidden(*hidden));
                return CallerIdentity { kind: ActorKind::SessionAgent, why };
            }
        };
        let is_kept = above.keepers.iter().any(|owner| self.is_of(owner.as_ref()));
        let kept_kind = if self.is_hook { ActorKind::Hook } else { ActorKind::SessionAgent };
        if is_kept {
            return CallerIdentity { kind: kept_kind, why: Some(NotPerson::Kept) };
        }
        if let Some((process, agent)) = self.recorded_agent(above) {
            let why = Some(NotPerson::External { agent, pid: process.pid });
            return CallerIdentity { kind: ActorKind::ExternalSession, why };
        }
        // Below a keeper of another state directory, the variable names a session of that
        // directory.
        if self.session.is_some() && above.keepers.is_empty() {
            return CallerIdentity { kind: kept_kind, why: Some(NotPerson::Session) };
        }
        CallerIdentity::person()
    }

    /// Whether the restrictions on `owner`'s hooks and agents apply to this command.
    ///
    /// They apply if the command concerns the same home directory, state directory or project. An
    /// unknown owner or state directory counts as the same.
    fn is_of(&self, owner: Option<&KeeperOwner>) -> bool {
        let (Some(owner), Some(state_home)) = (owner, &self.state_home) else { return true };
        let is_same = |one: &Path, other: &Path| real(one) == real(other) || is_one(one, other);
        let is_same_home = match (&self.home, &owner.home) {
            (Some(home), Some(owners)) => is_same(home, owners),
            (Some(_), None) => true,
            (None, _) => false,
        };
        is_same_home
            || owner.state.parent().is_none_or(|owners| is_same(owners, state_home))
            || self.project.as_ref().is_some_and(|project| is_same(project, &owner.project))
    }

    /// Returns the nearest ancestor process that is recorded as an agent, and the agent's name.
    fn recorded_agent(&self, above: &CallerAncestry) -> Option<(ProcessIdentity, String)> {
        let records = self.state_home.as_ref()?.join(AGENTS);
        if !records.exists() {
            return None;
        }
        above.processes.iter().find_map(|process| {
            let agent = fs::read_to_string(records.join(record_name(*process))).ok()?;
            Some((*process, agent))
        })
    }
}

/// Records the agent process that runs this process as its hook or its MCP server.
///
/// From then on, processes below the agent do not count as a person. If the record cannot be
/// written, the agent stays unknown. The threat model documents this gap.
pub fn record_agent(state_home: &Path, agent: &str) {
    let Some(process) = agent_above() else { return };
    let records = state_home.join(AGENTS);
    let path = records.join(record_name(process));
    if path.exists() {
        return;
    }
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&records);
    let recorded = made.and_then(|()| {
        remove_dead(&records);
        fs::write(&path, agent)
    });
    if let Err(error) = recorded {
        let path = path.display();
        tracing::warn!(agent, %path, %error, "an agent is not recorded: it counts as a person");
    }
}

/// Removes the records of agents that have ended.
fn remove_dead(records: &Path) {
    for entry in fs::read_dir(records).into_iter().flatten().flatten().take(RECORDS_MAX) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let is_gone = pid.is_none_or(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        });
        if is_gone {
            // Another process may have removed it. A record that stays is of no living process.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn record_name(process: ProcessIdentity) -> String {
    format!("{}-{}", process.pid, process.started)
}

/// Resolves links and `..` in a path, even if its last components do not exist yet.
fn real(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        if let Ok(found) = plain.canonicalize() {
            plain = found;
        }
    }
    plain
}

/// Whether both paths are the same directory, regardless of mounts.
fn is_one(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// An actor: its name in the log, and its kind.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name of the user, or the name that the caller passed.
    user: String,
    scope: Arc<CallerScope>,
    found: Arc<OnceLock<FoundActor>>,
}

/// The name and kind of an actor, detected at first use.
#[derive(Debug)]
struct FoundActor {
    name: String,
    identity: CallerIdentity,
}

impl Caller {
    /// Returns an actor whose kind is known.
    pub fn known(name: &str, identity: CallerIdentity) -> Caller {
        let found = Arc::new(OnceLock::from(FoundActor { name: name.to_owned(), identity }));
        Caller { user: name.to_owned(), scope: Arc::default(), found }
    }

    /// Returns the actor of this process: `user`, unless the process belongs to an agent.
    ///
    /// Detection happens at first use, so commands that only read do not pay for it.
    pub fn of_process(user: &str, scope: CallerScope) -> Caller {
        Caller { user: user.to_owned(), scope: Arc::new(scope), found: Arc::default() }
    }

    /// Returns the actor's name in the log.
    pub fn name(&self) -> &str {
        &self.found().name
    }

    pub fn identity(&self) -> &CallerIdentity {
        &self.found().identity
    }

    fn found(&self) -> &FoundActor {
        self.found.get_or_init(|| {
            let identity = self.scope.identify();
            let session: Option<SessionId> =
                self.scope.session.as_ref().and_then(|id| id.parse().ok());
            let name = match (session, identity.is_person()) {
                (Some(session), false) => session.actor(),
                (None, false) => format!("{AGENT}{}", self.user),
                (_, true) => self.user.clone(),
            };
            FoundActor { name, identity }
        })
    }

    /// Returns an actor of the same kind under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Caller {
        Caller::known(name, self.identity().clone())
    }
}

impl From<&str> for Caller {
    /// Returns a person of that name.
    fn from(name: &str) -> Caller {
        Caller::known(name, CallerIdentity::person())
    }
}

impl From<&String> for Caller {
    /// Returns a person of that name.
    fn from(name: &String) -> Caller {
        Caller::from(name.as_str())
    }
}

impl From<&Caller> for Caller {
    fn from(caller: &Caller) -> Caller {
        caller.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(project: &str, state: &str) -> KeeperOwner {
        let (log, home) = (String::new(), Some("/home/u".into()));
        KeeperOwner { project: project.into(), state: state.into(), log, home }
    }

    #[test]
    fn a_keeper_covers_callers_of_its_state_directory_project_or_home() {
        let scope = |state_home: Option<&str>, project: &str| CallerScope {
            state_home: state_home.map(PathBuf::from),
            project: Some(project.into()),
            ..CallerScope::default()
        };
        let kept = owner("/work/p", "/state/hookloop/p-1");
        let check = |scope: CallerScope, owner: Option<&KeeperOwner>, expected: bool| {
            assert_eq!(scope.is_of(owner), expected, "{scope:?}");
        };
        check(scope(Some("/state/hookloop"), "/work/p"), Some(&kept), true);
        check(scope(Some("/state/hookloop"), "/work/other"), Some(&kept), true);
        check(scope(Some("/tmp/state/hookloop"), "/work/p"), Some(&kept), true);
        check(scope(Some("/tmp/state/hookloop"), "/tmp/scratch"), Some(&kept), false);
        check(scope(Some("/state/new/../hookloop"), "/work/other"), Some(&kept), true);
        check(scope(Some("/tmp/state/hookloop"), "/tmp/scratch"), None, true);
        check(scope(None, "/tmp/scratch"), Some(&kept), true);
        let home = CallerScope {
            home: Some("/home/u".into()),
            ..scope(Some("/tmp/state/hookloop"), "/tmp/scratch")
        };
        check(home, Some(&kept), true);
    }
}
