//! Any program as an agent: it reads the prompt and prints its final message.

use std::cell::RefCell;

use hookloop_core::promise::Scanner;
use hookloop_core::session::{TurnResult, Usage};

use super::{Agent, MESSAGE_MAX, Order, Report, Update, clipped, shell};
use crate::process::{How, Job, Ran, Stored, Stream};
use crate::runner::{Runner, redacting};

/// The most that an error tells of what the program printed.
const ERROR_MAX: usize = 2_000;

/// A line for the shell.
#[derive(Debug)]
pub struct Command {
    line: String,
}

impl Command {
    pub fn new(line: &str) -> Command {
        Command { line: line.to_owned() }
    }
}

impl Agent for Command {
    fn turn(
        &mut self,
        runner: &Runner,
        order: &Order<'_>,
        updates: &mut dyn FnMut(Update<'_>),
    ) -> Report {
        let Some(redactor) = runner.redactor() else {
            return Report::failed("the secrets of the environment are too many to look for");
        };
        let (scanner, updates) = (RefCell::new(Scanner::default()), RefCell::new(updates));
        let filter = |stream: Stream| {
            let mut redact = redacting(redactor);
            let (scanner, updates) = (&scanner, &updates);
            let filter: crate::process::Filter<'_> = Box::new(move |piece, out| {
                let before = out.len();
                redact(piece, out);
                let passed = &out[before..];
                if stream == Stream::Stdout {
                    scanner.borrow_mut().push(passed);
                }
                (updates.borrow_mut())(Update::Output(passed));
            });
            filter
        };
        let artifacts = runner.fresh_artifacts();
        let job = Job {
            artifacts: Some(artifacts.clone()),
            filter: Some(&filter),
            ..shell(&self.line, runner, order)
        };
        let ran = runner.keepers().run(job);
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => return Report::failed(error.to_string()),
        };
        let is_kept = |ran: &Ran| {
            let streams = [&ran.output.stdout, &ran.output.stderr];
            streams.into_iter().any(|stream| !matches!(stream.stored, Stored::Nothing))
        };
        Report {
            result: result(&ran, order),
            message: ran.output.stdout.excerpt_within(MESSAGE_MAX).trim().to_owned(),
            promises: scanner.into_inner().finish(),
            usage: Usage::default(),
            refused: Vec::new(),
            artifact: is_kept(&ran).then(|| artifacts.display().to_string()),
            conversation: None,
        }
    }
}

fn result(ran: &Ran, order: &Order<'_>) -> TurnResult {
    let why = match ran.how {
        How::Exited(0) => return TurnResult::Finished,
        How::Cancelled => return TurnResult::Cancelled,
        How::Exited(code) => format!("the agent ended with exit code {code}"),
        How::Signalled(signal) => format!("the agent was killed by signal {signal}"),
        How::TimedOut => format!("the agent did not end within {:?}", order.timeout),
        How::OverLimit(limit) => format!("the agent used too much: {limit}"),
    };
    let said = clipped(ran.output.stderr.excerpt().trim(), ERROR_MAX);
    let error = if said.is_empty() { why } else { format!("{why}\n{said}") };
    TurnResult::Failed { error }
}
