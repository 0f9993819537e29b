//! Only a person loosens a gate: every command of every front end, for every kind of actor.
//!
//! - [`stage`]: a project with something of everything, and the actors that act on it
//! - [`commands`]: the command line, command by command
//! - [`disguises`]: attempts of an agent to pass for a person
//! - [`pages`]: the dashboard's actions

mod commands;
mod disguises;
mod pages;
mod stage;
