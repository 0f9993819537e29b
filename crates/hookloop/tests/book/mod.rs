//! The book: its pages are linked, agree with the program, and every command and configuration in
//! them works.

mod environment;
mod exits;
mod json;
mod names;
mod pages;
mod points;
mod protocol;
mod reference;
mod structure;
