//! `hookloop install`

use std::env;
use std::path::{Path, PathBuf};

use hookloop_process::is_program;
use serde_json::json;

use super::hooks::trust::ask;
use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::native::agent::{AgentHomes, InstallScope, NativeAgent};
use crate::native::command_line::program_of;
use crate::native::diff::{DiffSign, hunks};
use crate::native::plan::{self, InstallPlan, PlanError, PlannedChange, SettingsScope};
use crate::native::record::InstallRecords;
use crate::native::settings;
use crate::output::{BOLD, CommandOutput, DIM, TableCell};
use crate::sanitize::plain;

/// The name of the program on the PATH.
const PROGRAM: &str = "hookloop";

/// Add hookloop's gates to an agent that you start yourself
///
/// Adds hookloop's hooks to the settings of Claude Code, Codex or Gemini, and a skill with the rules of the loop. The
/// command shows the changes and asks first. `hookloop uninstall` restores the files byte for byte.
#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    /// Agent: claude, codex or gemini
    #[arg(required_unless_present = "list")]
    agent: Option<String>,

    #[command(flatten)]
    scope: ScopeArgs,

    /// Write without asking
    #[arg(short, long)]
    yes: bool,

    /// List installed hooks and whether their command can start
    #[arg(long, conflicts_with_all = ["agent", "user", "project", "yes"])]
    list: bool,
}

#[derive(clap::Args)]
pub(super) struct ScopeArgs {
    /// Settings of your user, for all projects
    #[arg(long)]
    user: bool,

    /// Settings of this project, the default
    #[arg(long, conflicts_with = "user")]
    project: bool,
}

impl ScopeArgs {
    /// The settings files that the options name.
    pub(super) fn ground(
        &self,
        context: &CommandContext,
        agent: NativeAgent,
    ) -> CliResult<SettingsScope> {
        if self.user {
            return Ok(SettingsScope::of_user(agent, &homes())?);
        }
        match context.place() {
            Ok(place) => Ok(SettingsScope::of_project(agent, &place.root)),
            Err(error) if self.project || context.directory.is_some() => Err(error),
            Err(_) => Err(CliError::usage("not in a project: name the settings to change").advice(
                format!("run `hookloop install {} --user` or `hookloop init`", agent.name()),
            )),
        }
    }
}

impl InstallArgs {
    /// Whether it changes the settings of an agent.
    pub(super) fn changes_settings(&self) -> bool {
        !self.list
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let Some(name) = &self.agent else { return list(context) };
        let agent = agent_of(name)?;
        let ground = self.scope.ground(context, agent)?;
        let mut records = InstallRecords::load(&state_home()?);
        let plan = plan::install(&ground, &program()?, &records)?;
        let out = &mut context.out;
        screen(out, &plan)?;
        let hint = format!("hookloop install {} --{} --yes", agent.name(), ground.scope.name());
        if !(plan.changes.is_empty() || self.yes || agreed(out, agent, &hint)?) {
            return Err(CliError::refused("nothing was written"));
        }
        plan::perform(&plan, &mut records, &state_home()?)?;
        if out.json {
            return out.json(&outcome(&ground, &plan));
        }
        conclude(out, &plan)?;
        if plan.changes.is_empty() {
            out.line(format_args!("Nothing to do: {}", place_of(&ground.settings())))?;
        }
        terms(out, &ground)
    }
}

pub(super) fn agent_of(name: &str) -> CliResult<NativeAgent> {
    if let Some(agent) = NativeAgent::of_name(name) {
        return Ok(agent);
    }
    Err(match name {
        "opencode" => {
            CliError::usage("opencode is not supported: its plugins can't keep it from stopping")
                .advice("`hookloop run \"…\" --agent opencode` runs the gates")
        }
        _ => CliError::usage(format!("hooks can't be installed for `{name}`"))
            .advice("`hookloop install` supports claude, codex and gemini"),
    })
}

fn agreed(out: &mut CommandOutput, agent: NativeAgent, hint: &str) -> CliResult<bool> {
    let what = format!("these changes for {}", agent.name());
    ask(out, &what, "Write these changes?", |error| error.hint(hint))
}

/// Returns the directories of the agents' settings, from the environment.
pub(super) fn homes() -> AgentHomes {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    AgentHomes {
        home: variable("HOME"),
        claude: variable("CLAUDE_CONFIG_DIR"),
        codex: variable("CODEX_HOME"),
        gemini: variable("GEMINI_CLI_HOME"),
    }
}

/// Returns the command that starts this program: its name, if the PATH has it.
fn program() -> CliResult<String> {
    let own = env::current_exe()?;
    if found_on_path(PROGRAM).is_some_and(|found| found.canonicalize().is_ok_and(|it| it == own)) {
        return Ok(PROGRAM.to_owned());
    }
    let no_text = |_| CliError::usage("the path of hookloop is not UTF-8");
    own.into_os_string().into_string().map_err(no_text)
}

fn found_on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // A program in the current directory belongs to the repository and is not trusted.
    let directories = env::split_paths(&path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|file| is_program(file))
}

fn place_of(path: &Path) -> String {
    plain(&path.display().to_string()).into_owned()
}

/// Prints the changes.
pub(super) fn screen(out: &mut CommandOutput, plan: &InstallPlan) -> CliResult {
    if out.json {
        return Ok(());
    }
    for change in &plan.changes {
        show(out, change)?;
    }
    Ok(())
}

