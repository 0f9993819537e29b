//! The token file: it is created once, for one user, and no other user can read it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use hookloop_testkit::TestProject;

use crate::mcp::PLAIN;
use crate::mcp::http::Server;
use crate::support::project_with;

/// Returns a project that has a token, and the token's file.
fn with_token() -> (TestProject, PathBuf) {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let path = PathBuf::from(&server.token_file);
    (project, path)
}

#[test]
fn a_token_is_created_once_and_reused() {
    let (project, path) = with_token();
    let token = fs::read_to_string(&path).unwrap();
    assert_eq!(token.trim().len(), 64);
    assert!(token.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert!(!path.starts_with(project.root()));
    assert_eq!(Server::start(&project).token, token.trim());
    fs::remove_file(&path).unwrap();
    assert_ne!(Server::start(&project).token, token.trim());
}

#[track_caller]
fn refused(project: &TestProject, because: &str) {
    let output = project.json_command(&["serve", "--port", "0"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.contains(because) && said.contains("\"hint\":\"rm "), "{said}");
}

#[test]
fn a_token_file_accessible_to_other_users_is_refused() {
    let (project, path) = with_token();
    for mode in [0o644, 0o640, 0o604, 0o660, 0o602, 0o610, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        refused(&project, "open to other users");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    drop(Server::start(&project));
}

#[test]
fn a_token_file_with_wrong_owner_content_or_type_is_refused() {
    let (project, path) = with_token();
    // Only root can change the owner of a file.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        refused(&project, "not a file of yours");
    }
    for text in ["", "secret\n", &"g".repeat(64), &"0".repeat(65), &"0".repeat(5_000)] {
        fs::remove_file(&path).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        refused(&project, "contains no token");
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = project.root().join("mine");
    fs::write(&elsewhere, "0".repeat(64)).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(
        project.json_command(&["serve", "--port", "0"]).output().unwrap().status.code(),
        Some(70)
    );
}
