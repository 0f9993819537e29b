//! From finished work to a branch that is merged.
//!
//! - [`tests_of`]: which tests a project has

pub mod tests_of;
