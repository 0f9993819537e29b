//! One turn of an agent: its prompt, its environment, its report.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use hookloop_agents::{McpServerCommand, TurnReport, TurnRequest, TurnUpdate};
use hookloop_config::variables::TRACE_PARENT;
use hookloop_core::price::TokenPrice;
use hookloop_core::session::{Session, SessionWork, TurnKind, TurnResult, Usage};
use hookloop_process::LinkedCancel;
use serde_json::json;

use super::live_transcript::TranscriptWriter;
use super::live_world::LiveWorld;
use super::now::NowStep;
use super::observer::SessionObserver;
use super::prompt::{self, PromptParts};
use super::session_directory::report_failure;
use super::spec_file;
use super::world::{DueTurn, SessionUpdate};

impl<O: SessionObserver> LiveWorld<'_, O> {
    /// Runs a turn of the agent. A turn that cannot start counts as a failed turn.
    pub(super) fn run_agent_turn(&mut self, turn: &DueTurn<'_>) -> TurnReport {
        if let (Some(worktree), Some(delivery_tools)) = (&self.worktree, &self.delivery_tools) {
            // A lock that stays affects only the agent's git, which reports it.
            if let Err(error) = delivery_tools.repo.clear_worktree_locks(worktree) {
                tracing::warn!(%error, "lock files of the worktree are not removed");
            }
        }
        let prompt = match self.render_prompt(turn) {
            Ok(prompt) => prompt,
            Err(error) => return TurnReport::failed(error),
        };
        let is_review = matches!(turn.session.plan.work, SessionWork::Review(_));
        // A reviewer gets no tools of hookloop.
        let tools = if is_review {
            None
        } else {
            McpServerCommand::of(self.runner, turn.id, turn.session.run)
        };
        let mut env = environment(turn, self.place.root(), tools.as_ref());
        let trace_parent = self.trace_parent(turn.id, |timeline, names| {
            timeline.open_turn().map(|(part, step)| names.step(part, step))
        });
        env.extend(trace_parent.map(|parent| (TRACE_PARENT, parent)));
        // A turn that exceeds its allowance ends, but the session continues.
        let stop = self.stop.cancel.clone();
        let linked = match turn.allowance.map(|_| LinkedCancel::new(&stop)).transpose() {
            Ok(linked) => linked,
            Err(error) => return TurnReport::failed(format!("can't watch what it uses: {error}")),
        };
        let cancel = linked.as_ref().map_or(&stop, |linked| &linked.own);
        let order = TurnRequest {
            prompt: &prompt,
            before: turn.session.turns,
            timeout: Duration::from_millis(turn.timeout_ms),
            cancel,
            env: &env,
            conversation: turn.session.conversation(turn.kind),
            budget_micros: budget(turn),
            tools: tools.as_ref(),
        };
        let report = self.follow_turn(turn, order);
        self.write_transcript(&prompt, &report);
        self.board.begin(NowStep::Between, None);
        report
    }

    /// Runs the agent and passes its updates on. Ends the turn when it exceeds its allowance.
    fn follow_turn(&mut self, turn: &DueTurn<'_>, mut order: TurnRequest<'_>) -> TurnReport {
        let price = self.agents.price(turn.session.agent());
        let (observer, board) = (&mut self.observer, &self.board);
        board.limit_turn(order.timeout);
        let cancel = order.cancel;
        let mut reported = Usage::default();
        let mut said = TranscriptWriter::begin(&self.directory, turn.session);
        let mut updates = |update: TurnUpdate<'_>| {
            said.hear(update);
            board.hear(update);
            match update {
                TurnUpdate::Output(text) => observer.notice(SessionUpdate::Said(text)),
                TurnUpdate::Text(text) => observer.notice(SessionUpdate::Said(text.as_bytes())),
                TurnUpdate::Tool(what) => observer.notice(SessionUpdate::Did(what)),
                TurnUpdate::Usage(used) => {
                    reported = with_cost(used, price);
                    if turn.allowance.is_some_and(|allowance| !allowance.heard(reported)) {
                        cancel.trigger();
                    }
                }
            }
        };
        let mut report = match self.agents.agent(turn.session.agent(), &self.place) {
            Ok(agent) => {
                let is_optional = turn.kind == TurnKind::Work && turn.session.answers_feedback();
                if is_optional && !agent.keeps_conversations() {
                    order.conversation = None;
                }
                agent.turn(&self.place, &order, &mut updates)
            }
            Err(error) => TurnReport::not_begun(&error),
        };
        report.usage = with_cost(report.usage, price);
        // A turn that was ended has no final usage, and some agents report usage only in updates.
        if report.is_partial || report.usage.tokens() == 0 {
            report.usage.raise(reported);
        }
        let is_counted = report.usage.tokens() > 0 && price.is_some();
        report.is_unpriced &= report.usage.cost_micros == 0 && !is_counted;
        report
    }

    /// Renders the prompt of a turn.
    fn render_prompt(&self, turn: &DueTurn<'_>) -> Result<String, String> {
        let work = self.work_text(turn.session)?;
        let error = turn.session.last.as_ref().and_then(|last| match &last.result {
            TurnResult::Failed { error } => Some(error.as_str()),
            _ => None,
        });
        let commands = self.agents.command_access(turn.session.agent(), &self.place);
        let parts = PromptParts {
            session: turn.session,
            kind: turn.kind,
            work: &work,
            task: turn.task,
            error,
            gates: turn.gates,
            judge: turn.judge,
            directory: &self.place.root().display().to_string(),
            commands: &commands.map_or_else(String::new, |commands| commands.to_string()),
        };
        prompt::render(&self.template, &parts)
            .map_err(|error| format!("the template for prompts: {error}"))
    }

    /// Returns the text of the session's work: its prompt or its spec. Empty for tasks.
    pub(super) fn work_text(&self, session: &Session) -> Result<String, String> {
        match &session.plan.work {
            SessionWork::Prompt(prompt) | SessionWork::Review(prompt) => Ok(prompt.clone()),
            SessionWork::Spec(path) => {
                let path = self.runner.home().join(path);
                spec_file::read(&path, &self.directory)
                    .map_err(|why| format!("the spec {}: {why}", path.display()))
            }
            SessionWork::Tasks | SessionWork::Task(_) | SessionWork::Own => Ok(String::new()),
        }
    }

    /// Appends a turn to the transcript, which hooks can read.
    fn write_transcript(&self, prompt: &str, report: &TurnReport) {
        let line = |role: &str, text: &str| {
            let content = json!([{ "type": "text", "text": text }]);
            json!({ "type": role, "message": { "role": role, "content": content } })
        };
        let turn = format!("{}\n{}\n", line("user", prompt), line("assistant", &report.message));
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let file = options.open(&self.transcript);
        let written = file.and_then(|mut file| file.write_all(turn.as_bytes()));
        report_failure(written, &self.transcript, "hooks do not get the transcript of this turn");
    }
}

