//! The command line: one file per command.

mod agents;
mod authority;
mod checks;
mod command_groups;
pub(crate) mod complete;
mod completions;
mod context;
mod demo;
mod dispatch;
mod doctor;
pub(crate) mod examples;
mod fleet;
mod gc;
pub(crate) mod help;
mod hook;
mod hooks;
mod import;
mod inbox;
mod init;
mod install;
mod log;
mod man;
mod mcp;
mod merge;
mod message;
mod nats;
mod pause;
mod policy;
mod rebuild;
mod reference;
mod resume;
mod rooms;
mod run;
mod schedule;
mod schema;
mod serve;
mod session;
mod sessions;
mod status;
mod stop;
mod task;
mod trace_notices;
mod traces;
mod undo;
mod uninstall;
mod usage;
mod value_parsers;
mod verify;
mod watch;
mod why;
mod worker;
mod worktrees;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as _, Parser, Subcommand, ValueEnum};
use command_groups::{FleetGroup, IntegrationGroup, ProjectGroup, SessionGroup, TaskGroup};
use context::CommandContext;

use crate::diagnostics::{self, DiagnosticsMode, StartedSink, VerbosityArgs};
use crate::error::{CliError, CliResult};

/// The command that agents' own hooks run.
pub(crate) const HOOK: &str = "hook";

/// The name of the program in its own texts.
pub(crate) const PROGRAM: &str = "hookloop";

/// The answer to `--version`; `-V` prints only the version.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("HOOKLOOP_COMMIT"),
    "\ntarget: ",
    env!("HOOKLOOP_TARGET"),
);

/// Run coding agents until your checks pass
#[derive(Parser)]
#[command(name = PROGRAM, version, long_version = LONG_VERSION)]
#[command(max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: GlobalArgs,

    #[command(subcommand)]
    command: TopCommand,
}

#[derive(clap::Args, Default)]
struct GlobalArgs {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,

    /// Directory of the project [default: the current directory]
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Digest of hooks to trust for this command (see `hookloop hooks trust --show`)
    #[arg(long, global = true, value_name = "DIGEST", hide_short_help = true)]
    trust: Option<String>,

    /// Colour of the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColourChoice,

    #[command(flatten)]
    verbosity: VerbosityArgs,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ColourChoice {
    #[default]
    Auto,
    Always,
    Never,
}

/// The commands, in groups.
///
/// clap builds the commands of a group in one function. A short command needs only its own group.
#[derive(Subcommand)]
enum TopCommand {
    #[command(flatten)]
    Session(SessionGroup),
    #[command(flatten)]
    Fleet(FleetGroup),
    #[command(flatten)]
    Task(TaskGroup),
    #[command(flatten)]
    Integration(IntegrationGroup),
    #[command(flatten)]
    Project(ProjectGroup),
}

/// A question whether a group has a command of that name, and a function that adds the group's commands.
type CommandGroup = (fn(&str) -> bool, fn(clap::Command) -> clap::Command);

const GROUPS: [CommandGroup; 5] = [
    (SessionGroup::has_subcommand, SessionGroup::augment_subcommands),
    (FleetGroup::has_subcommand, FleetGroup::augment_subcommands),
    (TaskGroup::has_subcommand, TaskGroup::augment_subcommands),
    (IntegrationGroup::has_subcommand, IntegrationGroup::augment_subcommands),
    (ProjectGroup::has_subcommand, ProjectGroup::augment_subcommands),
];

/// Returns a parser that has only the commands that the command line may name.
///
/// clap copies the global options into every command of a parser. With all commands, that takes longer than the rest
/// of a short command. So the options are not global either if the command line has none of them. A command line that
/// this parser accepts means the same to the parser with all commands.
pub(crate) fn narrow_parser(words: &[OsString]) -> clap::Command {
    let all = TopCommand::of_words(words);
    let mut found: Vec<&clap::Command> = Vec::new();
    for command in words.iter().filter_map(|word| all.find_subcommand(word)) {
        if !found.iter().any(|known| known.get_name() == command.get_name()) {
            found.push(command);
        }
    }
    let parser = clap::Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .long_version(LONG_VERSION)
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommands(found.into_iter().cloned());
    let parser = GlobalArgs::augment_args(parser);
    if words.iter().any(|word| may_be_option(&parser, word)) {
        parser
    } else {
        parser.mut_args(|option| option.global(false))
    }
}

/// Whether a word may be an option of the parser, or several short ones in one word.
fn may_be_option(parser: &clap::Command, word: &OsStr) -> bool {
    let Some(word) = word.to_str() else { return true };
    let has = |is: &dyn Fn(&clap::Arg) -> bool| parser.get_arguments().any(is);
    match (word.strip_prefix("--"), word.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split('=').next();
            has(&|option| option.get_long().is_some_and(|known| Some(known) == name))
        }
        (None, Some(shorts)) => {
            has(&|option| option.get_short().is_some_and(|known| shorts.contains(known)))
        }
        (None, None) => false,
    }
}

