//! Secrets by reference: a configuration says where a value is, and hookloop reads it when a hook or an agent that
//! names it is started.
//!
//! Nothing here shows a value. Messages have the name of a secret and its source. A value leaves this module only
//! for the redactor and then for the environment of one process.

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

use hookloop_config::located::At;
use hookloop_config::secret_references::{Book, Entry, Reference, Whose};
use hookloop_core::redact::SHORTEST_SECRET;
use hookloop_process::{ExitReason, Job, KeeperPool, ProcessError, WhyNotStarted};
use rustix::fs::OFlags;

/// The longest that one may be.
pub(crate) const LENGTH_MAX: usize = 64 * 1024;
/// It reads a file, or asks a key ring.
pub(crate) const COMMAND_WITHIN: Duration = Duration::from_secs(10);
/// Why a secret can't be had. It has not a word of what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret {name} can't be had from {reference} ({at}): {why}")]
pub struct SecretError {
    pub name: String,
    pub reference: Reference,
    pub at: At,
    pub why: String,
}

/// The secrets of a project: where they are, and those that were fetched.
#[derive(Default)]
pub struct Vault {
    entries: BTreeMap<String, Entry>,
    fetched: Mutex<BTreeMap<String, OsString>>,
    /// Of its own: who fetches one may have a keeper already, and there are only so many.
    keepers: Option<KeeperPool>,
}

impl fmt::Debug for Vault {
    /// Names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

/// What is around who fetches a secret.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub environment: &'a [(OsString, OsString)],
    /// Where a command runs: not where a repository has put something.
    pub cwd: &'a Path,
}

impl Vault {
    /// The secrets of a project. Of two of one name that of the earlier book holds.
    pub fn new<'b>(books: impl IntoIterator<Item = &'b Book>, whose: &Whose<'b>) -> Vault {
        let mut entries = BTreeMap::new();
        for entry in books.into_iter().flat_map(|book| book.of_project(whose)) {
            entries.entry(entry.name.clone()).or_insert_with(|| entry.clone());
        }
        let has_command = |entry: &Entry| matches!(entry.reference, Reference::Command(_));
        let keepers = entries.values().any(has_command).then(KeeperPool::of_this_program);
        Vault { entries, fetched: Mutex::default(), keepers }
    }

    fn fetched(&self) -> MutexGuard<'_, BTreeMap<String, OsString>> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is the name of a secret, fetched or not.
    pub fn names(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Whether there is nothing to fetch for these names.
    pub fn has_all<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        let fetched = self.fetched();
        names.all(|name| !self.entries.contains_key(name) || fetched.contains_key(name))
    }

    /// The values of those of these names that are secrets. Each is fetched once. If any is new, `known` is
    /// told all that were fetched so far before any of them is handed out.
    pub fn get<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        around: Around<'_>,
        known: impl FnOnce(&BTreeMap<String, OsString>) -> Result<(), String>,
    ) -> Result<Vec<(OsString, OsString)>, SecretError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&Entry> = names.filter_map(|name| self.entries.get(name)).collect();
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
        let value =
            |entry: &Entry| Some((entry.name.clone().into(), fetched.get(&entry.name)?.clone()));
        Ok(entries.into_iter().filter_map(value).collect())
    }

    fn fetch(&self, reference: &Reference, around: Around<'_>) -> Result<OsString, String> {
        let value = match reference {
            Reference::Env(name) => {
                let found = around.environment.iter().find(|(known, _)| known == OsStr::new(name));
                let (_, value) = found.ok_or("there is no such variable")?;
                value.clone().into_vec()
            }
            Reference::File(path) => read(path)?,
            Reference::Command(argv) => self.ask(argv, around)?,
        };
        check(without_newline(value))
    }

    fn ask(&self, argv: &[String], around: Around<'_>) -> Result<Vec<u8>, String> {
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

/// The error of a secret that could not be fetched.
fn failed(entry: &Entry, why: String) -> SecretError {
    let Entry { name, reference, at, .. } = entry.clone();
    SecretError { name, reference, at, why }
}

/// What a file holds, if not everybody can read it.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| error.kind().to_string();
    // A pipe that nobody writes to is not waited for.
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

/// What there is to read; none if that is too much.
fn bounded(file: File) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // With the end of its line.
    let max = LENGTH_MAX as u64 + 2;
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= max))
}

fn too_long() -> String {
    format!("it is longer than {LENGTH_MAX} bytes")
}

/// What is written or printed ends with a newline that is not meant.
fn without_newline(mut value: Vec<u8>) -> Vec<u8> {
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    value
}

/// A value that a process can be given, and that can be kept out of what is stored.
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
