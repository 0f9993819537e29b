//! Inspects other processes, as far as this user may read them.
//!
//! A process can end at any moment, so an answer describes the past.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::process::Pid;

use crate::os;

/// Returns the id and the environment of every process, as `NAME=value` pairs.
///
/// During `exec` a process has an empty environment for a moment.
pub fn environments() -> impl Iterator<Item = (u32, Vec<OsString>)> {
    os::variables().map(|(pid, variables)| (pid.as_raw_nonzero().get().cast_unsigned(), variables))
}

/// Returns the value of a variable in an environment of `NAME=value` pairs.
pub fn value_in(environment: &[OsString], name: &str) -> Option<OsString> {
    environment.iter().find_map(|variable| os::value_of(variable, name))
}

/// Returns the arguments of a process, beginning with its own name, or none if it has ended.
pub fn arguments(pid: u32) -> Vec<OsString> {
    pid_of(pid).map(os::arguments).unwrap_or_default()
}

/// Returns the working directory of a process.
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    os::working_directory(pid_of(pid)?)
}

/// Returns the program name of a process, as `ps` shows it.
pub fn program_name(pid: u32) -> Option<String> {
    os::program_name(pid_of(pid)?)
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_child_is_described_as_it_was_started() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let mut command = std::process::Command::new("sleep");
        command.arg("60").env_clear().env("INSPECTED", "a=b").current_dir(&place);
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        // `exec` sets the environment a moment after the arguments.
        let environment = loop {
            let found = environments().find(|(pid, _)| *pid == child.id());
            match found {
                Some((_, environment)) if environment.len() == 1 => break environment,
                _ => assert!(start.elapsed() < Duration::from_secs(10)),
            }
        };
        assert_eq!(value_in(&environment, "INSPECTED"), Some("a=b".into()));
        assert_eq!(value_in(&environment, "INSPECT"), None);
        assert_eq!(arguments(child.id()), ["sleep", "60"]);
        assert_eq!(program_name(child.id()).as_deref(), Some("sleep"));
        assert_eq!(working_directory(child.id()), Some(place));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(arguments(child.id()), [""; 0]);
        assert_eq!(working_directory(child.id()), None);
        assert_eq!(program_name(u32::MAX), None);
    }
}
