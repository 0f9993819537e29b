//! Tests of snapshots with real git: each tree equals that of a commit by the user, and nothing of
//! the user's repository is needed or changed.
#![expect(clippy::unwrap_used, reason = "tests")]

mod campaign;
mod content;
mod cost;
mod edited;
mod fixture;
mod nested;
mod pinned;
mod restoring;
mod retention;
mod trees;
