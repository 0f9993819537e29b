//! The files with the output of runs, and the removal of old ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hookloop_config::ids::fresh_id;
use hookloop_core::excerpt::LeftOut;
use hookloop_core::id::EventId;
use hookloop_git::excerpt;
use rustix::fs::OFlags;

const DIRECTORY: &str = "artifacts";
/// Limits of the stored output: the number of runs, and their total size.
const RUNS_MAX: usize = 2_000;
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Minimum age for deletion. A process may still write or read younger output.
const AGE_MIN: Duration = Duration::from_secs(60 * 60);
/// One run in this many checks the limits.
const LOOKED_ONE_IN: u8 = 16;
/// Longest part of an output that is shown: half from its beginning, half from its end.
pub(crate) const SHOWN_MAX: u64 = 1024 * 1024;
/// Buffer size for counting the lines of an output.
const COUNTED_AT_ONCE: usize = 64 * 1024;
/// Shortest interval between two checks of the limits in one process.
const LOOK_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct ArtifactBounds {
    runs: usize,
    bytes: u64,
    age: Duration,
}

const BOUNDS: ArtifactBounds = ArtifactBounds { runs: RUNS_MAX, bytes: BYTES_MAX, age: AGE_MIN };

/// Returns a new directory for the output of a run. It is created with the first output.
pub(crate) fn fresh(state: &Path) -> PathBuf {
    let (directory, id) = (state.join(DIRECTORY), fresh_id());
    if id.0[15].is_multiple_of(LOOKED_ONE_IN) && is_time() {
        tidy(&directory, BOUNDS, SystemTime::now());
    }
    directory.join(id.to_string())
}

/// Returns the directory that an event names, if it is an output directory of this project.
///
/// The path in a log is untrusted: another machine or user may have written it.
pub(crate) fn find(state: &Path, named: &str) -> Option<PathBuf> {
    let name = Path::new(named).file_name()?;
    let directory = state.join(DIRECTORY).join(name);
    let is_it = directory == Path::new(named) && directory.is_dir();
    is_it.then_some(directory)
}

/// An output stream of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactStream {
    Stdout,
    Stderr,
}

impl ArtifactStream {
    pub const ALL: [ArtifactStream; 2] = [ArtifactStream::Stdout, ArtifactStream::Stderr];

    pub fn name(self) -> &'static str {
        match self {
            ArtifactStream::Stdout => "stdout",
            ArtifactStream::Stderr => "stderr",
        }
    }
}

/// Returns the run whose output directory is `path`.
pub fn run_of(path: &str) -> Option<EventId> {
    Path::new(path).file_name()?.to_str()?.parse().ok()
}

/// Returns the stored output of a run as sanitized text.
///
/// If the output is long, its middle is left out.
pub fn read(state: &Path, run: EventId, stream: ArtifactStream) -> io::Result<String> {
    let (file, bytes) = open(&state.join(DIRECTORY).join(run.to_string()), stream)?;
    shown(file, bytes, SHOWN_MAX)
}

/// Opens an output in a run's directory and returns its length. Rejects links and pipes.
pub fn open(directory: &Path, stream: ArtifactStream) -> io::Result<(File, u64)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file =
        OpenOptions::new().read(true).custom_flags(flags).open(directory.join(stream.name()))?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found.len())),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

fn shown(mut file: File, bytes: u64, max: u64) -> io::Result<String> {
    let mut head = Vec::new();
    if bytes <= max {
        file.take(max).read_to_end(&mut head)?;
        return Ok(excerpt::plain(&head));
    }
    let mut tail = Vec::new();
    let mut again = file.try_clone()?;
    (&mut file).take(max / 2).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(bytes - max / 2))?;
    file.take(max / 2).read_to_end(&mut tail)?;
    let head = excerpt::whole_lines_of_head(&head);
    let tail = excerpt::whole_lines_of_tail(&tail);
    let from = head.len() as u64;
    let left_out = bytes.saturating_sub(from + tail.len() as u64);
    let lines = lines_within(&mut again, from, left_out)?;
    Ok(excerpt::around(head, LeftOut { bytes: left_out, lines }, tail))
}

/// Counts the line ends in `length` bytes of a file.
pub fn lines_within(file: &mut File, from: u64, length: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut rest = BufReader::with_capacity(COUNTED_AT_ONCE, file.take(length));
    let mut lines = 0;
    loop {
        let piece = rest.fill_buf()?;
        if piece.is_empty() {
            return Ok(lines);
        }
        lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = piece.len();
        rest.consume(length);
    }
}

