//! The command line: one file per command.

mod agents;
mod authority;
mod completions;
mod demo;
mod dispatch;
mod doctor;
mod fleet;
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
mod run;
mod schedule;
mod schema;
mod serve;
pub(crate) mod session;
mod sessions;
mod status;
mod stop;
mod task;
mod traces;
mod uninstall;
mod usage;
mod verify;
mod watch;
pub(crate) mod why;
mod worker;
mod worktrees;

use std::env;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use hookloop_config::paths as place;
use hookloop_config::paths::Place;
use hookloop_config::policy::{PolicyFile, SYSTEM_FILE};
use hookloop_config::user::{BadStoreName, User};
use hookloop_core::authority::ControlledAction;
use hookloop_engine::caller::{Caller, CallerScope};
use hookloop_engine::error::EngineError;
use hookloop_engine::kept::{AfterLoss, Kept, Surroundings};
use hookloop_engine::project::Project;

pub(crate) use hookloop_engine::session::open::machine;
use hookloop_fleet::telemetry::Exporter;

use crate::error::CliError;
use crate::logs::Logger;
use crate::mcp::Door;
use crate::output::{Output, Result};
use crate::tui::Showing;

/// The command that agents' own hooks run.
pub(crate) const HOOK: &str = "hook";

/// Hooks, gates and a task graph for coding agents.
#[derive(Parser)]
#[command(name = "hookloop", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args)]
struct Global {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    /// Work in this directory's project instead of the current one's
    #[arg(short = 'C', long, global = true, value_name = "DIR", num_args = 0..=1)]
    #[arg(default_missing_value = ".")]
    project: Option<PathBuf>,

