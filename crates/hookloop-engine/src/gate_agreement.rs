//! The gates that a person agreed to, kept for each branch of a repository.
//!
//! - The agreement is kept outside of the repository, in the state directory of all projects. Its
//!   key is the repository's common git directory and the project's path in it, so linked worktrees
//!   share one agreement.
//! - Each branch has its own entry. A branch without one uses the entry of the default branch
//!   (`origin/HEAD`, else `main` or `master`), else the newest entry.
//! - The project's own state directory has a copy of the last entry. The copy counts outside of
//!   git. It also counts if the project is in another repository than the copy. So deleting or
//!   redirecting `.git` does not lose the agreement.
//! - `hookloop hooks trust` and `init` write the agreement. A session that starts with the same or
//!   stronger gates writes it, too: a gate that was in force once is part of it.
//! - If a project has no ledger yet, its agreement comes from the definitions in `trust.json`.
//!
//! An agent that works in the repository does not come across these files. But a process of the
//! same user can write them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hookloop_config::clock::now;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::authority::ControlledAction;
use hookloop_core::digest::{sha256_hex, short_sha256_hex};
use hookloop_core::event::{AgentsTrusted, EventBody, HooksTrusted};
use hookloop_core::gate_ledger::{
    GateChange, GateChangeKind, GateLedger, GateList, GateRecord, GateScope, compare,
};
use hookloop_core::id::Subject;
use hookloop_core::options::{HookOptions, Length};
use hookloop_core::point::{Point, PointKind};
use hookloop_core::time::Timestamp;
use hookloop_git::repo::discover::FoundRepository;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust::gates_now::gates;
use hookloop_hooks::trust::{
    DigestConsent, HookDefinition, HookOffer, HookStanding, SeenHook, Trust, TrustError, write,
};
use hookloop_process::lock_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::EngineError;
use crate::project::Project;

const FILE: &str = "ledger.json";
const LOCK: &str = "ledger.lock";
/// The directory of repository agreements, in the directory of all states.
const REPOSITORIES: &str = "_repos";
/// The entry name of a checkout that is on no branch.
const NO_BRANCH: &str = "(no branch)";
/// Maximum branches of one repository with an entry. The oldest entry is removed first.
const BRANCHES_MAX: usize = 1_000;
const VERSION: u32 = 1;
/// Maximum agreements that are searched for other projects of a repository.
const REPOSITORIES_MAX: usize = 10_000;

/// The agreement about the gates of one project.
#[derive(Debug)]
struct GateAgreement {
    state: PathBuf,
    repository: Option<RepositoryEntry>,
}

/// The location of the agreement for a branch of a repository.
#[derive(Debug)]
struct RepositoryEntry {
    /// The common git directory.
    common: PathBuf,
    directory: PathBuf,
    branch: String,
    default_branch: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct RepositoryLedger {
    version: u32,
    /// The common git directory, which identifies projects of one repository.
    #[serde(default)]
    common: Option<PathBuf>,
    branches: BTreeMap<String, BranchLedger>,
}

#[derive(Clone, Serialize, Deserialize)]
struct BranchLedger {
    agreed_at: Timestamp,
    gates: GateLedger,
}

/// The copy of the agreement in a project's own state.
#[derive(Serialize, Deserialize)]
struct ProjectLedger {
    version: u32,
    /// The common git directory of the project when the copy was made.
    repository: Option<PathBuf>,
    gates: GateLedger,
}

/// The hooks and gates that `hookloop hooks trust` shows, and to which a person agrees.
#[derive(Debug)]
pub struct HookConsent {
    pub trust: Trust,
    pub offer: HookOffer,
    /// Every difference between the agreed gates and the current ones.
    pub changes: Vec<GateChange>,
    agreement: GateAgreement,
}

impl HookConsent {
    /// Reads the hooks, trust and agreement of the project at `root`, whose state is at `state`.
    pub fn look(
        root: &Path,
        state: &Path,
        rules: &EffectiveConfig,
    ) -> Result<HookConsent, TrustError> {
        let offer = HookOffer::look(root, rules)?;
        let trust = Trust::load(state)?;
        let agreement = GateAgreement::find(root, state);
        let agreed = agreement.gates(&trust, &offer.gates)?;
        let changes = agreed.map(|agreed| compare(&agreed, &offer.gates)).unwrap_or_default();
        Ok(HookConsent { trust, offer, changes, agreement })
    }

