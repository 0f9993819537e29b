//! Delivery by the real program: real git, real hooks, agents that are scripts, and a remote that is a bare repository.

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
