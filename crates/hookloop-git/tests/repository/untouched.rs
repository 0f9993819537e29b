//! Tests that no operation changes a byte of the user's data.

use std::fs;

use crate::course::course;
use crate::fixture::{RepositoryFixture, users_own};

/// Creates a checkout with work of the user in progress.
fn messy(fixture: &RepositoryFixture) {
    let checkout = fixture.checkout();
    let git = |args: &[&str]| fixture.in_checkout(args);
    fs::write(checkout.join("file"), "stashed\n").unwrap();
    git(&["stash", "--quiet"]);
    git(&["tag", "mine-1"]);
    git(&["pack-refs", "--all"]);
    git(&["branch", "another"]);
    fs::write(checkout.join("staged"), "staged\n").unwrap();
    git(&["add", "staged"]);
    fs::write(checkout.join("staged"), "and changed\n").unwrap();
    fs::write(checkout.join("file"), "edited\n").unwrap();
    fs::write(checkout.join("untracked"), "untracked\n").unwrap();
    fs::write(checkout.join(".env"), "ignored\n").unwrap();
}

#[test]
fn user_data_is_unchanged_with_a_remote() {
    let fixture = RepositoryFixture::new();
    messy(&fixture);
    let before = users_own(&fixture.checkout());
    assert!(before.len() > 20, "{:?}", before.keys());
    course(&fixture, &|_| {});
    similar(&before, &users_own(&fixture.checkout()));
    fixture.in_checkout(&["fsck", "--strict"]);
}

#[test]
fn user_data_is_unchanged_with_a_detached_head() {
    let fixture = RepositoryFixture::new();
    fixture.in_checkout(&["switch", "--quiet", "--detach"]);
    messy(&fixture);
    let before = users_own(&fixture.checkout());
    course(&fixture, &|_| {});
    similar(&before, &users_own(&fixture.checkout()));
}

#[test]
fn without_a_remote_only_the_target_moves() {
    let fixture = RepositoryFixture::alone();
    messy(&fixture);
    let name = std::path::Path::new(".git/refs/heads/main");
    let log = std::path::Path::new(".git/logs/refs/heads/main");
    // Another user changes the target meanwhile, so it is excluded from the comparison.
    let own = || {
        let mut own = users_own(&fixture.checkout());
        own.remove(name);
        own.remove(log);
        own
    };
    let before = own();
    course(&fixture, &|_| {});
    similar(&before, &own());
    fixture.in_checkout(&["fsck", "--strict"]);
}

type Files = std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>;

/// Checks that both have the same files with the same bytes; lists the differing ones.
fn similar(before: &Files, after: &Files) {
    let names = before.keys().chain(after.keys());
    let other: Vec<_> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    assert!(other.is_empty(), "{other:?}");
}
