//! The dashboard of the real program, in a real browser and over TCP.
//!
//! - [`browser`]: Chromium, controlled by the DevTools protocol; [`server`]: the running server
//! - [`login`]: login and logout
//! - [`living`]: pages with live updates; [`deciding`]: decisions of people on pages
//! - [`undoing`]: the undo of a session on its page; [`checking`]: the checks of its gates
//! - [`lists`]: lists on pages
//! - [`hostile`]: text with markup and scripts in every field of a page
//! - [`speed`]: large projects, and clients that stop reading
//! - [`stage`]: a project with every kind of data; [`pictures`]: screenshots of its pages
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests, which tell their figures")]

mod browser;
mod checking;
mod deciding;
mod hostile;
mod lists;
mod living;
mod login;
mod pictures;
mod server;
mod speed;
mod stage;
mod undoing;

/// A project without hooks and limits.
const PLAIN: &str = "version: 1\n";
