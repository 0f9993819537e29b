//! hookloop inside agents that people start themselves: what their hooks say, what they are answered, and the entries
//! in their settings that have them ask.

pub(crate) mod agent;
pub(crate) mod command_line;
pub(crate) mod dialect;
pub(crate) mod diff;
pub(crate) mod file;
pub(crate) mod jsonc;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod settings;
pub(crate) mod skill;
