//! Pages of the book that are generated from the program, so they can't differ from it.

mod commands;
mod config;
mod decisions;
mod events;
mod points;
mod shape;

use clap::ValueEnum;

/// A page of the reference.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReferencePage {
    /// Every command
    Cli,
    /// Every key of the configuration
    Config,
    /// Every decision that is controlled
    Decisions,
    /// Every type of event
    Events,
    /// Every hook point
    Points,
}

impl ReferencePage {
    /// The page as Markdown.
    pub(crate) fn text(self, commands: clap::Command) -> String {
        let (name, text) = match self {
            ReferencePage::Cli => ("cli", commands::page(commands)),
            ReferencePage::Config => ("config", config::page()),
            ReferencePage::Decisions => ("decisions", decisions::page()),
            ReferencePage::Events => ("events", events::page()),
            ReferencePage::Points => ("points", points::page()),
        };
        let made = format!("<!-- Made by `hookloop reference {name}`; a test compares. -->");
        format!("{made}\n\n{}\n", text.trim_end())
    }
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|")
}

/// Names as code, with commas between them.
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names = names.into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_cells_are_escaped_and_have_one_line() {
        assert_eq!(cell("a\n  b | c "), "a b \\| c");
        assert_eq!(list(["a", "b"]), "`a`, `b`");
    }
}
