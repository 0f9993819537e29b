//! Calls of mutation engines, and their results.
//!
//! A mutation engine changes the code in small steps and runs the tests on each changed copy, a mutant. Tests that pass
//! on a mutant did not notice the change.
//!
//! - `engine`: the engines, and the parts of their calls
//! - `engine_call`: the choice of an engine for a gate's command, its call and its result
//! - `command_words`: the parts of a gate's command
//! - `mutmut`, `cargo_mutants`, `stryker`: one module for each engine
//! - `mutant`: mutants and their results
//! - `report`: the results in the schema of Stryker's reports
//! - `result_files`: bounded reading of the files that engines write
//!
//! The crate starts no processes. Tests of the work run inside of an engine, so its files are untrusted: sizes and counts
//! are limited, and links are not followed. An engine that leaves no readable result has failed.

mod cargo_mutants;
mod command_words;
mod engine;
mod engine_call;
mod mutant;
mod mutmut;
mod report;
mod result_files;
mod stryker;

pub use engine::{EngineEnd, EnginePlan, EngineRequest, MutationEngine, MutationTarget};
pub use engine_call::{engine_for, engine_words, plan_for, result_of};
pub use mutant::{MutantOutcome, TestedMutant, reported};
pub use report::stryker_report;
