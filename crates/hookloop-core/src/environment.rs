//! Whether a command could check anything on this machine.
//!
//! A gate that cannot run is no evidence about the work, so no agent can fix it. This module
//! answers two questions:
//!
//! - [`cannot_run`]: was the command itself not found or not executable? Sessions and merges use
//!   this. An exit code of 126 or 127 is not enough, because a test suite may return it. The last
//!   line of the output must be a shell's message about a program, or there is no output at all.
//!   Output of a test runner rules it out.
//! - [`find_gap`]: is the environment not set up, such as a package that is not installed? `init`
//!   uses this before any agent has worked. Sessions do not: there the agent's own change can cause
//!   the same message.
//!
//! Messages of tools are in one table, `signatures`, with the command that sets up the environment.

mod signatures;

use crate::checks;

/// Exit codes of a shell whose command can't be executed, or is not found.
const CANNOT_START: [i32; 2] = [126, 127];
/// The exit code of make for any failure of a recipe.
const MAKE_FAILED: i32 = 2;
/// Largest number of lines at the end of an output that are read.
const LINES_MAX: usize = 4_000;
/// The longest name of a program that is shown.
const NAME_MAX: usize = 200;

/// The result of a command: its exit code and its output.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandResult<'a> {
    pub exit_code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// The parts of a project's files that explain a message of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// Import names of the project's own Python packages and modules.
    pub python_packages: Vec<String>,
    /// Names of the Python distributions that the project declares as dependencies.
    pub python_dependencies: Vec<String>,
    /// The command that installs the Python project and its dependencies.
    pub python_setup: Option<String>,
    /// Distributions that [`python_setup`](Self::python_setup) does not install, each with the command that does.
    pub python_setups: Vec<(String, String)>,
    /// Names of the packages that `package.json` declares.
    pub node_dependencies: Vec<String>,
    /// The command that installs the packages of `package.json`.
    pub node_setup: Option<String>,
}

/// The reason why a command could not check anything here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentGap {
    /// One line, such as "`pytest` is not installed".
    pub cause: String,
    /// The command that prepares the environment, if one is known.
    pub setup: Option<String>,
}

impl EnvironmentGap {
    fn new(cause: impl Into<String>, setup: Option<&str>) -> EnvironmentGap {
        EnvironmentGap { cause: cause.into(), setup: setup.map(str::to_owned) }
    }

    /// Returns the gap of a program that is not installed.
    pub fn of_program(program: &str, facts: &EnvironmentFacts) -> EnvironmentGap {
        let cause = format!("`{program}` is not installed");
        EnvironmentGap { cause, setup: signatures::setup_of(program, facts) }
    }
}

/// Returns why the command could not be executed, or `None` if it ran.
pub fn cannot_run(result: CommandResult<'_>, facts: &EnvironmentFacts) -> Option<EnvironmentGap> {
    let code = result.exit_code?;
    let lines = plain_lines(result);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let is_made = code == MAKE_FAILED && lines.iter().any(|line| is_make_report(line));
    if !CANNOT_START.contains(&code) && !is_made {
        return None;
    }
    let output = lines.join("\n");
    if checks::read(&output).is_some() {
        return None;
    }
    let Some(last) = lines.iter().rev().find(|line| !is_epilogue(line)) else {
        return Some(EnvironmentGap::new(format!("exit code {code} and no output"), None));
    };
    let (program, why) = refused_program(last)?;
    // A script of package.json may need a program of another name than its package, such as `tsc` of typescript.
    let is_script = lines.iter().any(|line| line.starts_with("> ") || line.starts_with("$ "));
    let by_script = || facts.node_setup.clone().filter(|_| is_script);
    let setup = signatures::setup_of(program, facts).or_else(by_script);
    let cause = match why {
        WhyRefused::NotFound => format!("`{program}` was not found (exit code {code})"),
        WhyRefused::NotExecutable => format!("`{program}` can't be executed (exit code {code})"),
    };
    // A file that exists but cannot be executed needs no installation.
    let setup = setup.filter(|_| why == WhyRefused::NotFound);
    Some(EnvironmentGap { cause, setup })
}

