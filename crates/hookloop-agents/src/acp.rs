//! Agents that speak the Agent Client Protocol: opencode, Gemini CLI, and adapters for Codex and Claude Code.
//!
//! Only this module knows the protocol. Each turn has its own process below a keeper, so that nothing of it is left
//! afterwards. A conversation continues by its id. One thread talks with the agent, and another waits for its
//! process.
//!
//! - `client`: hookloop's side of the protocol
//! - `wire`: messages to and from the process
//! - `account`: the texts, tools and usage of a turn
//! - `permission`: answers to requests for permission
//! - `export`: the usage of opencode, from its own record

mod account;
mod client;
mod export;
mod permission;
mod wire;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use agent_client_protocol::v1::schema::{
    PromptResponse, RequestPermissionResponse, SessionId, StopReason,
};
use hookloop_config::agents::profile::AgentProfile;
use hookloop_config::agents::{AgentPermissions, AgentSettings};
use hookloop_core::redact::Redactor;
use hookloop_core::session::{AgentConversation, AgentFault, TurnResult};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::{ExecContext, kept, redacting};
use hookloop_hooks::resource_limits;
use hookloop_process::{
    Cancel, ExitReason, Job, JobResult, OutputFilter, OutputStream, ProcessError,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use self::account::{AcpTurnResult, TurnAccount};
use self::client::{ConversationEnd, ConversationEvent, EVENTS_WAITING, TurnParameters};
use self::permission::PermissionRules;
use self::wire::{AgentLine, LINES_WAITING, LineSplitter};
use super::faults::{FailedTurn, error_line, telling_line};
use super::limits::rate_limit;
use super::{
    Agent, ERROR_MAX, TurnReport, TurnRequest, TurnUpdate, clipped, environment, run_process,
};

/// How long an agent may take to exit after its answer, when its input is closed.
const END_GRACE: Duration = Duration::from_secs(1);
/// How long an agent may take to exit after it was told to stop.
const CANCEL_GRACE: Duration = Duration::from_millis(500);
const MINUTE_SECONDS: u64 = 60;
/// A margin after the minute, for clocks that differ slightly.
const MINUTE_MARGIN: Duration = Duration::from_secs(1);

/// The command of an agent, and its permissions.
#[derive(Clone, Debug)]
pub(crate) struct AcpSettings {
    /// The known agent that runs, if it is one.
    pub known: Option<&'static AgentProfile>,
    /// The program that speaks the protocol, and its arguments.
    pub argv: Vec<OsString>,
    /// Variables of its environment beside the user's.
    pub env: Vec<(String, String)>,
    /// Secrets in its environment.
    pub named: Vec<String>,
    pub permissions: AgentPermissions,
    /// Kinds of tools that are allowed beside the permissions, such as `execute`.
    pub allowed_tools: Vec<String>,
    /// The agent's mode, by its id.
    pub mode: Option<String>,
    /// The agent's model, by its id.
    pub model: Option<String>,
}

impl From<&AgentSettings> for AcpSettings {
    fn from(settings: &AgentSettings) -> AcpSettings {
        let known = settings.known();
        let mode = known.and_then(|known| known.modes).map(|[read, edit, full]| {
            match settings.permissions {
                AgentPermissions::Read => read,
                AgentPermissions::Edit => edit,
                AgentPermissions::Full => full,
            }
        });
        let asking = known.into_iter().flat_map(|known| known.env);
        let asking = asking.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        AcpSettings {
            known,
            argv: settings.argv(Vec::new(), &[]),
            env: asking.chain(settings.env.iter().cloned()).collect(),
            named: settings.named.clone(),
            permissions: settings.permissions,
            allowed_tools: settings.allowed_tools.clone(),
            mode: mode.map(str::to_owned),
            model: settings.model.clone(),
        }
    }
}

impl AcpSettings {
    fn resumes_after_minute(&self) -> bool {
        self.known.is_some_and(|known| known.resumes_after_minute)
    }
}

/// An agent that speaks the protocol.
#[derive(Debug)]
pub(crate) struct AcpAgent {
    settings: AcpSettings,
    /// The last conversation that began here, and when its first turn ended.
    begun: Option<(String, SystemTime)>,
}

impl AcpAgent {
    pub(crate) fn new(settings: AcpSettings) -> AcpAgent {
        AcpAgent { settings, begun: None }
    }
}

impl Agent for AcpAgent {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        let Some(redactor) = runner.redactor() else {
            return TurnReport::failed("the secrets of the environment are too many to look for");
        };
        if order.cancel.wait(self.wait_before(order.conversation)) {
            return TurnReport { result: TurnResult::Cancelled, ..TurnReport::failed("") };
        }
        let turn = AcpTurn { settings: &self.settings, runner, order, redactor };
        let mut report = turn.take(updates).unwrap_or_else(|error| {
            TurnReport::failed(format!("can't get ready for the agent: {error}"))
        });
        turn.count_requests(&mut report);
        if let (None, Some(id)) = (order.conversation, &report.conversation) {
            self.begun = Some((id.clone(), SystemTime::now()));
        }
        report
    }

    fn keeps_conversations(&self) -> bool {
        !self.settings.resumes_after_minute()
    }
}

