use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use hookloop_engine::bulk;
use hookloop_engine::command_outcome::CommandOutcome;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::environment::open_file;
use crate::error::{CliError, CliResult};
use crate::progress::ProgressBar;

/// Add tasks from a file of JSON lines
///
/// Each line is an object with `goal` and the optional fields `id`, `description`, `deliverables`, `labels`, `priority`,
/// `type`, `parent`, `depends_on`, `not_before`, `may_change` and `state`, in any order of lines. The command finds an
/// invalid line, a missing dependency or a cycle before it adds anything. It skips tasks that exist, so you can repeat an
/// interrupted import.
#[derive(clap::Args)]
pub(crate) struct TaskImportArgs {
    /// File; `-` is standard input
    file: PathBuf,
}

impl TaskImportArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let input = match self.file.to_str() {
            Some("-") => spooled()?,
            _ => open_file(&self.file)?,
        };
        let progress = ProgressBar::new("importing");
        let imported = bulk::import(&project, input, &mut |done, all| progress.at(done, all));
        drop(progress);
        let imported = imported?;
        project.react_here(&mut CommandOutcome::default())?;
        let out = &mut context.out;
        if out.json {
            out.json(&json!({"added": imported.added, "present": imported.present}))?
        } else {
            let present = match imported.present {
                0 => String::new(),
                n => format!(", {n} already exist"),
            };
            out.line(format_args!("Added {} tasks{present}", imported.added))?;
        }
        context.finish(&project)
    }
}

/// Standard input as a file, because an import reads twice.
fn spooled() -> CliResult<File> {
    let path = std::env::temp_dir().join(format!("hookloop-import-{}", std::process::id()));
    let failed = |error| CliError::system(format!("{}: {error}", path.display()));
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).open(&path).map_err(failed)?;
    // The name goes at once; the file goes with the process.
    std::fs::remove_file(&path).map_err(failed)?;
    std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(file)
}
