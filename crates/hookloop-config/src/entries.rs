//! The parts of the configuration files in their written form, for serde and the schema.

pub(crate) mod agents;
pub(crate) mod base_tests;
pub(crate) mod delivery;
pub(crate) mod gate_options;
pub(crate) mod hook_entry;
pub(crate) mod hooks;
pub(crate) mod limits;
pub(crate) mod looping;
pub(crate) mod network;
pub(crate) mod notify;
pub(crate) mod room;
pub(crate) mod rules;
pub(crate) mod scheduling;
pub(crate) mod secrets;
pub(crate) mod strength;
pub(crate) mod telemetry;
pub(crate) mod values;