fn show(out: &mut CommandOutput, change: &PlannedChange) -> CliResult {
    let old = change.old_text();
    let new = change.new_text();
    let path = place_of(&change.path);
    let verb = match (old.is_empty(), change.removes()) {
        (_, true) => "remove",
        (true, _) => "new",
        _ => "change",
    };
    show_change(out, (&path.to_string(), verb), &old, &new)
}

/// Prints the changed lines of a file, under its name and the kind of change.
pub(super) fn show_change(
    out: &mut CommandOutput,
    (path, verb): (&str, &str),
    old: &str,
    new: &str,
) -> CliResult {
    out.line(format_args!("{BOLD}{path}{BOLD:#} {DIM}{verb}{DIM:#}"))?;
    for hunk in hunks(old, new) {
        out.line(format_args!("{DIM}{}{DIM:#}", hunk.heading()))?;
        for line in &hunk.lines {
            let style = match line.sign {
                DiffSign::Same => anstyle::Style::new(),
                DiffSign::Gone => anstyle::AnsiColor::Red.on_default(),
                DiffSign::New => anstyle::AnsiColor::Green.on_default(),
            };
            let sign = match line.sign {
                DiffSign::Same => ' ',
                DiffSign::Gone => '-',
                DiffSign::New => '+',
            };
            let text = line.text.trim_end_matches('\n').trim_end_matches('\r');
            out.line(format_args!("{style}{sign}{}{style:#}", plain(text)))?;
        }
    }
    out.line("")
}

/// Prints the result.
pub(super) fn conclude(out: &mut CommandOutput, plan: &InstallPlan) -> CliResult {
    for change in &plan.changes {
        let verb = if change.removes() { "Removed" } else { "Wrote" };
        out.line(format_args!("{verb} {}", place_of(&change.path)))?;
    }
    for path in &plan.left {
        out.line(format_args!("Kept {}: it does not belong to hookloop", place_of(path)))?;
    }
    Ok(())
}

pub(super) fn outcome(ground: &SettingsScope, plan: &InstallPlan) -> serde_json::Value {
    let removed = |change: &&PlannedChange| change.removes();
    let written: Vec<_> =
        plan.changes.iter().filter(|it| !it.removes()).map(|it| &it.path).collect();
    let removed: Vec<_> = plan.changes.iter().filter(removed).map(|it| &it.path).collect();
    json!({ "agent": ground.agent.name(), "scope": ground.scope.name(), "written": written,
        "removed": removed, "left": plan.left })
}

/// Prints the guarantees that the agent's hooks give, and the parts that remain with its user.
fn terms(out: &mut CommandOutput, ground: &SettingsScope) -> CliResult {
    let agent = ground.agent;
    out.line("")?;
    for (force, text) in agent.terms() {
        out.line(format_args!("{BOLD}{:<10}{BOLD:#}  {text}", force.name()))?;
    }
    out.line("")?;
    if ground.scope == InstallScope::Project {
        out.line(format_args!(
            "`hookloop run --agent {}` loads these files after: hookloop agents trust",
            agent.name()
        ))?;
    }
    out.line(format_args!("Optional MCP tools of hookloop: {}", agent.mcp_line()))
}

/// Prints the installed entries and their places.
fn list(context: &mut CommandContext) -> CliResult {
    let mut grounds = Vec::new();
    for agent in NativeAgent::ALL {
        if let Ok(place) = context.place() {
            grounds.push(SettingsScope::of_project(agent, &place.root));
        }
        // Without a home directory the user has no settings to look at.
        grounds.extend(SettingsScope::of_user(agent, &homes()).ok());
    }
    let mut rows = Vec::new();
    for ground in &grounds {
        rows.extend(InstalledEntry::of(ground)?);
    }
    let out = &mut context.out;
    if out.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({ "agent": row.agent.name(), "scope": row.scope.name(), "file": row.file,
                    "events": row.events, "state": row.state })
            })
            .collect();
        return out.json(&rows);
    }
    if rows.is_empty() {
        return out.line("Nothing is installed. Start with: hookloop install claude");
    }
    let cells = |row: &InstalledEntry| {
        vec![
            TableCell::new(row.agent.name()),
            TableCell::new(row.scope.name()),
            TableCell::new(&row.state),
            TableCell::new(row.file.display()),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    out.table(&["agent", "scope", "state", "file"], &rows)
}

/// hookloop's entries in one file.
struct InstalledEntry {
    agent: NativeAgent,
    scope: InstallScope,
    file: PathBuf,
    events: Vec<String>,
    state: String,
}

impl InstalledEntry {
    /// None if there are none.
    fn of(ground: &SettingsScope) -> CliResult<Option<InstalledEntry>> {
        let file = ground.settings();
        let Some(text) = ground.settings_text()? else { return Ok(None) };
        let at = |fault| PlanError::Fault { path: file.clone(), fault };
        let found = settings::installed(&text).map_err(at)?;
        let Some(first) = found.first() else { return Ok(None) };
        let program = program_of(&first.command).unwrap_or_default();
        let can_start = if program.contains('/') {
            is_program(Path::new(&program))
        } else {
            found_on_path(&program).is_some()
        };
        let is_whole = settings::is_current(&text, &ground.agent.entries(&program)).map_err(at)?;
        let state = match (can_start, is_whole) {
            (false, _) => format!("broken: {program} can't be started"),
            (true, false) => "outdated: installed by another version".to_owned(),
            (true, true) => "installed".to_owned(),
        };
        let events = found.into_iter().map(|found| found.event).collect();
        Ok(Some(InstalledEntry { agent: ground.agent, scope: ground.scope, file, events, state }))
    }
}
