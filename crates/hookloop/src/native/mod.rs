//! Native hooks: hookloop in agents that people start themselves.
//!
//! - [`agent`]: the agents, their settings files, names of events and guarantees
//! - [`dialect`]: the JSON of their hooks; the hook command exits with 0 or 1 only, because agents read 2 as a
//!   refusal
//! - [`settings`], [`jsonc`]: entries in an agent's settings, spliced into the existing text
//! - [`plan`], [`diff`]: the changes of an installation before they are made
//! - [`file`]: files of other programs, replaced whole if they did not change meanwhile
//! - [`record`]: the record of installations; [`skill`]: the text that teaches an agent the loop's rules
//! - [`command_line`]: the command lines of the entries
//!
//! A failure of hookloop lets the agent stop and informs its user. It never blocks the agent.

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
