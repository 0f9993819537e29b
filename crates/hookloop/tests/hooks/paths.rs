//! T22: nothing is written through a link, or to a directory that others can change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::Project;
use crate::hooks::CHECK;
use crate::hooks::consent::UNTRUSTED;

const SYSTEM: i32 = 70;

/// Returns a file outside of the project that no command may touch.
fn victim(project: &Project) -> std::path::PathBuf {
    let victim = project.root().parent().unwrap().join("victim");
    fs::write(&victim, "mine").unwrap();
    victim
}

#[test]
fn a_new_configuration_is_not_written_through_a_link() {
    let project = Project::bare();
    let victim = victim(&project);
    // `exec` keeps the process id, which is in the name of the draft.
    let run = project.shell("ln -s ../victim hookloop.yaml.$$ && exec hookloop init --yes");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{run:?}");
    assert_eq!(run.code, 0, "{run:?}");

    let project = Project::bare();
    let absent = project.root().parent().unwrap().join("absent");
    symlink(&absent, project.root().join("hookloop.yaml")).unwrap();
    project
        .write("hooks.json", r#"{"version":"1.0","hooks":[{"name":"auto-create-review-task"}]}"#);
    project.run(&["import", "automation-hooks", "hooks.json"]);
    project.run(&["init", "--yes"]);
    assert!(!absent.exists());
}

/// Sets the flag when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Another thread keeps replacing every file name that is written in the project with a link.
#[test]
fn links_that_replace_files_during_a_command_redirect_no_writes() {
    let rounds = std::env::var("HOOKLOOP_RACES").map_or(30, |text| text.parse().unwrap());
    let project = Project::with_config(CHECK);
    let victim = victim(&project);
    project.script("check.sh", "echo said; echo more >&2");
    project.trust();
    let (root, over) = (project.root(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let good = fs::read(root.join("check.sh")).unwrap();
            while !over.load(Ordering::SeqCst) {
                // The links replace the script, and files that have the names of hookloop's files.
                for name in ["check.sh", "trust.json", "artifacts", "hookloop.db"] {
                    let link = root.join("link");
                    let _ = fs::remove_file(&link);
                    symlink(&victim, &link).unwrap();
                    fs::rename(&link, root.join(name)).unwrap();
                }
                let script = root.join("script");
                fs::write(&script, &good).unwrap();
                fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
                fs::rename(&script, root.join("check.sh")).unwrap();
            }
        });
        // A failure ends the other thread, too.
        let _end = End(&over);
        for _ in 0..rounds {
            project.run(&["hooks", "trust", "--yes"]);
            let ran = project.run(&["hooks", "run", "check", "--json"]);
            // A link to a file that is not executable fails.
            assert!([0, 1, UNTRUSTED].contains(&ran.code), "{ran:?}");
            let run: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let said = run["stdout"].as_str().unwrap();
            assert!(["", "said\n"].contains(&said), "{run}");
        }
    });
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}

/// Checks links in place of the state directory, and directories that other users can write.
#[test]
fn a_state_directory_owned_or_writable_by_others_is_refused() {
    let project = Project::with_config("");
    let state = project.state();
    let home = state.parent().unwrap().to_owned();
    let refused = |what: &str| {
        let told = project.fails(SYSTEM, &["status"]);
        assert!(told.contains(what), "{told}");
    };
    for directory in [&state, &home] {
        for mode in [0o770, 0o707] {
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
            refused("can be written by other users");
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
    let moved = home.join("moved");
    fs::rename(&state, &moved).unwrap();
    symlink(&moved, &state).unwrap();
    refused("can be written by other users");
    fs::remove_file(&state).unwrap();
    fs::rename(&moved, &state).unwrap();
    // Only root can change the owner of a directory; CI runs as root.
    if rustix::process::geteuid().is_root() {
        for directory in [&state, &home] {
            chown(directory, Some(12_345), None).unwrap();
            refused("belongs to another user");
            chown(directory, Some(0), None).unwrap();
        }
    }
    project.ok(&["status"]);
}

/// All stored files are readable by the user alone.
#[test]
fn the_state_directory_is_private_to_its_user() {
    let project = Project::with_check("echo said; echo more >&2");
    project.complete("Goal");
    let mut left = vec![project.state()];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        if path.is_dir() {
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", path.display());
        seen += 1;
    }
    assert!(seen > 5);
}