/// Whether the last check in this process is [`LOOK_EVERY`] ago. A session runs many hooks.
fn is_time() -> bool {
    static LOOKED: Mutex<Option<Instant>> = Mutex::new(None);
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_time = looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
    if is_time {
        *looked = Some(Instant::now());
    }
    is_time
}

/// Deletes the output of the oldest runs if it exceeds `bounds`.
///
/// The next check tries again to delete the remaining files.
fn tidy(directory: &Path, bounds: ArtifactBounds, now: SystemTime) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // Names begin with the time, so this order is newest first.
    runs.sort_unstable_by(|a, b| b.cmp(a));
    let mut bytes = 0;
    for (index, run) in runs.iter().enumerate() {
        bytes += size(run);
        let is_too_much = index >= bounds.runs || bytes > bounds.bytes;
        if is_too_much
            && is_older(run, bounds.age, now)
            && let Err(error) = fs::remove_dir_all(run)
        {
            tracing::warn!(path = %run.display(), %error, "old output is not deleted");
        }
    }
}

fn size(run: &Path) -> u64 {
    let Ok(files) = fs::read_dir(run) else { return 0 };
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum()
}

fn is_older(run: &Path, age: Duration, now: SystemTime) -> bool {
    let changed = fs::symlink_metadata(run).and_then(|data| data.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|since| since >= age))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn with_runs(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir(directory.path().join(name)).unwrap();
            fs::write(directory.path().join(name).join("stdout"), [b'x'; 100]).unwrap();
        }
        directory
    }

    #[test]
    fn only_hook_output_inside_the_state_directory_is_found() {
        let state = tempfile::tempdir().unwrap();
        let run = state.path().join(DIRECTORY).join("one");
        fs::create_dir_all(&run).unwrap();
        let name = |path: &Path| path.display().to_string();
        assert_eq!(find(state.path(), &name(&run)), Some(run.clone()));
        for other in ["/etc", "one", "", "..", &name(&run.join("..")), &name(&run.join("../two"))] {
            assert_eq!(find(state.path(), other), None, "{other}");
        }
    }

    #[test]
    fn long_hook_output_is_shown_without_its_middle() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout");
        fs::write(&path, "€€€ab\u{1b}[2Jcd€€€").unwrap();
        let shown = |max| shown(File::open(&path).unwrap(), 26, max).unwrap();
        assert_eq!(shown(26), "€€€ab\\x1b[2Jcd€€€");
        assert_eq!(shown(8), "€\n[… 20 bytes left out …]\n€");
    }

    #[test]
    fn hook_output_is_read_by_run_and_symlinks_are_refused() {
        let state = tempfile::tempdir().unwrap();
        let run: EventId = "0192f0c1-2345-7000-8000-000000000001".parse().unwrap();
        let directory = state.path().join(DIRECTORY).join(run.to_string());
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("stdout"), "said").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.join("stderr")).unwrap();
        assert_eq!(read(state.path(), run, ArtifactStream::Stdout).unwrap(), "said");
        assert!(read(state.path(), run, ArtifactStream::Stderr).is_err());
        assert_eq!(run_of(directory.to_str().unwrap()), Some(run));
        assert_eq!(run_of("/somewhere/../else"), None);
    }

    #[test]
    fn the_oldest_artifacts_are_removed_and_recent_artifacts_kept() {
        let later = SystemTime::now() + 2 * AGE_MIN;
        let check = |bounds: ArtifactBounds, now: SystemTime, left: &[&str]| {
            let directory = with_runs(&["a", "b", "c", "d"]);
            tidy(directory.path(), bounds, now);
            assert_eq!(runs(directory.path()), left, "{bounds:?}");
        };
        let bounds = |runs, bytes| ArtifactBounds { runs, bytes, age: AGE_MIN };
        check(bounds(4, 400), later, &["a", "b", "c", "d"]);
        check(bounds(3, 400), later, &["b", "c", "d"]);
        check(bounds(4, 250), later, &["c", "d"]);
        check(bounds(0, 0), later, &[]);
        check(bounds(0, 0), SystemTime::now(), &["a", "b", "c", "d"]);
    }
}
