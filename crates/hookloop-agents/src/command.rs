//! Any program as an agent: it reads the prompt and prints its final message.

use std::cell::RefCell;

use hookloop_config::agents::AgentSettings;
use hookloop_core::promise::Scanner;
use hookloop_core::session::{TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::{ExecContext, kept, redacting};
use hookloop_process::{ExitReason, Job, JobResult, OutputStream};

use super::{
    Agent, MESSAGE_MAX, TurnReport, TurnRequest, TurnUpdate, environment, failure, run_process,
    stderr_line, why,
};

/// A program that does not know hookloop.
#[derive(Debug)]
pub(crate) struct CommandAgent {
    settings: AgentSettings,
}

impl CommandAgent {
    pub(crate) fn new(settings: AgentSettings) -> CommandAgent {
        CommandAgent { settings }
    }
}

impl Agent for CommandAgent {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        if runner.redactor().is_none() {
            return TurnReport::failed("the secrets of the environment are too many to look for");
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
                (updates.borrow_mut())(TurnUpdate::Output(passed));
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
            Err(error) => return TurnReport::failed(error.to_string()),
        };
        TurnReport {
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

fn result(ran: &JobResult, order: &TurnRequest<'_>) -> TurnResult {
    match ran.exit {
        ExitReason::Exited(0) => TurnResult::Finished,
        ExitReason::Cancelled => TurnResult::Cancelled,
        how => failure(ran, why(how, order)),
    }
}
