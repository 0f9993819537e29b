//! Reads the hooks of a file into the hooks of a project.

use std::collections::BTreeMap;

use hookloop_core::builtin::Builtin;
use hookloop_core::hook::{
    CommandText, DEFAULT_PRIORITY, DeclaredAction, Hook, HookHandler, HookMetadata, HookRegistry,
    HookSource, of_agent,
};
use hookloop_core::limits::{Limits, PROCESSES_MIN, Size};
use hookloop_core::options::{
    ATTEMPTS_MAX, AllowedAnswers, BaseTestRules, HookOptions, HookSandbox, OnFailure, PipeOutput,
    RetryPolicy, RoomChoice, RoomRules,
};
use hookloop_core::point::{NoSuchPoint, Point, PointKind};
use hookloop_core::review::Quorum;
use hookloop_core::template::TemplateValue;
use hookloop_core::workflow::MAX_STEPS;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::gate_options::{check_room_options, resource_name};
use super::hook_entry::{
    ActionEntry, AnswersEntry, FailureEntry, HookEntry, HookForm, HooksByPoint, LimitsEntry,
    PipeEntry, RetryEntry, SandboxEntry,
};
use super::room::{RoomForm, has_room};
use super::rules::rule;
use super::strength::StrengthEntry;
use super::values::{Located, OneOrMany, environment, inside, length, patterns_inside};
use crate::condition::Condition;
use crate::effective::{GatekeeperRules, terms_of};
use crate::policy::PREFIX;
use crate::yaml::{ConfigComplaint, NAME_MAX, check_name};

const MAX_HOOKS: usize = 256;
/// Adds the hooks of one file to a registry.
pub(crate) struct HookReader<'a> {
    hooks: &'a mut HookRegistry,
    workflows: &'a WorkflowActions,
    gatekeepers: &'a [GatekeeperRules],
    source: HookSource,
    /// The room of gates that name none.
    room: RoomRules,
    /// Built-ins that the file lists. They run only at the listed points.
    listed: Vec<Builtin>,
    /// Hooks with `needs`, by type and name, with the place of the key.
    needing: Vec<(Option<String>, String, Location)>,
    /// Points for which the project has a list.
    lists: Vec<Point>,
    /// The places of hooks, by name.
    places: Vec<(String, Location)>,
    count: usize,
}

impl<'a> HookReader<'a> {
    pub(crate) fn new(
        hooks: &'a mut HookRegistry,
        workflows: &'a WorkflowActions,
        gatekeepers: &'a [GatekeeperRules],
        source: HookSource,
    ) -> HookReader<'a> {
        let (listed, needing, lists, places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        HookReader {
            hooks,
            workflows,
            gatekeepers,
            source,
            room: RoomRules::default(),
            listed,
            needing,
            lists,
            places,
            count: 0,
        }
    }

    /// Sets the room of gates that name none.
    pub(crate) fn set_room(&mut self, room: RoomRules) {
        self.room = room;
    }

    /// Reads the hooks of a project, or of one type of its tasks.
    pub(crate) fn read(
        &mut self,
        points: HooksByPoint,
        task_type: Option<&str>,
    ) -> Result<(), ConfigComplaint> {
        for (Spanned { value: name, referenced: at, .. }, entries) in points.0 {
            let point: Point =
                name.parse().map_err(|error: NoSuchPoint| ConfigComplaint::new(at, error))?;
            match task_type {
                Some(task_type) => self.hooks.set_typed(task_type, &point),
                None => self.lists.push(point.clone()),
            }
            for HookForm(entry) in entries.value {
                self.count += 1;
                if self.count > MAX_HOOKS {
                    let message = format!("more than {MAX_HOOKS} hooks");
                    return Err(ConfigComplaint::new(entry.referenced, message));
                }
                self.read_one(&point, entry, task_type)?;
            }
        }
        Ok(())
    }

