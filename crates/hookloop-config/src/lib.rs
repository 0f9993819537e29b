//! Reads the configuration: the project's file, the user's file, policies, and the configuration in effect.
//!
//! This crate opens no log and starts no process. A lower layer only tightens a higher one: policies come first,
//! then the user's file, then the project's.
//!
//! Data, from the bottom up:
//! - [`clock`], [`ids`]: the time of day, and fresh ids
//! - [`variables`]: environment variables with a fixed meaning
//! - [`located`], [`patterns`], [`secret_text`], [`secret_references`]: parts that several files share
//! - [`paths`]: the directories of a project and of its state
//! - [`agents`]: one profile for each known agent, and the settings of a configured one
//! - [`channels`], [`telemetry`], [`repository`], [`limits`]: settings of notifications, traces, clones, sessions
//! - [`policy`]: rules of a machine's administrator
//! - [`user`]: the user's own configuration
//! - [`effective`]: the configuration in effect for a project
//!
//! Files:
//! - `yaml`: strict reading; `entries`: the parts of a file as they are written
//! - [`project_file`]: `hookloop.yaml`; [`user_file`]: `config.yaml`; [`policy_file`]: `policy.yaml`
//! - [`condition`]: the expressions of `when`

pub mod agents;
pub mod channels;
pub mod clock;
pub mod condition;
pub mod effective;
mod entries;
pub mod ids;
pub mod known_secrets;
pub mod limits;
pub mod located;
pub mod paths;
pub mod patterns;
pub mod policy;
pub mod policy_file;
pub mod project_file;
pub mod repository;
pub mod secret_references;
pub mod secret_text;
pub mod telemetry;
pub mod user;
pub mod user_file;
pub mod variables;
mod yaml;

pub use yaml::ConfigError;
