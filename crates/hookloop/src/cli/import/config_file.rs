//! Writes the imported configuration: a new file, a merge into the file that exists, or a text to paste.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use hookloop_config::paths::FILE_NAME;
use hookloop_config::project_file::settings_from;

use super::import_report::ImportReport;
use super::merge::{MergeError, merge};
use super::yaml;
use crate::cli::context::CommandContext;
use crate::cli::install::show_change;
use crate::error::{CliError, CliResult};
use crate::native::file;

/// The result for the configuration.
pub(super) enum ConfigOutcome {
    /// The source has no configuration.
    Nothing,
    Written {
        path: PathBuf,
        text: String,
    },
    /// The file existed, and the missing parts were added.
    Merged {
        path: PathBuf,
        text: String,
        is_changed: bool,
    },
    /// The file exists, and the text is printed for the user to paste.
    Shown {
        path: PathBuf,
        text: String,
    },
}

/// Writes the imported configuration to a new file. If the file exists, merges into it with `--write`, else returns the
/// text to paste.
pub(super) fn write_or_show(
    context: &mut CommandContext,
    report: &ImportReport,
    names: &str,
    writes: bool,
) -> CliResult<ConfigOutcome> {
    if report.config.is_empty() {
        return Ok(ConfigOutcome::Nothing);
    }
    let path = match context.place() {
        Ok(place) => place.config(),
        Err(_) => context.directory()?.join(FILE_NAME),
    };
    let text = yaml::text(&report.config);
    // A mistake in the source is reported before anything is written.
    if let Err(error) = settings_from(&path, text.as_bytes()) {
        return Err(CliError::usage(format!("{names}: {}", error.message)));
    }
    if path.exists() && writes {
        return merge_into(context, path, report);
    }
    if path.exists() {
        return Ok(ConfigOutcome::Shown { path, text });
    }
    write(&path, &text)?;
    Ok(ConfigOutcome::Written { path, text })
}

/// Prints the changes of the file, then writes them.
fn merge_into(
    context: &mut CommandContext,
    path: PathBuf,
    report: &ImportReport,
) -> CliResult<ConfigOutcome> {
    let target = file::target(&path)?;
    let bytes = file::read(&target)?.unwrap_or_default();
    let name = path.display().to_string();
    let before = std::str::from_utf8(&bytes)
        .map_err(|_| CliError::usage(format!("{name}: it is not UTF-8")))?;
    let hint = format!("hookloop import {}, which prints the text to add", report.tool);
    let text = merge(before, &report.config).map_err(|error| match error {
        MergeError::Conflicts(conflicts) => {
            let conflicts = conflicts.join("; ");
            CliError::refused(format!("{name}: nothing was written: {conflicts}")).hint(hint)
        }
        MergeError::Layout(why) => {
            CliError::refused(format!("{name}: nothing was written: {why}")).hint(hint)
        }
        MergeError::Invalid(why) => {
            let message = format!("{name}: nothing was written: the file has a mistake: {why}");
            CliError::usage(message).advice("correct the file, then import again")
        }
    })?;
    let is_changed = text != before;
    if is_changed {
        if !context.out.json {
            show_change(&mut context.out, (&name, "change"), before, &text)?;
        }
        file::replace(&target, Some(&bytes), Some(text.as_bytes()))?;
    }
    Ok(ConfigOutcome::Merged { path, text, is_changed })
}

fn write(path: &Path, text: &str) -> CliResult {
    let failed = |error| CliError::system(format!("{}: {error}", path.display()));
    // A link that leads nowhere yet is not followed.
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
