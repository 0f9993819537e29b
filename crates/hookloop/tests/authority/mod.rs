//! Checks that only a person can loosen a gate: every command of every front end, for every actor.
//!
//! - [`stage`]: a project with data of every kind, and the actors
//! - [`commands`]: the command line, command by command
//! - [`disguises`]: attempts of an agent to pass as a person
//! - [`pages`]: the actions of the dashboard

mod commands;
mod disguises;
mod pages;
mod stage;
