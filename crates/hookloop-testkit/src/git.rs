//! Git, run by a test as a person runs it.
#![expect(clippy::unwrap_used, reason = "for tests only: a failure ends the test")]

use std::path::Path;
use std::process::Command;

/// Runs git in a directory; returns its standard output without white space around it.
///
/// # Panics
///
/// If git fails, with its messages.
#[track_caller]
pub fn run_git(directory: &Path, args: &[&str]) -> String {
    git_output(directory, args).trim().to_owned()
}

/// Runs git in a directory; returns its standard output.
///
/// The configuration of the machine and of its user does not apply. Commits are by `t`, unless `args` name
/// another user.
///
/// # Panics
///
/// If git fails, with its messages.
#[track_caller]
pub fn git_output(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?} in {}: {messages}", directory.display());
    String::from_utf8(output.stdout).unwrap()
}
