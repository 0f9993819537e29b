//! Tests of the repository as used by delivery, with real git: the result of each operation, that
//! none touches the user's checkout, and that no command of a repository is run.
#![expect(clippy::unwrap_used, reason = "tests")]

mod conflicts;
mod course;
mod crashes;
mod fixture;
mod hostile;
mod landing;
mod locks;
mod places;
mod pushing;
mod rebasing;
mod untouched;
mod worktrees;
