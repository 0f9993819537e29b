//! Runs turns of coding agents: a prompt in, a final message and changed files out.
//!
//! This crate knows neither sessions nor deliveries. A turn returns when the agent and every process that it
//! started are gone. An agent gets its settings by arguments and environment variables: no turn writes an agent's
//! own files.
//!
//! - [`claude`], [`codex`], [`acp`]: Claude Code, Codex, and agents that speak the Agent Client Protocol
//! - [`command`], [`scripted`]: any program, and turns from a file for tests and the demo
//! - [`agent_chain`]: the agents of a session
//! - [`repo_consent`]: settings for agents in a repository, and whether the user trusts them
//! - [`command_access`], [`tools`]: the commands that an agent may run, and the tools of its session
//! - [`readiness`], [`version`], [`login`]: whether an agent is new enough and logged in
//! - [`faults`]: failures that no further turn removes; `limits`: rate limits of providers
//! - `jsonl_agent`: turns of agents that report in lines of JSON

pub mod acp;
pub mod agent_chain;
pub mod claude;
pub mod codex;
pub mod command;
pub mod command_access;
pub mod faults;
mod jsonl_agent;
mod limits;
pub mod login;
pub mod readiness;
pub mod repo_consent;
pub mod scripted;
pub mod tools;
pub mod version;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use command_access::{AgentPowers, CommandAccess};
use hookloop_config::agents::{AgentDialect, AgentProgram, AgentSettings, NoSuchAgent};
use hookloop_config::variables::DIAGNOSTICS_VARIABLE;
use hookloop_core::excerpt::{ExcerptRules, head_and_tail};
use hookloop_core::promise::Promise;
use hookloop_core::session::{AgentConversation, AgentFault, TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::CAUSE_VARIABLE;
use hookloop_hooks::resource_limits;
use hookloop_process::{Cancel, ExitReason, Job, JobResult, ProcessError};
pub use tools::McpServerCommand;

/// The most of a final message that is kept, half of it from its end.
pub const MESSAGE_MAX: usize = 16 * 1024;
/// The most refused requests that a report names.
const REFUSED_MAX: usize = 20;
/// The most of an agent's output that an error contains.
const ERROR_MAX: usize = 2_000;

/// A request to an agent: one turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnRequest<'a> {
    pub prompt: &'a str,
    /// Turns that ended before this one.
    pub before: u32,
    pub timeout: Duration,
    pub cancel: &'a Cancel,
    /// Variables of the agent's environment beside the user's.
    pub env: &'a [(&'static str, String)],
    /// The conversation to continue.
    pub conversation: Option<&'a AgentConversation>,
    /// The most that the turn may cost, in millionths of a dollar, for agents that keep to such a limit.
    pub budget_micros: u64,
    /// The tools of the session.
    pub tools: Option<&'a McpServerCommand>,
}

