//! The book: its pages are linked, agree with the program, and every command and configuration in
//! them works.

mod environment;
mod exits;
mod json;
mod json_forms;
mod named_commands;
mod names;
mod pages;
mod points;
mod protocol;
mod reference;
mod sources;
mod statements;
mod structure;
