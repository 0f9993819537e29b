//! Finds out whether a git process works in a repository, so that its lock files are not removed as leftovers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hookloop_process::inspect;

/// Variables that tell git where to work.
const PLACES: [&str; 4] = ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];
/// Commands that take no lock. Every session of hookloop runs them often.
const READERS: [&str; 14] = [
    "cat-file",
    "config",
    "diff-tree",
    "for-each-ref",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "rev-list",
    "rev-parse",
    "show",
    "var",
];
/// Commands that take no lock except that of an index.
const INDEX_WRITERS: [&str; 13] = [
    "add",
    "check-ignore",
    "commit-tree",
    "diff",
    "diff-files",
    "hash-object",
    "index-pack",
    "mktree",
    "pack-objects",
    "push",
    "read-tree",
    "update-index",
    "write-tree",
];
/// Options of git whose value is the next argument.
const WITH_VALUE: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// The locks that a git process may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitLocks {
    All,
    /// All except those of an index.
    Repository,
}

/// Returns whether a git process that may hold such a lock works in one of these directories.
///
/// Its environment, its arguments or its working directory name the directory, as far as this user may read them.
pub(crate) fn is_git_at_work(places: &[&Path], locks: GitLocks) -> bool {
    let own = std::process::id();
    inspect::environments().any(|(pid, variables)| {
        let arguments = inspect::arguments(pid);
        let arguments: Vec<&OsStr> = arguments.iter().map(|word| word.as_os_str()).collect();
        if pid == own || !may_lock(&arguments, locks) {
            return false;
        }
        let is_told = PLACES.iter().any(|name| {
            let value = inspect::value_in(&variables, name);
            value.is_some_and(|value| is_within(Path::new(&value), places))
        });
        is_told || (is_git(&arguments) && (is_there(pid, places) || names(&arguments, places)))
    })
}

fn is_within(path: &Path, places: &[&Path]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn is_there(pid: u32, places: &[&Path]) -> bool {
    inspect::working_directory(pid).is_some_and(|directory| is_within(&directory, places))
}

fn names(arguments: &[&OsStr], places: &[&Path]) -> bool {
    let holds = |word: &[u8], place: &Path| {
        let place = place.as_os_str().as_bytes();
        word.windows(place.len()).any(|part| part == place)
    };
    arguments.iter().any(|word| places.iter().any(|place| holds(word.as_bytes(), place)))
}

/// Returns whether the program is git, or a script of that name.
fn is_git(arguments: &[&OsStr]) -> bool {
    let is_named = |word: &&OsStr| {
        let name = Path::new(word).file_name().unwrap_or_default();
        name.as_bytes().starts_with(b"git")
    };
    arguments.iter().take(2).any(is_named)
}

/// Returns whether a command may take such a lock. Unknown commands may.
fn may_lock(arguments: &[&OsStr], locks: GitLocks) -> bool {
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_ref()) {
            words.next();
        } else if !word.starts_with('-') {
            let word = word.as_ref();
            let is_harmless = READERS.contains(&word)
                || word.ends_with("daemon")
                || (locks == GitLocks::Repository && INDEX_WRITERS.contains(&word));
            return !is_harmless;
        }
    }
    !arguments.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&OsStr> {
        text.split(' ').map(OsStr::new).collect()
    }

    #[test]
    fn a_git_command_may_hold_a_lock_unless_it_only_reads() {
        for (text, expected) in [
            ("git fetch --quiet", true),
            ("git -C /a commit", true),
            ("git -c a=b --git-dir /x rev-parse HEAD", false),
            ("git cat-file -e 12", false),
            ("git fsmonitor--daemon run", false),
            ("git", true),
            ("git read-tree -m", true),
        ] {
            assert_eq!(may_lock(&words(text), GitLocks::All), expected, "{text}");
        }
        assert!(!may_lock(&words("git read-tree -m"), GitLocks::Repository));
        assert!(may_lock(&words("git update-ref x"), GitLocks::Repository));
    }

    #[test]
    fn git_processes_are_recognized_by_program_or_script_name() {
        assert!(is_git(&words("/usr/lib/git-core/git-remote-https origin")));
        assert!(is_git(&words("/bin/sh /tmp/bin/git fetch")));
        assert!(!is_git(&words("vim notes.txt")));
    }

    #[test]
    fn a_running_git_is_found_by_its_working_directory() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        assert!(!is_git_at_work(&[&place], GitLocks::All));
        // A program named git that waits for its input.
        let program = place.join("git");
        std::os::unix::fs::symlink("/bin/cat", &program).unwrap();
        let mut command = std::process::Command::new(&program);
        command.stdin(std::process::Stdio::piped()).current_dir(&place);
        let mut waiting = command.spawn().unwrap();
        assert!(is_git_at_work(&[&place], GitLocks::All));
        assert!(!is_git_at_work(&[&place.join("below")], GitLocks::All));
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        assert!(!is_git_at_work(&[&place], GitLocks::All));
    }
}
