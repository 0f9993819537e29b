use std::io::{IsTerminal, Write};
use std::path::Path;

use hookloop_engine::config::FILE_NAME;
use hookloop_engine::place::Place;
use hookloop_engine::project::{Project, new_project_name};
use serde_json::json;

use super::{Context, actor, state_home, surroundings};
use crate::error::CliError;
use crate::output::Result;

const TEMPLATE: &str = "# What hookloop does in this project.
version: 1
# Its name where machines share it.
project: {name}

# Three hooks are built in and on; see them with `hookloop hooks list`:
#   auto-create-review-task        a review for each completed task labelled `agent`
#   check-dependency-satisfaction  says which tasks became ready
#   track-agent-task-lifecycle     how long agents' tasks took
# One that is listed here follows just the events it is listed under:
#
# hooks:
#   task_completed:
#     - use: auto-create-review-task
#       priority: 10
#       enabled: false
#     - name: announce
#       actions:
#         - log: {type: done, data: {goal: \"{{goal}}\"}}
";

/// Make this directory a project
///
/// Writes hookloop.yaml and creates the project's state, which lives in your state directory
/// ($XDG_STATE_HOME or ~/.local/state), never in the repository.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let directory = context.directory()?;
        let root = directory
            .canonicalize()
            .map_err(|error| CliError::usage(format!("{}: {error}", directory.display())))?;
        let place = Place::at(&root, &state_home()?);
        let written = self.write_config(&place.config(), &template(&root))?;
        Project::open(&place, &actor(), &surroundings()?)?;
        let out = &mut context.out;
        if out.json {
            return out.json(&json!({
                "root": place.root, "config": place.config(), "state": place.state, "created": written,
            }));
        }
        if let Some(outer) = root.parent().and_then(|up| Place::find(up, &state_home().ok()?).ok())
        {
            out.line(format_args!("A project of its own inside {}", outer.root.display()))?;
        }
        let verb = if written { "Wrote" } else { "Kept" };
        out.line(format_args!("{verb} {}", place.config().display()))?;
        out.line(format_args!("State is in {}", place.state.display()))?;
        out.line("Next: hookloop task add \"What should be done\"")
    }

    /// Writes the file unless it is there; answers whether it did.
    fn write_config(&self, path: &Path, text: &str) -> Result<bool> {
        if path.exists() {
            return Ok(false);
        }
        if !self.yes && !confirmed(path)? {
            return Err(CliError::refused(format!("{FILE_NAME} was not written"))
                .hint("hookloop init --yes"));
        }
        if path.exists() {
            // Someone wrote it while we asked.
            return Ok(false);
        }
        // It gets its name when it is whole: who dies in between leaves no half of it.
        let failed = |error| CliError::system(format!("{}: {error}", path.display()));
        let draft = path.with_extension(format!("yaml.{}", std::process::id()));
        // Of an earlier process with the same number, or something that lies in wait: not followed.
        let _ = std::fs::remove_file(&draft);
        let mut file = std::fs::File::create_new(&draft).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        std::fs::rename(&draft, path).map_err(failed)?;
        Ok(true)
    }
}

/// The file for a new project in `root`.
fn template(root: &Path) -> String {
    let directory = root.file_name().unwrap_or_default().to_string_lossy();
    TEMPLATE.replace("{name}", new_project_name(&directory).as_str())
}

/// Asks on a terminal; elsewhere there is nobody to ask.
fn confirmed(path: &Path) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut stderr = anstream::stderr();
    write!(stderr, "Write {}? [Y/n] ", path.display())?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}