    /// Agrees to exactly the hooks and gates that were shown.
    ///
    /// The project's log records the decision and its actor first.
    pub fn agree(&mut self, log: &Project) -> Result<(), EngineError> {
        log.authorize(ControlledAction::TrustHooks)?;
        let gates = self.offer.gates.gates.iter().filter(|gate| !gate.is_users);
        let trusted = HooksTrusted {
            digest: self.offer.digest(),
            gates: gates.map(|gate| gate.name.clone()).collect(),
            changes: self.changes.iter().map(ToString::to_string).collect(),
        };
        log.append(&Subject::Project, EventBody::HooksTrusted(trusted))?;
        self.trust.agree(&self.offer)?;
        Ok(self.agreement.write(&self.offer.gates)?)
    }

    /// Whether [`HookConsent::agree`] would change anything.
    pub fn is_news(&self) -> bool {
        let is_new = |seen: &SeenHook| self.trust.standing(seen) != HookStanding::Trusted;
        self.offer.seen.iter().any(is_new)
            || self.trust.agreed().len() != self.offer.seen.len()
            || self.changes.iter().any(GateChange::needs_consent)
    }
}

/// Agrees to exactly these definitions of agents. The project's log records it first.
pub fn agree_to_agents(
    log: &Project,
    trust: &mut Trust,
    definitions: Vec<HookDefinition>,
) -> Result<(), EngineError> {
    log.authorize(ControlledAction::TrustAgents)?;
    let text = serde_json::to_vec(&definitions).unwrap_or_default();
    let trusted = AgentsTrusted {
        digest: format!("sha256:{}", sha256_hex(&text)),
        agents: definitions.iter().map(|definition| definition.name.clone()).collect(),
    };
    log.append(&Subject::Project, EventBody::AgentsTrusted(trusted))?;
    Ok(trust.agree_to_agents(definitions)?)
}

impl GateAgreement {
    /// Returns the agreement for the project at `root`, whose state is at `state`.
    fn find(root: &Path, state: &Path) -> GateAgreement {
        let repository = RepositoryEntry::find(root, state);
        GateAgreement { state: state.to_owned(), repository }
    }

    /// Returns the agreed gates, or none if no person has agreed to any yet.
    fn gates(&self, trust: &Trust, now: &GateLedger) -> Result<Option<GateLedger>, TrustError> {
        if let Some(agreed) = self.stored()?.or_else(|| from_definitions(trust.agreed(), now)) {
            return Ok(Some(agreed));
        }
        // A new project in a repository with gates uses those until a person agrees to its own.
        self.repository.as_ref().map_or(Ok(None), RepositoryEntry::gates_beside)
    }

    /// Returns the stored agreement, if there is one.
    fn stored(&self) -> Result<Option<GateLedger>, TrustError> {
        let copy: Option<ProjectLedger> = read(&self.state.join(FILE))?;
        if let Some(repository) = &self.repository {
            let is_same = copy
                .as_ref()
                .is_none_or(|copy| copy.repository.as_ref() == Some(&repository.common));
            if let Some(gates) = repository.gates()?.filter(|_| is_same) {
                return Ok(Some(gates));
            }
        }
        Ok(copy.map(|copy| copy.gates))
    }

    /// Stores an agreement to exactly these gates.
    fn write(&self, gates: &GateLedger) -> Result<(), TrustError> {
        let repository = self.repository.as_ref().map(|entry| entry.common.clone());
        if let Some(entry) = &self.repository {
            entry.write(gates)?;
        }
        let copy = ProjectLedger { version: VERSION, repository, gates: gates.clone() };
        make_directory(&self.state)?;
        store(&self.state.join(FILE), &copy)
    }
}

impl RepositoryEntry {
    /// Finds the entry of the current branch.
    ///
    /// Returns none outside of git and if git's files are unreadable. The project's copy counts
    /// then.
    fn find(root: &Path, state: &Path) -> Option<RepositoryEntry> {
        let found = FoundRepository::look(root);
        let found =
            found.inspect_err(|error| tracing::debug!(%error, "no repository of git")).ok()?;
        let mut key = found.common.as_os_str().as_encoded_bytes().to_vec();
        key.push(0);
        key.extend(found.prefix.as_os_str().as_encoded_bytes());
        let directory = state.parent()?.join(REPOSITORIES).join(short_sha256_hex(&key, 16));
        let branch = found.branch().unwrap_or_else(|| NO_BRANCH.to_owned());
        let default_branch = found.default_branch();
        Some(RepositoryEntry { common: found.common, directory, branch, default_branch })
    }