/// Computes the cost from the tokens if the agent reports no cost and the user's file has a price.
fn with_cost(used: Usage, price: Option<TokenPrice>) -> Usage {
    match price {
        Some(price) if used.cost_micros == 0 => {
            Usage { cost_micros: price.cost_micros(&used), ..used }
        }
        _ => used,
    }
}

/// Returns the cost that the turn may use: the rest of the session's limit.
///
/// The reserved amount limits it further.
fn budget(turn: &DueTurn<'_>) -> u64 {
    let Session { plan, usage, .. } = turn.session;
    let left = plan.limits.max_cost_micros.saturating_sub(usage.cost_micros);
    let reserved = turn.allowance.and_then(|allowance| allowance.cost_micros());
    reserved.map_or(left, |reserved| left.min(reserved))
}

fn environment(
    turn: &DueTurn<'_>,
    root: &Path,
    tools: Option<&McpServerCommand>,
) -> Vec<(&'static str, String)> {
    let task = turn.task.map(|task| task.id.to_string()).unwrap_or_default();
    let servers = tools.map(|tools| tools.json().to_string()).unwrap_or_default();
    vec![
        ("HOOKLOOP_SESSION", turn.id.to_string()),
        ("HOOKLOOP_RUN", turn.session.run.to_string()),
        ("HOOKLOOP_MCP", servers),
        ("HOOKLOOP_ITERATION", turn.session.iteration.to_string()),
        ("HOOKLOOP_PROJECT", root.display().to_string()),
        ("HOOKLOOP_TASK_ID", task),
    ]
}
