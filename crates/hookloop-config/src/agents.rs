//! Agents as the configuration knows them.
//!
//! - [`profile`]: the agents that hookloop knows by name
//! - [`settings`]: the program, the permissions and the environment of one agent

pub mod profile;
pub mod settings;

pub use profile::AgentDialect;
pub use settings::{AgentPermissions, AgentProgram, AgentSettings, NoSuchAgent};