/// Removes suggested commands that are not like the typed one.
pub(crate) fn without_unlike_commands(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    use hookloop_core::nearest::is_mistyped;
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) => name.clone(),
        _ => return error,
    };
    if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
        names.retain(|name| is_mistyped(&typed, name));
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}

/// Tools for git hooks that are not imported: a gate runs them.
const GIT_HOOK_TOOLS: [&str; 4] = ["husky", "pre-commit", "prek", "git-hooks"];

/// Returns the hint for an unknown name after `hookloop import`; none for any other mistake.
pub(crate) fn unknown_importer(error: &clap::Error, parser: &clap::Command) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let mut words = std::env::args_os().skip(1).skip_while(|word| word != "import").skip(1);
    if !words.any(|word| word == name.as_str()) {
        return None;
    }
    let import = parser.get_subcommands().find(|command| command.get_name() == "import")?;
    let importers = import.get_subcommands().map(clap::Command::get_name);
    let importers: Vec<&str> = importers.filter(|name| *name != "help").collect();
    let importers = format!("importers: {}", importers.join(", "));
    Some(if GIT_HOOK_TOOLS.contains(&name.as_str()) {
        format!("keep {name}, and let a `stop` gate run it: docs/from/git-hooks.md; {importers}")
    } else {
        format!("{importers}; for git hooks see docs/from/git-hooks.md")
    })
}

/// Returns the hint for a prompt of several words without quotes; none for any other mistake.
pub(crate) fn unquoted_prompt(
    error: &clap::Error,
    parser: &clap::Command,
    words: &[OsString],
) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return None;
    }
    let (command, rest) = words.get(help::first_command(words)..)?.split_first()?;
    let run = parser.find_subcommand("run").filter(|_| command == "run")?;
    let prompt = without_options(run, rest).join(" ");
    Some(format!("put the prompt in quotes: `hookloop run \"{prompt}\"`"))
}

/// Returns the words that are neither options of the command nor their values.
fn without_options<'w>(command: &clap::Command, words: &'w [OsString]) -> Vec<&'w str> {
    let takes_value = |word: &str| {
        let is_named = |option: &clap::Arg| {
            let long = option.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
            let short = option.get_short().is_some_and(|short| word == format!("-{short}"));
            long || short
        };
        let mut with_values = command.get_arguments().filter(|o| o.get_action().takes_values());
        with_values.any(is_named)
    };
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            found.push(word);
        } else if takes_value(word) {
            words.next();
        }
    }
    found
}

impl TopCommand {
    /// Returns the commands of the groups that have a command of one of these names.
    fn of_words(words: &[OsString]) -> clap::Command {
        let is_named =
            |has: fn(&str) -> bool| words.iter().any(|word| word.to_str().is_some_and(has));
        let mut found = clap::Command::new("");
        for (has, augment) in GROUPS {
            if is_named(has) {
                found = augment(found);
            }
        }
        found
    }

    fn run(self, context: &mut CommandContext) -> CliResult<()> {
        match self {
            TopCommand::Session(command) => command.run(context),
            TopCommand::Fleet(command) => command.run(context),
            TopCommand::Task(command) => command.run(context),
            TopCommand::Integration(command) => command.run(context),
            TopCommand::Project(command) => command.run(context),
        }
    }

    /// An agent reads the exit code of a wrong command line as a hook's refusal.
    fn as_own_failure(&self, error: CliError) -> CliError {
        if let TopCommand::Integration(IntegrationGroup::Hook(_)) = self {
            error.into_refused()
        } else {
            error
        }
    }
}

impl Cli {
    pub(crate) fn wants_json(&self) -> bool {
        self.global.json
    }

    /// Returns the place of this command's diagnostics.
    fn diagnostics(&self) -> DiagnosticsMode {
        let has_screen = match &self.command {
            TopCommand::Session(SessionGroup::Run(args)) => args.has_screen(),
            TopCommand::Session(SessionGroup::Resume(args)) => args.has_screen(),
            TopCommand::Session(SessionGroup::Watch(_)) => true,
            _ => false,
        };
        let has_log_lines = match &self.command {
            TopCommand::Session(SessionGroup::Run(args)) => args.has_log_lines(),
            TopCommand::Session(SessionGroup::Resume(args)) => args.has_log_lines(),
            TopCommand::Fleet(FleetGroup::Worker(args)) => args.has_log_lines(),
            TopCommand::Integration(IntegrationGroup::Serve(args)) => args.has_log_lines(),
            _ => false,
        };
        match &self.command {
            _ if has_screen && !self.global.json => DiagnosticsMode::FileOnly,
            // Other lines would break the format of the log.
            _ if has_log_lines => DiagnosticsMode::FileOnly,
            // An agent reads the standard error of these.
            TopCommand::Integration(IntegrationGroup::Mcp(_))
            | TopCommand::Integration(IntegrationGroup::Hook(_)) => DiagnosticsMode::FileOnly,
            TopCommand::Session(SessionGroup::Run(_))
            | TopCommand::Session(SessionGroup::Resume(_))
            | TopCommand::Fleet(FleetGroup::Merge(_))
            | TopCommand::Fleet(FleetGroup::Worker(_))
            | TopCommand::Integration(IntegrationGroup::Serve(_))
            | TopCommand::Project(ProjectGroup::Dispatch(_)) => DiagnosticsMode::LongRunning,
            _ => DiagnosticsMode::OnRequest,
        }
    }

