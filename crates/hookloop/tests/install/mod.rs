//! Installation: a release of the program under test, installed by every supported method.

mod archive;
mod container;
mod installer;
mod npm;
mod pages;
pub(crate) mod release;
mod source;
