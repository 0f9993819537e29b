//! Runs one hook: its command, its environment, its input and its result.
//!
//! A runner has two directories. `home` is the project's, where the hooks are defined and trusted. `root` is the
//! directory in which they run, such as a task's worktree.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookloop_config::variables::{BASE, CI_VARIABLE, LOG_SELECTORS, TRACE_PARENT};
use hookloop_core::command_line::Invocation;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookSource};
use hookloop_core::hook_protocol::ProcessExit;
use hookloop_core::id::TaskId;
use hookloop_core::options::EnvEntry;
use hookloop_core::point::{Point, PointKind};
use hookloop_core::rule::Rule;
use hookloop_process::{Job, find_program};
use serde_json::{Value, json};

use crate::exec_context::ExecContext;
use crate::frozen_hooks::FrozenHooks;
use crate::gate_report::GateReport;
use crate::gate_room::{RoomPlace, has_room};
use crate::hook_context::{CAUSE_VARIABLE, HookContext, SessionCall, SessionContext};
use crate::hook_outcome::{self, RawHookOutput};
use crate::hook_run::{CHANGED, HookRun, NOT_TRUSTED, RunRefusal};
use crate::hook_values::task_value;
use crate::rule_check::RuleFiles;
use crate::sandbox::{PreparedSandbox, SandboxContext, TEMPORARY_FILES};
use crate::secrets::SecretError;
use crate::trust::{AgentGround, HookOffer, HookStanding, SeenHook, Trust, TrustScope};
use crate::{hook_values, resource_limits, rule_check, webhook};

/// Runs the hooks of one project.
#[derive(Clone)]
pub struct HookRunner {
    exec: ExecContext,
    trust: Trust,
    /// The frozen hooks of the session, or `None` outside of sessions.
    frozen: Option<Arc<FrozenHooks>>,
    /// The room of gates, if there is one.
    room: Option<Arc<RoomPlace>>,
}

impl Deref for HookRunner {
    type Target = ExecContext;

    /// Returns the execution context, which a runner extends by trust and frozen hooks.
    fn deref(&self) -> &ExecContext {
        &self.exec
    }
}

impl std::fmt::Debug for HookRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runner in {}", self.root().display())
    }
}

impl HookRunner {
    pub fn new(exec: ExecContext, trust: Trust) -> HookRunner {
        HookRunner { exec, trust, frozen: None, room: None }
    }

    /// Returns a runner of these hooks for work in another directory.
    #[must_use]
    pub fn at(&self, root: PathBuf) -> HookRunner {
        HookRunner { exec: self.exec.at(root), ..self.clone() }
    }

    /// Returns a runner whose gates run in a room.
    #[must_use]
    pub fn in_room(&self, room: Option<Arc<RoomPlace>>) -> HookRunner {
        HookRunner { room, ..self.clone() }
    }

    /// Returns the room in which a hook runs, if it runs in one.
    pub fn room_of(&self, hook: &Hook) -> Option<&RoomPlace> {
        self.room.as_deref().filter(|_| has_room(hook))
    }

