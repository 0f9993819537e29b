//! Who does the work: programs that take a prompt and change files.
//!
//! - [`claude`], [`codex`]: the agents of these names, each with its own events
//! - [`acp`]: agents that speak the Agent Client Protocol
//! - [`command`]: any program: the prompt on its input, its answer on its output
//! - [`command_access`]: the commands that an agent may run, as users and agents are told
//! - [`scripted`]: turns from a file, for tests and the demo
//! - [`crew`]: the agents of a session
//! - [`known`], [`settings`]: which agents there are, and how they are started
//! - [`repository`]: what a repository brings for agents, and whether the user agreed to it
//! - [`tools`]: what an agent can ask the session that started it
//! - [`readiness`]: whether an agent is new enough and logged in; `version`, `login`: how that is found out
//! - `faults`: failures that no further turn removes
//! - `lines`: turns of agents that tell what they do in lines of JSON
//! - `limits`: whether an error says that the provider wants to be left alone

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
use std::time::{Duration, Instant};

use hookloop_config::agents::{Dialect, NoSuchAgent, Program, Settings};
use hookloop_config::variables::DIAGNOSTICS_VARIABLE;
use hookloop_core::excerpt::{ExcerptRules, head_and_tail};
use hookloop_core::promise::Promise;
use hookloop_core::session::{AgentConversation, AgentFault, TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::hook_context::CAUSE_VARIABLE;
use hookloop_hooks::resource_limits;
use hookloop_process::{Cancel, ExitReason, Job, JobResult, ProcessError};

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
    // The first names an event of the project whose hook started this program, which may be another. With the second, a
    // `hookloop` that the agent runs would print diagnostics where the agent reads answers.
    env.retain(|(name, _)| name != CAUSE_VARIABLE && name != DIAGNOSTICS_VARIABLE);
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