    /// Reads the hooks of one agent, which must be hooks of delivery.
    pub(crate) fn read_of_agent(
        &mut self,
        points: HooksByPoint,
        agent: &str,
    ) -> Result<(), ConfigComplaint> {
        for (Spanned { value: name, referenced: at, .. }, _) in &points.0 {
            let is_of_delivery =
                matches!(name.parse(), Ok(Point::BeforeSubmit | Point::AfterSubmit));
            if !is_of_delivery {
                let message = format!(
                    "an agent has hooks of its own at `before_submit` and `after_submit`, not at `{name}`"
                );
                return Err(ConfigComplaint::new(*at, message));
            }
        }
        self.read(points, Some(&of_agent(agent)))
    }

    /// Returns whether the project has a list for a point, even an empty one.
    pub(crate) fn has_list(&self, point: &Point) -> bool {
        self.lists.contains(point)
    }

    /// Returns the places of the hooks.
    pub(crate) fn places(self) -> Vec<(String, Location)> {
        self.places
    }

    fn read_one(
        &mut self,
        point: &Point,
        entry: Spanned<HookEntry>,
        task_type: Option<&str>,
    ) -> Result<(), ConfigComplaint> {
        let Spanned { value: mut entry, referenced: at, .. } = entry;
        let handler = self.handler(point, &mut entry, at)?;
        let needs_at = entry.needs.as_ref().map(|needs| needs.at);
        let options = options(point, &mut entry, (&self.room, self.gatekeepers))?;
        if let HookHandler::Builtin(builtin) = handler
            && builtin.is_reaction()
            && task_type.is_none()
        {
            if self.source == HookSource::User {
                let message = format!(
                    "`{}` is on in every project; `hookloop hooks disable` switches it off in one",
                    builtin.name()
                );
                return Err(ConfigComplaint::new(at, message));
            }
            return self.use_reaction(builtin, point, entry, at);
        }
        let is_named = entry.name.is_some();
        let name = match (entry.name.take(), &handler) {
            (Some(name), _) => name,
            (None, HookHandler::Builtin(builtin)) => builtin.name().to_owned(),
            (None, HookHandler::Declared(_)) => {
                return Err(ConfigComplaint::new(at, "a hook with `actions` needs a `name`"));
            }
            (None, handler) => self.free_name(&named_after(handler), task_type),
        };
        check_name(&name, at)?;
        let mut metadata = match &handler {
            HookHandler::Builtin(builtin) => builtin.hook().metadata,
            _ => HookMetadata::default(),
        };
        describe(&mut metadata, &mut entry);
        let hook = Hook {
            name,
            points: vec![point.clone()],
            task_type: task_type.map(str::to_owned),
            source: self.source,
            priority: entry.priority.unwrap_or(DEFAULT_PRIORITY),
            enabled: entry.enabled.unwrap_or(true),
            metadata,
            handler,
            options,
        };
        // A repeated hook without a name at the same point counts once.
        let is_same = |there: &Hook| {
            let named_so = Hook { name: there.name.clone(), ..hook.clone() };
            there.points.contains(point) && there.is_alike(&named_so)
        };
        if !is_named && self.hooks.list().iter().any(is_same) {
            return Ok(());
        }
        self.places.push((hook.name.clone(), at));
        if let Some(at) = needs_at {
            self.needing.push((task_type.map(str::to_owned), hook.name.clone(), at));
        }
        match self.hooks.get_mut_for(task_type, &hook.name) {
            // A hook that is repeated under another point also runs there.
            Some(there) if there.is_alike(&hook) && !there.points.contains(point) => {
                there.points.push(point.clone());
                Ok(())
            }
            Some(there)
                if there.source == HookSource::User && self.source == HookSource::Project =>
            {
                let message = format!("`{}` is a hook of your own; rename one of them", hook.name);
                Err(ConfigComplaint::new(at, message))
            }
            _ => self.hooks.register(hook).map_err(|error| ConfigComplaint::new(at, error)),
        }
    }