    /// Returns the working directory of a hook, as this program sees it.
    pub(crate) fn directory_of(&self, hook: &Hook) -> PathBuf {
        let root = self.room_of(hook).map_or(self.root(), RoomPlace::files);
        hook.options.cwd.as_deref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd))
    }

    /// Returns the files that a hook is about, as this program sees them.
    pub fn files_of(&self, hook: &Hook) -> &Path {
        self.room_of(hook).map_or(self.root(), RoomPlace::files)
    }

    /// Returns the project's directory as a hook sees it.
    pub(crate) fn seen_root(&self, hook: &Hook) -> &Path {
        self.room_of(hook).map_or(self.root(), RoomPlace::seen)
    }

    /// Returns the digest of a gate's definition and scripts, if the gate may run.
    pub fn digest_of(&self, hook: &Hook) -> Option<String> {
        self.may_run(hook).ok().map(|seen| seen.digest)
    }

    /// Whether all secrets of a hook were already read.
    pub fn has_secrets_of(&self, hook: &Hook) -> bool {
        self.exec.has_secrets(named(hook))
    }

    /// Returns a runner for a session with its frozen hooks.
    #[must_use]
    pub fn held_to(&self, frozen: Option<Arc<FrozenHooks>>) -> HookRunner {
        HookRunner { frozen, ..self.clone() }
    }

    /// Returns the secrets that a hook names, for its environment.
    pub fn secrets_of(&self, hook: &Hook) -> Result<Vec<(OsString, OsString)>, SecretError> {
        self.secrets(named(hook))
    }

    /// Returns the trust of a hook in its present form.
    pub fn standing(&self, hook: &Hook) -> HookStanding {
        if hook.source == HookSource::Builtin {
            return HookStanding::Own;
        }
        match SeenHook::look(self.home(), hook) {
            Ok(seen) => self.standing_of(hook, &seen),
            Err(_) => HookStanding::Untrusted,
        }
    }

    pub fn standing_of(&self, hook: &Hook, seen: &SeenHook) -> HookStanding {
        self.trust.standing_of(hook, seen)
    }

    pub fn trust_scope(&self) -> TrustScope<'_> {
        TrustScope { home: self.home(), state: self.state(), trust: &self.trust }
    }

    /// Trusts these hooks and gates if `digest`, which was trusted elsewhere, is theirs.
    #[must_use]
    pub fn agreed_elsewhere(mut self, offer: &HookOffer, digest: &str) -> HookRunner {
        if self.trust.by_digest().is_none() {
            self.trust.accept_if(offer, |found| found == digest);
        }
        self
    }

    /// Returns the user's trust decisions.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns the directory, the trust and the search path that agents need.
    pub fn ground(&self) -> AgentGround<'_> {
        AgentGround { root: self.root(), trust: &self.trust, path: self.path() }
    }

    /// Returns the program of a hook's command, if it is not installed.
    pub fn missing_program(&self, hook: &Hook) -> Option<String> {
        const WORDS: [&str; 13] = [
            "if", "for", "while", "until", "case", "cd", "exit", "test", "set", "export", "trap",
            "eval", "[",
        ];
        let HookHandler::Command(text) = &hook.handler else { return None };
        let word = match text {
            CommandText::Exec(args) => args.first()?.as_str(),
            CommandText::Shell(line) => line.split_whitespace().find(|word| !word.contains('='))?,
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !word.chars().all(is_plain) || WORDS.contains(&word) {
            return None;
        }
        let base = self.root().join(hook.options.cwd.as_deref().unwrap_or(""));
        let is_there = if word.contains('/') {
            base.join(word).is_file()
        } else {
            find_program(word, self.path()).is_some()
        };
        (!is_there).then(|| word.to_owned())
    }

    /// Posts the input of a hook to its URL.
    pub fn send(
        &self,
        hook: &Hook,
        hook_context: &HookContext<'_>,
        url: &str,
        (attempt, context): (u32, &Value),
    ) -> HookRun {
        let input = self.input(hook, hook_context, (attempt, context), self.root());
        let timeout = hook.options.timeout_at(hook_context.point.kind());
        let said = webhook::send(self.http(), url, &input, Duration::from_millis(timeout));
        hook_outcome::judged(hook, hook_context.point, self.without_secrets(said), attempt)
    }

    /// Redacts the response of a webhook.
    fn without_secrets(&self, said: RawHookOutput) -> RawHookOutput {
        let Some(redactor) = self.redactor() else { return said };
        let (stdout, whole) =
            (redactor.text(&said.stdout), said.whole.map(|text| redactor.text(&text)));
        RawHookOutput { stdout, whole, ..said }
    }

    /// Checks a rule and returns the result in the form of a process result.
    pub fn check(&self, hook: &Hook, rule: &Rule, hook_context: &HookContext<'_>) -> HookRun {
        let began = std::time::Instant::now();
        let changes = || hook_context.changes.map(<[_]>::to_vec);
        let room = self.room_of(hook);
        let files = RuleFiles {
            root: room.map_or(self.root(), RoomPlace::files),
            since: room.map(RoomPlace::entered),
            tree: room.map_or(&[], RoomPlace::tree_files),
        };
        let (code, stderr) = match rule_check::holds(rule, files, changes) {
            Ok(()) => (0, String::new()),
            Err(why) => (2, why),
        };
        let said = RawHookOutput {
            ended: ProcessExit::Exited(code),
            duration: began.elapsed(),
            stdout: String::new(),
            whole: Some(String::new()),
            stdout_bytes: 0,
            stderr_bytes: stderr.len() as u64,
            left_out: Vec::new(),
            both: None,
            quiet_for: Duration::ZERO,
            stderr,
            artifact: None,
        };
        let run = hook_outcome::judged(hook, hook_context.point, said, 1);
        HookRun { in_room: room.is_some(), ..run }
    }

    /// Returns the hook in its present form, if it may run. Exactly the bytes that were checked
    /// run.
    pub fn may_run(&self, hook: &Hook) -> Result<SeenHook, RunRefusal> {
        if let Some(frozen) = self.frozen.as_ref().filter(|_| hook.source != HookSource::Builtin) {
            return Ok(frozen.may_run(self.home(), hook)?);
        }
        let seen = SeenHook::look(self.home(), hook).map_err(|error| error.to_string())?;
        match self.standing_of(hook, &seen) {
            HookStanding::Own | HookStanding::Trusted => Ok(seen),
            HookStanding::Modified => Err(RunRefusal::untrusted(CHANGED)),
            HookStanding::Untrusted => Err(RunRefusal::untrusted(NOT_TRUSTED)),
        }
    }

    /// Returns the command of a hook at a hook point, if the hook may run.
    pub(crate) fn invocation(
        &self,
        hook: &Hook,
        hook_context: &HookContext<'_>,
        report: Option<&GateReport>,
    ) -> Result<Invocation, RunRefusal> {
        let seen = self.may_run(hook)?;
        let HookHandler::Command(text) = &hook.handler else {
            return Err("it is not a hook that starts something".to_owned().into());
        };
        // A second search at the start of the command could find another file.
        if let Some(absent) = &seen.named.absent {
            return Err(format!("it runs `{absent}`, which is not there").into());
        }
        let kept = self.trust.keep(&seen).map_err(|error| error.to_string())?;
        let text = seen.named.pinned(self.home(), text, &kept)?;
        let text = report.map_or_else(|| text.clone(), |report| report.added_to(&text));
        let line =
            text.compile(&hook_context.point.variables()).map_err(|error| error.to_string())?;
        let values = hook_values::for_command(hook_context, self.root());
        let value = |name: &'static str| values.get(name).map(|value| value.clone().into_bytes());
        Ok(line.invocation(&value).map_err(|error| error.to_string())?)
    }

    /// Returns the job of one attempt at a hook's command.
    pub fn job<'a>(
        &self,
        hook: &Hook,
        hook_context: &HookContext<'a>,
        invocation: &Invocation,
        sandbox: &PreparedSandbox,
        (attempt, context): (u32, &Value),
    ) -> Job<'a> {
        let root = self.seen_root(hook);
        let cwd = match &hook.options.cwd {
            Some(cwd) => root.join(cwd),
            None => root.to_owned(),
        };
        let os = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let timeout = hook.options.timeout_at(hook_context.point.kind());
        let mut env = self.environment_of(hook, hook_context, invocation);
        if let Some(room) = self.room_of(hook) {
            room.adapt(&mut env);
        }
        // The last of two variables with the same name wins.
        env.extend(sandbox.variable());
        Job {
            env,
            confinement: sandbox.confinement.clone(),
            limits: resource_limits::of_hook(hook.options.limits),
            cancel: hook_context.cancel,
            hold: hook_context.reaction.and_then(|reaction| reaction.lock),
            stdin: self
                .input(hook, hook_context, (attempt, context), &cwd)
                .to_string()
                .into_bytes(),
            ..Job::new(
                invocation.argv.iter().map(os).collect(),
                cwd,
                Duration::from_millis(timeout),
            )
        }
    }

    /// Refuses a `cwd` that leads out of the project through a link.
    ///
    /// A `cwd` that does not exist fails when the hook starts.
    pub fn check_directory(&self, hook: &Hook) -> Result<(), String> {
        let Some(cwd) = &hook.options.cwd else { return Ok(()) };
        let root = self.room_of(hook).map_or(self.root(), RoomPlace::files);
        let (Ok(root), Ok(directory)) = (root.canonicalize(), root.join(cwd).canonicalize()) else {
            return Ok(());
        };
        if directory.starts_with(&root) {
            return Ok(());
        }
        Err(format!(
            "`cwd: {cwd}` is a link that leads out of the project: name a directory inside of it"
        ))
    }

    /// Returns the user's directory of temporary files.
    pub(crate) fn temporary_files(&self) -> PathBuf {
        let own = self.environment().iter().find(|(name, _)| name == "TMPDIR");
        own.map_or_else(|| PathBuf::from(TEMPORARY_FILES), |(_, value)| PathBuf::from(value))
    }

    /// Prepares the hook's sandbox for a run.
    pub fn sandbox(&self, hook: &Hook) -> Result<PreparedSandbox, String> {
        let (root, state) = (self.seen_root(hook), self.state());
        let temporary_files = self.temporary_files();
        let temporary_files = Some(temporary_files.as_path());
        let around = SandboxContext { root, state, temporary_files };
        match self.room_of(hook) {
            Some(room) => {
                let parallel = hook.options.parallel.then_some(hook.name.as_str());
                PreparedSandbox::in_room(hook.options.sandbox.as_ref(), around, (room, parallel))
            }
            None => PreparedSandbox::new(hook.options.sandbox.as_ref(), around),
        }
    }

    /// Returns the complete environment of a hook's process.
    fn environment_of(
        &self,
        hook: &Hook,
        hook_context: &HookContext<'_>,
        invocation: &Invocation,
    ) -> Vec<(OsString, OsString)> {
        let own = |name: &str| {
            let found = self.environment().iter().find(|(known, _)| known.to_str() == Some(name));
            found.map(|(_, value)| value.clone())
        };
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        // Makes test runners that watch files run once. A hook that sets the variable in `env`
        // overrides it.
        if !hook.options.env.iter().any(|entry| entry.name() == CI_VARIABLE) {
            env.insert(CI_VARIABLE.into(), "1".into());
        }
        for name in BASE.iter().chain(&LOG_SELECTORS) {
            if let Some(value) = own(name) {
                env.insert(name.into(), value);
            }
        }
        // The path must be absolute, as a hook may run in another directory than this process.
        if let Some(policy) = env.get_mut(OsStr::new("HOOKLOOP_POLICY"))
            && let Ok(absolute) = std::path::absolute(&*policy)
        {
            *policy = absolute.into();
        }
        for entry in &hook.options.env {
            match entry {
                EnvEntry::Inherited(name) => {
                    if let Some(value) = own(name) {
                        env.insert(name.into(), value);
                    }
                }
                EnvEntry::Set { name, value } => {
                    env.insert(name.into(), value.into());
                }
            }
        }
        let task = hook_context.task_id().map(TaskId::to_string).unwrap_or_default();
        let root = self.seen_root(hook).as_os_str();
        env.insert("CLAUDE_PROJECT_DIR".into(), root.into());
        env.insert("HOOKLOOP_PROJECT".into(), root.into());
        env.insert("HOOKLOOP_TASK_ID".into(), task.into());
        env.insert("HOOKLOOP_POINT".into(), hook_context.point.name().into());
        env.insert("HOOKLOOP_HOOK".into(), hook.name.clone().into());
        if let Some(reaction) = &hook_context.reaction {
            env.insert(CAUSE_VARIABLE.into(), reaction.variable(&hook.name));
        }
        if let Some(id) = hook_context.session_id() {
            env.insert("HOOKLOOP_SESSION".into(), id.into());
        }
        if let Some(SessionContext { call, trace_parent, .. }) = hook_context.session {
            let iteration = call.iteration().to_string();
            env.insert("HOOKLOOP_ITERATION".into(), iteration.into());
            if let Some(parent) = trace_parent {
                env.insert(TRACE_PARENT.into(), parent.into());
            }
        }
        for (name, value) in &invocation.env {
            env.insert(name.into(), OsString::from_vec(value.clone()));
        }
        env.into_iter().collect()
    }

    /// Returns the input of the hook, one JSON object.
    fn input(
        &self,
        hook: &Hook,
        hook_context: &HookContext<'_>,
        (attempt, context): (u32, &Value),
        cwd: &Path,
    ) -> Value {
        let task = hook_context.task;
        let event = hook_context.event.map(|event| {
            json!({
                "id": event.id.to_string(),
                "type": event.body.kind(),
                "timestamp": event.at,
                "actor": event.actor,
                "node_id": event.node_id(),
                "nodeId": event.node_id(),
                "data": event.body.data_for_hooks(),
            })
        });
        let mut input = json!({
            "session_id": hook_context.session_id().unwrap_or_default(),
            "transcript_path": null,
            "cwd": cwd,
            "hook_event_name": hook_context.point.event_name(),
            "task_id": hook_context.task_id(),
            "task_subject": task.map(|task| task.spec.goal.clone()),
            "task_description": task.map(|task| task.spec.description.clone()),
            "hookloop": {
                "point": hook_context.point.name(),
                "hook": hook.name,
                "attempt": attempt,
                "max_attempts": hook.options.retry.attempts,
                "task": task.map(task_value),
                "event": event,
            },
        });
        if let Some(session) = hook_context.session {
            add_session(&mut input, session, hook_context.point);
        }
        if let Some((branch, base)) = hook_context.branches {
            let ours = &mut input["hookloop"];
            ours["branch"] = json!(branch);
            ours["base_branch"] = json!(base);
            ours["worktree"] = json!(self.root());
        }
        if let Some(delivery) = hook_context.delivery {
            let ours = &mut input["hookloop"];
            ours["delivery"] = json!({
                "url": delivery.url,
                "number": delivery.number,
                "head": delivery.head,
                "commits": delivery.commits,
                "agent": delivery.agent,
            });
            ours["context"] = if context.is_null() { json!({}) } else { context.clone() };
        }
        input
    }
}

