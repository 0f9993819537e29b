//! The commands as users and scripts run them.

mod bulk;
mod changes;
mod claims;
mod fields;
mod graph;
mod help;
mod hostile;
mod ids;
mod integrity;
mod log;
mod mistakes;
mod old_log;
mod races;
mod scheduling;
mod surroundings;
mod walkthrough;
