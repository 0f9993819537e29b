//! The hooks of a session as they were trusted when it began: definitions and script bytes.
//!
//! A session runs these to its end. A script that is edited and trusted meanwhile takes effect in
//! the next session. The log has the digest of each script, and the state directory a copy of its
//! bytes. So a resumed session, and an external session that returns, still has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hookloop_core::digest::sha256_hex;
use hookloop_core::hook::{Hook, HookRegistry, HookSource};
use hookloop_core::id::SessionId;
use hookloop_core::point::Point;
use hookloop_core::session::FrozenScript;

use crate::scripts::NamedFiles;
use crate::trust::{self, SeenHook, TrustError, TrustScope};

/// File in the session's directory with the digest of the scripts that this machine trusted for it.
const MARKER: &str = "scripts";

/// The reason why the hooks of a session cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    #[error("these hooks are not trusted: {}", .0.join(", "))]
    Untrusted(Vec<String>),
    #[error(
        "the scripts are not those that session {session} began with, and this machine has no copy of those: {}",
        paths.join(", ")
    )]
    OtherScripts { session: SessionId, paths: Vec<String> },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// The frozen hooks of a session.
#[derive(Debug)]
pub struct FrozenHooks {
    hooks: Vec<SeenHook>,
    /// The reason why none of them can run here.
    unavailable: Option<String>,
}

impl FrozenHooks {
    /// Freezes the hooks of a session that begins now. All of them must be trusted.
    pub fn freeze(scope: TrustScope<'_>, hooks: &HookRegistry) -> Result<FrozenHooks, FreezeError> {
        let mut frozen = Vec::new();
        let mut untrusted = Vec::new();
        for hook in of_session(hooks) {
            match SeenHook::look(scope.home, hook) {
                Ok(seen) if scope.trust.standing_of(hook, &seen).may_run() => {
                    if trust::starts_something(hook) {
                        frozen.push(seen);
                    }
                }
                _ => untrusted.push(hook.name.clone()),
            }
        }
        if !untrusted.is_empty() {
            return Err(FreezeError::Untrusted(untrusted));
        }
        let frozen = FrozenHooks { hooks: frozen, unavailable: None };
        frozen.keep_copies(scope)?;
        Ok(frozen)
    }

    /// Returns the hooks that a session froze before.
    ///
    /// Only a machine that trusted the scripts for this session runs its copies of them. Any other
    /// machine must have the same scripts, trusted, in its own checkout.
    pub fn recall(
        scope: TrustScope<'_>,
        hooks: &HookRegistry,
        session: &FrozenSession<'_>,
    ) -> Result<FrozenHooks, FreezeError> {
        let was_trusted_here = session.was_trusted_here();
        if !was_trusted_here {
            return FrozenHooks::find_same(scope, hooks, session);
        }
        let mut frozen = Vec::new();
        let mut missing = Vec::new();
        for hook in of_session(hooks).filter(|hook| trust::starts_something(hook)) {
            match recalled(scope, hook, session.scripts) {
                Ok(seen) => frozen.push(seen),
                Err(path) => missing.push(path),
            }
        }
        if !missing.is_empty() {
            return Err(session.missing(missing));
        }
        let frozen = FrozenHooks { hooks: frozen, unavailable: None };
        frozen.keep_copies(scope)?;
        Ok(frozen)
    }

    /// Returns the hooks of this checkout, if their scripts are those of the session.
    fn find_same(
        scope: TrustScope<'_>,
        hooks: &HookRegistry,
        session: &FrozenSession<'_>,
    ) -> Result<FrozenHooks, FreezeError> {
        let found = FrozenHooks::freeze(scope, hooks)?;
        let here = found.scripts();
        let gone = session.scripts.iter().filter(|script| !here.contains(script));
        let added = here.iter().filter(|script| !session.scripts.contains(script));
        let other: BTreeSet<String> = gone.chain(added).map(|script| script.path.clone()).collect();
        if other.is_empty() { Ok(found) } else { Err(session.missing(other.into_iter().collect())) }
    }

    /// Returns hooks of which none can run here, each with the reason.
    pub fn unavailable(why: &dyn std::fmt::Display) -> FrozenHooks {
        FrozenHooks { hooks: Vec::new(), unavailable: Some(why.to_string()) }
    }

    /// Returns the scripts of all hooks, for the log.
    pub fn scripts(&self) -> Vec<FrozenScript> {
        let of_hook = |seen: &SeenHook| {
            let SeenHook { definition, named, .. } = seen;
            let script = |(word, path): (&usize, &String)| FrozenScript {
                hook: definition.name.clone(),
                task_type: definition.task_type.clone(),
                word: u32::try_from(*word).unwrap_or(u32::MAX),
                path: path.clone(),
                sha256: definition.scripts.get(path).cloned().unwrap_or_default(),
            };
            named.files.iter().map(script).collect::<Vec<_>>()
        };
        self.hooks.iter().flat_map(of_hook).collect()
    }

