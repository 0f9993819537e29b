//! The filter of the diagnostics: `-v`, `-vv`, `-q` and the directives of `HOOKLOOP_LOG`.

use std::ffi::OsStr;

use hookloop_config::variables::DIAGNOSTICS_VARIABLE as VARIABLE;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::error::{CliError, CliResult};

/// Directives of one variable.
const DIRECTIVES_MAX: usize = 64;

/// The prefix of the targets of this program.
const OWN_TARGETS: &str = "hookloop";

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// The options of all commands about the amount of text on standard error.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct VerbosityArgs {
    /// Print diagnostics on standard error; `-vv` prints more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,

    /// Print only errors on standard error: no progress, no notices
    #[arg(short, long, global = true)]
    quiet: bool,
}

impl VerbosityArgs {
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Returns the filter that the user asks for, by an option or by the variable.
    pub(super) fn filter(self, variable: Option<&OsStr>) -> CliResult<Option<Targets>> {
        let named = match variable.filter(|text| !text.is_empty()) {
            Some(text) => Some(directives(&text.to_string_lossy())?),
            None => None,
        };
        Ok(match self.verbose {
            _ if self.quiet => None,
            0 => named,
            1 => Some(Targets::new().with_target(OWN_TARGETS, LevelFilter::INFO)),
            _ => {
                let all = Targets::new().with_default(LevelFilter::INFO);
                Some(all.with_target(OWN_TARGETS, LevelFilter::DEBUG))
            }
        })
    }
}

/// Returns the filter of a command that nobody watches.
pub(super) fn warnings() -> Targets {
    Targets::new().with_default(LevelFilter::WARN)
}

/// Reads `LEVEL` and `TARGET=LEVEL`, with commas between them.
fn directives(text: &str) -> CliResult<Targets> {
    let mut filter = Targets::new();
    for (index, directive) in text.split(',').map(str::trim).enumerate() {
        if index == DIRECTIVES_MAX {
            return Err(wrong(&format!("it has more than {DIRECTIVES_MAX} directives")));
        }
        filter = match directive.split_once('=') {
            None => filter.with_default(level(directive, directive)?),
            Some((target, name)) if is_target(target) => {
                filter.with_target(target, level(name, directive)?)
            }
            Some((target, _)) => {
                return Err(wrong(&format!("`{directive}`: `{target}` is not a target")));
            }
        };
    }
    Ok(filter)
}

fn is_target(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    !name.is_empty() && name.chars().all(fits)
}

fn level(name: &str, directive: &str) -> CliResult<LevelFilter> {
    let is_it = |(known, _): &&(&str, LevelFilter)| known.eq_ignore_ascii_case(name);
    match LEVELS.iter().find(is_it) {
        Some((_, level)) => Ok(*level),
        None => {
            let known = LEVELS.map(|(name, _)| name).join(", ");
            Err(wrong(&format!("`{directive}`: `{name}` is not a level: {known}")))
        }
    }
}

fn wrong(why: &str) -> CliError {
    let message = format!("{VARIABLE} can't be read: {why}");
    CliError::usage(message)
        .advice(format!("set, for example, `{VARIABLE}=hookloop=debug,async_nats=info`"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn filter(verbose: u8, quiet: bool, variable: &str) -> Option<Targets> {
        VerbosityArgs { verbose, quiet }.filter(Some(OsStr::new(variable))).unwrap()
    }

    #[track_caller]
    fn check(filter: &Targets, target: &str, level: Level, expected: bool) {
        assert_eq!(filter.would_enable(target, &level), expected, "{target} {level}");
    }

    #[test]
    fn verbosity_options_set_the_log_levels() {
        assert!(filter(0, false, "").is_none());
        let info = filter(1, false, "").unwrap();
        check(&info, "hookloop_git::git", Level::INFO, true);
        check(&info, "hookloop_git::git", Level::DEBUG, false);
        check(&info, "async_nats", Level::ERROR, false);
        let debug = filter(2, false, "").unwrap();
        check(&debug, "hookloop::cli", Level::DEBUG, true);
        check(&debug, "async_nats", Level::INFO, true);
        check(&debug, "async_nats", Level::DEBUG, false);
    }

    #[test]
    fn options_override_the_directives_of_hookloop_log() {
        let named = filter(0, false, "warn, hookloop_store=trace,async_nats=INFO").unwrap();
        check(&named, "hookloop_store::sqlite", Level::TRACE, true);
        check(&named, "hookloop_git", Level::WARN, true);
        check(&named, "hookloop_git", Level::INFO, false);
        check(&named, "async_nats::connector", Level::INFO, true);
        check(&filter(1, false, "off").unwrap(), "hookloop", Level::INFO, true);
        assert!(filter(0, true, "debug").is_none());
    }

    #[test]
    fn an_invalid_log_directive_is_named() {
        let check = |text: &str, expected: &str| {
            let error = VerbosityArgs::default().filter(Some(OsStr::new(text))).unwrap_err();
            assert_eq!(error.message(), format!("HOOKLOOP_LOG can't be read: {expected}"));
            assert_eq!(
                error.tip(),
                Some("set, for example, `HOOKLOOP_LOG=hookloop=debug,async_nats=info`")
            );
        };
        let levels = "off, error, warn, info, debug, trace";
        check("hookloop=loud", &format!("`hookloop=loud`: `loud` is not a level: {levels}"));
        check("info,debg", &format!("`debg`: `debg` is not a level: {levels}"));
        check("=debug", "`=debug`: `` is not a target");
        check("a b=debug", "`a b=debug`: `a b` is not a target");
        check("info,", &format!("``: `` is not a level: {levels}"));
        check(&["info"; 65].join(","), "it has more than 64 directives");
    }
}