/// Adds the session to the input of a hook.
fn add_session(input: &mut Value, context: &SessionContext<'_>, point: &Point) {
    let SessionCall { id, session, error, validated, .. } = context.call;
    let last = session.last.as_ref();
    input["session_id"] = json!(id);
    input["transcript_path"] = json!(context.transcript);
    if let Some(error) = error {
        input["error"] = json!(error);
    }
    if point.kind() == PointKind::Gate || *point == Point::PostIteration {
        input["last_assistant_message"] = json!(last.map(|last| last.message.as_str()));
    }
    if *point == Point::Stop {
        input["stop_hook_active"] = json!(session.was_sent_back);
    }
    let limits = &session.plan.limits;
    let results = validated
        .iter()
        .map(|result| json!({ "ruleName": result.rule, "passed": result.has_passed() }));
    let promises =
        context.call.promises().iter().map(|promise| json!({ "type": promise, "detected": true }));
    let ours = &mut input["hookloop"];
    ours["iteration"] = json!(context.call.iteration());
    ours["worktree"] = json!(context.root);
    ours["files_modified"] = json!(last.map_or(&[][..], |last| &last.changed));
    ours["validation_results"] = results.collect();
    ours["promises"] = promises.collect();
    ours["limits"] = json!({
        "max_iterations": limits.max_iterations,
        "gate_retries": limits.gate_retries,
        "max_tokens": limits.max_tokens,
        "max_cost_micros": limits.max_cost_micros,
    });
    ours["usage"] = json!({
        "gate_retries": session.retries,
        "tokens": session.usage.tokens(),
        "cost_micros": session.cost().known_micros(),
    });
}

/// Returns the variables that a hook inherits.
fn named(hook: &Hook) -> impl Iterator<Item = &str> {
    hook.options.env.iter().filter_map(|entry| match entry {
        EnvEntry::Inherited(name) => Some(name.as_str()),
        EnvEntry::Set { .. } => None,
    })
}
