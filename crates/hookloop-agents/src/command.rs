//! Any program as an agent: it reads the prompt and prints its final message.

use std::cell::RefCell;

use hookloop_config::agents::Settings;
use hookloop_core::promise::Scanner;
use hookloop_core::session::{TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::{ExecContext, kept, redacting};
use hookloop_process::{ExitReason, Job, JobResult, OutputStream};

use super::{
    Agent, MESSAGE_MAX, Order, Report, Update, environment, failure, run_process, stderr_line, why,
};

/// A program that does not know hookloop.
#[derive(Debug)]
pub(crate) struct Command {
    settings: Settings,
}

impl Command {
    pub(crate) fn new(settings: Settings) -> Command {
        Command { settings }
    }
}

impl Agent for Command {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &Order<'_>,
        updates: &mut dyn FnMut(Update<'_>),
    ) -> Report {
        if runner.redactor().is_none() {
            return Report::failed("the secrets of the environment are too many to look for");
        }
        let (scanner, updates) = (RefCell::new(Scanner::default()), RefCell::new(updates));
        let filter = |stream: OutputStream| {
            let mut redact = redacting(runner);
            let (scanner, updates) = (&scanner, &updates);
            let filter: hookloop_process::OutputFilter<'_> = Box::new(move |piece, out| {
                let before = out.len();
                redact(piece, out);
                let passed = &out[before..];
                if stream == OutputStream::Stdout {
                    scanner.borrow_mut().push(passed);
                }
                (updates.borrow_mut())(Update::Output(passed));
            });
            filter
        };
        let artifacts = runner.fresh_artifacts();
        let argv = self.settings.argv(Vec::new(), &[]);
        let job = Job {
            artifacts: Some(artifacts.clone()),
            filter: Some(&filter),
            env: environment(runner, order, &self.settings.env, &self.settings.named),
            stdin: order.prompt.as_bytes().to_vec(),
            cancel: Some(order.cancel),
            ..Job::new(argv, runner.root().to_owned(), order.timeout)
        };
        let ran = match run_process(runner, job) {
            Ok(ran) => ran,
            Err(error) => return Report::failed(error.to_string()),
        };
        Report {
            result: result(&ran, order),
            message: excerpt::of_output_within(&ran.output.stdout, MESSAGE_MAX).trim().to_owned(),
            promises: scanner.into_inner().finish(),
            usage: Usage::default(),
            is_partial: false,
            is_unpriced: true,
            stderr: stderr_line(&ran),
            fault: None,
            refused: Vec::new(),
            artifact: kept(&ran, &artifacts),
            conversation: None,
        }
    }
}

fn result(ran: &JobResult, order: &Order<'_>) -> TurnResult {
    match ran.exit {
        ExitReason::Exited(0) => TurnResult::Finished,
        ExitReason::Cancelled => TurnResult::Cancelled,
        how => failure(ran, why(how, order)),
    }
}
