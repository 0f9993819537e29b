//! Commands of hooks as their authors and real shells see them.

mod accepted;
mod refused;
mod shells;
