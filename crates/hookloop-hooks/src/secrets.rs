//! Secrets by reference: hookloop reads a value when a hook or an agent that names it starts.
//!
//! The configuration contains only the source of the value. Nothing here shows a value: messages
//! have the name of a secret and its source. A value leaves this module only for the redactor and
//! then for the environment of one process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookloop_config::located::FileLine;
use hookloop_config::secret_references::{SecretBinding, SecretBook, SecretOwner, SecretReference};
use hookloop_core::redact::SHORTEST_SECRET;
use hookloop_process::{ExitReason, Job, KeeperPool, ProcessError, WhyNotStarted};
use rustix::fs::OFlags;

/// Longest value of a secret, in bytes.
pub(crate) const LENGTH_MAX: usize = 64 * 1024;
/// Time limit of a command that prints a secret. It reads a file or asks a key ring.
pub(crate) const COMMAND_WITHIN: Duration = Duration::from_secs(10);
/// A secret could not be read. The error contains nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret {name} can't be had from {reference} ({at}): {why}")]
pub struct SecretError {
    pub name: String,
    pub reference: SecretReference,
    pub at: FileLine,
    pub why: String,
}

/// The secrets of a project: their sources, and the values that were read.
#[derive(Default)]
pub struct SecretVault {
    entries: BTreeMap<String, SecretBinding>,
    fetched: Mutex<BTreeMap<String, OsString>>,
    /// Separate keepers. The caller may hold a keeper already, and their number is limited.
    keepers: Option<KeeperPool>,
}

impl fmt::Debug for SecretVault {
    /// Prints only names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

/// The context in which a secret is read.
#[derive(Clone, Copy, Debug)]
pub struct FetchContext<'a> {
    pub environment: &'a [(OsString, OsString)],
    /// The working directory of a command. It is outside the repository.
    pub cwd: &'a Path,
}

impl SecretVault {
    /// Collects the secrets of a project. Of two with one name, the one in the earlier book wins.
    pub fn new<'b>(
        books: impl IntoIterator<Item = &'b SecretBook>,
        whose: &SecretOwner<'b>,
    ) -> SecretVault {
        let mut entries = BTreeMap::new();
        for entry in books.into_iter().flat_map(|book| book.of_project(whose)) {
            entries.entry(entry.name.clone()).or_insert_with(|| entry.clone());
        }
        let has_command =
            |entry: &SecretBinding| matches!(entry.reference, SecretReference::Command(_));
        let keepers = entries.values().any(has_command).then(KeeperPool::of_this_program);
        SecretVault { entries, fetched: Mutex::default(), keepers }
    }

    fn fetched(&self) -> MutexGuard<'_, BTreeMap<String, OsString>> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a secret has this name, even if it was not read yet.
    pub fn names(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Whether all secrets with these names were already read.
    pub fn has_all<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        let fetched = self.fetched();
        names.all(|name| !self.entries.contains_key(name) || fetched.contains_key(name))
    }

    /// Returns the values of the secrets among these names. Each is read once.
    ///
    /// If a value is new, `known` gets all values read so far before this returns any of them.
    pub fn get<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        around: FetchContext<'_>,
        known: impl FnOnce(&BTreeMap<String, OsString>) -> Result<(), String>,
    ) -> Result<Vec<(OsString, OsString)>, SecretError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&SecretBinding> =
            names.filter_map(|name| self.entries.get(name)).collect();
        let mut fetched = self.fetched();
        let mut new = Vec::new();
        for entry in &entries {
            if !fetched.contains_key(&entry.name) {
                let value = self.fetch(&entry.reference, around);
                new.push((entry, value.map_err(|why| failed(entry, why))?));
            }
        }
        if let Some((first, _)) = new.first() {
            let mut all = fetched.clone();
            all.extend(new.iter().map(|(entry, value)| (entry.name.clone(), value.clone())));
            known(&all).map_err(|why| failed(first, why))?;
            *fetched = all;
        }
        let value = |entry: &SecretBinding| {
            Some((entry.name.clone().into(), fetched.get(&entry.name)?.clone()))
        };
        Ok(entries.into_iter().filter_map(value).collect())
    }

    fn fetch(
        &self,
        reference: &SecretReference,
        around: FetchContext<'_>,
    ) -> Result<OsString, String> {
        let value = match reference {
            SecretReference::Env(name) => {
                let found = around.environment.iter().find(|(known, _)| known == OsStr::new(name));
                let (_, value) = found.ok_or("there is no such variable")?;
                value.clone().into_vec()
            }
            SecretReference::File(path) => read(path)?,
            SecretReference::Command(argv) => self.ask(argv, around)?,
        };
        check(without_newline(value))
    }

    fn ask(&self, argv: &[String], around: FetchContext<'_>) -> Result<Vec<u8>, String> {
        let keepers = self.keepers.as_ref().ok_or("there is nobody to run it")?;
        let argv = argv.iter().map(OsString::from).collect();
        let env = around.environment.to_vec();
        let job = Job { env, ..Job::new(argv, around.cwd.to_owned(), COMMAND_WITHIN) };
        let ran = keepers.run(job).map_err(|error| match error {
            ProcessError::NotStarted { why: WhyNotStarted::NotInPath { .. }, .. } => {
                "there is no such program".to_owned()
            }
            ProcessError::NotStarted { why, .. } => why.to_string(),
            error => error.to_string(),
        })?;
        match ran.exit {
            ExitReason::Exited(0) => {}
            ExitReason::Exited(code) => return Err(format!("it ended with exit code {code}")),
            ExitReason::TimedOut => {
                return Err(format!("it did not end within {COMMAND_WITHIN:?}"));
            }
            ExitReason::Signalled(signal) => {
                return Err(format!("it was killed by signal {signal}"));
            }
            ExitReason::Cancelled | ExitReason::OverLimit(_) => {
                return Err("it was ended".to_owned());
            }
        }
        let said = ran.output.stdout.whole().ok_or_else(too_long)?;
        Ok(said.into_owned())
    }
}

/// Returns the error of a secret that could not be read.
fn failed(entry: &SecretBinding, why: String) -> SecretError {
    let SecretBinding { name, reference, at, .. } = entry.clone();
    SecretError { name, reference, at, why }
}

/// Returns the content of a file that is neither world-readable nor world-writable.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| error.kind().to_string();
    // Does not wait for a pipe without a writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.mode() & 0o006 != 0 {
        return Err(format!("everybody can read or write it; chmod o-rw {}", path.display()));
    }
    bounded(file).map_err(failed)?.ok_or_else(too_long)
}

/// Reads a file, or returns `None` if it is too long.
fn bounded(file: File) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // One line end may follow the value.
    let max = LENGTH_MAX as u64 + 2;
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max))
}

fn too_long() -> String {
    format!("it is longer than {LENGTH_MAX} bytes")
}

/// Removes the final line end, which editors and commands add.
fn without_newline(mut value: Vec<u8>) -> Vec<u8> {
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    value
}

/// Checks that a value fits in an environment and can be redacted.
fn check(value: Vec<u8>) -> Result<OsString, String> {
    if value.len() > LENGTH_MAX {
        return Err(too_long());
    }
    if value.trim_ascii().len() < SHORTEST_SECRET {
        return Err(format!(
            "it is shorter than {SHORTEST_SECRET} bytes, and could not be told from other text"
        ));
    }
    match value.contains(&0) {
        true => Err("it holds a zero byte, which no process can be given".to_owned()),
        false => Ok(OsString::from_vec(value)),
    }
}
