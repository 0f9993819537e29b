//! The reasons why a command is not accepted, or cannot run with its values.

use std::fmt;

/// A position in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The index of the argument, in a list.
    pub argument: Option<usize>,
    pub byte: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.argument {
            Some(argument) => write!(f, "byte {} of argument {argument}", self.byte),
            None => write!(f, "byte {}", self.byte),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    #[error("the command is empty")]
    Empty,
    #[error("the command has a NUL byte")]
    HasNul,
    #[error("the command has {size} bytes; a system takes less than {limit}", limit = super::STRING_LIMIT)]
    TooLong { size: usize },
    #[error("there is no variable `{name}` ({at}); there are {list}", list = known.join(", "))]
    Unknown { name: String, at: Position, known: Vec<&'static str> },
    #[error("`{{{{` without `}}}}` at {at}")]
    Unclosed { at: Position },
    #[error("{what} begins at {at} and does not end")]
    Unterminated { what: &'static str, at: Position },
    #[error("`{{{{{variable}}}}}` at {at} {why}")]
    Refused { variable: &'static str, at: Position, why: Unsafe },
}

impl CommandLineError {
    /// Returns the fix, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            CommandLineError::Refused { variable, .. } => Some(format!(
                "put the command in a script that uses the environment variables HOOKLOOP_… or its \
                 input, or use `command: [program, \"{{{{{variable}}}}}\"]`"
            )),
            CommandLineError::Unknown { .. } | CommandLineError::Unclosed { .. } => {
                Some("`{{` that is no variable can go into a script".to_owned())
            }
            CommandLineError::TooLong { .. } => Some("put it in a script".to_owned()),
            _ => None,
        }
    }
}

/// The reason why a place can't hold a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsafe {
    #[error("is inside backticks")]
    Backticks,
    #[error("is inside a here-document")]
    HereDocument,
    #[error("is inside `${{…}}`")]
    Parameter,
    #[error("is inside `$((…))`, where a value is parsed as arithmetic")]
    Arithmetic,
    #[error("is inside a command substitution")]
    Substitution,
    #[error("is inside `$'…'`")]
    AnsiQuotes,
    #[error("is in a comment")]
    Comment,
    #[error("follows a backslash")]
    AfterBackslash,
    #[error("follows a `$`")]
    AfterDollar,
    #[error("is (part of) the command that would run")]
    CommandWord,
    #[error("is in the name of a variable of the shell")]
    AssignmentName,
    #[error("would set `{0}`, which decides what other programs run")]
    Assignment(String),
    #[error("is an argument of `{by}`, which would parse the value again")]
    Parsed { by: String },
    #[error("goes through a pipe to `{by}`, which would run what it reads")]
    Piped { by: String },
    #[error("is an argument of a command that is known only when it runs")]
    UnknownCommand,
    #[error("shares a command with {0}, beyond which it is not clear where a value is safe")]
    Unclear(&'static str),
}

/// The reason why a command cannot run with its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingOrUnusable {
    #[error("`{{{{{variable}}}}}` has no value here")]
    Missing { variable: &'static str },
    #[error(
        "the value of `{{{{{variable}}}}}` ({size} bytes) has a NUL byte, which no argument can \
         hold; the whole text is on stdin"
    )]
    HasNul { variable: &'static str, size: usize },
    #[error(
        "the value of `{{{{{variable}}}}}` has {size} bytes, more than an argument or a variable \
         of the environment can hold ({limit}); the whole text is on stdin",
        limit = super::STRING_LIMIT
    )]
    TooLong { variable: &'static str, size: usize },
}