    /// Runs the command and returns the exit code.
    pub(crate) fn run(self) -> CliResult<u8> {
        let decisions: Vec<_> = self.controlled().collect();
        let verbosity = self.global.verbosity;
        let mode = self.diagnostics();
        let mut context = CommandContext::new(self.global);
        let context = &mut context;
        let sink = diagnostics::start(verbosity, mode, || context.diagnostics_directory())
            .map_err(|error| self.command.as_own_failure(error))?;
        for action in decisions {
            context.authorize(action)?;
        }
        let done = self.command.run(context);
        let done = done.map_err(|error| context.with_log_path(error));
        // On standard error the message follows anyway.
        if let (Err(error), StartedSink::File) = (&done, sink) {
            tracing::error!(kind = error.kind().name(), error = error.message(), "command failed");
        }
        // With a log, the error is a log line too: other lines would break its format.
        if let (Err(error), Some(logger)) = (&done, context.log) {
            return Ok(logger.error(error));
        }
        done?;
        context.out.flush()?;
        Ok(context.exit)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn narrow(line: &str) -> clap::Command {
        narrow_parser(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn narrow_parser_has_only_the_named_commands() {
        let names = |line| {
            let parser = narrow(line);
            parser.get_subcommands().map(|command| command.get_name().to_owned()).collect()
        };
        let of = |line| -> Vec<String> { names(line) };
        assert_eq!(of("task ready --limit 10"), ["task"]);
        assert_eq!(of("--json status"), ["status"]);
        assert_eq!(of("run stop the run"), ["run", "stop"]);
        assert_eq!(of("--version"), [""; 0]);
    }

    /// Returns the arguments of a command line with their values and where these come from, command by command.
    fn arguments(matches: &clap::ArgMatches, without: &[String]) -> Vec<String> {
        let describe = |id: &clap::Id| {
            let values = matches.try_get_raw(id.as_str()).ok().flatten();
            let values: Vec<_> = values.into_iter().flatten().collect();
            format!("{id} {values:?} {:?}", matches.value_source(id.as_str()))
        };
        let own = matches.ids().filter(|id| !without.iter().any(|known| id.as_str() == known));
        let mut found: Vec<String> = own.map(describe).collect();
        if let Some((name, below)) = matches.subcommand() {
            found.push(name.to_owned());
            // Global options are read at the top.
            let global = GlobalArgs::augment_args(clap::Command::new(""));
            let groups = ["GlobalArgs", "VerbosityArgs"].map(str::to_owned);
            let global = global.get_arguments().map(|option| option.get_id().to_string());
            found.extend(arguments(below, &global.chain(groups).collect::<Vec<_>>()));
        }
        found
    }

    /// The parser with all commands reads the same from a line that the narrow one accepts.
    #[test]
    fn narrow_parser_agrees_with_the_whole_one() {
        let lines = [
            "task ready --limit 10",
            "--json task add status",
            "task add stop --json",
            "-C task status",
            "-C . --color never task list",
            "run stop --agent claude -v",
            "message run",
            "task add -C",
            "log --limit 3 -vv",
            "status --color=never",
            "message -- --json",
            "task dep",
            "task dep add a --on b",
            "nonsense task",
            "status --nonsense",
            "-C task",
            "install claude --project",
        ];
        let mut accepted = 0;
        for line in lines {
            let words = || std::iter::once("hookloop").chain(line.split(' '));
            let whole = Cli::command().try_get_matches_from(words());
            let narrow = narrow(line).try_get_matches_from(words());
            if let Ok(narrow) = narrow {
                accepted += 1;
                // The group of a parser's own type is not an argument.
                let read = |matches| arguments(matches, &["Cli".to_owned()]);
                assert_eq!(read(&narrow), read(&whole.unwrap()), "{line}");
            } else {
                assert!(whole.is_err(), "{line}");
            }
        }
        assert_eq!(accepted, 12, "the lines that both accept");
    }
}
