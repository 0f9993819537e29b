//! The repository as delivery uses it, with real git: what each operation does, that the user's checkout is not
//! touched by any, and that nothing that a repository brings is run.
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
