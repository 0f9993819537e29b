//! Commands of hooks with `{{variable}}` places, in which a value never becomes shell text.
//!
//! A text for `sh -c` is compiled once. Each place becomes a reference to an environment variable,
//! quoted for its position. So the text that the shell parses depends only on the author. A place
//! where no quoting helps, because its text is parsed again, is refused when the command is read.
//!
//! `{{` that begins no variable is refused as a mistake. The author can move it into a script. A
//! name that begins with a dot is accepted as plain text: `docker ps --format '{{.Names}}'`.
//!
//! The later use of a value is the author's responsibility. This module does not see a script that
//! evaluates its argument, or a variable of the author that is evaluated later.

mod error;
mod place;
mod program;
mod shell;
mod word;

pub use error::{CommandLineError, MissingOrUnusable, Position, Unsafe};
use place::{ValuePlace, places};
use shell::PlaceQuotes;
use word::CommandWord;

/// The prefix of environment variables that carry values.
pub(crate) const ENV_PREFIX: &str = "HOOKLOOP_VALUE_";

/// The shell, as `system` of the C library uses it. The first `sh` in `PATH` may be any program.
const SHELL: &[u8] = b"/bin/sh";

/// The longest argument or `name=value` of the environment, with its NUL byte: Linux's `MAX_ARG_STRLEN`. Other
/// systems allow at least as much.
pub(crate) const STRING_LIMIT: usize = 128 * 1024;

/// A command, ready to run when its values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    form: Form,
    variables: Vec<&'static str>,
    unguarded: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// The text with references in place of values.
    Shell(String),
    Exec(Vec<Vec<ArgumentPart>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ArgumentPart {
    Text(String),
    Variable(&'static str),
}

/// A process to start: its arguments and additional environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<Vec<u8>>,
    pub env: Vec<(String, Vec<u8>)>,
}

impl CommandLine {
    /// Compiles a text that runs as `sh -c <text>`.
    pub fn shell(text: &str, known: &[&'static str]) -> Result<CommandLine, CommandLineError> {
        let places = places(text, known, None)?;
        let found = shell::read(text, &places)?;
        let text = compiled(text, &places, &found.quotes);
        if text.trim().is_empty() {
            return Err(CommandLineError::Empty);
        }
        check_length(&text)?;
        let variables = once(places.iter().map(|place| place.name));
        Ok(CommandLine { form: Form::Shell(text), variables, unguarded: once(found.unguarded) })
    }

    /// Compiles a program and its arguments, without a shell.
    pub fn exec(args: &[String], known: &[&'static str]) -> Result<CommandLine, CommandLineError> {
        if args.first().is_none_or(String::is_empty) {
            return Err(CommandLineError::Empty);
        }
        let mut words = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            check_length(arg)?;
            words.push(CommandWord::argument(arg, &places(arg, known, Some(index))?));
        }
        program::check(&words, &[])?;
        let variables = once(words.iter().flat_map(CommandWord::places).map(|place| place.name));
        let unguarded = once(program::unguarded(&words));
        let args = words.into_iter().map(CommandWord::into_parts).collect();
        Ok(CommandLine { form: Form::Exec(args), variables, unguarded })
    }

    /// Returns the variables in use, each once.
    pub fn variables(&self) -> &[&'static str] {
        &self.variables
    }

    /// Returns the variables whose value begins a word that the program could parse as an option.
    ///
    /// The caller knows whether a value can begin with `-`.
    pub fn unguarded(&self) -> Vec<&'static str> {
        self.unguarded.clone()
    }

    pub fn invocation(
        &self,
        value: &dyn Fn(&'static str) -> Option<Vec<u8>>,
    ) -> Result<Invocation, MissingOrUnusable> {
        let mut values = Vec::new();
        for variable in &self.variables {
            let value = value(variable).ok_or(MissingOrUnusable::Missing { variable })?;
            if value.contains(&0) {
                return Err(MissingOrUnusable::HasNul { variable, size: value.len() });
            }
            values.push((*variable, value));
        }
        match &self.form {
            Form::Shell(text) => shell_invocation(text, values),
            Form::Exec(args) => exec_invocation(args, &values),
        }
    }
}

/// Returns the name of the environment variable that carries a value.
pub fn env_name(variable: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    ENV_PREFIX.chars().chain(variable.chars().map(fits)).collect()
}

fn compiled(text: &str, places: &[ValuePlace], quotes: &[PlaceQuotes]) -> String {
    let mut compiled = String::new();
    let mut copied = 0;
    for (place, quotes) in places.iter().zip(quotes) {
        compiled.push_str(&text[copied..place.start]);
        let name = env_name(place.name);
        compiled.push_str(&match quotes {
            PlaceQuotes::None => format!("\"${{{name}}}\""),
            PlaceQuotes::Double => format!("${{{name}}}"),
            PlaceQuotes::Single => format!("'\"${{{name}}}\"'"),
        });
        copied = place.end;
    }
    compiled + &text[copied..]
}

fn shell_invocation(
    text: &str,
    values: Vec<(&'static str, Vec<u8>)>,
) -> Result<Invocation, MissingOrUnusable> {
    let mut env = Vec::new();
    for (variable, value) in values {
        let name = env_name(variable);
        if name.len() + "=".len() + value.len() + "\0".len() > STRING_LIMIT {
            return Err(MissingOrUnusable::TooLong { variable, size: value.len() });
        }
        env.push((name, value));
    }
    Ok(Invocation { argv: vec![SHELL.to_vec(), b"-c".to_vec(), text.as_bytes().to_vec()], env })
}

fn exec_invocation(
    args: &[Vec<ArgumentPart>],
    values: &[(&'static str, Vec<u8>)],
) -> Result<Invocation, MissingOrUnusable> {
    let mut argv = Vec::new();
    for parts in args {
        let mut arg = Vec::new();
        let mut longest = None;
        for part in parts {
            match part {
                ArgumentPart::Text(text) => arg.extend_from_slice(text.as_bytes()),
                ArgumentPart::Variable(name) => {
                    let found = values.iter().find(|(variable, _)| variable == name);
                    let (variable, value) =
                        found.ok_or(MissingOrUnusable::Missing { variable: name })?;
                    arg.extend_from_slice(value);
                    longest = longest.max(Some((value.len(), *variable)));
                }
            }
        }
        match longest {
            Some((size, variable)) if arg.len() + "\0".len() > STRING_LIMIT => {
                return Err(MissingOrUnusable::TooLong { variable, size });
            }
            _ => argv.push(arg),
        }
    }
    Ok(Invocation { argv, env: Vec::new() })
}

fn check_length(text: &str) -> Result<(), CommandLineError> {
    if text.contains('\0') {
        return Err(CommandLineError::HasNul);
    }
    match text.len() {
        size if size >= STRING_LIMIT => Err(CommandLineError::TooLong { size }),
        _ => Ok(()),
    }
}

fn once(names: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests;
