//! The dashboard of the real program, in a real browser and over TCP.
//!
//! - [`browser`]: Chromium, asked by the DevTools protocol; [`server`]: the program as it serves
//! - [`login`]: who is let in, and how that ends
//! - [`living`]: pages that follow what happens; [`deciding`]: what people decide on them
//! - [`lists`]: what pages hold
//! - [`hostile`]: text that would rather be something else, in every field that reaches a page
//! - [`speed`]: large projects, and clients that stop reading
//! - [`stage`]: a project that has something of everything; [`pictures`]: its pages, for the documents
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests, which tell their figures")]

mod browser;
mod deciding;
mod hostile;
mod lists;
mod living;
mod login;
mod pictures;
mod server;
mod speed;
mod stage;

/// A project that asks for nothing.
const PLAIN: &str = "version: 1\n";
