//! The single entry for commands: decide, store, react.

use std::sync::Arc;

use hookloop_config::clock::now;
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::ids::fresh_id;
use hookloop_config::paths::ProjectPaths;
use hookloop_config::project_file::{self, ProjectSettings};
use hookloop_config::secret_references::SecretOwner;
use hookloop_config::user::UserConfig;
use hookloop_core::authority::{ActorKind, ControlledAction};
use hookloop_core::cascade::EventCause;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::hook::{Hook, HookHandler, HookRegistry};
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::session::plan::EXTERNAL;
use hookloop_core::shared_budget::{Amount, ReservationAnswer, SharedBudget};
use hookloop_core::trace::TraceParent;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::secrets::SecretVault;
use hookloop_hooks::trust::{HookOffer, Trust};
use hookloop_store::log::{EventLog, LogError};
use hookloop_store::store::Store;
use hookloop_store::view::View;

use crate::batch::{Batch, EventOrigin};
use crate::caller::Caller;
use crate::callers_above::{cause_of, left_to_above};
use crate::claim_backoff::ClaimBackoff;
use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;
use crate::in_flight_claims::InFlightClaims;
use crate::log_location::{self, AfterLoss, LaunchContext, LogLocation};

/// Maximum events of a task that are searched for its beginning.
const TASK_EVENTS_MAX: usize = 10_000;
/// The beginnings of the names of agents in the log.
const AGENT_ACTORS: [&str; 3] = ["session:", "agent:", EXTERNAL];

/// The budget that the sessions of a fleet share.
pub trait FleetBudget: std::fmt::Debug + Send + Sync {
    /// Returns the limits of the budget.
    fn budget(&self) -> Result<SharedBudget, EngineError>;

    /// Reserves `request` for a session's turn. Returns none if the session is over.
    fn reserve(
        &self,
        project: &Project,
        session: &SessionId,
        request: Amount,
    ) -> Result<Option<ReservationAnswer>, EngineError>;

    /// Brings the fleet's ledger up to date with the project's log of a session.
    fn follow(&self, project: &Project, session: &SessionId) -> Result<(), EngineError>;

    /// Follows each session of the project that has a reservation.
    fn settle_all(&self, project: &Project) -> Result<(), EngineError>;
}

/// Whether the fleet's ledger has an event of a session.
pub(crate) fn is_in_ledger(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::SessionStarted(_)
            | EventBody::TurnEnded(_)
            | EventBody::SessionResumed(_)
            | EventBody::SessionEnded(_)
    )
}

/// Exports the spans of sessions.
pub trait SpanExporter: std::fmt::Debug + Send + Sync {
    /// Exports a session's spans until the returned guard is dropped, then the rest of them.
    fn watch(&self, project: &Project, id: &SessionId) -> Box<dyn WatchGuard>;
}

/// Ends the export of a session when it is dropped.
pub trait WatchGuard: Send {}

/// The export of the traces of a project's sessions.
#[derive(Clone, Debug)]
pub struct SessionTraces {
    pub exporter: Arc<dyn SpanExporter>,
    /// The span in which new sessions start.
    pub parent: Option<TraceParent>,
}

/// An open project.
#[derive(Clone, Debug)]
pub struct Project {
    pub(crate) store: Store,
    pub(crate) rules: EffectiveConfig,
    pub(crate) caller: Caller,
    pub(crate) spread: ClaimBackoff,
    pub(crate) sought: InFlightClaims,
    pub(crate) kept: LogLocation,
    /// The runner of hooks. None if there is no project directory to run them in.
    pub(crate) runner: Option<Arc<HookRunner>>,
    /// The display name of the project.
    pub(crate) name: String,
    /// The fleet ledger, if a worker runs the project's sessions.
    pub(crate) books: Option<Arc<dyn FleetBudget>>,
    /// The collector of the traces of the project's sessions.
    pub(crate) traces: Option<SessionTraces>,
    /// The hook run that caused the commands of this process, if one did.
    pub(crate) cause: Option<EventCause>,
}

