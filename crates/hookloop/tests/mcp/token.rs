//! The file with the token: made once, for one user, and nobody else's to read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use crate::mcp::PLAIN;
use crate::mcp::http::Server;
use crate::support::Sandbox;

/// A project whose token was made, and its file.
fn with_token() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new(PLAIN);
    let server = Server::start(&sandbox);
    let path = PathBuf::from(&server.token_file);
    (sandbox, path)
}

#[test]
fn it_is_made_once_and_kept() {
    let (sandbox, path) = with_token();
    let token = fs::read_to_string(&path).unwrap();
    assert_eq!(token.trim().len(), 64);
    assert!(token.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert!(!path.starts_with(sandbox.project()));
    assert_eq!(Server::start(&sandbox).token, token.trim());
    fs::remove_file(&path).unwrap();
    assert_ne!(Server::start(&sandbox).token, token.trim());
}

#[track_caller]
fn refused(sandbox: &Sandbox, because: &str) {
    let output = sandbox.run(&["serve", "--port", "0"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.contains(because) && said.contains("\"hint\":\"rm "), "{said}");
}

#[test]
fn one_that_others_can_read_or_write_is_refused() {
    let (sandbox, path) = with_token();
    for mode in [0o644, 0o640, 0o604, 0o660, 0o602, 0o610, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        refused(&sandbox, "open to other users");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    drop(Server::start(&sandbox));
}

#[test]
fn one_that_is_no_file_of_ours_is_refused() {
    let (sandbox, path) = with_token();
    // Only root can give a file away, and only root is another user to that.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        refused(&sandbox, "not a file of yours");
    }
    for text in ["", "secret\n", &"g".repeat(64), &"0".repeat(65), &"0".repeat(5_000)] {
        fs::remove_file(&path).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        refused(&sandbox, "holds no token");
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = sandbox.project().join("mine");
    fs::write(&elsewhere, "0".repeat(64)).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(sandbox.run(&["serve", "--port", "0"]).status.code(), Some(70));
}
