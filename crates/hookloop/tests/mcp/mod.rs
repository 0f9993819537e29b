//! The MCP server of the real program, over its real stdin and stdout and over TCP.
//!
//! - [`client`], [`http`]: minimal clients
//! - [`tools`]: the list of tools, and invalid calls; [`outcomes`]: the effects of tools
//! - [`seed`]: the calls of the document that defines the tools, exactly as it writes them
//! - [`protocol`], [`frames`]: versions and probes; lines that are not messages
//! - [`matrix`]: forbidden effects for agents
//! - [`guard`], [`token`]: access control
//! - [`fuzz`]: random input
//! - [`official`]: clients of other projects

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

/// A project without hooks and limits.
const PLAIN: &str = "version: 1\n";