impl AcpAgent {
    /// Returns the time to wait until the agent can resume the conversation.
    fn wait_before(&self, talk: Option<&AgentConversation>) -> Duration {
        match (&self.begun, talk) {
            (Some((id, ended)), Some(talk))
                if self.settings.resumes_after_minute() && *id == talk.id =>
            {
                left_of_minute(*ended, SystemTime::now())
            }
            _ => Duration::ZERO,
        }
    }
}

/// Returns the rest of the minute that contains `then`.
fn left_of_minute(then: SystemTime, now: SystemTime) -> Duration {
    let since_1970 = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let minute = since_1970(then).as_secs() / MINUTE_SECONDS;
    let next = Duration::from_secs((minute + 1) * MINUTE_SECONDS) + MINUTE_MARGIN;
    let longest = Duration::from_secs(MINUTE_SECONDS) + MINUTE_MARGIN;
    // A clock that was set back must not make the wait endless.
    next.saturating_sub(since_1970(now)).min(longest)
}

struct AcpTurn<'a> {
    settings: &'a AcpSettings,
    runner: &'a ExecContext,
    order: &'a TurnRequest<'a>,
    redactor: &'a Redactor,
}

/// The agent's side: the parts with which its process runs.
struct AgentSide<'a> {
    stdin: OwnedFd,
    lines: mpsc::Sender<AgentLine>,
    cancel: &'a Cancel,
    artifacts: &'a Path,
}

/// hookloop's side of the conversation.
struct ClientSide {
    pipe: OwnedFd,
    lines: mpsc::Receiver<AgentLine>,
    /// Notified when the user cancels the turn.
    cancelled: Arc<Notify>,
}

/// Ends the process, and the thread that waits for a cancellation, when it is dropped.
struct ProcessEnd<'a>(&'a Cancel);

impl Drop for ProcessEnd<'_> {
    fn drop(&mut self) {
        self.0.trigger();
    }
}

/// A turn before its result is decided.
struct TurnCourse<'a> {
    account: TurnAccount<'a>,
    outcome: ConversationEnd,
    ran: Result<JobResult, ProcessError>,
}

