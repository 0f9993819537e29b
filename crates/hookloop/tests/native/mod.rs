//! hookloop inside agents that users start themselves, without the agents: the inputs of their
//! hooks, and the entries of hookloop in their settings.

mod asking;
mod frozen;
mod installing;