/// Progress of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnUpdate<'a> {
    /// Raw output. A character may be split between two updates.
    Output(&'a [u8]),
    /// A whole text of the agent.
    Text(&'a str),
    /// A tool that the agent uses, with its object, in one line.
    Tool(&'a str),
    /// The usage of the turn so far.
    Usage(Usage),
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnReport {
    pub result: TurnResult,
    /// The final message, shortened to [`MESSAGE_MAX`].
    pub message: String,
    /// The promises in the whole message.
    pub promises: Vec<Promise>,
    pub usage: Usage,
    /// The agent ended before it reported all of its usage.
    pub is_partial: bool,
    /// The agent did not report the cost of the turn.
    pub is_unpriced: bool,
    /// The line of stderr that says most about a failure.
    pub stderr: Option<String>,
    /// The cause of a failure that no further turn removes.
    pub fault: Option<AgentFault>,
    /// Requests of the agent that its permissions refused.
    pub refused: Vec<String>,
    pub artifact: Option<String>,
    pub conversation: Option<String>,
}

impl TurnReport {
    pub fn failed(error: impl Into<String>) -> TurnReport {
        TurnReport {
            result: TurnResult::Failed { error: error.into() },
            message: String::new(),
            promises: Vec::new(),
            usage: Usage::default(),
            is_partial: false,
            is_unpriced: false,
            stderr: None,
            fault: None,
            refused: Vec::new(),
            artifact: None,
            conversation: None,
        }
    }

    /// The report of a turn that no agent could begin.
    pub fn not_begun(error: &agent_chain::CrewError) -> TurnReport {
        TurnReport { fault: error.fault(), ..TurnReport::failed(error.to_string()) }
    }

    /// The report of a turn that was cancelled before it began.
    pub fn cancelled() -> TurnReport {
        TurnReport { result: TurnResult::Cancelled, ..TurnReport::failed("") }
    }
}

/// An agent that takes turns.
pub trait Agent: Send {
    /// Runs one turn to its end. No process of the turn is left when this returns.
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport;

    /// Returns whether a conversation can be continued at any time and any number of times.
    ///
    /// If not, a turn that answers a gate's feedback begins a new conversation.
    fn keeps_conversations(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAgent {
    #[error(transparent)]
    Unknown(#[from] NoSuchAgent),
    #[error("{}: {why}", path.display())]
    Script { path: PathBuf, why: String },
}

/// The agent of a session that takes no more turns.
#[derive(Debug)]
pub(crate) struct NoAgent;

impl Agent for NoAgent {
    fn turn(
        &mut self,
        _: &ExecContext,
        _: &TurnRequest<'_>,
        _: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        TurnReport::failed("there is nobody to take a turn")
    }
}

/// Opens an agent for the project in `directory`.
pub fn open(settings: AgentSettings, directory: &Path) -> Result<Box<dyn Agent>, BadAgent> {
    Ok(match (settings.dialect, &settings.program) {
        (AgentDialect::Claude, _) => Box::new(claude::ClaudeAgent::new(settings)),
        (AgentDialect::Codex, _) => Box::new(codex::CodexAgent::new(settings)),
        (AgentDialect::Acp, _) => Box::new(acp::AcpAgent::new(acp::AcpSettings::from(&settings))),
        (AgentDialect::Scripted, AgentProgram::Line(file)) => {
            Box::new(scripted::ScriptedAgent::load(&directory.join(file))?)
        }
        (AgentDialect::Scripted | AgentDialect::Command, _) => {
            Box::new(command::CommandAgent::new(settings))
        }
    })
}

/// Returns the user's environment for the program of an agent. With the variable, a `hookloop` that the agent runs
/// would print diagnostics where the agent reads answers.
fn without_diagnostics(runner: &ExecContext) -> Vec<(OsString, OsString)> {
    let own = runner.environment().iter();
    own.filter(|(name, _)| name != DIAGNOSTICS_VARIABLE).cloned().collect()
}

/// Runs an agent's process to its end.
fn run_process(runner: &ExecContext, job: Job<'_>) -> Result<JobResult, ProcessError> {
    // The arguments may hold the prompt.
    let program = job.argv.first().map(|program| program.to_string_lossy().into_owned());
    let program = program.unwrap_or_default();
    tracing::debug!(program, cwd = %runner.root().display(), "an agent starts");
    let began = Instant::now();
    let ran = runner.keepers().run(job);
    let took = began.elapsed();
    match &ran {
        Ok(ran) => tracing::debug!(program, exit = ?ran.exit, ?took, "an agent ended"),
        Err(error) => tracing::warn!(program, %error, ?took, "an agent's process failed"),
    }
    ran
}

/// Returns a turn that runs a shell command with the prompt on its standard input.
fn shell<'a>(line: &str, runner: &ExecContext, order: &TurnRequest<'a>) -> Job<'a> {
    Job {
        env: environment(runner, order, &[], &[]),
        stdin: order.prompt.as_bytes().to_vec(),
        cancel: Some(order.cancel),
        ..Job::new(
            ["/bin/sh", "-c", line].map(Into::into).to_vec(),
            runner.root().to_owned(),
            order.timeout,
        )
    }
}

/// The epoch of a claim that a person exported for their own commands.
const EPOCH_VARIABLE: &str = "HOOKLOOP_EPOCH";

/// Returns the environment of a turn: the user's, the variables of the configuration and of the turn, and the named
/// secrets.
fn environment(
    runner: &ExecContext,
    order: &TurnRequest<'_>,
    configured: &[(String, String)],
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let turn = order.env.iter().map(|(name, value)| (*name, value));
    let added = configured.iter().map(|(name, value)| (name.as_str(), value)).chain(turn);
    let mut env = without_diagnostics(runner);
    // The variable names an event of the project whose hook started this program, which may be another project.
    // The epoch belongs to a claim of the user, and not to the claim of the session.
    env.retain(|(name, _)| name != CAUSE_VARIABLE && name != EPOCH_VARIABLE);
    for (name, value) in added {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value.into()));
    }
    // The secrets were read before the turn began; otherwise it would not have begun.
    for (name, value) in runner.secrets(named.iter().map(String::as_str)).unwrap_or_default() {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    env
}

/// Returns the reason why a turn did not finish.
fn why(how: ExitReason, order: &TurnRequest<'_>) -> String {
    match how {
        ExitReason::Exited(code) => format!("the agent ended with exit code {code}"),
        ExitReason::Signalled(signal) => format!("the agent was killed by signal {signal}"),
        ExitReason::TimedOut => format!("the agent did not end within {:?}", order.timeout),
        ExitReason::OverLimit(limit) => {
            format!("the agent used too much: {}", resource_limits::exceeded(limit))
        }
        ExitReason::Cancelled => "the agent was told to end".to_owned(),
    }
}

/// Returns the line of an agent's stderr that says most about a failure; `None` if the agent exited with 0. The line
/// is redacted and safe for a terminal.
fn stderr_line(ran: &JobResult) -> Option<String> {
    if ran.exit == ExitReason::Exited(0) {
        return None;
    }
    faults::telling_line(&excerpt::of_output(&ran.output.stderr))
}

/// Returns a failed result: the reason, then the agent's stderr.
fn failure(ran: &JobResult, why: String) -> TurnResult {
    let said = excerpt::of_output_within(&ran.output.stderr, ERROR_MAX);
    let said = said.trim();
    let error = if said.is_empty() { why } else { format!("{why}\n{said}") };
    TurnResult::Failed { error }
}

/// Returns a text of at most `max` bytes: its first and its last lines.
pub fn clipped(text: &str, max: usize) -> String {
    head_and_tail(text, ExcerptRules { max, head_parts: 2, earlier: &[] })
}
