//! The MCP server of the real program, over its real stdin and stdout and over TCP.
//!
//! - [`client`], [`http`]: the least that can talk to it
//! - [`tools`]: what is listed, and what calls come to; [`outcomes`]: what they do
//! - [`seed`]: the calls of the document that the tools come from, as it writes them
//! - [`protocol`], [`frames`]: versions and probes; lines that are no messages
//! - [`matrix`]: what agents may not do
//! - [`guard`], [`token`]: who is let in
//! - [`fuzz`]: anything at all
//! - [`official`]: clients that others wrote

mod client;
mod frames;
mod fuzz;
mod guard;
mod hostile;
mod http;
mod matrix;
mod official;
mod outcomes;
mod protocol;
mod seed;
mod token;
mod tools;

/// A project that asks for nothing.
const PLAIN: &str = "version: 1\n";
