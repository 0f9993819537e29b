//! The commands, the setup, the documents, the dashboard and the MCP server, as users and programs
//! use them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod cli;
#[allow(dead_code, reason = "each test uses its part")]
mod delivery_project;
mod documents;
#[allow(dead_code, reason = "each test uses its part")]
mod support;

mod authority;
mod book;
mod commands;
mod docs;
mod install;
mod mcp;
mod native;
mod screens;
mod seed_examples;
mod setup;
mod terminal;
mod web;