impl AcpTurn<'_> {
    fn take(&self, updates: &mut dyn FnMut(TurnUpdate<'_>)) -> io::Result<TurnReport> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let artifacts = self.runner.fresh_artifacts();
        let (stdin, pipe) = io::pipe()?;
        let (stdin, pipe) = (stdin.into(), pipe.into());
        let (sender, lines) = mpsc::channel(LINES_WAITING);
        let (ending, ended) = oneshot::channel();
        let (cancel, cancelled) = (Cancel::new()?, Arc::new(Notify::new()));
        let theirs = AgentSide { stdin, lines: sender, cancel: &cancel, artifacts: &artifacts };
        let ours = ClientSide { pipe, lines, cancelled: cancelled.clone() };
        let course = thread::scope(|scope| {
            let process = thread::Builder::new().spawn_scoped(scope, || {
                let ran = self.run(theirs);
                // The receiver is gone if the talk has failed.
                let _ = ending.send(());
                ran
            })?;
            // Dropped on a panic too: the scope waits for the threads.
            let over = ProcessEnd(&cancel);
            let watch = || {
                if self.order.cancel.wait_unless(&cancel) {
                    cancelled.notify_one();
                }
            };
            thread::Builder::new().spawn_scoped(scope, watch)?;
            let before = self.order.conversation.map(|talk| talk.usage);
            let mut account = TurnAccount::new(self.redactor, before);
            let outcome = self.talk(&runtime, ours, &mut account, updates)?;
            // The agent's input is closed by now.
            let grace = match outcome {
                ConversationEnd::Cancelled => CANCEL_GRACE,
                _ => END_GRACE,
            };
            // A process that does not end by then is ended when `over` is dropped.
            let _ = runtime.block_on(async { timeout(grace, ended).await });
            drop(over);
            let ran = process.join().map_err(|_| io::Error::other("its thread panicked"))?;
            Ok::<_, io::Error>(TurnCourse { account, outcome, ran })
        })?;
        Ok(self.report(course, &artifacts, updates))
    }

    /// Runs the agent's process to its end.
    fn run(&self, theirs: AgentSide<'_>) -> Result<JobResult, ProcessError> {
        let AgentSide { stdin, lines, cancel, artifacts } = theirs;
        let filter = |stream: OutputStream| -> OutputFilter<'_> {
            let mut redact = redacting(self.runner);
            if stream == OutputStream::Stderr {
                return redact;
            }
            // The stored output has no secrets. The protocol reads the original output.
            let mut cutter = LineSplitter::new(lines.clone());
            Box::new(move |piece, out| {
                redact(piece, out);
                cutter.push(piece);
            })
        };
        let (argv, root) = (self.settings.argv.clone(), self.runner.root().to_owned());
        let job = Job {
            env: environment(self.runner, self.order, &self.settings.env, &self.settings.named),
            stdin_from: Some(stdin),
            cancel: Some(cancel),
            artifacts: Some(artifacts.to_owned()),
            filter: Some(&filter),
            ..Job::new(argv, root, self.order.timeout)
        };
        run_process(self.runner, job)
    }

    /// Runs the conversation to its end, then closes the agent's input.
    fn talk(
        &self,
        runtime: &Runtime,
        ours: ClientSide,
        account: &mut TurnAccount<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> io::Result<ConversationEnd> {
        let wanted = TurnParameters {
            root: self.runner.root().to_owned(),
            prompt: self.order.prompt.to_owned(),
            conversation: self.order.conversation.map(|talk| SessionId::new(talk.id.clone())),
            mode: self.settings.mode.clone(),
            model: self.settings.model.clone(),
            tools: self.order.tools.cloned(),
        };
        let (sender, mut events) = mpsc::channel(EVENTS_WAITING);
        runtime.block_on(async {
            let pipe = pipe::Sender::from_owned_fd(ours.pipe)?;
            let transport = wire::transport(pipe, ours.lines);
            let turn = client::take_turn(transport, wanted, ours.cancelled, sender);
            let mut turn = std::pin::pin!(turn);
            let outcome = loop {
                let event = tokio::select! {
                    biased;
                    Some(event) = events.recv() => event,
                    outcome = &mut turn => ConversationEvent::Over(outcome),
                };
                if let Some(outcome) = self.happen(event, account, updates) {
                    break outcome;
                }
            };
            Ok(outcome)
        })
    }

    fn happen(
        &self,
        event: ConversationEvent,
        account: &mut TurnAccount<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> Option<ConversationEnd> {
        match event {
            ConversationEvent::Begun(session) => account.begin(session),
            ConversationEvent::Told(told) => account.take(*told, updates),
            ConversationEvent::Asked(asked, responder) => {
                let guard = PermissionRules {
                    permissions: self.settings.permissions,
                    allowed_tools: &self.settings.allowed_tools,
                    root: self.runner.root(),
                };
                let outcome = account.decide(*asked, &guard, updates);
                // An agent that does not wait for it is gone.
                if let Err(error) = responder.respond(RequestPermissionResponse::new(outcome)) {
                    tracing::debug!(%error, "an agent does not read the answer to its question");
                }
            }
            ConversationEvent::Over(outcome) => {
                if let ConversationEnd::Answered(answer) = &outcome {
                    account.answered(answer, updates);
                }
                return Some(outcome);
            }
        }
        None
    }

    fn report(
        &self,
        course: TurnCourse<'_>,
        artifacts: &Path,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        let TurnCourse { account, outcome, ran } = course;
        let conversation = account.session().map(ToString::to_string);
        let said = account.finish(updates);
        let artifact = ran.as_ref().ok().and_then(|ran| kept(ran, artifacts));
        let is_partial = !matches!(outcome, ConversationEnd::Answered(_));
        let stderr = stderr_of(&outcome, ran.as_ref().ok());
        let (result, fault) = self.result(outcome, ran, &said);
        let AcpTurnResult { message, promises, usage, refused, has_cost, .. } = said;
        TurnReport {
            stderr: stderr.filter(|_| result != TurnResult::Finished),
            result,
            message,
            promises,
            usage,
            is_partial,
            is_unpriced: !has_cost,
            fault,
            refused,
            artifact,
            conversation,
        }
    }

    fn result(
        &self,
        outcome: ConversationEnd,
        ran: Result<JobResult, ProcessError>,
        said: &AcpTurnResult,
    ) -> (TurnResult, Option<AgentFault>) {
        // hookloop's own texts about an answer are not searched for a provider's words.
        let is_of_provider = said.is_broken || !matches!(outcome, ConversationEnd::Answered(_));
        let told = match outcome {
            ConversationEnd::Answered(answer) => match stopped(&answer, said) {
                Ok(()) => return (TurnResult::Finished, None),
                Err(why) => Ok(why),
            },
            ConversationEnd::Failed(why) => Ok(why),
            ConversationEnd::Ended(why) => Err(why),
            ConversationEnd::Cancelled => return (TurnResult::Cancelled, None),
        };
        if self.order.cancel.is_triggered() {
            return (TurnResult::Cancelled, None);
        }
        let base = self.settings.known.map(|known| known.name);
        let why = match (told, ran) {
            (_, Err(error)) => error.to_string(),
            // The message of an agent that was stopped is not the reason.
            (Ok(why), Ok(ran))
                if !matches!(ran.exit, ExitReason::TimedOut | ExitReason::OverLimit(_)) =>
            {
                why
            }
            (told, Ok(ran)) => {
                let stderr = excerpt::of_output(&ran.output.stderr);
                let has_exited = matches!(ran.exit, ExitReason::Exited(_));
                let turn = FailedTurn { base, error: "", stderr: &stderr };
                let fault = turn.fault().filter(|_| has_exited);
                return (failed(self.ended(&ran, told.err().flatten())), fault);
            }
        };
        let error = clipped(self.redactor.text(&why).trim(), ERROR_MAX);
        let limit = rate_limit(&error, hookloop_config::clock::now().0.cast_unsigned());
        match limit.filter(|_| is_of_provider) {
            Some(until_ms) => (TurnResult::RateLimited { error, until_ms }, None),
            None => {
                let fault = FailedTurn { base, error: &error, stderr: "" }.fault();
                (failed(error), fault.filter(|_| is_of_provider))
            }
        }
    }

    /// Returns the error of a process that ended without an answer.
    fn ended(&self, ran: &JobResult, why: Option<String>) -> String {
        let without = "without a final answer";
        let why = match ran.exit {
            ExitReason::TimedOut => {
                format!("the agent did not end within {:?}", self.order.timeout)
            }
            ExitReason::OverLimit(limit) => {
                format!("the agent used too much: {}", resource_limits::exceeded(limit))
            }
            ExitReason::Exited(code) => format!("the agent ended {without}, with exit code {code}"),
            ExitReason::Signalled(signal) => {
                format!("the agent ended {without}, by signal {signal}")
            }
            ExitReason::Cancelled => match why {
                Some(why) => format!("the agent can't be understood any more: {why}"),
                None => format!("the agent closed its output {without}"),
            },
        };
        let said = excerpt::of_output_within(&ran.output.stderr, ERROR_MAX).trim().to_owned();
        if said.is_empty() { why } else { format!("{why}\n{said}") }
    }
}

/// Returns the line of stderr that says most about a failure. Agents log a lot there. So if the agent reports an
/// error by the protocol, only a line that states an error counts.
fn stderr_of(outcome: &ConversationEnd, ran: Option<&JobResult>) -> Option<String> {
    let stderr = excerpt::of_output(&ran?.output.stderr);
    match outcome {
        ConversationEnd::Ended(_) => telling_line(&stderr),
        ConversationEnd::Answered(_) | ConversationEnd::Failed(_) => error_line(&stderr),
        ConversationEnd::Cancelled => None,
    }
}

fn failed(error: String) -> TurnResult {
    TurnResult::Failed { error }
}

/// Returns whether an answer means that the agent finished its work, or the reason why not.
fn stopped(answer: &Value, said: &AcpTurnResult) -> Result<(), String> {
    let why = match PromptResponse::deserialize(answer).map(|answer| answer.stop_reason) {
        Ok(StopReason::EndTurn) if said.is_broken => {
            return Err(format!("the agent could not go on: {}", said.message));
        }
        Ok(StopReason::EndTurn) => return Ok(()),
        Ok(StopReason::MaxTokens) => "the agent used all the tokens that it has for a turn",
        Ok(StopReason::MaxTurnRequests) => "the agent made all the requests that it has for a turn",
        Ok(StopReason::Refusal) => "the agent's model refuses to go on",
        // Some agents stop when a request is refused.
        Ok(StopReason::Cancelled) if !said.refused.is_empty() => {
            return Err(format!(
                "the agent stopped when it was refused {}",
                said.refused.join(", ")
            ));
        }
        Ok(StopReason::Cancelled) => "the agent says that its turn was cancelled",
        Ok(_) => "the agent stopped for a reason that is not known here",
        Err(error) => return Err(format!("the agent's answer is none: {error}")),
    };
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use hookloop_core::session::Usage;
    use serde_json::json;

    use super::account::AcpTurnResult;
    use super::{left_of_minute, stopped};

    #[test]
    fn a_rate_limit_per_minute_is_waited_for_until_its_minute_ends() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let check = |then, now, seconds| {
            let wait = left_of_minute(at(then), at(now));
            assert_eq!(wait, Duration::from_secs(seconds), "{then} {now}");
        };
        check(600, 600, 61);
        check(600, 659, 2);
        check(659, 659, 2);
        check(659, 660, 1);
        check(659, 661, 0);
        check(659, 9_999, 0);
        check(9_999, 600, 61);
    }

    #[test]
    fn only_the_stop_reason_end_turn_is_a_success() {
        let said = || AcpTurnResult {
            message: "429".to_owned(),
            promises: Vec::new(),
            usage: Usage::default(),
            refused: Vec::new(),
            is_broken: false,
            has_cost: false,
        };
        let why =
            |reason: &str, said: &AcpTurnResult| stopped(&json!({ "stopReason": reason }), said);
        assert_eq!(why("end_turn", &said()), Ok(()));
        for reason in ["max_tokens", "max_turn_requests", "refusal", "cancelled", "tired"] {
            assert!(why(reason, &said()).is_err(), "{reason}");
        }
        assert!(stopped(&json!({}), &said()).is_err());
        let broken = why("end_turn", &AcpTurnResult { is_broken: true, ..said() });
        assert_eq!(broken, Err("the agent could not go on: 429".to_owned()));
        let refused = vec!["edit: a.txt".to_owned()];
        let refused = why("cancelled", &AcpTurnResult { refused, ..said() });
        assert_eq!(refused, Err("the agent stopped when it was refused edit: a.txt".to_owned()));
    }
}