impl Project {
    /// Opens the project at `place` for `caller`.
    pub fn open(
        place: &ProjectPaths,
        caller: impl Into<Caller>,
        surroundings: &LaunchContext,
    ) -> Result<Project, EngineError> {
        let user = surroundings.user()?;
        user.policy.check_project(&place.root, surroundings.cloned_from(&user, place))?;
        let settings = project_file::settings(&place.config(), &user)?;
        let (store, kept) =
            log_location::open_store(place, &settings, &user, surroundings, AfterLoss::Refuse)?;
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

    /// Returns this project with its current configuration. Its log stays open.
    pub fn renewed(
        &self,
        place: &ProjectPaths,
        surroundings: &LaunchContext,
    ) -> Result<Project, EngineError> {
        let user = surroundings.user()?;
        user.policy.check_project(&place.root, surroundings.cloned_from(&user, place))?;
        let settings = project_file::settings(&place.config(), &user)?;
        let runner = Project::runner_at(place, &settings, &user, surroundings)?;
        let runner = with_logged_trust(runner, &self.store, &settings, &user)?;
        let rules = with_untrusted_actions(settings.rules, Some(&runner));
        Ok(Project { rules, runner: Some(Arc::new(runner)), ..self.clone() })
    }

    /// Creates the runner of hooks for a project with these settings.
    pub fn runner_at(
        place: &ProjectPaths,
        settings: &ProjectSettings,
        user: &UserConfig,
        surroundings: &LaunchContext,
    ) -> Result<HookRunner, EngineError> {
        let cloned_from = surroundings.cloned_from(user, place);
        let mut trust = Trust::load(&place.state)?;
        if let Some(digest) = &surroundings.trust {
            trust.accept(digest, &HookOffer::look(&place.root, &settings.rules)?)?;
        } else if user.policy.has_trust() {
            trust.accept_if(&HookOffer::look(&place.root, &settings.rules)?, |digest| {
                user.policy.trusts(digest).is_some()
            });
        }
        let whose = SecretOwner { name: settings.project.as_ref(), root: &place.root, cloned_from };
        let books = user.policy.list().iter().map(|policy| &policy.secrets);
        let secrets = SecretVault::new(books.chain([&user.secrets]), &whose);
        let environment = surroundings.environment.clone();
        let exec = ExecContext::new(place.root.clone(), place.state.clone(), environment)
            .with_log(log_location::log_digest(settings, surroundings))
            .with_network(&user.network)
            .with_agents(&settings.rules.agents)
            .with_secrets(secrets);
        Ok(HookRunner::new(exec, trust))
    }

    /// Opens only the project's log, without its hooks, to check and repair it.
    pub fn open_log(
        place: &ProjectPaths,
        caller: impl Into<Caller>,
        surroundings: &LaunchContext,
        after_loss: AfterLoss,
    ) -> Result<Project, EngineError> {
        let user = surroundings.own()?;
        let settings = project_file::settings(&place.config(), &user).unwrap_or_default();
        let (store, kept) =
            log_location::open_store(place, &settings, &user, surroundings, after_loss)?;
        Ok(Project { kept, ..Project::new(store, EffectiveConfig::default(), caller) })
    }

    /// Returns this project for an actor of the same kind with another name.
    pub(crate) fn acting_as(&self, actor: &str) -> Project {
        Project { caller: self.caller.named(actor), ..self.clone() }
    }

    /// Returns this project for another actor.
    #[must_use]
    pub fn for_caller(&self, caller: impl Into<Caller>) -> Project {
        Project { caller: caller.into(), ..self.clone() }
    }

    pub fn new(store: Store, rules: EffectiveConfig, caller: impl Into<Caller>) -> Project {
        let (caller, spread) = (caller.into(), ClaimBackoff::default());
        let (sought, kept) = (InFlightClaims::default(), LogLocation::Here);
        let (name, books, traces, cause) = (String::new(), None, None, None);
        let runner = None;
        Project { store, rules, caller, spread, sought, kept, runner, name, books, traces, cause }
    }

    pub fn runner(&self) -> Option<&HookRunner> {
        self.runner.as_deref()
    }

    /// Returns the context in which the project's processes are started.
    pub fn exec(&self) -> Option<&ExecContext> {
        self.runner.as_deref().map(|runner| &**runner)
    }

    /// Returns the budget that the project's sessions share with a fleet.
    pub fn fleet_budget(&self) -> Option<&Arc<dyn FleetBudget>> {
        self.books.as_ref()
    }

    /// Returns this project with a fleet ledger that records its sessions.
    #[must_use]
    pub fn with_books(self, books: Arc<dyn FleetBudget>) -> Project {
        Project { books: Some(books), ..self }
    }

    /// Returns this project with a collector of its sessions' traces.
    #[must_use]
    pub fn traced(self, traces: SessionTraces) -> Project {
        Project { traces: Some(traces), ..self }
    }

    /// Returns this project without a collector of traces.
    #[must_use]
    pub fn untraced(self) -> Project {
        Project { traces: None, ..self }
    }

    /// Returns the location of the log.
    pub fn kept(&self) -> &LogLocation {
        &self.kept
    }

    /// Stores one event that needs no decision.
    pub fn append(&self, subject: &Subject, body: EventBody) -> Result<(), EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Batch::new(unit, &self.rules, now())?;
            work.stage_quietly(
                EventOrigin::command(id, self.actor()),
                subject.clone(),
                body.clone(),
            )?;
            Ok(())
        })
    }

    /// Performs `command` for the actor, or returns why it cannot.
    ///
    /// When this returns, the command is on disk. So are its reactions, except those that
    /// [`Project::dispatch`] runs later.
    pub fn execute(&self, command: &Command) -> Result<CommandOutcome, EngineError> {
        self.check(command)?;
        self.carry_out(command)
    }

    /// Performs a command that hookloop itself decided, without a check of the actor.
    ///
    /// Examples are the result of gates, a finished merge and an expired lease. Front ends never
    /// pass an actor's command here.
    pub fn carry_out(&self, command: &Command) -> Result<CommandOutcome, EngineError> {
        let origin = self.origin()?;
        let mut part = 0;
        loop {
            let origin = origin.part(part);
            let (done, finished) = self.store.transact(|unit| -> Result<_, EngineError> {
                let mut work = Batch::new(unit, &self.rules, now())?;
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

    /// Returns an error if the actor may not take this action. Callers check this before anything
    /// else.
    pub fn authorize(&self, action: ControlledAction) -> Result<(), EngineError> {
        Ok(self.caller.identity().check(action)?)
    }

    /// Returns the actor's name in the log.
    pub fn actor(&self) -> &str {
        self.caller.name()
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether an agent added a task. A task whose beginning is unknown counts as such.
    pub(crate) fn is_added_by_agent(&self, task: &TaskId) -> Result<bool, EngineError> {
        let events = self.log().history(&Subject::Task(task.clone()), TASK_EVENTS_MAX)?;
        let created = events
            .iter()
            .find(|stored| matches!(stored.event.body, EventBody::TaskCreated(_)))
            .map(|stored| stored.event.actor.as_str());
        Ok(created.is_none_or(|actor| AGENT_ACTORS.iter().any(|prefix| actor.starts_with(prefix))))
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

    /// Refuses changes of a session's claim by an agent.
    ///
    /// The claim belongs to the loop. An agent that has read its epoch does not hold the claim.
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
        match claim.is_some_and(|claim| SessionId::of_actor(&claim.agent).is_some()) {
            true => self.authorize(ControlledAction::OverrideClaim),
            false => Ok(()),
        }
    }

    /// Returns an id for a new task.
    pub fn new_task_id(&self) -> TaskId {
        TaskId::generate(fresh_id())
    }

    /// Reads from one current snapshot of the view.
    pub fn read<T>(
        &self,
        question: impl FnOnce(View<'_>) -> Result<T, LogError>,
    ) -> Result<T, EngineError> {
        self.store.read(|view| question(view.at(now())).map_err(EngineError::from))
    }

    /// Releases the project in a process that is about to end.
    pub fn leave(self) {
        self.store.leave();
    }

    /// Returns the current hooks, with those that a person enabled or disabled.
    pub fn hooks(&self) -> Result<HookRegistry, EngineError> {
        let switches = self.read(|view| view.hook_switches())?;
        Ok(self.rules.switched(&switches).into_owned())
    }

    /// Returns the display name: the project's name, else the name of its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rules(&self) -> &EffectiveConfig {
        &self.rules
    }

    pub fn log(&self) -> &dyn EventLog {
        &self.store
    }

    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// Maximum events of a project that are searched for the last agreement to its hooks.
const TRUST_LOOKED_AT: usize = 1_000;

/// Applies an agreement in the log to exactly these hooks, if a policy trusts its actor.
fn with_logged_trust(
    runner: HookRunner,
    store: &Store,
    settings: &ProjectSettings,
    user: &UserConfig,
) -> Result<HookRunner, EngineError> {
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

/// Returns the rules with the untrusted hooks whose declared actions need the trust of a person.
fn with_untrusted_actions(rules: EffectiveConfig, runner: Option<&HookRunner>) -> EffectiveConfig {
    let is_declared = |hook: &&Hook| matches!(hook.handler, HookHandler::Declared(_));
    let is_untrusted = |hook: &&Hook| runner.is_some_and(|runner| !runner.standing(hook).may_run());
    let declared = rules.hooks.list().iter().filter(is_declared);
    let untrusted_actions = declared.filter(is_untrusted).map(|hook| hook.name.clone()).collect();
    EffectiveConfig { untrusted_actions, ..rules }
}
