//! hookloop in agents that people start themselves: the entries in their settings, the input of their hooks, and the
//! answers.

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
