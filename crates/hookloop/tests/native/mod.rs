//! hookloop inside agents that people start themselves, without the agents: what their hooks say to it, and its entries
//! in their settings.

mod asking;
mod frozen;
mod installing;
