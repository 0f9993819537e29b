//! Opens the project when a call first needs it, and again when its configuration changes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hookloop_config::paths::{PlaceError, ProjectPaths};
use hookloop_core::authority::ActorKind;
use hookloop_engine::caller::{Caller, CallerIdentity};
use hookloop_engine::external::agent_tools::{AgentTools, BoundSession};
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project;
use hookloop_hooks::trust;

use super::refusal::ToolRefusal;
use crate::environment::{directory, state_home, surroundings, user_name};
use crate::error::CliError;

/// Opens a project, which need not exist yet.
#[derive(Debug)]
pub(crate) struct ProjectOpener {
    directory: Option<PathBuf>,
    trust: Option<String>,
    bound: Option<BoundSession>,
    /// Whether the agents may disconnect without ending their sessions.
    is_shared: bool,
    opened: Mutex<Option<OpenedProject>>,
}

#[derive(Debug)]
struct OpenedProject {
    tools: AgentTools,
    /// The stamps of the files that configure the project.
    stamps: [FileStamp; 3],
}

impl ProjectOpener {
    pub(crate) fn new(directory: Option<PathBuf>, trust: Option<String>) -> ProjectOpener {
        ProjectOpener { directory, trust, bound: None, is_shared: false, opened: Mutex::new(None) }
    }

    /// For agents that did not start this program.
    pub(crate) fn shared(self) -> ProjectOpener {
        ProjectOpener { is_shared: true, ..self }
    }

    /// For an agent that a session started.
    pub(crate) fn bound(self, bound: Option<BoundSession>) -> ProjectOpener {
        ProjectOpener { bound, ..self }
    }

    pub(super) fn is_bound(&self) -> bool {
        self.bound.is_some()
    }

    /// Returns the tools of the project with its current configuration. Blocks.
    pub(super) fn tools(&self) -> Result<AgentTools, ToolRefusal> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let place = ProjectPaths::find(&directory(self.directory.as_deref())?, &state_home()?);
        let place = place.map_err(|error| match error {
            PlaceError::NoProject(_) => ToolRefusal::new(
                "no_project",
                error.to_string(),
                "ask your user to run: hookloop init",
            ),
            error => CliError::from(error).into(),
        })?;
        let surroundings = LaunchContext { trust: self.trust.clone(), ..surroundings()? };
        let stamps = [
            FileStamp::of(&place.config()),
            surroundings.user_file.as_deref().map_or(FileStamp::none(), FileStamp::of),
            FileStamp::of(&trust::file(&place.state)),
        ];
        // A server runs for hours; changed rules apply from the next call on.
        if let Some(opened) = opened.as_ref().filter(|opened| opened.stamps == stamps) {
            return Ok(opened.tools.clone());
        }
        let project =
            Project::open(&place, self.caller(), &surroundings).map_err(CliError::from)?;
        let tools = match opened.as_ref() {
            // Running work continues under the new rules.
            Some(before) => before.tools.reopened(project),
            None => {
                let tools = AgentTools::new(project, self.bound.clone()).map_err(CliError::from)?;
                if self.is_shared { tools.shared() } else { tools }
            }
        };
        *opened = Some(OpenedProject { tools: tools.clone(), stamps });
        Ok(tools)
    }

    /// Closes the project, if it is open.
    pub(super) fn leave(&self) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opened) = opened {
            opened.tools.project().clone().leave();
        }
    }

    /// Returns the caller: an agent, even if a person started this program.
    fn caller(&self) -> Caller {
        match &self.bound {
            Some(bound) => {
                let name = bound.session.actor();
                Caller::known(&name, CallerIdentity::agent(ActorKind::SessionAgent))
            }
            None => {
                let identity = CallerIdentity::agent(ActorKind::ExternalSession);
                Caller::known(&user_name(), identity)
            }
        }
    }
}

/// The identity of a file's content: it changes when the file changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileStamp(Option<(u64, u64, i64, i64)>);

impl FileStamp {
    /// The stamp of a missing file.
    pub(crate) fn none() -> FileStamp {
        FileStamp(None)
    }

    pub(crate) fn of(path: &Path) -> FileStamp {
        let stamp = |file: Metadata| (file.ino(), file.len(), file.mtime(), file.mtime_nsec());
        // A file that can't be read has the stamp of no file; opening the project reports it.
        FileStamp(std::fs::metadata(path).ok().map(stamp))
    }
}
