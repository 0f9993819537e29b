//! Sets the commit and target that `--version` prints, and how the program is linked for Linux.
//!
//! A release build has its commit from `HOOKLOOP_COMMIT`, or else from git. A debug build has none: it would be compiled
//! again after each commit.
//!
//! With glibc, programs are linked at a fixed address. A position-independent executable of a debug build has 200,000
//! relocations, and applying them took a fifth of the tests' processor time. A release build has 48,000, which caused
//! 200 of the 630 page faults of `task ready`. `HOOKLOOP_PIE` keeps a release build position-independent.
//!
//! The relocations of position-independent programs are packed (`DT_RELR`): the table takes 15 KB instead of 1.1 MB,
//! which every start would read.

use std::env;
use std::path::Path;
use std::process::Command;

/// The first glibc that applies packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

/// A variable for distributions that require position-independent executables.
const KEEP_PIE: &str = "HOOKLOOP_PIE";

/// A variable for builds of source archives, which have no git repository.
const COMMIT: &str = "HOOKLOOP_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={KEEP_PIE}");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    println!("cargo::rustc-env={COMMIT}={}", commit());
    println!("cargo::rustc-env=HOOKLOOP_TARGET={}", env::var("TARGET").unwrap_or_default());
    if !is("CARGO_CFG_TARGET_OS", "linux") {
        return;
    }
    if is("PROFILE", "debug") {
        if is("CARGO_CFG_TARGET_ENV", "gnu") {
            println!("cargo::rustc-link-arg=-no-pie");
        }
    } else if is("CARGO_CFG_TARGET_ENV", "gnu") && env::var_os(KEEP_PIE).is_none() {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    } else if applies_packed_relocations() {
        // A linker that does not know the keyword only warns.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the commit that is built.
fn commit() -> String {
    if let Some(commit) = env::var(COMMIT).ok().filter(|commit| !commit.is_empty()) {
        return commit;
    }
    if is("PROFILE", "debug") {
        return "none, a development build".to_owned();
    }
    for path in ["../../.git/HEAD", "../../.git/refs/heads"] {
        // Cargo would run this script again each time for a path that does not exist.
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let arguments = ["log", "-1", "--abbrev=12", "--format=%h (%cs)"];
    let output = Command::new("git").args(arguments).output().ok();
    let output = output.filter(|output| output.status.success());
    let text = output.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn is(name: &str, value: &str) -> bool {
    env::var(name).is_ok_and(|found| found == value)
}

/// Whether the C library of the target applies packed relocations. The musl that comes with Rust does.
fn applies_packed_relocations() -> bool {
    let is_native = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    is("CARGO_CFG_TARGET_ENV", "musl")
        || is_native && glibc_version().is_some_and(|version| version >= PACKED_SINCE)
}

/// Returns the version of this machine's glibc; none if it has another C library.
fn glibc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