/// Returns the missing part of the environment, by the exit code and by messages of tools.
///
/// Returns `None` if the project's own files may have caused the failure.
pub fn find_gap(result: CommandResult<'_>, facts: &EnvironmentFacts) -> Option<EnvironmentGap> {
    if result.exit_code == Some(0) {
        return None;
    }
    let lines = plain_lines(result);
    let found = lines.iter().find_map(|line| signatures::read(line, facts));
    found.or_else(|| cannot_run(result, facts))
}

/// Returns the last lines of an output without colours: standard output, then standard error.
fn plain_lines(result: CommandResult<'_>) -> Vec<String> {
    let lines = |text: &str| -> Vec<String> {
        let text = checks::plain(text);
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let mut last: Vec<String> = lines.rev().take(LINES_MAX).map(str::to_owned).collect();
        last.reverse();
        last
    };
    [lines(result.stdout), lines(result.stderr)].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhyRefused {
    NotFound,
    NotExecutable,
}

/// Ends of a shell's message about a program, and the reason that each gives.
const ENDINGS: [(&str, WhyRefused); 9] = [
    (": command not found", WhyRefused::NotFound),
    (": not found", WhyRefused::NotFound),
    (": bad interpreter: No such file or directory", WhyRefused::NotFound),
    (": cannot execute: required file not found", WhyRefused::NotFound),
    (": No such file or directory", WhyRefused::NotFound),
    (": cannot execute binary file: Exec format error", WhyRefused::NotExecutable),
    (": Exec format error", WhyRefused::NotExecutable),
    (": Permission denied", WhyRefused::NotExecutable),
    (": Is a directory", WhyRefused::NotExecutable),
];
/// Messages with the program name at their end: zsh, bundler, Yarn.
const BEFORE_NAMES: [(&str, WhyRefused); 3] = [
    ("command not found: ", WhyRefused::NotFound),
    ("no such file or directory: ", WhyRefused::NotFound),
    ("permission denied: ", WhyRefused::NotExecutable),
];

/// Returns the program that a shell's message is about: `sh: 1: pytest: not found`.
fn refused_program(line: &str) -> Option<(&str, WhyRefused)> {
    let line = line.trim();
    let by_end = ENDINGS.iter().find_map(|(end, why)| Some((line.strip_suffix(end)?, *why)));
    let (name, why) = match by_end {
        // The shell, and in most shells the number of the line, stand before the program.
        Some((start, why)) => (start.rsplit_once(": ")?.1, why),
        None => {
            BEFORE_NAMES.iter().find_map(|(start, why)| Some((line.rsplit_once(start)?.1, *why)))?
        }
    };
    let name = name.trim_matches(['\'', '"', '`', '‘', '’']);
    let is_name = !name.is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_whitespace);
    is_name.then_some((name, why))
}

/// Whether a line reports a failed recipe: `make: *** [Makefile:2: test] Error 127`.
fn is_make_report(line: &str) -> bool {
    let is_code =
        |code: &i32| line.ends_with(&format!("] Error {code}")) && line.contains(": *** [");
    CANNOT_START.iter().any(is_code)
}

/// Whether a script runner adds this line before or after the message of the shell.
fn is_epilogue(line: &str) -> bool {
    const STARTS: [&str; 9] = [
        "npm ERR!",
        "npm error",
        "npm notice",
        "npm warn",
        "error Command failed with exit code",
        "info Visit ",
        "ELIFECYCLE",
        "WARN",
        "error: script ",
    ];
    let line = line.trim_start();
    STARTS.iter().any(|start| line.starts_with(start)) || is_make_report(line)
}

#[cfg(test)]
mod tests;
