//! `hookloop man`

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde_json::json;

use super::Cli;
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

/// Sections of the program's own page that its help does not have: headings with terms.
const MORE: &[(&str, &[(&str, &str)])] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "done"),
            ("1", "refused: the command is valid and was not accepted"),
            ("2", "the command line, the configuration or the input is wrong"),
            ("3", "hooks or agents of the repository are not trusted; or a session needs a person"),
            ("4", "a session reached a limit"),
            ("5", "a session was paused"),
            ("70", "system failure: disk, permissions, damage"),
            ("130", "a session was cancelled"),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("HOOKLOOP_AGENT", "agent of `run` and `worker`, if --agent is not given"),
            ("HOOKLOOP_CLAIMANT", "name of the claimant in `task claim` and `task take-over`"),
            ("HOOKLOOP_STORE", "servers of the log, such as nats://127.0.0.1:4222"),
            ("HOOKLOOP_POLICY", "path of a policy in addition to the policy of the machine"),
            ("XDG_STATE_HOME", "parent of the state directory [default: ~/.local/state]"),
            ("XDG_CONFIG_HOME", "parent of your own configuration [default: ~/.config]"),
        ],
    ),
    (
        "FILES",
        &[
            ("hookloop.yaml", "configuration of a project"),
            ("~/.config/hookloop/config.yaml", "your own hooks, limits, agents and stores"),
            ("/etc/hookloop/policy.yaml", "policy of the whole machine"),
            ("~/.local/state/hookloop", "state, one directory for each project"),
        ],
    ),
];

/// Print a manual page, or write all manual pages
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Words of the command, such as `task add` [default: the program itself]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,

    /// Directory to write a page for each command to, such as ~/.local/share/man/man1
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let program = program();
        let Some(dir) = self.dir else {
            let command = find(&program, &self.command)?;
            return context.out.line(page(command)?.text.trim_end());
        };
        let pages = pages(&program)?;
        write(&pages, &dir)?;
        if context.out.json {
            let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
            return context.out.json(&json!({ "directory": dir, "pages": names }));
        }
        context.out.line(format_args!("{} pages in {}", pages.len(), dir.display()))
    }
}

struct ManPage {
    /// Of its file.
    name: String,
    text: String,
}

/// Returns the command line with the texts that short help leaves out.
fn program() -> Command {
    let mut program = Cli::command().mut_args(|argument| argument.hide_short_help(false));
    program.build();
    program
}

fn find<'a>(program: &'a Command, words: &[String]) -> CliResult<&'a Command> {
    words.iter().try_fold(program, |command, word| {
        let unknown = || {
            let name = command.get_bin_name().unwrap_or_default();
            CliError::usage(format!("there is no command `{name} {word}`"))
                .hint(format!("{name} --help"))
        };
        command.find_subcommand(word).ok_or_else(unknown)
    })
}

/// A page for the command, and those of all below it.
fn pages(command: &Command) -> CliResult<Vec<ManPage>> {
    let mut pages = vec![page(command)?];
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages.extend(self::pages(below)?);
    }
    Ok(pages)
}

fn page(command: &Command) -> CliResult<ManPage> {
    let man = Man::new(command.clone());
    let name = man.get_filename();
    let title = name.trim_end_matches(".1");
    let version = env!("CARGO_PKG_VERSION");
    // Without a date, which the library would leave out as if it were not one of the arguments.
    let mut text = format!(".TH {title} 1 \"\" \"hookloop {version}\" hookloop\n").into_bytes();
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut more = Roff::new();
    match name_of_above(command) {
        Some(above) => see_also(&mut more, above),
        None => MORE.iter().for_each(|(heading, terms)| section(&mut more, heading, terms)),
    }
    more.to_writer(&mut text)?;
    Ok(ManPage { name, text: String::from_utf8_lossy(&text).into_owned() })
}

/// The page of the command that this one belongs to.
fn name_of_above(command: &Command) -> Option<&str> {
    command.get_display_name()?.strip_suffix(command.get_name())?.strip_suffix('-')
}

fn section(page: &mut Roff, heading: &str, terms: &[(&str, &str)]) {
    page.control("SH", [heading]);
    for (term, meaning) in terms {
        page.control("TP", []);
        page.text([bold(*term)]);
        page.text([roman(*meaning)]);
    }
}

fn see_also(page: &mut Roff, above: &str) {
    page.control("SH", ["SEE ALSO"]);
    page.text([bold(above), roman("(1)")]);
}

fn write(pages: &[ManPage], dir: &Path) -> CliResult {
    let failed = |path: &Path, error: std::io::Error| {
        CliError::system(format!("{}: {error}", path.display()))
    };
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    for page in pages {
        let path = dir.join(&page.name);
        std::fs::write(&path, &page.text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
