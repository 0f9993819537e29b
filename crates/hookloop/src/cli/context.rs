//! The state that a command starts from: output, project directory, log.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hookloop_config::paths::ProjectPaths;
use hookloop_config::user::UserConfig;
use hookloop_core::authority::ControlledAction;
use hookloop_engine::error::EngineError;
use hookloop_engine::log_location::{AfterLoss, LaunchContext, LogLocation};
use hookloop_engine::project::Project;
use hookloop_fleet::telemetry::TraceExporter;

use super::trace_notices::{TraceNotices, conclude};
use super::{ColourChoice, GlobalArgs};
use crate::environment::{caller, directory, machine, scope, state_home, surroundings};
use crate::error::{CliError, CliResult};
use crate::logs::Logger;
use crate::mcp::ProjectOpener;
use crate::output::CommandOutput;
use crate::tui::ScreenContent;

/// The state that every command starts from.
pub(crate) struct CommandContext {
    pub(crate) out: CommandOutput,
    pub(super) directory: Option<PathBuf>,
    trust: Option<String>,
    /// The exit code of a command that succeeds.
    pub(crate) exit: u8,
    /// The open project; it is closed after the answer is printed.
    pub(super) opened: Option<Project>,
    /// The logger, if the command writes log lines.
    pub(crate) log: Option<Logger>,
    /// The exporter of traces, if the user has a collector.
    pub(super) exporter: Option<TraceExporter>,
}

impl Drop for CommandContext {
    fn drop(&mut self) {
        // The answer is printed before the slower closing of the project. `Cli::run` reports a failed flush; here it
        // would be the second one.
        let _ = self.out.flush();
        if let Some(exporter) = self.exporter.take() {
            conclude(&exporter, TraceNotices::new(self.log, self.out.json));
        }
        if let Some(project) = self.opened.take() {
            project.leave();
        }
    }
}

impl CommandContext {
    pub(super) fn new(global: GlobalArgs) -> CommandContext {
        let colour = match global.color {
            ColourChoice::Auto => anstream::ColorChoice::Auto,
            ColourChoice::Always => anstream::ColorChoice::Always,
            ColourChoice::Never => anstream::ColorChoice::Never,
        };
        // Standard error, for errors and questions, uses this setting too.
        colour.write_global();
        if global.verbosity.is_quiet() {
            crate::quiet::set();
        }
        let out = CommandOutput::new(global.json, colour);
        let directory = global.directory;
        let trust = global.trust;
        let exit = 0;
        let opened = None;
        let log = None;
        let exporter = None;
        CommandContext { out, directory, trust, exit, opened, log, exporter }
    }

    /// Fails if the actor of this command may not take a decision.
    pub(super) fn authorize(&self, action: ControlledAction) -> CliResult {
        // The command itself reports a missing project or home.
        let place = self.place().ok();
        let mut scope = scope(place.as_ref());
        if action == ControlledAction::InstallHooks {
            scope.home = env::var_os("HOME").map(PathBuf::from);
        }
        let identity = scope.identify();
        Ok(identity.check(action).map_err(EngineError::from)?)
    }

    /// Returns the directory that the command works in.
    pub(super) fn directory(&self) -> CliResult<PathBuf> {
        directory(self.directory.as_deref())
    }

    pub(super) fn place(&self) -> CliResult<ProjectPaths> {
        Ok(ProjectPaths::find(&self.directory()?, &state_home()?)?)
    }

    /// Returns the directory of the diagnostics: the project's state, else that of all states.
    pub(super) fn diagnostics_directory(&self) -> Option<PathBuf> {
        match self.place() {
            Ok(place) => Some(place.state),
            Err(_) => state_home().ok(),
        }
    }

    /// Adds the path of the log to an error about its damage.
    pub(super) fn with_log_path(&self, error: CliError) -> CliError {
        if !error.is_log_damage() {
            return error;
        }
        let Ok(place) = self.place() else { return error };
        let is_remote = match &self.opened {
            Some(project) => matches!(project.kept(), LogLocation::Nats { .. }),
            None => !place.database().exists() && place.view().exists(),
        };
        let file = if is_remote { place.view() } else { place.database() };
        error.about_log_file(&file)
    }

    /// Uses this directory, unless the user named one.
    pub(super) fn enter(&mut self, directory: &Path) {
        self.directory.get_or_insert_with(|| directory.to_owned());
    }

    /// Opens the project for a command that changes it, and finishes the reactions that a dead process left.
    pub(crate) fn project(&mut self) -> CliResult<Project> {
        let project = self.project_to_read()?;
        project.tend()?;
        Ok(project)
    }

    /// Opens the project for a command that only reads: it runs no hooks and makes no tasks of schedules.
    pub(crate) fn project_to_read(&mut self) -> CliResult<Project> {
        let place = self.place()?;
        let began = Instant::now();
        let project = Project::open(&place, caller(&place), &self.surroundings()?)?;
        let root = place.root.display();
        tracing::debug!(project = project.name(), %root, took = ?began.elapsed(), "project opened");
        self.opened = Some(project.clone());
        project.store().hold_still().map_err(EngineError::from)?;
        Ok(project)
    }

    /// Opens the project a second time for a screen, so that its reads do not delay the session.
    pub(super) fn showing(&self) -> CliResult<ScreenContent> {
        let place = self.place()?;
        let project = Project::open(&place, caller(&place), &self.surroundings()?)?;
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        let has_colours = choice != anstream::ColorChoice::Never;
        Ok(ScreenContent { project, machine: machine(), has_colours })
    }

    /// Opens the project later, and again.
    pub(crate) fn opener(&self) -> ProjectOpener {
        ProjectOpener::new(self.directory.clone(), self.trust.clone())
    }

    /// Opens only the project's log, even if the configuration is invalid.
    pub(crate) fn log_alone(&mut self, after_loss: AfterLoss) -> CliResult<Project> {
        let place = self.place()?;
        let surroundings = self.surroundings()?;
        let project = Project::open_log(&place, caller(&place), &surroundings, after_loss)?;
        self.opened = Some(project.clone());
        Ok(project)
    }

    /// Opens the project to read its log, even if the policy forbids everything else.
    pub(crate) fn log_to_read(&mut self) -> CliResult<Project> {
        match self.check_policy() {
            Ok(()) => self.project_to_read(),
            Err(_) => self.log_alone(AfterLoss::Check),
        }
    }

    /// Fails if a policy forbids all work in this project.
    pub(crate) fn check_policy(&self) -> CliResult {
        let root = self.place()?.root;
        let policies = self.surroundings()?.policies()?;
        Ok(policies.check_project(&root, None).map_err(EngineError::from)?)
    }

    /// Returns the user's configuration, within the policy.
    pub(crate) fn user(&self) -> CliResult<UserConfig> {
        Ok(self.surroundings()?.user()?)
    }

    pub(super) fn surroundings(&self) -> CliResult<LaunchContext> {
        Ok(LaunchContext { trust: self.trust.clone(), ..surroundings()? })
    }

    /// After a command's answer: flushes it, then runs the workflows that it led to.
    pub(crate) fn finish(&mut self, project: &Project) -> CliResult {
        self.out.flush()?;
        project.tend()?;
        Ok(())
    }
}
