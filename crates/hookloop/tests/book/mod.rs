//! The book: its pages hang together, say what the program does, and everything in them that can be run runs.

mod environment;
mod exits;
mod json;
mod pages;
mod points;
mod protocol;
mod reference;
mod structure;