    /// Reads the handler of a hook. A hook has exactly one.
    fn handler(
        &self,
        point: &Point,
        entry: &mut HookEntry,
        at: Location,
    ) -> Result<HookHandler, ConfigComplaint> {
        // `run_tests` detects its command, unless one is given.
        if entry.command.is_some() && entry.builtin.as_deref() == Some(Builtin::RunTests.name()) {
            builtin(Builtin::RunTests.name(), point, at)?;
            entry.builtin = None;
            entry.name.get_or_insert_with(|| Builtin::RunTests.name().to_owned());
        }
        let given = [
            entry.command.is_some(),
            entry.builtin.is_some(),
            entry.actions.is_some(),
            entry.http.is_some(),
            entry.gatekeeper.is_some(),
            entry.file.is_some(),
            entry.changed.is_some(),
            entry.pattern.is_some(),
            entry.coverage.is_some(),
            entry.diff.is_some(),
        ];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let message = "a hook has exactly one of `command`, `use`, `actions`, `http`, `gatekeeper`, \
                           `file`, `changed`, `pattern`, `coverage` and `diff`";
            return Err(ConfigComplaint::new(at, message));
        }
        if let (None, Some(limits)) = (&entry.command, &entry.limits) {
            let message = "`limits` are for commands: nothing else starts a process";
            return Err(ConfigComplaint::new(limits.at, message));
        }
        if let (None, Some(sandbox)) = (&entry.command, &entry.sandbox) {
            let message = "`sandbox` is for commands: nothing else starts a process";
            return Err(ConfigComplaint::new(sandbox.at, message));
        }
        if let (None, None, Some(answers)) = (&entry.command, &entry.http, &entry.answers) {
            let message = "`answers` is for `command` and `http`: nothing else prints JSON";
            return Err(ConfigComplaint::new(answers.at, message));
        }
        if let Some(rule) = rule(point, entry, at)? {
            return Ok(HookHandler::Rule(rule));
        }
        if let Some(command) = entry.command.take() {
            return command_text(point, command).map(HookHandler::Command);
        }
        if let Some(name) = &entry.builtin {
            return builtin(name, point, at).map(HookHandler::Builtin);
        }
        if let Some(url) = entry.http.take() {
            return webhook(url);
        }
        if let Some(agents) = entry.gatekeeper.take() {
            return self.gatekeepers(point, agents.into_list(), entry.quorum.take(), at);
        }
        let Point::Event(_) = point else {
            let message = format!("`actions` follow events of tasks; `{point}` is not one");
            return Err(ConfigComplaint::new(at, message));
        };
        let known = |workflow: &str| self.workflows.contains_key(workflow);
        let actions = entry.actions.take().unwrap_or_default();
        let actions = actions.iter().map(|action| read_action(action, &known));
        Ok(HookHandler::Declared(actions.collect::<Result<_, _>>()?))
    }

    /// Reads gatekeepers, which review submitted or merged work.
    fn gatekeepers(
        &self,
        point: &Point,
        agents: Vec<String>,
        quorum: Option<Located<String>>,
        at: Location,
    ) -> Result<HookHandler, ConfigComplaint> {
        if !matches!(point, Point::BeforeSubmit | Point::BeforeMerge) {
            let message = format!("gatekeepers review what is submitted or merged, not `{point}`");
            return Err(ConfigComplaint::new(at, message));
        }
        if point.kind() != PointKind::Gate {
            let message = format!("gatekeepers give a verdict, and `{point}` is not a gate");
            return Err(ConfigComplaint::new(at, message));
        }
        let quorum = match quorum {
            Some(Located { value, at }) => {
                value.parse().map_err(|error: String| ConfigComplaint::new(at, error))?
            }
            None => Quorum::default(),
        };
        let terms = agents.iter().map(|name| terms_of(self.gatekeepers, name)).collect();
        Ok(HookHandler::Gatekeepers { agents, quorum, terms })
    }

    /// Reads a built-in reaction. It then runs only at the points that list it.
    fn use_reaction(
        &mut self,
        builtin: Builtin,
        point: &Point,
        mut entry: HookEntry,
        at: Location,
    ) -> Result<(), ConfigComplaint> {
        let wanted = builtin.name();
        if let Some(name) = entry.name.as_ref().filter(|name| *name != wanted) {
            let message = format!("a built-in keeps its name: `{wanted}`, not `{name}`");
            return Err(ConfigComplaint::new(at, message));
        }
        let defaults = builtin.hook();
        let Some(hook) = self.hooks.get_mut(wanted) else {
            return Err(ConfigComplaint::new(at, format!("there is no built-in hook `{wanted}`")));
        };
        let priority = entry.priority.unwrap_or(defaults.priority);
        let enabled = entry.enabled.unwrap_or(true);
        if self.listed.contains(&builtin) {
            if (hook.priority, hook.enabled) != (priority, enabled) {
                let message =
                    format!("`{wanted}` has other options under another point; a hook has one set");
                return Err(ConfigComplaint::new(at, message));
            }
        } else {
            self.listed.push(builtin);
            hook.points.clear();
        }
        hook.points.push(point.clone());
        (hook.priority, hook.enabled) = (priority, enabled);
        describe(&mut hook.metadata, &mut entry);
        Ok(())
    }

    /// Returns `base`, with a number if another hook has that name.
    fn free_name(&self, base: &str, task_type: Option<&str>) -> String {
        let is_free = |name: &String| self.hooks.get_for(task_type, name).is_none();
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        std::iter::once(base.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// Checks the whole list: `needs` must name hooks of the same point that run before.
    pub(crate) fn check_needs(&self) -> Result<(), ConfigComplaint> {
        for (task_type, name, at) in &self.needing {
            let Some(hook) = self.hooks.get_for(task_type.as_deref(), name) else { continue };
            check_needs_of(self.hooks, hook)
                .map_err(|message| ConfigComplaint::new(*at, message))?;
        }
        Ok(())
    }
}

fn builtin(name: &str, point: &Point, at: Location) -> Result<Builtin, ConfigComplaint> {
    let known = Builtin::ALL.into_iter().find(|builtin| builtin.name() == name);
    let Some(builtin) = known else {
        let known = Builtin::ALL.map(Builtin::name).join(", ");
        let message = format!("there is no built-in hook `{name}`; there are {known}");
        return Err(ConfigComplaint::new(at, message));
    };
    match builtin.fits(point) {
        true => Ok(builtin),
        false => Err(ConfigComplaint::new(at, format!("`{name}` has nothing to do at `{point}`"))),
    }
}

/// Reads a command whose values all have a safe place.
fn command_text(
    point: &Point,
    command: Located<OneOrMany>,
) -> Result<CommandText, ConfigComplaint> {
    let text = match command.value {
        OneOrMany::One(line) => CommandText::Shell(line),
        OneOrMany::Many(args) => CommandText::Exec(args),
    };
    match text.compile(&point.variables()) {
        Ok(_) => Ok(text),
        Err(error) => {
            let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            Err(ConfigComplaint::new(command.at, format!("{error}{hint}")))
        }
    }
}

fn webhook(url: Located<String>) -> Result<HookHandler, ConfigComplaint> {
    let host = url.value.strip_prefix("https://").or_else(|| url.value.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains('@') => {
            Ok(HookHandler::Http { url: url.value })
        }
        _ => {
            let message = format!("`{}` is not a URL: `https://host/path`", url.value);
            Err(ConfigComplaint::new(url.at, message))
        }
    }
}

/// Returns a name for a hook without one: that of its script or program.
fn named_after(handler: &HookHandler) -> String {
    let word = match handler {
        HookHandler::Command(CommandText::Shell(line)) => {
            let mut words = line.split_whitespace();
            words.find(|word| !word.contains('=')).unwrap_or_default().to_owned()
        }
        HookHandler::Command(CommandText::Exec(args)) => args.first().cloned().unwrap_or_default(),
        HookHandler::Http { url } => url
            .split("://")
            .nth(1)
            .unwrap_or_default()
            .split(['/', ':'])
            .next()
            .unwrap_or_default()
            .to_owned(),
        HookHandler::Gatekeepers { agents, .. } => format!("gatekeeper-{}", agents.join("-")),
        HookHandler::Rule(rule) => rule.to_string().replace(' ', "-").replace('.', "_"),
        HookHandler::Builtin(_) | HookHandler::Declared(_) => String::new(),
    };
    let file = word.rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(file);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = stem.chars().filter(|c| fits(*c)).take(NAME_MAX - 4).collect();
    match name.is_empty() {
        true => "hook".to_owned(),
        false => name,
    }
}

fn describe(metadata: &mut HookMetadata, entry: &mut HookEntry) {
    metadata.description = entry.description.take().or(metadata.description.take());
    metadata.author = entry.author.take().or(metadata.author.take());
    metadata.version = entry.version.take().or(metadata.version.take());
}

fn options(
    point: &Point,
    entry: &mut HookEntry,
    (room, gatekeepers): (&RoomRules, &[GatekeeperRules]),
) -> Result<HookOptions, ConfigComplaint> {
    check_room_options(point, entry)?;
    let when = entry.when.take().map(|when| condition(point, when)).transpose()?;
    if let Some(Located { at, .. }) = &entry.on_failure
        && point.kind() != PointKind::Gate
    {
        let message = format!("`on_failure` is for gates; a failure at `{point}` stops nothing");
        return Err(ConfigComplaint::new(*at, message));
    }
    if let Some(Located { at, .. }) = &entry.answers
        && point.kind() != PointKind::Gate
    {
        let message =
            format!("`answers` is for gates; the JSON of a hook at `{point}` always acts");
        return Err(ConfigComplaint::new(*at, message));
    }
    if let Some(Located { at, value }) = &entry.pipe_output
        && !matches!(value, PipeEntry::Bool(false))
        && !point.takes_pipe_output()
    {
        let message = format!(
            "`pipe_output` has no effect at `{point}`: no prompt of the agent follows its hooks"
        );
        return Err(ConfigComplaint::new(*at, message));
    }
    if entry.any_of.is_some() && point.kind() != PointKind::Gate {
        let message = format!("`any_of` is for gates; nothing has to pass at `{point}`");
        return Err(ConfigComplaint { at: None, message });
    }
    // A hook in a policy's group could pass instead of a required gate.
    if entry.any_of.as_ref().is_some_and(|group| group.starts_with(PREFIX) && group.contains('/')) {
        let message = format!("`any_of` does not begin with `{PREFIX}`");
        return Err(ConfigComplaint { at: None, message });
    }
    Ok(HookOptions {
        when,
        report: entry.report.take().map(patterns_inside).transpose()?.unwrap_or_default(),
        room: match entry.room.take() {
            Some(room) => RoomForm::read(room)?,
            // A setup prepares a room.
            None if *point == Point::Setup => {
                RoomRules { choice: RoomChoice::Clean, ..room.clone() }
            }
            None if has_room(point) => room.clone(),
            None => RoomRules::default(),
        },
        inputs: entry.inputs.take().map(patterns_inside).transpose()?.unwrap_or_default(),
        base_tests: base_tests(entry, gatekeepers)?,
        strength: entry.strength.take().map(StrengthEntry::read).transpose()?,
        exclusive: entry.exclusive.take().map(resource_name).transpose()?,
        timeout_ms: entry.timeout.take().map(|time| length(time.value, time.at)).transpose()?,
        pipe_output: match entry.pipe_output.take().map(|pipe| pipe.value) {
            None | Some(PipeEntry::Bool(false)) => PipeOutput::Never,
            Some(PipeEntry::Bool(true)) => PipeOutput::Always,
            Some(PipeEntry::OnFailure) => PipeOutput::OnFailure,
        },
        on_failure: match entry.on_failure.take().map(|failure| failure.value) {
            None | Some(FailureEntry::Closed) => OnFailure::Closed,
            Some(FailureEntry::Open) => OnFailure::Open,
        },
        answers: match entry.answers.take().map(|answers| answers.value) {
            None => AllowedAnswers::Stricter,
            Some(AnswersEntry::Json) => AllowedAnswers::Json,
        },
        env: entry.env.take().map(environment).transpose()?.unwrap_or_default(),
        cwd: entry.cwd.take().map(inside).transpose()?,
        needs: entry.needs.take().map_or_else(Vec::new, |needs| needs.value.into_list()),
        any_of: entry.any_of.take(),
        parallel: entry.parallel.unwrap_or(false),
        retry: entry.retry.take().map(retry).transpose()?.unwrap_or_default(),
        sandbox: entry.sandbox.take().map(sandbox).transpose()?,
        limits: entry.limits.take().map(limits).transpose()?.unwrap_or_default(),
    })
}

fn base_tests(
    entry: &mut HookEntry,
    gatekeepers: &[GatekeeperRules],
) -> Result<Option<BaseTestRules>, ConfigComplaint> {
    entry.base_tests.take().map_or(Ok(None), |tests| tests.value.read(gatekeepers))
}

fn condition(point: &Point, when: Located<String>) -> Result<String, ConfigComplaint> {
    match Condition::compile(&when.value, point) {
        Ok(_) => Ok(when.value),
        Err(error) => Err(ConfigComplaint::new(when.at, format!("`when`: {error}"))),
    }
}

fn retry(entry: Located<RetryEntry>) -> Result<RetryPolicy, ConfigComplaint> {
    let RetryEntry { attempts, backoff, jitter } = entry.value;
    if !(1..=ATTEMPTS_MAX).contains(&attempts) {
        return Err(ConfigComplaint::new(entry.at, format!("`attempts` is 1 to {ATTEMPTS_MAX}")));
    }
    let defaults = RetryPolicy::default();
    Ok(RetryPolicy {
        attempts,
        backoff_ms: backoff.map_or(Ok(defaults.backoff_ms), |time| length(time, entry.at))?,
        jitter: jitter.unwrap_or(defaults.jitter),
    })
}

fn limits(entry: Located<LimitsEntry>) -> Result<Limits, ConfigComplaint> {
    let Located { value: LimitsEntry { processes, memory, disk }, at } = entry;
    if processes.is_some_and(|processes| processes < PROCESSES_MIN) {
        return Err(ConfigComplaint::new(at, format!("`processes` is at least {PROCESSES_MIN}")));
    }
    let size = |text: Option<String>| {
        let size = text.map(|text| text.parse::<Size>()).transpose();
        size.map(|size| size.map(|size| size.bytes))
            .map_err(|error| ConfigComplaint::new(at, error))
    };
    Ok(Limits { processes, memory_bytes: size(memory)?, disk_bytes: size(disk)? })
}

/// Reads a path that a sandbox may write to: absolute, or in the project.
fn place(path: Located<String>) -> Result<String, ConfigComplaint> {
    let Some(rest) = path.value.strip_prefix('/') else { return inside(path) };
    inside(Located { value: rest.to_owned(), at: path.at })?;
    Ok(path.value)
}

fn sandbox(entry: Located<SandboxEntry>) -> Result<HookSandbox, ConfigComplaint> {
    let SandboxEntry { network, write } = entry.value;
    if network.is_none() && write.is_none() {
        let message = "a sandbox forbids something: `network: none`, `write: [worktree]`";
        return Err(ConfigComplaint::new(entry.at, message));
    }
    let paths = write.map(|paths| {
        paths
            .into_iter()
            .map(|path| place(Located { value: path, at: entry.at }))
            .collect::<Result<_, _>>()
    });
    Ok(HookSandbox { no_network: network.is_some(), write: paths.transpose()? })
}

pub(crate) fn read_action(
    entry: &Spanned<ActionEntry>,
    known_workflow: &dyn Fn(&str) -> bool,
) -> Result<DeclaredAction, ConfigComplaint> {
    let at = entry.referenced;
    let ActionEntry { create_task, update_task, execute_workflow, log } = &entry.value;
    let mut given = [
        ("create_task", create_task),
        ("update_task", update_task),
        ("execute_workflow", execute_workflow),
        ("log", log),
    ]
    .into_iter()
    .filter_map(|(kind, payload)| payload.as_ref().map(|payload| (kind, payload)));
    let (Some((kind, payload)), None) = (given.next(), given.next()) else {
        return Err(ConfigComplaint::new(
            at,
            "an action is one of create_task, update_task, execute_workflow, log",
        ));
    };
    // `execute_workflow: name` is short for `execute_workflow: {workflow_id: name}`.
    let payload = match payload {
        Value::String(name) if kind == "execute_workflow" => {
            serde_json::json!({ "workflow_id": name })
        }
        payload => payload.clone(),
    };
    DeclaredAction::check(kind, &payload)
        .map_err(|error| ConfigComplaint::new(at, format!("{kind}: {error}")))?;
    let workflow_id = payload.get("workflow_id").or_else(|| payload.get("workflowId"));
    if let Some(workflow) = workflow_id.and_then(Value::as_str)
        && !known_workflow(workflow)
    {
        return Err(ConfigComplaint::new(at, format!("there is no workflow `{workflow}`")));
    }
    let payload =
        TemplateValue::parse(&payload).map_err(|error| ConfigComplaint::new(at, error))?;
    Ok(DeclaredAction { kind, payload })
}

fn check_needs_of(hooks: &HookRegistry, hook: &Hook) -> Result<(), String> {
    for point in &hook.points {
        let mut neighbours = hooks.resolve(point.name(), hook.task_type.as_deref());
        neighbours.retain(|other| other.name != hook.name);
        for need in &hook.options.needs {
            let Some(other) = neighbours.iter().find(|other| other.name == *need) else {
                return Err(format!(
                    "hook `{}` needs `{need}`, which is no other hook of `{point}`",
                    hook.name
                ));
            };
            if (other.priority, position(hooks, other)) > (hook.priority, position(hooks, hook)) {
                return Err(format!(
                    "hook `{}` needs `{need}`, which runs after it; give it a lower priority",
                    hook.name
                ));
            }
        }
    }
    Ok(())
}

fn position(hooks: &HookRegistry, wanted: &Hook) -> usize {
    hooks.list().iter().position(|hook| std::ptr::eq(hook, wanted)).unwrap_or(usize::MAX)
}

/// Reads the hooks of the user's own file.
pub(crate) fn own_hooks(points: HooksByPoint) -> Result<Vec<Hook>, ConfigComplaint> {
    let (mut hooks, workflows) = (HookRegistry::default(), WorkflowActions::new());
    let mut reader = HookReader::new(&mut hooks, &workflows, &[], HookSource::User);
    reader.read(points, None)?;
    reader.check_needs()?;
    Ok(hooks.list().to_vec())
}

pub(crate) type WorkflowActions = BTreeMap<String, Vec<DeclaredAction>>;

pub(crate) fn read_workflows(
    entries: &BTreeMap<String, Spanned<Vec<Spanned<ActionEntry>>>>,
) -> Result<WorkflowActions, ConfigComplaint> {
    let mut workflows = WorkflowActions::new();
    for (name, steps) in entries {
        check_name(name, steps.referenced)?;
        if steps.value.is_empty() || steps.value.len() > MAX_STEPS {
            let message = format!("workflow `{name}` needs 1 to {MAX_STEPS} steps");
            return Err(ConfigComplaint::new(steps.referenced, message));
        }
        let known = |workflow: &str| entries.contains_key(workflow);
        let read = steps.value.iter().map(|step| read_action(step, &known));
        let read: Vec<DeclaredAction> = read.collect::<Result<_, _>>()?;
        // Workflows have no trust decision.
        if read.iter().any(DeclaredAction::decides) {
            let message = format!(
                "workflow `{name}` completes or unblocks a task, which a hook with `actions` does after `hookloop hooks trust`"
            );
            return Err(ConfigComplaint::new(steps.referenced, message));
        }
        workflows.insert(name.clone(), read);
    }
    Ok(workflows)
}
