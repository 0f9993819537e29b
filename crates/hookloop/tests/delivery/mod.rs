//! Delivery by the real program: real git and hooks, scripts as agents, and a bare repository as
//! remote.

mod approving;
mod campaign;
mod context;
mod forge;
mod gatekeepers;
mod interrupted;
mod machines;
mod no_forge;
mod protected;
mod queue;
mod remediation;
mod submit;
mod train;
mod types;
mod vanished;