    fn gates(&self) -> Result<Option<GateLedger>, TrustError> {
        let ledger: RepositoryLedger = read(&self.directory.join(FILE))?.unwrap_or_default();
        let names = [Some(self.branch.as_str()), self.default_branch.as_deref()];
        let names = names.into_iter().flatten().chain(["main", "master"]);
        let named = names.filter_map(|name| ledger.branches.get(name)).next();
        let last = || ledger.branches.values().max_by_key(|entry| entry.agreed_at);
        Ok(named.or_else(last).map(|entry| entry.gates.clone()))
    }

    /// Returns the newest agreed gates of another project in the repository, if it has any.
    fn gates_beside(&self) -> Result<Option<GateLedger>, TrustError> {
        let Some(all) = self.directory.parent() else { return Ok(None) };
        let mut last: Option<BranchLedger> = None;
        for entry in fs::read_dir(all).into_iter().flatten().flatten().take(REPOSITORIES_MAX) {
            let found: Option<RepositoryLedger> = read(&entry.path().join(FILE))?;
            let ours = found.filter(|found| found.common.as_ref() == Some(&self.common));
            for branch in ours.into_iter().flat_map(|found| found.branches.into_values()) {
                let is_later = last.as_ref().is_none_or(|last| last.agreed_at < branch.agreed_at);
                if is_later && !branch.gates.gates.is_empty() {
                    last = Some(branch);
                }
            }
        }
        Ok(last.map(|branch| branch.gates))
    }

    fn write(&self, gates: &GateLedger) -> Result<(), TrustError> {
        make_directory(&self.directory)?;
        let _alone = self.lock()?;
        let path = self.directory.join(FILE);
        let mut ledger: RepositoryLedger = read(&path)?.unwrap_or_default();
        ledger.version = VERSION;
        ledger.common = Some(self.common.clone());
        let entry = BranchLedger { agreed_at: now(), gates: gates.clone() };
        ledger.branches.insert(self.branch.clone(), entry);
        while ledger.branches.len() > BRANCHES_MAX {
            let others = ledger.branches.iter().filter(|(name, _)| **name != self.branch);
            let oldest = others.min_by_key(|(_, entry)| entry.agreed_at);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            ledger.branches.remove(&oldest);
        }
        store(&path, &ledger)
    }

    /// Locks out other writers until the returned file is dropped.
    fn lock(&self) -> Result<File, TrustError> {
        let path = self.directory.join(LOCK);
        lock_file(&path).map_err(|source| TrustError::Io { path, source })
    }
}

/// Returns the gates that are missing or weaker than those that a person agreed to.
///
/// A gate that a person disabled does not count. A changed command of a trusted gate does not count
/// either: [`Trust`] has agreed to its content.
pub fn weakened(project: &Project, runner: &HookRunner) -> Result<Vec<GateChange>, EngineError> {
    Ok(ExaminedGates::look(project, runner)?.map(|found| found.weakened).unwrap_or_default())
}

/// Describes how the gates differ from those that a person trusted.
pub fn weakened_words(changes: &[GateChange]) -> String {
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let difference = if changes.iter().any(GateChange::is_weaker) {
        "the gates are fewer or weaker than you agreed to"
    } else {
        "gates changed since you trusted them"
    };
    format!("{difference}: {}", words.join("; "))
}

/// Returns the lines of [`weakened`] for people. An error is one of the lines.
pub fn weakened_lines(project: &Project) -> Vec<String> {
    let Some(runner) = project.runner() else { return Vec::new() };
    match weakened(project, runner) {
        Ok(changes) => changes.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("the gates could not be compared: {error}")],
    }
}

/// Returns the result of [`weakened`], and stores the current gates if it is empty.
pub(crate) fn check(
    project: &Project,
    runner: &HookRunner,
) -> Result<Vec<GateChange>, EngineError> {
    let Some(found) = ExaminedGates::look(project, runner)? else { return Ok(Vec::new()) };
    if found.weakened.is_empty() && found.is_to_be_written {
        found.agreement.write(&found.now)?;
    }
    Ok(found.weakened)
}

struct ExaminedGates {
    agreement: GateAgreement,
    now: GateLedger,
    weakened: Vec<GateChange>,
    is_to_be_written: bool,
}