    /// Returns the path of each script in the checkout at `root`, and whether its bytes are
    /// unchanged.
    pub fn compare(&self, root: &Path) -> BTreeMap<PathBuf, bool> {
        let all = self.hooks.iter().flat_map(|seen| &seen.bytes);
        let compared = all.map(|(name, bytes)| {
            let path = root.join(name);
            let is_same = fs::read(&path).is_ok_and(|now| now == *bytes);
            (path, is_same)
        });
        compared.collect()
    }

    /// Returns the frozen hook, if the rest of its definition is unchanged.
    pub fn may_run(&self, home: &Path, hook: &Hook) -> Result<SeenHook, String> {
        if let Some(why) = &self.unavailable {
            return Err(why.clone());
        }
        let is_it = |seen: &&SeenHook| {
            let definition = &seen.definition;
            (&definition.name, &definition.task_type) == (&hook.name, &hook.task_type)
        };
        let Some(frozen) = self.hooks.iter().find(is_it) else {
            return Err("it was not a hook of the session when that began".to_owned());
        };
        // A word that named no file at the freeze may name one now, and that file is not trusted.
        let now = NamedFiles::look_beside(home, hook, &frozen.named.files);
        if let Some(path) = now.files.values().next() {
            return Err(format!("it names `{path}`, which was not there when the session began"));
        }
        let scripts = frozen.definition.scripts.clone();
        if trust::definition(hook, &now, scripts) != frozen.definition {
            return Err("it is not as it was when the session began".to_owned());
        }
        let named = NamedFiles { absent: now.absent, ..frozen.named.clone() };
        Ok(SeenHook { named, ..frozen.clone() })
    }

    fn keep_copies(&self, scope: TrustScope<'_>) -> Result<(), FreezeError> {
        for seen in &self.hooks {
            scope.trust.keep(seen).map_err(|error| match error {
                TrustError::Io { path, source } => FreezeError::Io { path, source },
                other => {
                    let source = std::io::Error::other(other.to_string());
                    FreezeError::Io { path: scope.state.to_owned(), source }
                }
            })?;
        }
        Ok(())
    }
}

/// The scripts of a session from the log, and its directory on this machine.
#[derive(Clone, Copy, Debug)]
pub struct FrozenSession<'a> {
    pub id: &'a hookloop_core::id::SessionId,
    pub scripts: &'a [FrozenScript],
    pub directory: &'a Path,
}

impl FrozenSession<'_> {
    /// Records that this machine trusts these scripts for the session.
    pub fn mark(&self) -> Result<(), FreezeError> {
        let path = self.directory.join(MARKER);
        fs::write(&path, self.digest()).map_err(|source| FreezeError::Io { path, source })
    }

    fn was_trusted_here(&self) -> bool {
        fs::read_to_string(self.directory.join(MARKER)).is_ok_and(|known| known == self.digest())
    }

    fn digest(&self) -> String {
        sha256_hex(serde_json::to_vec(self.scripts).unwrap_or_default())
    }

    fn missing(&self, paths: Vec<String>) -> FreezeError {
        FreezeError::OtherScripts { session: self.id.clone(), paths }
    }
}

/// Returns the hooks that run in sessions and are not built in.
fn of_session(hooks: &HookRegistry) -> impl Iterator<Item = &Hook> {
    let is_of_session = |hook: &&Hook| {
        let runs_there = hook.points.iter().any(|point| !matches!(point, Point::Event(_)));
        hook.enabled && runs_there && hook.source != HookSource::Builtin
    };
    hooks.list().iter().filter(is_of_session)
}

/// Returns a hook with its frozen scripts. The error is the path of a script without its bytes.
fn recalled(
    scope: TrustScope<'_>,
    hook: &Hook,
    scripts: &[FrozenScript],
) -> Result<SeenHook, String> {
    let is_own =
        |script: &&FrozenScript| script.hook == hook.name && script.task_type == hook.task_type;
    let mut files = BTreeMap::new();
    let mut bytes = BTreeMap::new();
    let mut digests = BTreeMap::new();
    for script in scripts.iter().filter(is_own) {
        let FrozenScript { word, path, sha256, .. } = script;
        let kept = trust::kept_path(scope.state, sha256, path);
        let found = [kept, scope.home.join(path)].into_iter().find_map(|place| {
            // The script is looked for at both places. If it is at none, the caller reports it.
            let read = fs::read(place).ok()?;
            (sha256_hex(&read) == *sha256).then_some(read)
        });
        bytes.insert(path.clone(), found.ok_or_else(|| path.clone())?);
        digests.insert(path.clone(), sha256.clone());
        files.insert(usize::try_from(*word).unwrap_or(usize::MAX), path.clone());
    }
    let now = NamedFiles::look_beside(scope.home, hook, &files);
    let named = NamedFiles { files, links: now.links, absent: now.absent };
    let definition = trust::definition(hook, &named, digests);
    let digest = trust::definition_digest(&definition);
    Ok(SeenHook { definition, digest, bytes, named })
}
