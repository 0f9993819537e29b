//! The content of a release archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::SystemTime;

use crate::cli::BINARY;
use crate::install::release::{archive_name, made, repository, script, target};

fn listed() -> Vec<String> {
    let output = Command::new("tar").arg("-tzf").arg(made().join(archive_name())).output().unwrap();
    let root = format!("hookloop-{}/", target());
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().map(|name| name.strip_prefix(&root).unwrap().to_owned()).collect()
}

#[test]
fn an_archive_has_the_program_licences_man_pages_and_completions() {
    let listed = listed();
    for name in [
        "hookloop",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "LICENSES-OF-DEPENDENCIES.txt",
        "man/hookloop.1",
        "man/hookloop-task-add.1",
        "completions/hookloop.bash",
        "completions/_hookloop",
        "completions/hookloop.fish",
        "systemd/system/hookloop-worker@.service",
        "systemd/user/hookloop-worker@.service",
    ] {
        assert!(listed.iter().any(|there| there == name), "{name} is not in {listed:#?}");
    }
}

/// Packing the same program twice gives the same bytes, at any time and in any directory.
#[test]
fn the_same_program_is_packed_to_the_same_bytes() {
    let stage = tempfile::tempdir().unwrap();
    // The program is small, so that it is packed quickly.
    let program = stage.path().join("program");
    fs::write(&program, format!("#!/bin/sh\nexec {BINARY} \"$@\"\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let pack = |to: &str| {
        let to = stage.path().join(to);
        script("packaging/archive", &[program.to_str().unwrap(), &target(), to.to_str().unwrap()]);
        fs::read(to.join(archive_name())).unwrap()
    };
    let first = pack("first");
    // The archive does not depend on the permissions and the time of the file.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::File::open(&program).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert!(first == pack("second"));
}

/// Each linked dependency is listed with its licence; build and test dependencies are not.
#[test]
fn licences_of_linked_dependencies_are_listed() {
    let said = script("packaging/licences", &[&target()]);
    assert!(said.contains("\nrusqlite 0."), "{said}");
    assert!(said.contains("Permission is hereby granted"));
    assert!(said.contains("Apache License"));
    for other in ["\nproptest ", "\ncc ", "\nhookloop-core "] {
        assert!(!said.contains(other), "{other} is told");
    }
}

#[test]
fn release_notes_for_another_version_are_refused() {
    let notes = |version: &str| {
        Command::new(repository().join("packaging/notes")).arg(version).output().unwrap()
    };
    let other = notes("99.0.0");
    assert_eq!(other.status.code(), Some(1));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("Cargo.toml has version"), "{said}");
}
