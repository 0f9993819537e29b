//! `hookloop import …`: imports the configuration and the tasks of other tools.
//!
//! Each tool has a module that reads its files into [`ImportReport`]: sections of a configuration, tasks, and a row for
//! everything that was found, with its result. Unknown keys get a row too. Files are data: nothing in them is executed.
//!
//! - `source`: reads files, within limits
//! - `import_report`: the result of an import; `fields`: the fields of an object; `config_file`: writes the
//!   configuration; `yaml`: formats it; `merge`: merges it into an existing file; `tasks`: adds tasks; `print_report`:
//!   prints the result
//! - the others: a tool each

mod agent;
mod automation;
mod beads;
mod config_file;
mod fields;
mod import_report;
mod iteratr;
mod kanban;
mod lefthook;
mod lefthook_occasion;
mod merge;
mod octopoid;
mod octopoid_tasks;
mod print_report;
mod ralph;
mod script_command;
mod source;
mod task_copilot;
mod tasks;
mod yaml;

use std::path::PathBuf;

use clap::Subcommand;
use import_report::ImportReport;
use source::SourceFile;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

// The arguments of every import: each command has its own description.
#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// Files to read [default: the tool's files in this directory]
    files: Vec<PathBuf>,

    /// Fail and write nothing if an entry has no equivalent
    #[arg(long)]
    strict: bool,

    /// Merge into the existing hookloop.yaml, and show the difference
    ///
    /// Comments and layout stay as they are. A hook or setting that exists with another value is a conflict: the command
    /// names it and writes nothing.
    #[arg(long)]
    write: bool,
}

#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum ImportCommand {
    /// Import hooks of Claude Code, or of an agent with the same settings
    ///
    /// Imports the hooks of `Stop`, `SessionStart`, `SessionEnd` and `UserPromptSubmit`. Hooks of tool calls stay with the
    /// agent. In Claude Code a hook that fails does not block the agent, so the imported hooks get `on_failure: open`.
    #[command(visible_alias = "agent-hooks")]
    Claude(ImportArgs),
    /// Import hooks of CodeMie: .codemie/codemie-cli.config.json
    Codemie(ImportArgs),
    /// Import hooks and settings of iteratr: .iteratr.hooks.yml, iteratr.yml
    Iteratr(ImportArgs),
    /// Import git hooks of lefthook as gates: lefthook.yml
    Lefthook(ImportArgs),
    /// Import hooks, types and tasks of Octopoid: .octopoid/config.yaml
    Octopoid(ImportArgs),
    /// Import a Ralph loop and its plans: ralph.yml, prd.json, fix_plan.md
    Ralph(ImportArgs),
    /// Import issues of Beads with dependencies: .beads/issues.jsonl
    Beads(ImportArgs),
    /// Import issues of vibe-kanban: issues.csv, or its tasks as JSON
    VibeKanban(ImportArgs),
    /// Import the MCP server and tasks of task-copilot: .mcp.json
    TaskCopilot(ImportArgs),
    /// Import settings of built-in hooks: data/automation-hooks.json
    AutomationHooks(ImportArgs),
}

/// A tool whose files are read.
pub(super) struct ImportTool {
    name: &'static str,
    /// Where its files are, if none is named.
    files: &'static [&'static str],
    read: fn(&SourceFile, &mut ImportReport) -> std::result::Result<(), String>,
}

impl ImportCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let (tool, args) = match self {
            ImportCommand::Claude(args) => (agent::CLAUDE, args),
            ImportCommand::Codemie(args) => (agent::CODEMIE, args),
            ImportCommand::Iteratr(args) => (iteratr::TOOL, args),
            ImportCommand::Lefthook(args) => (lefthook::TOOL, args),
            ImportCommand::Octopoid(args) => (octopoid::TOOL, args),
            ImportCommand::Ralph(args) => (ralph::TOOL, args),
            ImportCommand::Beads(args) => (beads::TOOL, args),
            ImportCommand::VibeKanban(args) => (kanban::TOOL, args),
            ImportCommand::TaskCopilot(args) => (task_copilot::TOOL, args),
            ImportCommand::AutomationHooks(args) => (automation::TOOL, args),
        };
        args.run(context, &tool)
    }
}

impl ImportArgs {
    fn run(self, context: &mut CommandContext, tool: &ImportTool) -> CliResult {
        let files = self.found(context, tool)?;
        let mut report = ImportReport::new(tool.name);
        for file in &files {
            let at = |error: String| CliError::usage(format!("{}: {error}", file.display()));
            let source = SourceFile::read(file).map_err(at)?;
            (tool.read)(&source, &mut report).map_err(at)?;
        }
        report.note_wide_limits();
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let names = names.join(", ");
        if report.is_empty() {
            let message = format!("{names} contains nothing that can be imported");
            return Err(if report.rows.is_empty() {
                CliError::usage(message)
            } else {
                CliError::usage(format!("{message}: {}", report.in_a_line()))
            });
        }
        let lost = report.lost().count();
        if self.strict && lost > 0 {
            let message =
                format!("{names}: {lost} entries have no equivalent: {}", report.lost_in_a_line());
            return Err(CliError::refused(message).advice("repeat the command without `--strict`"));
        }
        let configured = config_file::write_or_show(context, &report, &names, self.write)?;
        let added = tasks::add(context, &mut report)?;
        print_report::print(
            context,
            &report,
            &print_report::ImportResult { files, configured, added },
        )
    }

    /// The files that are named, else those of the tool that are here.
    fn found(&self, context: &CommandContext, tool: &ImportTool) -> CliResult<Vec<PathBuf>> {
        if !self.files.is_empty() {
            return Ok(self.files.clone());
        }
        let directory = context.directory()?;
        let found: Vec<PathBuf> = tool
            .files
            .iter()
            .map(|file| directory.join(file))
            .filter(|file| file.exists())
            .collect();
        if found.is_empty() {
            let message =
                format!("none of {} is in {}", tool.files.join(", "), directory.display());
            return Err(
                CliError::usage(message).hint(format!("hookloop import {} FILE", tool.name))
            );
        }
        Ok(found)
    }
}
