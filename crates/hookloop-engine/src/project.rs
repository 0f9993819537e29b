//! The one door for commands: decide, store, react.

use std::sync::Arc;

use hookloop_config::clock::now;
use hookloop_config::effective::Rules;
use hookloop_config::ids::fresh_id;
use hookloop_config::paths::Place;
use hookloop_config::project_file::{self, Settings};
use hookloop_config::secret_references::Whose;
use hookloop_config::user::User;
use hookloop_core::authority::{ActorKind, ControlledAction};
use hookloop_core::cascade::EventCause;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::event::EventBody;
use hookloop_core::hook::{Hook, HookHandler, HookRegistry};
use hookloop_core::id::{SessionId, Subject, TaskId};
use hookloop_core::purse::{Amount, Purse, ReservationAnswer};
use hookloop_core::trace::TraceParent;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::runner::Runner;
use hookloop_hooks::secrets::Vault;
use hookloop_hooks::trust::{HookOffer, Trust};
use hookloop_store::log::{EventLog, LogError};
use hookloop_store::store::Store;
use hookloop_store::view::View;

use crate::caller::Caller;
use crate::callers_above::{cause_of, left_to_above};
use crate::command_outcome::Done;
use crate::error::EngineError;
use crate::kept::{self, AfterLoss, Kept, Surroundings};
use crate::sought::Sought;
use crate::spread::Spread;
use crate::work::{Origin, Work};

/// The budget that the sessions of a fleet share.
pub trait FleetBudget: std::fmt::Debug + Send + Sync {
    /// Returns the limits of the budget.
    fn budget(&self) -> Result<Purse, EngineError>;

    /// Reserves `wish` for a session's turn. Returns none if the session is over.
    fn set_aside(
        &self,
        project: &Project,
        session: &SessionId,
        wish: Amount,
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
    pub(crate) books: Option<Arc<dyn FleetBudget>>,
    /// Who is shown what its sessions do.
    pub(crate) traces: Option<SessionTraces>,
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
        let settings = project_file::settings(&place.config(), &user)?;
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
        let settings = project_file::settings(&place.config(), &user)?;
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
        let exec = ExecContext::new(place.root.clone(), place.state.clone(), environment)
            .with_log(kept::log_digest(settings, surroundings))
            .with_network(&user.network)
            .with_agents(&settings.rules.agents)
            .with_secrets(secrets);
        Ok(Runner::new(exec, trust))
    }

    /// Opens the project's log alone, whatever its hooks are: to check and to mend it.
    pub fn open_log(
        place: &Place,
        caller: impl Into<Caller>,
        surroundings: &Surroundings,
        after_loss: AfterLoss,
    ) -> Result<Project, EngineError> {
        let user = surroundings.own()?;
        let settings = project_file::settings(&place.config(), &user).unwrap_or_default();
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
        let (name, books, traces, cause) = (String::new(), None, None, None);
        let runner = None;
        Project { store, rules, caller, spread, sought, kept, runner, name, books, traces, cause }
    }

    pub fn runner(&self) -> Option<&Runner> {
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

    /// The same project, whose sessions are in the books of a fleet.
    #[must_use]
    pub fn with_books(self, books: Arc<dyn FleetBudget>) -> Project {
        Project { books: Some(books), ..self }
    }

    /// The same project, whose sessions are shown to a collector as they go.
    #[must_use]
    pub fn traced(self, traces: SessionTraces) -> Project {
        Project { traces: Some(traces), ..self }
    }

    /// The same project, whose sessions are shown to no collector.
    #[must_use]
    pub fn untraced(self) -> Project {
        Project { traces: None, ..self }
    }

    /// Where the log is.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Stores one event that needs no decision.
    pub fn append(&self, subject: &Subject, body: EventBody) -> Result<(), EngineError> {
        let id = fresh_id();
        self.store.transact(|unit| {
            let mut work = Work::new(unit, &self.rules, now())?;
            work.stage_quietly(Origin::command(id, self.actor()), subject.clone(), body.clone())?;
            Ok(())
        })
    }

    /// Does what `command` asks, or says why not. When this returns, it is on disk, and so are the
    /// reactions to it, except those that were left for [`Project::dispatch`].
    pub fn execute(&self, command: &Command) -> Result<Done, EngineError> {
        self.check(command)?;
        self.carry_out(command)
    }

    /// Does what hookloop itself has decided: what gates proved, a merge that was made, a lease that expired. No
    /// front end gets here with a command of an actor's.
    pub fn carry_out(&self, command: &Command) -> Result<Done, EngineError> {
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
        match claim.is_some_and(|claim| SessionId::of_actor(&claim.agent).is_some()) {
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
