//! Who does the work: programs that take a prompt and change files.
//!
//! - [`command`]: any program: the prompt on its input, its answer on its output
//! - [`scripted`]: turns from a file, for tests and the demo

pub mod command;
pub mod scripted;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hookloop_core::promise::Promise;
use hookloop_core::session::{Talk, TurnResult, Usage};

use crate::process::{Cancel, Job};
use crate::runner::Runner;

/// The most of a final message that is kept, half of it from its end.
pub const MESSAGE_MAX: usize = 16 * 1024;

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
    pub conversation: Option<&'a Talk>,
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
            refused: Vec::new(),
            artifact: None,
            conversation: None,
        }
    }

    /// A turn that nobody took.
    pub(crate) fn cancelled() -> Report {
        Report { result: TurnResult::Cancelled, ..Report::failed("") }
    }
}

/// A kind of agent.
pub trait Agent: Send {
    /// Takes a turn, to its end: nothing that it started is left when this returns.
    fn turn(
        &mut self,
        runner: &Runner,
        order: &Order<'_>,
        updates: &mut dyn FnMut(Update<'_>),
    ) -> Report;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAgent {
    #[error("`{0}` is not an agent: `command:PROGRAM` or `scripted:FILE`")]
    Unknown(String),
    #[error("{}: {why}", path.display())]
    Script { path: PathBuf, why: String },
}

/// Who is there when nobody is to be asked.
#[derive(Debug)]
pub struct Nobody;

impl Agent for Nobody {
    fn turn(&mut self, _: &Runner, _: &Order<'_>, _: &mut dyn FnMut(Update<'_>)) -> Report {
        Report::failed("there is nobody to take a turn")
    }
}

/// The agent that a user named.
pub fn named(name: &str, directory: &std::path::Path) -> Result<Box<dyn Agent>, BadAgent> {
    match name.split_once(':') {
        Some(("command", line)) if !line.trim().is_empty() => {
            Ok(Box::new(command::Command::new(line)))
        }
        Some(("scripted", file)) => Ok(Box::new(scripted::Scripted::load(&directory.join(file))?)),
        _ => Err(BadAgent::Unknown(name.to_owned())),
    }
}

/// A line for the shell, which reads the prompt, as a turn.
fn shell<'a>(line: &str, runner: &Runner, order: &Order<'a>) -> Job<'a> {
    Job {
        env: environment(runner, order),
        stdin: order.prompt.as_bytes().to_vec(),
        cancel: Some(order.cancel),
        ..Job::new(
            ["/bin/sh", "-c", line].map(Into::into).to_vec(),
            runner.root().to_owned(),
            order.timeout,
        )
    }
}

/// The user's environment, and what a turn adds to it.
fn environment(runner: &Runner, order: &Order<'_>) -> Vec<(OsString, OsString)> {
    let mut env = runner.environment().to_vec();
    env.retain(|(name, _)| order.env.iter().all(|(own, _)| name != own));
    env.extend(order.env.iter().map(|(name, value)| (OsString::from(name), value.into())));
    env
}

/// Text as long as it may be kept: its head and its tail.
pub(crate) fn clipped(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let half = max / 2;
    let head = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = text.len() - half;
    let tail = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes left out]\n{}", &text[..head], &text[tail..])
}
