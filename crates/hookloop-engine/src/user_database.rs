//! The system's user database, as far as hookloop asks it: the name of the user.
//!
//! `/etc/passwd` comes first. Users of LDAP and other directories are not in that file, so `getent`
//! asks the system's name service for them.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

/// Maximum bytes of the user database that are read.
const USERS_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The paths of the program that asks the name service. A `getent` elsewhere on the PATH is not
/// run.
const GETENT: [&str; 3] = ["/usr/bin/getent", "/bin/getent", "/run/current-system/sw/bin/getent"];
/// Maximum time for an answer of the name service, because a directory may be unreachable.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
/// Maximum time for the program to end after it was killed, and the interval of the checks.
const REAP_TIME_MAX: Duration = Duration::from_millis(500);
const REAP_POLL: Duration = Duration::from_millis(5);

/// Returns the system's name of this process's user, or the user's number if there is no name.
///
/// Each process asks the system once.
pub fn user_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let uid = rustix::process::getuid().as_raw();
        name_in_file(Path::new("/etc/passwd"), uid)
            .or_else(|| {
                let programs = GETENT.iter().map(Path::new);
                let program = programs.into_iter().find(|program| program.exists())?;
                name_by_service(program, uid, ANSWER_TIME_MAX)
            })
            .unwrap_or_else(|| uid.to_string())
    })
}

fn name_in_file(path: &Path, uid: u32) -> Option<String> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(USERS_BYTES_MAX).read_to_end(&mut text).ok()?;
    name_of_user(&String::from_utf8_lossy(&text), uid)
}

/// Asks `getent` for a user. Returns none if it does not know the user, fails, or takes too long.
fn name_by_service(program: &Path, uid: u32, time_max: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.args(["passwd", &uid.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let answer = child.stdout.take().and_then(|output| read_within(output, time_max));
    end(&mut child);
    name_of_user(&String::from_utf8_lossy(&answer?), uid)
}

/// Returns the output of a process up to its end, or none if the end does not come in time.
fn read_within(output: impl Read + Send + 'static, time_max: Duration) -> Option<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut text = Vec::new();
        let is_read = output.take(ANSWER_BYTES_MAX).read_to_end(&mut text).is_ok();
        // A late answer has no receiver.
        let _ = sender.send(is_read.then_some(text));
    };
    std::thread::Builder::new().name("user name".to_owned()).spawn(read).ok()?;
    receiver.recv_timeout(time_max).ok().flatten()
}

fn end(child: &mut Child) {
    let began = Instant::now();
    // A process that has ended needs no signal.
    let _ = child.kill();
    while matches!(child.try_wait(), Ok(None)) && began.elapsed() < REAP_TIME_MAX {
        std::thread::sleep(REAP_POLL);
    }
}

/// Returns the name of a user id in lines of `name:password:uid:…`.
fn name_of_user(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with('#'))?;
        let found: u32 = fields.nth(1)?.parse().ok()?;
        (found == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn user_database_names_the_user_of_an_id() {
        let users =
            "# users\nroot:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nbroken\n";
        assert_eq!(name_of_user(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_of_user(users, 0).as_deref(), Some("root"));
        assert_eq!(name_of_user(users, 7), None);
    }

    #[test]
    fn the_name_service_is_queried_with_time_and_output_limits() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("getent");
        let check = |script: &str, time_max: Duration, expected: Option<&str>| {
            // A file that is being written can't be executed, so it is moved into place.
            let draft = directory.path().join("draft");
            std::fs::write(&draft, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::rename(&draft, &program).unwrap();
            let found = name_by_service(&program, 70_000, time_max);
            assert_eq!(found.as_deref(), expected, "{script}");
        };
        let long = Duration::from_secs(60);
        check(
            "[ \"$1 $2\" = 'passwd 70000' ] && echo 'ada:*:70000:1:Ada:/home/ada:/bin/sh'",
            long,
            Some("ada"),
        );
        check("echo 'ada:*:70001:1:Ada:/home/ada:/bin/sh'", long, None);
        check("exit 2", long, None);
        check("echo no line of a user", long, None);
        // More output than is read, and a process that never ends.
        check("yes", long, None);
        let began = Instant::now();
        check("exec sleep 600", Duration::from_millis(50), None);
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        let found = name_by_service(&directory.path().join("none"), 70_000, long);
        assert_eq!(found, None);
    }

    #[test]
    fn user_always_has_a_name() {
        assert!(!user_name().is_empty());
    }
}
