//! The file that a command names, and why it did not start.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::{Job, ProcessError, WhyNotStarted};

/// Where programs are when a job's environment has no `PATH`, as in `execvp`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Of a script's first line; what the kernel reads is shorter.
const FIRST_LINE_MAX: u64 = 512;

/// The absolute path of a job's program, if the job can be given to it at all.
pub(super) fn find(job: &Job<'_>, cwd: &Path) -> Result<PathBuf, ProcessError> {
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
    // A wrong directory is the better explanation for a name that is relative to it.
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
    // Of several variables of one name the last holds.
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value)
}

fn not_started(program: PathBuf, errno: Errno, why: WhyNotStarted) -> ProcessError {
    ProcessError::NotStarted { program, errno: errno.raw_os_error(), why }
}

/// What an error of the system means for this program in this directory.
pub(super) fn explain(program: PathBuf, cwd: &Path, errno: i32) -> ProcessError {
    let errno = Errno::from_raw_os_error(errno);
    let why = check_directory(cwd).err().unwrap_or_else(|| why(&program, errno));
    not_started(program, errno, why)
}

fn check_directory(cwd: &Path) -> Result<(), WhyNotStarted> {
    match cwd.is_dir() && access(cwd, Access::EXEC_OK).is_ok() {
        true => Ok(()),
        false => Err(WhyNotStarted::BadDirectory(cwd.to_owned())),
    }
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
        (errno, _) => WhyNotStarted::Other(std::io::Error::from(errno).to_string()),
    }
}

/// What a script's first line asks for.
fn interpreter(program: &Path) -> Option<String> {
    // Opening a named pipe would wait for somebody to write to it.
    let file = program.is_file().then(|| File::open(program).ok()).flatten()?;
    let mut line = Vec::new();
    BufReader::new(file.take(FIRST_LINE_MAX)).read_until(b'\n', &mut line).ok()?;
    let asked = line.strip_prefix(b"#!")?.trim_ascii();
    let end = asked.iter().position(|byte| b" \t".contains(byte)).unwrap_or(asked.len());
    let name = String::from_utf8_lossy(&asked[..end]).into_owned();
    // A carriage return is part of the name to the kernel, and the usual reason that it is not found.
    let carriage_return = line.ends_with(b"\r\n") && end == asked.len();
    Some(if carriage_return { name + "\\r" } else { name })
}
