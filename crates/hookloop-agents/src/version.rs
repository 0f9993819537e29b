//! The version of an installed agent, and the oldest one that hookloop can drive.
//!
//! Asking an agent takes up to seconds, so the project's state keeps the answer by the executable's path and stamp.
//! Version managers put the same small program in front of every version. So an answer expires, and "too old" is
//! never taken from a kept answer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::agents::AgentSettings;
use hookloop_config::agents::profile::{AgentProfile, AgentVersion};
use hookloop_config::clock::now;
use hookloop_git::excerpt;
use hookloop_git::files::read_text;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::{ExitReason, Job, ProcessError, WriteOptions, find_program, write_whole};
use serde::{Deserialize, Serialize};

/// How long an agent may take to report its version. After that, the version is unknown.
pub(crate) const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// The file of kept answers, below the state directory of a project.
const KEPT: &str = "agent-versions.json";
const KEPT_BYTES_MAX: u64 = 64 * 1024;
/// The most executables whose answers are kept.
const KEPT_MAX: usize = 32;
const KEPT_FOR_MS: i64 = 24 * 60 * 60 * 1_000;

/// A version that hookloop can't drive.
#[derive(Clone, Copy, Debug)]
pub struct VersionTooOld {
    pub found: AgentVersion,
    pub needed: AgentVersion,
    pub known: &'static AgentProfile,
}

/// Returns the first line that an agent prints for `--version`; `None` if it prints none in time.
pub fn version_line(settings: &AgentSettings, runner: &ExecContext) -> Option<String> {
    let known = settings.known()?;
    // Another program may not understand the question.
    let word = settings.word().filter(|word| *word == known.program[0])?;
    let argv = [word, "--version"].map(Into::into).to_vec();
    let env = crate::without_diagnostics(runner);
    let job = Job { env, ..Job::new(argv, runner.root().to_owned(), VERSION_WITHIN) };
    let unasked = |error: &ProcessError| tracing::debug!(word, %error, "no version is told");
    let ran = runner.keepers().run(job).inspect_err(unasked);
    let ran = ran.ok().filter(|ran| ran.exit == ExitReason::Exited(0))?;
    let said = excerpt::of_output(&ran.output.stdout);
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Fails if a printed version is older than the oldest that hookloop can drive. An unknown version is accepted: an
/// agent that rejects its command line ends the session at its first turn.
pub fn check_line(settings: &AgentSettings, line: Option<&str>) -> Result<(), VersionTooOld> {
    let Some(known) = settings.known() else { return Ok(()) };
    match (line.and_then(AgentVersion::find), known.minimum) {
        (Some(found), Some(needed)) if found < needed => {
            Err(VersionTooOld { found, needed, known })
        }
        _ => Ok(()),
    }
}

/// Fails if the installed agent is too old.
pub(crate) fn check_version(
    settings: &AgentSettings,
    runner: &ExecContext,
) -> Result<(), VersionTooOld> {
    let Some(known) = settings.known().filter(|known| known.minimum.is_some()) else {
        return Ok(());
    };
    if settings.word() != Some(known.program[0]) {
        return Ok(());
    }
    let kept = KeptVersions::load(runner.state());
    let stamp = ExecutableStamp::of(known.program[0], runner.path());
    let is_fresh = stamp.as_ref().is_some_and(|stamp| {
        let line = kept.line(stamp);
        line.is_some() && check_line(settings, line).is_ok()
    });
    if is_fresh {
        return Ok(());
    }
    let line = version_line(settings, runner);
    check_line(settings, line.as_deref())?;
    if let (Some(stamp), Some(line)) = (stamp, line) {
        kept.keep(runner.state(), stamp, line);
    }
    Ok(())
}

/// An executable, and a stamp that changes when another file replaces it. npm packages all have the same time of
/// modification, so the stamp includes the time of the inode's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ExecutableStamp {
    path: PathBuf,
    size: u64,
    modified_s: i64,
    changed_s: i64,
    changed_ns: i64,
    inode: u64,
}

impl ExecutableStamp {
    fn of(program: &str, path: &OsStr) -> Option<ExecutableStamp> {
        let path = find_program(program, path)?.canonicalize().ok()?;
        let file = fs::metadata(&path).ok()?;
        Some(ExecutableStamp {
            path,
            size: file.size(),
            modified_s: file.mtime(),
            changed_s: file.ctime(),
            changed_ns: file.ctime_nsec(),
            inode: file.ino(),
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptVersion {
    stamp: ExecutableStamp,
    line: String,
    at_ms: i64,
}

/// Kept answers of agents, by path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct KeptVersions(BTreeMap<PathBuf, KeptVersion>);

impl KeptVersions {
    /// Reads the kept answers. An unreadable file has none.
    fn load(state: &Path) -> KeptVersions {
        let text = read_text(&state.join(KEPT), KEPT_BYTES_MAX).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn line(&self, stamp: &ExecutableStamp) -> Option<&str> {
        let kept = self.0.get(&stamp.path).filter(|kept| kept.stamp == *stamp)?;
        let age_ms = now().0.saturating_sub(kept.at_ms);
        (0..KEPT_FOR_MS).contains(&age_ms).then_some(kept.line.as_str())
    }

    /// Writes the kept answers. A failure is ignored: the agent is asked again.
    fn keep(mut self, state: &Path, stamp: ExecutableStamp, line: String) {
        if self.0.len() >= KEPT_MAX {
            self.0.clear();
        }
        let at_ms = now().0;
        self.0.insert(stamp.path.clone(), KeptVersion { stamp, line, at_ms });
        let Ok(text) = serde_json::to_vec(&self) else { return };
        let path = state.join(KEPT);
        if let Err(error) = write_whole(&path, &text, WriteOptions::CACHE) {
            tracing::debug!(path = %path.display(), %error, "an agent's version is not kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output_of_agents() {
        for (line, expected) in [
            ("2.1.325 (Claude Code)", Some(AgentVersion(2, 1, 325))),
            ("codex-cli 0.166.0", Some(AgentVersion(0, 166, 0))),
            ("0.36.0-nightly.20260101.abc", Some(AgentVersion(0, 36, 0))),
            ("v1.18.33", Some(AgentVersion(1, 18, 33))),
            ("opencode 1.2", None),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(AgentVersion::find(line), expected, "{line}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(AgentVersion(2, 1, 99) < AgentVersion(2, 1, 259));
        assert!(AgentVersion(2, 1, 259) < AgentVersion(2, 2, 0));
        assert!(AgentVersion(0, 122, 0) < AgentVersion(1, 0, 0));
    }
}