impl ExaminedGates {
    /// Compares the gates. Returns none if policy ignores repository gates, or if this run has a
    /// one-time consent.
    fn look(project: &Project, runner: &HookRunner) -> Result<Option<ExaminedGates>, EngineError> {
        let rules = project.rules();
        let by_digest = runner.trust().by_digest();
        let counts_for_nothing = rules.policy.no_repository_hooks().is_some();
        if counts_for_nothing || by_digest == Some(DigestConsent::Once) {
            return Ok(None);
        }
        let switches = project.read(|view| view.hook_switches())?;
        let now = gates(runner.home(), rules, &switches)?;
        let agreement = GateAgreement::find(runner.home(), runner.state());
        let agreed = agreement.gates(runner.trust(), &now)?;
        let mut weakened = match (&agreed, by_digest) {
            (Some(agreed), None) => compare(agreed, &now),
            _ => Vec::new(),
        };
        weakened.retain(GateChange::needs_consent);
        let missed = weakened.len();
        weakened.retain(|change| {
            let is_off = switches.iter().any(|(name, is_on)| *name == change.gate && !is_on);
            !is_off || change.scope != GateScope::default()
        });
        // The agreement keeps a disabled gate, in case a person enables it again.
        let has_switched_off = weakened.len() < missed;
        let is_trusted = |name: &str| {
            let mut hooks = rules.hooks.list().iter().filter(|hook| hook.name == name).peekable();
            hooks.peek().is_some()
                && hooks.all(|hook| runner.standing(hook) == HookStanding::Trusted)
        };
        weakened.retain(|change| {
            !matches!(change.kind, GateChangeKind::Changed(_)) || !is_trusted(&change.gate)
        });
        let is_to_be_written = agreement.stored()?.as_ref() != Some(&now) && !has_switched_off;
        Ok(Some(ExaminedGates { agreement, now, weakened, is_to_be_written }))
    }
}

/// Derives the agreed gates from trusted definitions, for projects without a ledger.
///
/// Properties that a definition does not have are taken from the current gates.
fn from_definitions(agreed: &[HookDefinition], now: &GateLedger) -> Option<GateLedger> {
    let gates: Vec<GateRecord> =
        agreed.iter().filter_map(|definition| gate_of(definition, now)).collect();
    if gates.is_empty() {
        return None;
    }
    let lists = gates.iter().flat_map(|gate| {
        let list =
            |point: &String| Some(GateList { owner: gate.list.clone()?, point: point.clone() });
        gate.points.iter().filter_map(list)
    });
    let lists = lists.chain(now.lists.iter().cloned()).collect();
    Some(GateLedger { lists, gates, ..now.clone() })
}

fn gate_of(definition: &HookDefinition, now: &GateLedger) -> Option<GateRecord> {
    let is_gate =
        |name: &&String| name.parse::<Point>().is_ok_and(|point| point.kind() == PointKind::Gate);
    let points: Vec<String> = definition.points.iter().filter(is_gate).cloned().collect();
    let step = definition.what.get("use").and_then(Value::as_str);
    if points.is_empty() || step.is_some_and(|name| name != "run_tests") {
        return None;
    }
    let is_same =
        |gate: &&GateRecord| (&gate.name, &gate.list) == (&definition.name, &definition.task_type);
    let same = now.gates.iter().find(is_same);
    let option = |name: &str| definition.options.get(name).map(String::as_str);
    let timeout = option("timeout").and_then(|text| text.parse::<Length>().ok());
    let attempts = option("retry").and_then(|text| text.split(' ').next()?.parse().ok());
    let needs = option("needs").map(|names| names.split(", ").map(str::to_owned).collect());
    Some(GateRecord {
        name: definition.name.clone(),
        list: definition.task_type.clone(),
        points,
        is_users: same.is_some_and(|gate| gate.is_users),
        enabled: same.is_none_or(|gate| gate.enabled),
        handler: definition.what.clone(),
        scripts: definition.scripts.clone(),
        blocks_on_failure: option("on_failure") != Some("open"),
        any_of: same.and_then(|gate| gate.any_of.clone()),
        when: definition.when.clone(),
        needs: needs.unwrap_or_default(),
        timeout_ms: timeout
            .map_or(HookOptions::default().timeout_at(PointKind::Gate), |length| length.ms),
        attempts: attempts.unwrap_or(HookOptions::default().retry.attempts),
        surroundings: hookloop_hooks::trust::gates_now::surroundings(definition),
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, TrustError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrustError::Io { path: path.to_owned(), source }),
    };
    let unreadable = |error: serde_json::Error| TrustError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_slice(&text).map(Some).map_err(unreadable)
}

fn store(path: &Path, ledger: &impl Serialize) -> Result<(), TrustError> {
    let text = serde_json::to_vec_pretty(ledger).map_err(|error| TrustError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    write(path, &text, 0o600)
}

fn make_directory(path: &Path) -> Result<(), TrustError> {
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|source| TrustError::Io { path: path.to_owned(), source })
}
