//! The one door for commands: decide, store, react.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hookloop_core::authority::{ActorKind, ControlledAction};
use hookloop_core::cascade::{CascadeLimit, EventCause};
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::{Event, EventBody};
use hookloop_core::hook::{Hook, HookHandler, HookRegistry};
use hookloop_core::id::{EventId, ProjectName, Subject, TaskId};
use hookloop_core::refusal::Refusal;
use hookloop_core::task::Task;
use hookloop_core::time::Timestamp;
use hookloop_store::log::{EventLog, LogError};
use hookloop_store::store::{Store, StoreError};
use hookloop_store::view::View;

use crate::caller::{Caller, Unauthorized};
use crate::config::{self, ConfigError, Settings};
use crate::fleet::{Books, UnknownWorker};
use crate::kept::{self, AfterLoss, Kept, Surroundings};
use crate::place::{Place, PlaceError};
use crate::policy::Forbidden;
use crate::reactions::{ReactionsLeft, cause_of, left_to_above};
use crate::rules::Rules;
use crate::runner::{Runner, command_for};
use crate::secrets::{Vault, Whose};
use crate::session::{Taken, session_of};
use crate::sought::Sought;
use crate::spread::Spread;
use crate::telemetry::Tracing;
use crate::trust::{HookOffer, Trust, TrustError};
use crate::user::{Unlisted, User};
use crate::work::Work;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    SessionTaken(#[from] Taken),
    #[error("there is no hook `{0}`")]
    NoSuchHook(String),
    #[error(transparent)]
    UnknownWorker(#[from] UnknownWorker),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),
    #[error(transparent)]
    Unlisted(#[from] Unlisted),
    #[error("hook `{hook}` reached the cascade limit `{limit}`: its command was refused")]
    CascadeLimit { hook: String, limit: CascadeLimit },
    #[error("HOOKLOOP_CAUSE: `{0}` is not the cause of a hook's command")]
    BadCause(String),
    #[error("{}: {what} is not that of the hook or agent that started this program: another log would be opened", project.display())]
    OtherLog { project: PathBuf, what: &'static str },
    #[error("{}: a project on a shared store needs a name that every machine uses for it", path.display())]
    NoProjectName { path: PathBuf },
}

impl From<LogError> for EngineError {
    fn from(error: LogError) -> EngineError {
        EngineError::Store(error.into())
    }
}

/// What a command came to.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The task it was about, as it stands now.
    pub task: Option<Task>,
    /// Tasks that became ready by it.
    pub readied: Vec<TaskId>,
    /// Tasks that hooks added.
    pub added: Vec<TaskId>,
    /// Open tasks that were blocked because what they wait for was deleted.
    pub blocked: Vec<TaskId>,
    /// What hooks could not do.
    pub failures: Vec<String>,
    /// Reactions or workflows are left to do.
    pub pending: bool,
    /// Why reactions are left when they were to be done.
    pub left: Option<ReactionsLeft>,
    /// The events of the command whose reactions were left for later.
    pub(crate) roots: Vec<EventId>,
}

impl Done {
    pub(crate) fn note_failure(&mut self, event: &Event) {
        let hook = event.cause.as_ref().map_or("", |cause| cause.hook.as_str());
        match &event.body {
            EventBody::HookError(error) => {
                // These are for people: the log and the agent have the error alone.
                let hint = command_for(&error.error).map(|command| format!(": {command}"));
                let (error, hint) = (&error.error, hint.unwrap_or_default());
                self.failures.push(format!("hook `{hook}` failed: {error}{hint}"));
            }
            EventBody::ActionError(error) => {
                let (action, why) = (&error.action_type, &error.error);
                self.failures.push(format!("hook `{hook}` could not {action}: {why}"));
            }
            EventBody::CascadeCut(cut) => {
                let (limit, dropped) = (cut.limit, cut.dropped);
                let text = format!(
                    "hook `{hook}` was cut by the cascade limit `{limit}`: {dropped} actions dropped"
                );
                self.failures.push(text);
            }
            _ => {}
        }
    }

    pub(crate) fn note(&mut self, subject_is_command: bool, task: &TaskId, body: &EventBody) {
        match body {
            EventBody::TaskCreated(_) if !subject_is_command => self.added.push(task.clone()),
            EventBody::DependencySatisfied(_) => self.readied.push(task.clone()),
            EventBody::TaskBlocked(_) if !subject_is_command => self.blocked.push(task.clone()),
            _ => {}
        }
    }
}

/// An open project.
#[derive(Clone, Debug)]
pub struct Project {
    pub(crate) store: Store,
    pub(crate) rules: Rules,
    pub(crate) caller: Caller,
    pub(crate) spread: Spread,
    pub(crate) sought: Sought,
    pub(crate) kept: Kept,
    /// What runs hooks; none where there is no directory to run them in.
    pub(crate) runner: Option<Arc<Runner>>,
    /// What people call it.
    pub(crate) name: String,
    /// What the sessions of a worker answer for beside the project.
    pub(crate) books: Option<Books>,
    /// Who is shown what its sessions do.
    pub(crate) tracing: Option<Tracing>,
    /// The hook's run that this program's commands follow from.
    pub(crate) cause: Option<EventCause>,
}

impl Project {
    /// Opens the project at `place` for `caller`.
    pub fn open(
        place: &Place,
        caller: impl Into<Caller>,
        surroundings: &Surroundings,
    ) -> Result<Project, EngineError> {
        let user = surroundings.user()?;
        user.policy.check_project(&place.root, surroundings.cloned_from(&user, place))?;
        let settings = config::settings(&place.config(), &user)?;
        let (store, kept) =
            kept::open_store(place, &settings, &user, surroundings, AfterLoss::Refuse)?;
        let runner = Project::runner_at(place, &settings, &user, surroundings)?;
        let runner = Some(Arc::new(with_logged_trust(runner, &store, &settings, &user)?));
        let directory =
            || place.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = settings.project.map_or_else(directory, |name| name.to_string());
        let cause = match left_to_above(&place.root, &place.state) {
            Some(_) => cause_of(&surroundings.environment)?,
            None => None,
        };
        let rules = with_untrusted_actions(settings.rules, runner.as_deref());
        Ok(Project { kept, runner, name, cause, ..Project::new(store, rules, caller) })
    }

    /// The same project under what its files say now: its log stays open.
    pub fn renewed(
        &self,
        place: &Place,
        surroundings: &Surroundings,
    ) -> Result<Project, EngineError> {
        let user = surroundings.user()?;
        user.policy.check_project(&place.root, surroundings.cloned_from(&user, place))?;
        let settings = config::settings(&place.config(), &user)?;
        let runner = Project::runner_at(place, &settings, &user, surroundings)?;
        let runner = with_logged_trust(runner, &self.store, &settings, &user)?;
        let rules = with_untrusted_actions(settings.rules, Some(&runner));
        Ok(Project { rules, runner: Some(Arc::new(runner)), ..self.clone() })
    }

    /// What would run the hooks of a project with these settings.
    pub fn runner_at(
        place: &Place,
        settings: &Settings,
        user: &User,
        surroundings: &Surroundings,
    ) -> Result<Runner, EngineError> {
        let cloned_from = surroundings.cloned_from(user, place);
        let mut trust = Trust::load(&place.state)?;
        if let Some(digest) = &surroundings.trust {
            trust.accept(digest, &HookOffer::look(&place.root, &settings.rules)?)?;
        } else if user.policy.has_trust() {
            trust.accept_if(&HookOffer::look(&place.root, &settings.rules)?, |digest| {
                user.policy.trusts(digest).is_some()
            });
        }
        let whose = Whose { name: settings.project.as_ref(), root: &place.root, cloned_from };
        let books = user.policy.list().iter().map(|policy| &policy.secrets);
        let secrets = Vault::new(books.chain([&user.secrets]), &whose);
        let environment = surroundings.environment.clone();
        let runner = Runner::new(place.root.clone(), place.state.clone(), environment, trust);
        let runner = runner.with_log(kept::log_digest(settings, surroundings));
        let runner = runner.with_network(&user.network);
        Ok(runner.with_agents(&settings.rules.agents).with_secrets(secrets))
    }

    /// Opens the project's log alone, whatever its hooks are: to check and to mend it.
    pub fn open_log(
        place: &Place,
        caller: impl Into<Caller>,
        surroundings: &Surroundings,
        after_loss: AfterLoss,
    ) -> Result<Project, EngineError> {
        let user = surroundings.own()?;
        let settings = config::settings(&place.config(), &user).unwrap_or_default();
        let (store, kept) = kept::open_store(place, &settings, &user, surroundings, after_loss)?;
        Ok(Project { kept, ..Project::new(store, Rules::default(), caller) })
    }

    /// The same project, in which the same kind of actor has another name.
    pub(crate) fn acting_as(&self, actor: &str) -> Project {
        Project { caller: self.caller.named(actor), ..self.clone() }
    }

    /// The same project for another actor.
    #[must_use]
    pub fn for_caller(&self, caller: impl Into<Caller>) -> Project {
        Project { caller: caller.into(), ..self.clone() }
    }

    pub fn new(store: Store, rules: Rules, caller: impl Into<Caller>) -> Project {
        let (caller, spread) = (caller.into(), Spread::default());
        let (sought, kept) = (Sought::default(), Kept::Here);
        let (name, books, tracing, cause) = (String::new(), None, None, None);
        let runner = None;
        Project { store, rules, caller, spread, sought, kept, runner, name, books, tracing, cause }
    }

    /// The same project, whose sessions are in the books of a fleet.
    #[must_use]
    pub fn with_books(self, books: Books) -> Project {
        Project { books: Some(books), ..self }
    }

    /// The same project, whose sessions are shown to a collector as they go.
    #[must_use]
    pub fn traced(self, tracing: Tracing) -> Project {
        Project { tracing: Some(tracing), ..self }
    }

    /// Where the log is.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Does what `command` asks, or says why not. When this returns, it is on disk, and so are the
    /// reactions to it, except those that were left for [`Project::dispatch`].
    pub fn execute(&self, command: &Command) -> Result<Done, EngineError> {
        self.check(command)?;
        self.carry_out(command)
    }

    /// Does what hookloop itself has decided: what gates proved, a merge that was made, a lease that expired. No
    /// front end gets here with a command of an actor's.
    pub(crate) fn carry_out(&self, command: &Command) -> Result<Done, EngineError> {
        let origin = self.origin()?;
        let mut part = 0;
        loop {
            let origin = origin.part(part);
            let (done, finished) = self.store.transact(|unit| -> Result<_, EngineError> {
                let mut work = Work::new(unit, &self.rules, now())?;
                work.perform(command, &origin)??;
                work.react()?;
                let (done, finished) = work.summary(command)?;
                if done.pending {
                    self.expect_processes(&work)?;
                }
                Ok((done, finished))
            })?;
            if finished {
                return Ok(done);
            }
            part += 1;
        }
    }

    /// Whether the actor of this project may take a decision. It is asked before anything is looked for.
    pub fn authorize(&self, action: ControlledAction) -> Result<(), EngineError> {
        Ok(self.caller.identity().check(action)?)
    }

    /// The actor, as the log names it.
    pub fn actor(&self) -> &str {
        self.caller.name()
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    fn check(&self, command: &Command) -> Result<(), EngineError> {
        if let Some(action) = ControlledAction::of_command(command) {
            self.authorize(action)?;
        }
        self.check_session_claim(command)?;
        match command {
            Command::SwitchHook { name, .. } if self.rules.hooks.get(name).is_none() => {
                Err(EngineError::NoSuchHook(name.clone()))
            }
            Command::SwitchHook { name, .. } => Ok(self.rules.policy.check_switch(name)?),
            _ => Ok(()),
        }
    }

    /// The claim of a session is the loop's: an agent that has read its epoch does not hold it.
    fn check_session_claim(&self, command: &Command) -> Result<(), EngineError> {
        let (Command::ReleaseTask { id, fence: Fence::Epoch(_), .. }
        | Command::SubmitTask { id, fence: Fence::Epoch(_), .. }
        | Command::BlockTask { id, fence: Fence::Epoch(_), .. }) = command
        else {
            return Ok(());
        };
        let is_agent = matches!(
            self.caller.identity().kind,
            ActorKind::SessionAgent | ActorKind::ExternalSession | ActorKind::Hook
        );
        if !is_agent {
            return Ok(());
        }
        let row = self.read(|view| view.task(id))?;
        let claim = row.and_then(|row| row.task.claim);
        match claim.is_some_and(|claim| session_of(&claim.agent).is_some()) {
            true => self.authorize(ControlledAction::OverrideClaim),
            false => Ok(()),
        }
    }

    /// An id for a new task.
    pub fn new_task_id(&self) -> TaskId {
        TaskId::generate(fresh_id())
    }

    /// Answers a question from one snapshot of the view, as it is now.
    pub fn read<T>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, LogError>,
    ) -> Result<T, EngineError> {
        self.store.read(|view| question(view.at(now())).map_err(EngineError::from))
    }

    /// Ends the use of the project by a process that is about to end.
    pub fn leave(self) {
        self.store.leave();
    }

    /// The hooks as they are now.
    pub fn hooks(&self) -> Result<HookRegistry, EngineError> {
        let switches = self.read(|view| view.hook_switches())?;
        Ok(self.rules.switched(&switches).into_owned())
    }

    /// What people call it: its name, else that of its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn log(&self) -> &dyn EventLog {
        &self.store
    }

    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Events of a project that are looked at for the last agreement to its hooks.
const TRUST_LOOKED_AT: usize = 1_000;

/// The runner, where the last agreement in the log to these very hooks and gates is by a user that a policy names.
fn with_logged_trust(
    runner: Runner,
    store: &Store,
    settings: &Settings,
    user: &User,
) -> Result<Runner, EngineError> {
    if !user.policy.has_trust_from() {
        return Ok(runner);
    }
    let events = store.history(&Subject::Project, TRUST_LOOKED_AT)?;
    let agreed = events.into_iter().rev().find_map(|stored| match stored.event.body {
        EventBody::HooksTrusted(trusted) if user.policy.trusts_from(&stored.event.actor) => {
            Some(trusted.digest)
        }
        _ => None,
    });
    match agreed {
        Some(digest) => {
            let offer = HookOffer::look(runner.home(), &settings.rules)?;
            Ok(runner.agreed_elsewhere(&offer, &digest))
        }
        None => Ok(runner),
    }
}

/// The rules with the hooks named whose declared actions need a person's word and do not have it.
fn with_untrusted_actions(rules: Rules, runner: Option<&Runner>) -> Rules {
    let is_declared = |hook: &&Hook| matches!(hook.handler, HookHandler::Declared(_));
    let is_untrusted = |hook: &&Hook| runner.is_some_and(|runner| !runner.standing(hook).may_run());
    let declared = rules.hooks.list().iter().filter(is_declared);
    let untrusted_actions = declared.filter(is_untrusted).map(|hook| hook.name.clone()).collect();
    Rules { untrusted_actions, ..rules }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A name for a new project in a directory called `directory`.
pub fn new_project_name(directory: &str) -> ProjectName {
    ProjectName::generate(directory, fresh_id())
}

pub(crate) fn fresh_id() -> EventId {
    // Such an id has the time since 1970; a clock that is before that can't be asked for one.
    let id = if SystemTime::now() < UNIX_EPOCH {
        let start = uuid::Timestamp::from_unix(uuid::NoContext, 0, 0);
        uuid::Uuid::new_v7(start)
    } else {
        uuid::Uuid::now_v7()
    };
    EventId(*id.as_bytes())
}
