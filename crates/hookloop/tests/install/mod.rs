//! How people come by the program: a release of the program under test, installed in every way that there is.

mod archive;
mod container;
mod installer;
mod npm;
mod pages;
pub(crate) mod release;
mod source;
