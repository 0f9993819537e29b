//! An agent whose turns are in a file: the same each time, for tests and the demo.
//!
//! ```json
//! [
//!   {"say": "All done.\n<promise>COMPLETE</promise>", "write": {"answer.txt": "41\n"}},
//!   {"run": "sed -i s/41/42/ answer.txt", "say": "Fixed.\n<promise>COMPLETE</promise>"},
//!   {"fail": "the network is down"}
//! ]
//! ```
//!
//! A turn after the last one repeats the last message and does nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use hookloop_core::promise::promises;
use hookloop_core::session::{TurnResult, Usage};
use hookloop_git::excerpt;
use hookloop_git::files::read_text;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::ExitReason;
use serde::Deserialize;

use super::{Agent, BadAgent, MESSAGE_MAX, TurnReport, TurnRequest, TurnUpdate, clipped, shell};

const FILE_MAX: u64 = 4 * 1024 * 1024;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptedTurn {
    /// The final message.
    say: String,
    /// Files of the project, with their new content.
    write: BTreeMap<String, String>,
    delete: Vec<String>,
    /// A shell command, in the project's directory.
    run: Option<String>,
    sleep_ms: u64,
    /// The error with which the turn fails.
    fail: Option<String>,
    usage: Usage,
    /// The number of parts in which the usage is reported during the sleep; 0 for a report at the end only.
    usage_steps: u64,
}

/// An agent whose turns come from a file.
#[derive(Debug)]
pub(crate) struct ScriptedAgent {
    turns: Vec<ScriptedTurn>,
}

impl ScriptedAgent {
    pub(crate) fn load(path: &Path) -> Result<ScriptedAgent, BadAgent> {
        let wrong = |why: String| BadAgent::Script { path: path.to_owned(), why };
        let text = read_text(path, FILE_MAX).map_err(wrong)?;
        ScriptedAgent::parse(&text).map_err(wrong)
    }

    pub(crate) fn parse(text: &str) -> Result<ScriptedAgent, String> {
        let turns: Vec<ScriptedTurn> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        match turns.is_empty() {
            true => Err("it has no turns".to_owned()),
            false => Ok(ScriptedAgent { turns }),
        }
    }

    fn number(&self, before: u32) -> ScriptedTurn {
        let last = ScriptedTurn {
            say: self.turns.last().map_or_else(String::new, |turn| turn.say.clone()),
            ..ScriptedTurn::default()
        };
        self.turns.get(before as usize).cloned().unwrap_or(last)
    }
}

impl Agent for ScriptedAgent {
    fn turn(
        &mut self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> TurnReport {
        let turn = self.number(order.before);
        let done = turn.perform(runner, order, updates);
        let (result, usage) = match done {
            Ok(done) => done,
            Err(error) => return TurnReport::failed(error),
        };
        updates(TurnUpdate::Output(turn.say.as_bytes()));
        TurnReport {
            result,
            promises: promises(&turn.say),
            message: clipped(turn.say.trim(), MESSAGE_MAX),
            usage,
            is_partial: false,
            is_unpriced: false,
            stderr: None,
            fault: None,
            refused: Vec::new(),
            artifact: None,
            conversation: None,
        }
    }
}

impl ScriptedTurn {
    /// Performs the turn. Returns its result, and the usage up to then.
    fn perform(
        &self,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> Result<(TurnResult, Usage), String> {
        for (name, text) in &self.write {
            let path = inside(runner.root(), name)?;
            let written = path.parent().map_or(Ok(()), fs::create_dir_all);
            written
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        for name in &self.delete {
            let path = inside(runner.root(), name)?;
            fs::remove_file(path).map_err(|error| format!("{name}: {error}"))?;
        }
        let length = Duration::from_millis(self.sleep_ms);
        if length > order.timeout {
            return Err(format!("the agent did not end within {:?}", order.timeout));
        }
        let used = self.sleep(length, order, updates);
        if order.cancel.is_triggered() {
            return Ok((TurnResult::Cancelled, used));
        }
        if let Some(line) = &self.run {
            let result = self.run(line, runner, order)?;
            if result != TurnResult::Finished {
                return Ok((result, used));
            }
        }
        match &self.fail {
            Some(error) => Err(error.clone()),
            None => Ok((TurnResult::Finished, used)),
        }
    }

    /// Sleeps and reports usage. A cancellation shortens both.
    fn sleep(
        &self,
        length: Duration,
        order: &TurnRequest<'_>,
        updates: &mut dyn FnMut(TurnUpdate<'_>),
    ) -> Usage {
        if self.usage_steps == 0 {
            order.cancel.wait(length);
            return self.usage;
        }
        let mut used = Usage::default();
        for step in 1..=self.usage_steps {
            let part = Duration::from_millis(self.sleep_ms / self.usage_steps);
            if order.cancel.wait(part) {
                break;
            }
            let of = |all: u64| {
                (u128::from(all) * u128::from(step) / u128::from(self.usage_steps)) as u64
            };
            used = Usage {
                input_tokens: of(self.usage.input_tokens),
                cached_tokens: of(self.usage.cached_tokens),
                output_tokens: of(self.usage.output_tokens),
                cost_micros: of(self.usage.cost_micros),
            };
            updates(TurnUpdate::Usage(used));
        }
        used
    }

    fn run(
        &self,
        line: &str,
        runner: &ExecContext,
        order: &TurnRequest<'_>,
    ) -> Result<TurnResult, String> {
        let ran =
            runner.keepers().run(shell(line, runner, order)).map_err(|error| error.to_string())?;
        match ran.exit {
            ExitReason::Exited(0) => Ok(TurnResult::Finished),
            ExitReason::Cancelled => Ok(TurnResult::Cancelled),
            how => {
                let said = format!("`{line}`: {how:?}\n{}", excerpt::of_output(&ran.output.stderr));
                Err(runner.redactor().map_or_else(String::new, |redactor| redactor.text(&said)))
            }
        }
    }
}

/// Returns the path of a file in the project.
fn inside(root: &Path, name: &str) -> Result<PathBuf, String> {
    let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    match is_inside {
        true => Ok(root.join(name)),
        false => Err(format!("`{name}` is not a path in the project")),
    }
}
