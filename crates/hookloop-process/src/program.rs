//! Finds the file of a command, and explains why it did not start.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::{ProcessError, WhyNotStarted};
use crate::job::Job;

/// The `PATH` of a job whose environment has none, as in `execvp`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Bytes of a script's first line that are read. The kernel reads fewer.
const FIRST_LINE_MAX: u64 = 512;

/// Returns the first program of that name in the directories of `path`, a list as in `PATH`.
///
/// Relative directories count from the working directory of this process.
pub fn find_program(name: impl AsRef<OsStr>, path: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = name.as_ref();
    let files = std::env::split_paths(path.as_ref()).map(|directory| directory.join(name));
    files.into_iter().find(|file| is_program(file))
}

/// Returns whether a path is a file that some user may execute.
pub fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the absolute path of a job's program, or the reason why the job cannot start.
pub(crate) fn find(job: &Job<'_>, cwd: &Path) -> Result<PathBuf, ProcessError> {
    let Some(name) = job.argv.first().filter(|name| !name.is_empty()) else {
        return Err(not_started(PathBuf::new(), Errno::INVAL, WhyNotStarted::Unnamed));
    };
    let variables = job.env.iter().flat_map(|(name, value)| [name, value]);
    if job.argv.iter().chain(variables).any(|text| text.as_bytes().contains(&0)) {
        return Err(not_started(name.into(), Errno::INVAL, WhyNotStarted::ZeroByte));
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(cwd.join(name));
    }
    let path = path_of(&job.env);
    let candidates = std::env::split_paths(path).map(|directory| cwd.join(directory).join(name));
    let mut forbidden = None;
    for candidate in candidates.filter(|candidate| candidate.is_file()) {
        if access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
        forbidden.get_or_insert(candidate);
    }
    // A bad directory is the better explanation: relative entries of PATH count from it.
    check_directory(cwd).map_err(|why| not_started(name.into(), Errno::NOENT, why))?;
    Err(match forbidden {
        Some(file) => not_started(file, Errno::ACCESS, WhyNotStarted::NotExecutable),
        None => {
            let path = path.to_string_lossy().into_owned();
            not_started(name.into(), Errno::NOENT, WhyNotStarted::NotInPath { path })
        }
    })
}

fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    // The last of several variables with the same name wins.
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value)
}

fn not_started(program: PathBuf, errno: Errno, why: WhyNotStarted) -> ProcessError {
    ProcessError::NotStarted { program, errno: errno.raw_os_error(), why }
}

/// Explains an error of starting a program in a directory.
pub(crate) fn explain(program: PathBuf, cwd: &Path, errno: i32) -> ProcessError {
    let errno = Errno::from_raw_os_error(errno);
    let why = check_directory(cwd).err().unwrap_or_else(|| why(&program, errno));
    not_started(program, errno, why)
}

/// Explains an error of starting a program that sees other files than this process.
pub(crate) fn explain_in_mounts(program: PathBuf, errno: i32) -> ProcessError {
    let errno = Errno::from_raw_os_error(errno);
    let why = format!("{}, with its private mounts", io::Error::from(errno));
    not_started(program, errno, WhyNotStarted::Other(why))
}

/// Explains the error of starting a program that is hidden from the job.
pub(crate) fn explain_hidden(program: PathBuf, errno: i32) -> ProcessError {
    let errno = Errno::from_raw_os_error(errno);
    let why = format!("{}, because it is in a hidden directory", io::Error::from(errno));
    not_started(program, errno, WhyNotStarted::Other(why))
}

fn check_directory(cwd: &Path) -> Result<(), WhyNotStarted> {
    if cwd.is_dir() && access(cwd, Access::EXEC_OK).is_ok() {
        return Ok(());
    }
    Err(WhyNotStarted::BadDirectory(cwd.to_owned()))
}

fn why(program: &Path, errno: Errno) -> WhyNotStarted {
    let interpreter = interpreter(program);
    match (errno, interpreter) {
        (Errno::TOOBIG, _) => WhyNotStarted::TooLarge,
        (Errno::NOEXEC, None) => WhyNotStarted::NotAProgram,
        (Errno::NOENT | Errno::NOTDIR, _) if !program.exists() => WhyNotStarted::NotFound,
        (Errno::ACCESS, _) if access(program, Access::EXEC_OK).is_err() || program.is_dir() => {
            WhyNotStarted::NotExecutable
        }
        (Errno::NOENT | Errno::ACCESS | Errno::NOEXEC, Some(interpreter)) => {
            WhyNotStarted::BadInterpreter { interpreter }
        }
        (errno, _) => WhyNotStarted::Other(io::Error::from(errno).to_string()),
    }
}

/// Returns the interpreter that a script's first line names.
fn interpreter(program: &Path) -> Option<String> {
    // Opening a named pipe would wait for a writer.
    let file = program.is_file().then(|| File::open(program).ok()).flatten()?;
    let mut line = Vec::new();
    BufReader::new(file.take(FIRST_LINE_MAX)).read_until(b'\n', &mut line).ok()?;
    let rest = line.strip_prefix(b"#!")?.trim_ascii();
    let end = rest.iter().position(|byte| b" \t".contains(byte)).unwrap_or(rest.len());
    let name = String::from_utf8_lossy(&rest[..end]).into_owned();
    // To the kernel a carriage return is part of the name, the usual reason for a missing
    // interpreter.
    let carriage_return = line.ends_with(b"\r\n") && end == rest.len();
    Some(if carriage_return { name + "\\r" } else { name })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_executable_file_in_path_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let make = |place: &str, mode: u32| {
            let file = directory.path().join(place);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        make("a/tool", 0o644);
        let executable = make("b/tool", 0o755);
        make("c/tool", 0o755);
        fs::create_dir_all(directory.path().join("a/folder")).unwrap();
        let path = ["a", "b", "c", "missing"].map(|name| directory.path().join(name));
        let path = std::env::join_paths(path).unwrap();
        assert_eq!(find_program("tool", &path), Some(executable));
        assert_eq!(find_program("folder", &path), None);
        assert_eq!(find_program("other", &path), None);
        assert_eq!(find_program("tool", ""), None);
    }
}
