//! Runs turns of coding agents: a prompt in, a final message and changed files out.
//!
//! This crate knows neither sessions nor deliveries. A turn returns when the agent and every process that it
//! started are gone. An agent gets its settings by arguments and environment variables: no turn writes an agent's
//! own files.
//!
//! - [`claude`], [`codex`], [`acp`]: Claude Code, Codex, and agents that speak the Agent Client Protocol
//! - [`command`], [`scripted`]: any program, and turns from a file for tests and the demo
//! - [`crew`]: the agents of a session
//! - [`repository`]: settings for agents in a repository, and whether the user trusts them
//! - [`command_access`], [`tools`]: the commands that an agent may run, and the tools of its session
//! - [`readiness`], [`version`], [`login`]: whether an agent is new enough and logged in
//! - [`faults`]: failures that no further turn removes; `limits`: rate limits of providers
//! - `lines`: turns of agents that report in lines of JSON

pub mod acp;
pub mod claude;
pub mod codex;
pub mod command;
pub mod command_access;
pub mod crew;
pub mod faults;
mod limits;
mod lines;
pub mod login;
pub mod readiness;
pub mod repository;
pub mod scripted;
pub mod tools;
pub mod version;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::agents::{Dialect, NoSuchAgent, Program, Settings};
use hookloop_core::excerpt::{ExcerptRules, head_and_tail};
use hookloop_core::promise::Promise;
use hookloop_core::session::{AgentConversation, AgentFault, TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::CAUSE_VARIABLE;
use hookloop_hooks::resource_limits;
use hookloop_process::{Cancel, ExitReason, Job, JobResult};

pub use command_access::CommandAccess;
pub use tools::Tools;

/// The most of a final message that is kept, half of it from its end.
pub const MESSAGE_MAX: usize = 16 * 1024;
/// What a turn names of the things that it was refused.
const REFUSED_MAX: usize = 20;
/// The most that an error tells of what the agent printed.
const ERROR_MAX: usize = 2_000;

/// One turn to take.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub prompt: &'a str,
    /// Turns that ended before this one.
    pub before: u32,
    pub timeout: Duration,
    pub cancel: &'a Cancel,
    /// What the agent's environment has beside the user's.
    pub env: &'a [(&'static str, String)],
    /// The conversation to go on with.
    pub conversation: Option<&'a AgentConversation>,
    /// What it may cost, in millionths of a dollar: for agents that can keep to it.
    pub budget_micros: u64,
    /// What the agent can ask the session for.
    pub tools: Option<&'a Tools>,
}

/// What an agent does while its turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<'a> {
    /// As it came: what is cut in the middle of a character goes on in the next.
    Output(&'a [u8]),
    /// Something that it says, whole.
    Text(&'a str),
    /// A tool that it uses, in a line: which, and on what.
    Tool(&'a str),
    /// What the turn has used so far.
    Usage(Usage),
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub result: TurnResult,
    /// The final message, as much of it as is kept.
    pub message: String,
    /// What all of it promises.
    pub promises: Vec<Promise>,
    pub usage: Usage,
    /// It did not come to say all that it used.
    pub is_partial: bool,
    /// It did not report what the turn cost.
    pub is_unpriced: bool,
    /// The line of stderr that says most about a failure.
    pub stderr: Option<String>,
    /// The cause of a failure that no further turn removes.
    pub fault: Option<AgentFault>,
    /// What it asked for and may not do.
    pub refused: Vec<String>,
    pub artifact: Option<String>,
    pub conversation: Option<String>,
}

impl Report {
    pub fn failed(error: impl Into<String>) -> Report {
        Report {
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

    /// A turn that no agent could begin.
    pub fn not_begun(error: &crew::CrewError) -> Report {
        Report { fault: error.fault(), ..Report::failed(error.to_string()) }
    }

    /// A turn that nobody took.
    pub fn cancelled() -> Report {
        Report { result: TurnResult::Cancelled, ..Report::failed("") }
    }
}

/// A kind of agent.
pub trait Agent: Send {
    /// Takes a turn, to its end: nothing that it started is left when this returns.
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &Order<'_>,
        updates: &mut dyn FnMut(Update<'_>),
    ) -> Report;

    /// Whether a conversation can be gone on with at any time and as often as needed.
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

/// Who is there when nobody is to be asked.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Agent for Nobody {
    fn turn(&mut self, _: &ExecContext, _: &Order<'_>, _: &mut dyn FnMut(Update<'_>)) -> Report {
        Report::failed("there is nobody to take a turn")
    }
}

/// An agent for the project in `directory`.
pub fn open(settings: Settings, directory: &Path) -> Result<Box<dyn Agent>, BadAgent> {
    Ok(match (settings.dialect, &settings.program) {
        (Dialect::Claude, _) => Box::new(claude::Claude::new(settings)),
        (Dialect::Codex, _) => Box::new(codex::Codex::new(settings)),
        (Dialect::Acp, _) => Box::new(acp::Acp::new(acp::AcpSettings::from(&settings))),
        (Dialect::Scripted, Program::Line(file)) => {
            Box::new(scripted::Scripted::load(&directory.join(file))?)
        }
        (Dialect::Scripted | Dialect::Command, _) => Box::new(command::Command::new(settings)),
    })
}

/// A line for the shell, which reads the prompt, as a turn.
fn shell<'a>(line: &str, runner: &ExecContext, order: &Order<'a>) -> Job<'a> {
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

/// The user's environment, what the configuration and a turn add to it, and the secrets that are named.
fn environment(
    runner: &ExecContext,
    order: &Order<'_>,
    configured: &[(String, String)],
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let turn = order.env.iter().map(|(name, value)| (*name, value));
    let added = configured.iter().map(|(name, value)| (name.as_str(), value)).chain(turn);
    let mut env = runner.environment().to_vec();
    // It names an event of the project whose hook started this program, which may be another.
    env.retain(|(name, _)| name != CAUSE_VARIABLE);
    for (name, value) in added {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value.into()));
    }
    // They were fetched before the turn began, or it would not have.
    for (name, value) in runner.secrets(named.iter().map(String::as_str)).unwrap_or_default() {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
    env
}

/// Why a turn has no good end.
fn why(how: ExitReason, order: &Order<'_>) -> String {
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

/// The line of an agent's stderr that says most about a failure; none if it ended well. Redacted by its filter, and
/// safe for a terminal.
fn stderr_line(ran: &JobResult) -> Option<String> {
    if ran.exit == ExitReason::Exited(0) {
        return None;
    }
    faults::telling_line(&excerpt::of_output(&ran.output.stderr))
}

/// A failure, with what the agent said about it.
fn failure(ran: &JobResult, why: String) -> TurnResult {
    let said = excerpt::of_output_within(&ran.output.stderr, ERROR_MAX);
    let said = said.trim();
    let error = if said.is_empty() { why } else { format!("{why}\n{said}") };
    TurnResult::Failed { error }
}

/// Text as long as it may be kept: its first and its last lines.
pub fn clipped(text: &str, max: usize) -> String {
    head_and_tail(text, ExcerptRules { max, head_parts: 2, earlier: &[] })
}
