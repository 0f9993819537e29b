//! Tests that run as root and as a user without privileges, whose mounts need a user namespace.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::geteuid;

use crate::{EXECUTABLE, executable};

/// The id of a user who owns no files.
const NOBODY: u32 = 65534;
/// A setting of some systems, by which a user namespace gives no capabilities.
const RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// Names a directory whose mount has flags that a user namespace must keep.
const FLAGGED: &str = "HOOKLOOP_TEST_FLAGGED";
/// Runs "$@" as another user, in a namespace with such a mount.
const AS_NOBODY: &str = r#"mount -t tmpfs -o nosuid,nodev,noexec,mode=1777 none "$HOOKLOOP_TEST_FLAGGED" &&
    exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@""#;

/// Runs a test as this user and, if that is root, again as a user without privileges.
pub(crate) fn for_each_user(test: impl Fn()) {
    let is_restricted = fs::read_to_string(RESTRICTION).is_ok_and(|text| text.trim() == "1");
    if geteuid().is_root() {
        test();
    }
    match (geteuid().is_root(), is_restricted) {
        (_, true) => not_tested(&format!("a user without privileges: {RESTRICTION} is 1")),
        (true, false) => run_as_nobody(&name_of(&test)),
        (false, false) => test(),
    }
}

pub(crate) fn not_tested(why: &str) {
    // Written directly: the test harness hides the output of tests that pass.
    let mut terminal = std::io::stderr();
    writeln!(terminal, "NOT TESTED: {why}").unwrap();
}

/// Returns a directory whose mount has flags, if the system has one.
pub(crate) fn flagged_directory() -> PathBuf {
    std::env::var_os(FLAGGED).map_or("/dev/shm".into(), PathBuf::from)
}

/// The name of the test function that has this closure.
fn name_of(closure: &impl Fn()) -> String {
    let path = std::any::type_name_of_val(closure);
    let path = path.strip_suffix("::{{closure}}").unwrap();
    path.split_once("::").unwrap().1.to_owned()
}

/// Runs a test of this program as another user, with temporary files of its own.
fn run_as_nobody(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let [tests, keeper, temporary, flagged] =
        ["tests", "keeper", "temporary", "flagged"].map(|name| directory.path().join(name));
    // The user may not be able to reach the directory of the build. Another process copies: a process that this one
    // starts meanwhile would have the copy open for writing, and it could not be executed.
    for (from, to) in [(std::env::current_exe().unwrap(), &tests), (executable(), &keeper)] {
        assert!(Command::new("cp").args([&from, to]).status().unwrap().success());
    }
    fs::create_dir(&flagged).unwrap();
    fs::create_dir(&temporary).unwrap();
    chown(&temporary, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", AS_NOBODY, &NOBODY.to_string()]).arg(tests);
    command.env(EXECUTABLE, keeper).env("TMPDIR", temporary).env(FLAGGED, flagged);
    run_test(command.current_dir("/"), test);
}

/// Runs a test of this program as root, by a program that takes a command.
pub(crate) fn run_by(program: &[&str], test: &str) {
    let mut command = Command::new(program[0]);
    run_test(command.args(&program[1..]).arg(std::env::current_exe().unwrap()), test);
}

fn run_test(command: &mut Command, test: &str) {
    let run = command.args(["--include-ignored", "--exact", test, "--nocapture"]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.contains("1 passed"), "{command:?}: {out}\n{err}");
}
