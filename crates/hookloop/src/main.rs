//! The program: command line, MCP server, dashboard, TUI and native hooks.
//!
//! Only this crate prints. It never opens SQLite: it reaches the log through the engine.
//!
//! - `cli`: one file per command; `error`, `output`, `json_output`, `logs`: how results are printed
//! - `present`: texts about sessions and tasks, the same for every front end
//! - `mcp`: the MCP server; `native`: hooks in agents that people start themselves
//! - `web`: the dashboard; `tui`: the screens of a terminal; `metrics`: Prometheus
//! - `undo_preview`: the files that an undo would change; `reference`: generated pages of the book

mod cli;
mod diagnostics;
mod environment;
mod error;
mod ids;
mod json_output;
mod logs;
mod mcp;
mod metrics;
mod native;
mod output;
mod picture;
mod present;
mod progress;
mod quiet;
mod reference;
mod sanitize;
mod tui;
mod undo_preview;
mod web;

use std::ffi::OsString;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use cli::examples;
use cli::help::{self, HelpRequest};
use error::CliError;
use hookloop_git::lfs::{LFS_CLEAN_ARGUMENT, lfs_clean_main};
use hookloop_process::{CONFINED_ARGUMENT, KEEPER_ARGUMENT, confined_exec, keeper_main};

/// The exit code of a command line that is not understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(argument) if argument == KEEPER_ARGUMENT => return keeper_main(),
        Some(argument) if argument == CONFINED_ARGUMENT => return confined_exec(),
        Some(argument) if argument == LFS_CLEAN_ARGUMENT => return lfs_clean_main(),
        _ => {}
    }
    cli::complete::answer();
    // Like `Cli::parse()`, without the cost of dropping the parser: the process ends soon.
    let words = match HelpRequest::of(std::env::args_os().skip(1).collect()) {
        HelpRequest::Words(words) => words,
        HelpRequest::AllCommands => return print_all_commands(),
    };
    let mut parser = ManuallyDrop::new(cli::narrow_parser(&words));
    let mut parsed = parse(&mut parser, &words);
    if parsed.as_ref().is_err_and(shows_commands) {
        // Help and mistakes name commands that this command line does not use, so all of them are defined.
        parser = ManuallyDrop::new(help::with_overview(
            examples::with_examples(cli::Cli::command()),
            false,
        ));
        parsed = parse(&mut parser, &words);
    }
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let hint = cli::unknown_importer(&error, &parser)
                .or_else(|| cli::unquoted_prompt(&error, &parser, &words));
            let error = cli::without_unlike_commands(error);
            return misunderstood(&error.format(&mut parser), hint, &words);
        }
    };
    let json = cli.wants_json();
    match cli.run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(json),
    }
}

/// Parses the command line. Only the arguments of the commands that it names are defined (`defer`).
fn parse(parser: &mut clap::Command, words: &[OsString]) -> Result<cli::Cli, clap::Error> {
    let program = OsString::from(cli::PROGRAM);
    let matches = parser.try_get_matches_from_mut(std::iter::once(&program).chain(words))?;
    cli::Cli::from_arg_matches(&matches)
}

/// Whether the text of this error may name commands.
fn shows_commands(error: &clap::Error) -> bool {
    error.kind() != ErrorKind::DisplayVersion
}

/// Prints the overview of all commands.
fn print_all_commands() -> ExitCode {
    let mut parser = help::with_overview(cli::Cli::command(), true);
    // If standard output is closed, nobody reads the overview.
    let _ = write!(anstream::stdout(), "{}", parser.render_help().ansi());
    ExitCode::SUCCESS
}

/// Prints the mistake in the command line, or the requested help.
fn misunderstood(error: &clap::Error, hint: Option<String>, words: &[OsString]) -> ExitCode {
    // An agent reads 2 as a hook's refusal and would continue for ever.
    let is_hook = words.first().is_some_and(|name| name == cli::HOOK);
    let is_help = error.exit_code() == 0;
    let mut options = words.iter().take_while(|word| *word != "--");
    if !is_help && options.any(|word| word == "--json") {
        let code = usage_error(error, hint).report(true);
        return if is_hook { ExitCode::FAILURE } else { code };
    }
    // If standard error is closed, only the exit code is left.
    let _ = error.print();
    if let Some(hint) = hint {
        let _ = writeln!(anstream::stderr(), "\n  tip: {hint}");
    }
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if is_hook => ExitCode::FAILURE,
        _ => ExitCode::from(USAGE),
    }
}

/// Returns a mistake in the command line as an error that can be printed as JSON.
fn usage_error(error: &clap::Error, hint: Option<String>) -> CliError {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(str::trim);
    let message = paragraphs.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let tip = paragraphs.find_map(|text| text.strip_prefix("tip: ")).map(str::to_owned);
    let usage = CliError::usage(message);
    match hint.or(tip) {
        Some(sentence) => usage.advice(sentence),
        None => usage.hint("hookloop help"),
    }
}
