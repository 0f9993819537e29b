//! GitHub, as far as it is used: against a forge on loopback with real git behind it, and against GitHub's own
//! description of its API.
//!
//! - [`ground`]: a repository with branches, and the forge over it
//! - [`flows`]: requests from their opening to their end
//! - [`failures`]: what goes wrong, and what is to be done then
//! - [`token`]: the sources of a user's token
//! - [`contract`]: every request that is ever sent is one that GitHub describes
#![expect(clippy::unwrap_used, reason = "tests")]

mod contract;
mod failures;
mod flows;
mod ground;
mod token;