    /// Run the repository's hooks this time if this is their digest (`hookloop hooks trust --show`)
    #[arg(long, global = true, value_name = "DIGEST", hide_short_help = true)]
    trust: Option<String>,

    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Colour,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Command {
    Init(init::Args),
    Demo(demo::Args),
    Run(run::Args),
    Resume(resume::Args),
    Watch(watch::Args),
    Pause(pause::Args),
    Stop(stop::Args),
    Message(message::Args),
    /// What sessions there are, and what happened in them
    #[command(subcommand)]
    Sessions(sessions::Command),
    Merge(merge::Args),
    Worker(worker::Args),
    /// See and steer all workers that share a store
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// The worktrees that tasks are worked on in
    #[command(subcommand)]
    Worktrees(worktrees::Command),
    Inbox(inbox::InboxArgs),
    Why(why::Args),
    Usage(usage::Args),
    /// Add tasks, move them along, look at them
    #[command(subcommand)]
    Task(task::Command),
    /// Tasks that come again
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// See and switch the hooks that follow events
    #[command(subcommand)]
    Hooks(hooks::Command),
    /// See the agents that can do the work, and agree to what a repository has for them
    #[command(subcommand)]
    Agents(agents::Command),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Hook(hook::Args),
    Mcp(mcp::Args),
    Serve(serve::Args),
    Log(log::Args),
    Dispatch(dispatch::Args),
    /// A server to try a shared store with; keys and permissions for one
    #[command(subcommand)]
    Nats(nats::Command),
    Status(status::Args),
    /// Take over another tool's configuration
    #[command(subcommand)]
    Import(import::Command),
    Policy(policy::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Rebuild(rebuild::Args),
    Schema(schema::Args),
    #[command(hide = true)]
    Reference(reference::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Tools for git hooks, which stay as they are: a gate runs them.
const GIT_HOOK_TOOLS: [&str; 4] = ["husky", "pre-commit", "prek", "git-hooks"];

/// The hint for a name after `hookloop import` that no importer has; none for any other mistake.
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

impl Cli {
    pub(crate) fn wants_json(&self) -> bool {
        self.global.json
    }

    /// Does what was asked; answers the exit code.
    pub(crate) fn run(self) -> Result<u8> {
        let decisions: Vec<_> = self.controlled().collect();
        let mut context = Context::new(self.global);
        let context = &mut context;
        for action in decisions {
            context.authorize(action)?;
        }
        let done = match self.command {
            Command::Init(args) => args.run(context),
            Command::Demo(args) => args.run(context),
            Command::Run(args) => args.run(context),
            Command::Resume(args) => args.run(context),
            Command::Watch(args) => args.run(context),
            Command::Pause(args) => args.run(context),
            Command::Stop(args) => args.run(context),
            Command::Message(args) => args.run(context),
            Command::Sessions(command) => command.run(context),
            Command::Merge(args) => args.run(context),
            Command::Worker(args) => args.run(context),
            Command::Fleet(command) => command.run(context),
            Command::Worktrees(command) => command.run(context),
            Command::Inbox(args) => args.run(context),
            Command::Why(args) => args.run(context),
            Command::Usage(args) => args.run(context),
            Command::Task(command) => command.run(context),
            Command::Schedule(command) => command.run(context),
            Command::Hooks(command) => command.run(context),
            Command::Agents(command) => command.run(context),
            Command::Install(args) => args.run(context),
            Command::Uninstall(args) => args.run(context),
            Command::Hook(args) => args.run(context),
            Command::Mcp(args) => args.run(context),
            Command::Serve(args) => args.run(context),
            Command::Log(args) => args.run(context),
            Command::Dispatch(args) => args.run(context),
            Command::Nats(command) => command.run(context),
            Command::Status(args) => args.run(context),
            Command::Import(command) => command.run(context),
            Command::Policy(args) => args.run(context),
            Command::Doctor(args) => args.run(context),
            Command::Verify(args) => args.run(context),
            Command::Rebuild(args) => args.run(context),
            Command::Schema(args) => args.run(context),
            Command::Reference(args) => args.run(context),
            Command::Completions(args) => args.run(context),
            Command::Man(args) => args.run(context),
        };
        let done = done.map_err(|error| context.with_log_path(error));
        // One place for everything: who reads a log has no use for other lines in it.
        if let (Err(error), Some(logger)) = (&done, context.log) {
            return Ok(error.tell(logger));
        }
        done?;
        context.out.flush()?;
        Ok(context.exit)
    }
}

/// What every command starts from.
pub(crate) struct Context {
    pub(crate) out: Output,
    directory: Option<PathBuf>,
    trust: Option<String>,
    /// What the process ends with if nothing goes wrong.
    pub(crate) exit: u8,
    /// Keeps the project open until the answer is out.
    opened: Option<Project>,
    /// Where what happens is told by lines of a log, if it is.
    pub(crate) log: Option<Logger>,
    /// What shows sessions to a collector, if the user has one.
    exporter: Option<Exporter>,
}

impl Drop for Context {
    fn drop(&mut self) {
        // The answer goes out before the time it takes to leave.
        let _ = self.out.flush();
        if let Some(exporter) = self.exporter.take() {
            traces::conclude(&exporter, self);
        }
        if let Some(project) = self.opened.take() {
            project.leave();
        }
    }
}

impl Context {
    fn new(global: Global) -> Context {
        let colour = match global.color {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        };
        // Errors and questions go to standard error, which asks this.
        colour.write_global();
        let out = Output::new(global.json, colour);
        let (directory, trust) = (global.project, global.trust);
        let (exit, opened, log, exporter) = (0, None, None, None);
        Context { out, directory, trust, exit, opened, log, exporter }
    }

    /// Whether the actor that gives this command may take a decision.
    fn authorize(&self, action: ControlledAction) -> Result {
        // That there is no project, or no home, is for the command to say.
        let place = self.place().ok();
        let mut scope = scope(place.as_ref());
        if action == ControlledAction::InstallHooks {
            scope.home = env::var_os("HOME").map(PathBuf::from);
        }
        let identity = scope.identify();
        Ok(identity.check(action).map_err(EngineError::from)?)
    }

    /// The directory that the command works in.
    fn directory(&self) -> Result<PathBuf> {
        directory(self.directory.as_deref())
    }

    fn place(&self) -> Result<Place> {
        Ok(Place::find(&self.directory()?, &state_home()?)?)
    }

    /// Names the file of the log in an error that tells of its damage.
    fn with_log_path(&self, error: CliError) -> CliError {
        if !error.is_log_damage() {
            return error;
        }
        let Ok(place) = self.place() else { return error };
        let is_remote = match &self.opened {
            Some(project) => matches!(project.kept(), Kept::Nats { .. }),
            None => !place.database().exists() && place.view().exists(),
        };
        let file = if is_remote { place.view() } else { place.database() };
        error.about_log_file(&file)
    }

    /// Works in this directory, unless the user named one.
    fn enter(&mut self, directory: &Path) {
        self.directory.get_or_insert_with(|| directory.to_owned());
    }

    /// Opens the project for a command that changes something, and finishes what a process that died has left undone.
    pub(crate) fn project(&mut self) -> Result<Project> {
        let project = self.project_to_read()?;
        project.tend()?;
        Ok(project)
    }

    /// Opens the project for a command that only reads: it runs no hooks and makes no tasks of schedules.
    pub(crate) fn project_to_read(&mut self) -> Result<Project> {
        let place = self.place()?;
        let project = Project::open(&place, caller(&place), &self.surroundings()?)?;
        self.opened = Some(project.clone());
        project.store().hold_still().map_err(EngineError::from)?;
        Ok(project)
    }

    /// What a screen shows. The project is opened for it alone: what the screen reads holds up nobody.
    fn showing(&self) -> Result<Showing> {
        let place = self.place()?;
        let project = Project::open(&place, caller(&place), &self.surroundings()?)?;
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        let has_colours = choice != anstream::ColorChoice::Never;
        Ok(Showing { project, machine: machine(), has_colours })
    }

    /// For who opens the project later, and again.
    pub(crate) fn door(&self) -> Door {
        Door::new(self.directory.clone(), self.trust.clone())
    }

    /// Opens the project's log alone, whatever its configuration says.
    pub(crate) fn log_alone(&mut self, after_loss: AfterLoss) -> Result<Project> {
        let place = self.place()?;
        let surroundings = self.surroundings()?;
        let project = Project::open_log(&place, caller(&place), &surroundings, after_loss)?;
        self.opened = Some(project.clone());
        Ok(project)
    }

    /// Opens the project to read its log, also where the policy lets nothing run.
    pub(crate) fn log_to_read(&mut self) -> Result<Project> {
        match self.check_policy() {
            Ok(()) => self.project_to_read(),
            Err(_) => self.log_alone(AfterLoss::Check),
        }
    }

    /// Whether there is no policy that keeps everything from running here.
    pub(crate) fn check_policy(&self) -> Result {
        let root = self.place()?.root;
        let policies = self.surroundings()?.policies()?;
        Ok(policies.check_project(&root, None).map_err(EngineError::from)?)
    }

    /// What the user's own file says, under the policy.
    pub(crate) fn user(&self) -> Result<User> {
        Ok(self.surroundings()?.user()?)
    }

    fn surroundings(&self) -> Result<Surroundings> {
        Ok(Surroundings { trust: self.trust.clone(), ..surroundings()? })
    }

    /// After a command's answer: flushes it, then runs the workflows that it led to.
    pub(crate) fn finish(&mut self, project: &Project) -> Result {
        self.out.flush()?;
        project.tend()?;
        Ok(())
    }
}

/// The part of the machine that a command about a project is about.
fn scope(place: Option<&Place>) -> CallerScope {
    CallerScope {
        state_home: match place {
            Some(place) => place.state.parent().map(Path::to_owned),
            None => state_home().ok(),
        },
        project: place.map(|place| place.root.clone()),
        home: None,
        session: env::var_os("HOOKLOOP_SESSION").map(|id| id.to_string_lossy().into_owned()),
        is_hook: env::var_os("HOOKLOOP_HOOK").is_some(),
    }
}

/// The actor that gives the commands.
pub(crate) fn caller(place: &Place) -> Caller {
    Caller::of_process(&user_name(), scope(Some(place)))
}

/// Whether a person gives the commands about a project.
pub(crate) fn is_person(place: &Place) -> bool {
    scope(Some(place)).identify().is_person()
}

/// The directory that was named, else the current one.
pub(crate) fn directory(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(directory) => Ok(directory.to_owned()),
        None => Ok(env::current_dir()?),
    }
}

pub(crate) fn state_home() -> Result<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let (xdg, home) = (variable("XDG_STATE_HOME"), variable("HOME"));
    Ok(place::state_home(xdg.as_deref(), home.as_deref())?)
}

/// What the user's environment says about stores.
pub(crate) fn surroundings() -> Result<Surroundings> {
    let variable = |name| env::var_os(name).map(PathBuf::from);
    let store = match env::var("HOOKLOOP_STORE") {
        Ok(store) if !store.is_empty() => {
            let wrong = |error: BadStoreName| CliError::usage(format!("HOOKLOOP_STORE: {error}"));
            Some(store.parse().map_err(wrong)?)
        }
        _ => None,
    };
    let (xdg, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
    let user_file = hookloop_config::user_file::user_file(xdg.as_deref(), home.as_deref());
    let named = variable("HOOKLOOP_POLICY").filter(|path| !path.as_os_str().is_empty());
    let system = PolicyFile::System(PathBuf::from(SYSTEM_FILE));
    let policies = [system].into_iter().chain(named.map(PolicyFile::Named)).collect();
    let environment = env::vars_os().collect();
    let (trust, cloned_from, stays) = (None, None, None);
    Ok(Surroundings { store, user_file, policies, cloned_from, environment, trust, stays })
}

/// The name of the user: by the environment, else by the system, which gives a number to a user without a name.
pub(crate) fn user_name() -> String {
    let variable = |name| env::var(name).ok().filter(|name: &String| !name.is_empty());
    let name = variable("USER").or_else(|| variable("LOGNAME"));
    name.unwrap_or_else(|| hookloop_engine::user_database::user_name().to_owned())
}

/// Fails with what to do if a file can't be read.
fn open_file(path: &Path) -> Result<std::fs::File> {
    let failed = |error| CliError::usage(format!("{}: {error}", path.display()));
    std::fs::File::open(path).map_err(failed)
}
