//! The commands as users and scripts meet them.

mod bulk;
mod changes;
mod claims;
mod fields;
mod graph;
mod hostile;
mod ids;
mod integrity;
mod log;
mod mistakes;
mod races;
mod scheduling;
mod surroundings;
mod walkthrough;
