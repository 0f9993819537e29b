//! Shared parts of the tests. Only tests, benchmarks and fault campaigns depend on this crate.
//!
//! - [`waiting`]: polls until something holds, within a limit
//! - [`random`]: random numbers that a seed repeats
//!
//! Real servers for tests are in `testbed/`, below this crate: it knows nothing of hookloop.

pub mod random;
pub mod waiting;

pub use random::SeededRandom;
pub use waiting::eventually;
