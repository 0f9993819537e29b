//! Prints a running session: a line for each event, and on a terminal a status line.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use hookloop_core::event::EventBody;
use hookloop_core::quantity::counted_items;
use hookloop_core::session::plan::{CompactCount, CostFigure};
use hookloop_core::session::{LimitDecision, Session, SessionLimits, SessionOutcome, Usage};
use hookloop_core::shared_budget::SharedBudget;
use hookloop_core::time::Timestamp;
use hookloop_engine::session::now::NowBoard;
use hookloop_engine::session::observer::SessionObserver;
use hookloop_engine::session::stop_switch::{InputWait, StopSwitch};
use hookloop_engine::session::world::PauseReason;
use hookloop_engine::session::{SessionHandle, SessionUpdate};
use hookloop_engine::store::StoredEvent;

use super::status_line::{StatusLine, StatusText, status_line};
use crate::error::CliResult;
use crate::json_output::EventJson;
use crate::output::{BOLD, CommandOutput, DIM};
use crate::present::{self, StepSeverity, now};
use crate::sanitize::plain;
use crate::tui::{HEAR, QuestionReply, RetryQuestion, Screen};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
/// Invalid answers before the question is dropped.
const QUESTIONS_MAX: usize = 5;
/// Lines that are kept to print after a screen closes.
const UNSAID_MAX: usize = 50;

/// Texts that are printed before a session begins, beside its plan.
#[derive(Clone, Copy)]
pub(crate) struct SessionHeading<'a> {
    /// The permissions of its agents.
    pub(crate) powers: &'a [String],
    pub(crate) budget: &'a SharedBudget,
    /// Whether a gate can prove the session's work.
    pub(crate) has_gates: bool,
}

/// Shows a session.
pub(crate) struct LiveSession<'o> {
    out: &'o mut CommandOutput,
    id: String,
    stop: StopSwitch,
    limits: SessionLimits,
    used: Usage,
    unpriced_turns: u64,
    began: Instant,
    /// The step that the session is at.
    board: NowBoard,
    status: Option<StatusLine>,
    /// While there is a screen, no lines are printed.
    screen: Option<Screen>,
    /// The lines of the last iteration while a screen was open: closing the screen clears it.
    unsaid: VecDeque<String>,
    /// The text of the last event, whose reason is not repeated.
    last_text: String,
    /// After a failed write nothing more is printed; the session continues.
    has_failed: bool,
}

impl<'o> LiveSession<'o> {
    pub(crate) fn new(
        out: &'o mut CommandOutput,
        opened: &SessionHandle,
        heading: SessionHeading<'_>,
        stop: StopSwitch,
    ) -> LiveSession<'o> {
        let board = NowBoard::default();
        let status = status_line(out, &board);
        let id = opened.id.to_string();
        let limits = opened.plan.limits;
        let used = Usage::default();
        let unpriced_turns = 0;
        let began = Instant::now();
        let screen = None;
        let unsaid = VecDeque::new();
        let last_text = String::new();
        let has_failed = false;
        let mut live = LiveSession {
            out,
            id,
            stop,
            limits,
            used,
            unpriced_turns,
            began,
            board,
            status,
            screen,
            unsaid,
            last_text,
            has_failed,
        };
        if !live.out.json {
            let plan = &opened.plan;
            let id = &opened.id;
            let work = present::work(&plan.work);
            live.line(format!("{BOLD}session {id}{BOLD:#}  {work}"));
            for line in heading.powers {
                live.line(format!("{DIM}{line}{DIM:#}"));
            }
            let stop_when = present::stop_when(plan, heading.has_gates);
            live.line(format!("{DIM}done when {stop_when}{DIM:#}"));
            live.line(format!("{DIM}limits: {}{DIM:#}", plan.limits));
            if plan.delivers {
                let SessionLimits { max_remediations, max_continuations, .. } = plan.limits;
                live.line(format!(
                    "{DIM}delivers each task from a worktree of its own: at most {max_remediations} remediations, \
                     {max_continuations} continuations{DIM:#}"
                ));
            }
            let budget = heading.budget;
            if !budget.is_none() {
                live.line(format!("{DIM}budget of all sessions: {budget}{DIM:#}"));
            }
        }
        live
    }

    /// Opens a screen in place of lines. If no screen can be opened, lines continue.
    pub(crate) fn show(&mut self, open: impl FnOnce() -> std::io::Result<Screen>) {
        // Nothing else may write to the terminal while there is a screen.
        self.status = None;
        match open() {
            Ok(screen) => self.screen = Some(screen),
            Err(_) => self.status = status_line(self.out, &self.board),
        }
    }

    /// Whether there is a screen. After the user closes it, lines are printed.
    fn has_screen(&mut self) -> bool {
        match &self.screen {
            None => false,
            Some(screen) if screen.is_open() => true,
            Some(_) => {
                self.screen = None;
                self.unsaid.clear();
                self.last_text.clear();
                self.status = status_line(self.out, &self.board);
                let id = &self.id;
                self.line(format!(
                    "{DIM}the session continues; watch it: hookloop watch {id}{DIM:#}"
                ));
                false
            }
        }
    }

    fn line(&mut self, text: String) {
        let shown = match &self.status {
            Some(status) => status.aside(|| self.out.line(text).and_then(|()| self.out.flush())),
            None => self.out.line(text).and_then(|()| self.out.flush()),
        };
        self.has_failed |= shown.is_err();
    }

    fn event(&mut self, stored: &StoredEvent) {
        if let EventBody::TurnEnded(ended) = &stored.event.body {
            self.used.add(ended.usage);
            self.unpriced_turns += u64::from(ended.has_unknown_cost());
        }
        if self.out.json {
            let shown = self.out.json(&EventJson::from(stored)).and_then(|()| self.out.flush());
            self.has_failed |= shown.is_err();
            return;
        }
        let Some((weight, whole)) = present::line(&stored.event.body, &self.limits) else {
            return;
        };
        let text = match &stored.event.body {
            EventBody::SessionTaskReleased(_) => without_known_reason(&whole, &self.last_text),
            _ => whole.as_str(),
        };
        let line = match weight {
            StepSeverity::Heading => format!("{BOLD}{text}{BOLD:#}"),
            StepSeverity::Good => format!("  {GOOD}{text}{GOOD:#}"),
            StepSeverity::Bad => format!("  {BAD}{text}{BAD:#}"),
            StepSeverity::Plain => format!("  {text}"),
        };
        let details = present::details(&stored.event.body);
        let details = details.into_iter().map(|detail| format!("  {DIM}{detail}{DIM:#}"));
        let lines = std::iter::once(line).chain(details);
        self.last_text = whole;
        if self.screen.is_none() {
            lines.for_each(|line| self.line(line));
            return;
        }
        if let StepSeverity::Heading = weight {
            self.unsaid.clear();
        }
        for line in lines {
            if self.unsaid.len() == UNSAID_MAX {
                self.unsaid.pop_front();
            }
            self.unsaid.push_back(line);
        }
    }

    /// Prints the result of the session.
    pub(crate) fn conclude(&mut self, session: &Session) -> CliResult {
        self.status = None;
        self.screen = None;
        if self.out.json {
            return Ok(());
        }
        for line in std::mem::take(&mut self.unsaid) {
            self.out.line(line)?;
        }
        let (weight, text, next) = present::conclusion(&self.id, session);
        let style = match weight {
            StepSeverity::Good => GOOD.bold(),
            StepSeverity::Bad => BAD.bold(),
            _ => BOLD,
        };
        let text = match &session.outcome {
            Some(SessionOutcome::NeedsHuman { .. }) => without_known_reason(&text, &self.last_text),
            _ => text.as_str(),
        };
        self.out.line(format_args!("{style}{text}{style:#}"))?;
        for receipt in session.receipts.iter().filter(|receipt| receipt.is_green()) {
            let tree = receipt.tree.as_deref().map(|tree| format!("tree {tree}"));
            let tree = present::on_tree(tree.as_deref());
            // A receipt that is used again has no duration of its own.
            let took = match receipt.reused_from {
                Some(_) => String::new(),
                None => format!(" in {}", present::duration(receipt.duration_ms)),
            };
            self.out.line(format_args!(
                "  {DIM}receipt: {} passed{took} {tree}{}{DIM:#}",
                plain(&receipt.gate),
                present::evidence(receipt)
            ))?;
        }
        if let Some(text) = present::outputs_left(session) {
            self.out.line(format_args!("  {DIM}{text}{DIM:#}"))?;
        }
        if let Some(advice) = present::no_changes_advice(session) {
            self.out.line(format_args!("  {DIM}{advice}{DIM:#}"))?;
        }
        if let Some(next) = next {
            self.out.line(format_args!("  {}", next.line()))?;
        }
        self.out.flush()
    }
}

impl LiveSession<'_> {
    /// Prints an update about gates, which the events of `--json` already have.
    fn notice_of_gates(&mut self, notice: &SessionUpdate<'_>) {
        if self.out.json {
            return;
        }
        match notice {
            SessionUpdate::GatesRepeat { files } => {
                let files = plain(files);
                self.line(format!(
                    "  files changed while the gates ran, so they run again: {files}"
                ));
            }
            SessionUpdate::GatesWrote { files } => {
                let files = plain(files);
                self.line(format!(
                    "  gates wrote new files, which are not part of the work: {files}"
                ));
            }
            SessionUpdate::SetupRepeats { reason } => {
                self.line(format!("  {}: the setup runs again", plain(reason)));
            }
            SessionUpdate::ParallelRepeats { gates, count } => {
                let files = counted_items(*count, "file", "files");
                self.line(format!(
                    "  gates that ran concurrently changed {files} of the room, so they run again one by one: {}. To \
                     save this time, remove `parallel: true` from the gate that writes files",
                    plain(gates)
                ));
            }
            SessionUpdate::UncommittedSubmodules { paths } => {
                self.line(format!(
                    "  the gates run on the commits of submodules, without the changes that are not committed in: {}",
                    plain(paths)
                ));
            }
            SessionUpdate::Strength { gate, engine } => {
                self.line(format!("  {gate}: {engine} changes the code to measure the tests"));
            }
            SessionUpdate::TestReview { by } => {
                self.line(format!("  gatekeeper {} reviews the changed tests", plain(by)));
            }
            SessionUpdate::BaseTests { gate } => {
                self.line(format!("  {gate}: the tests of the base run against the work"));
            }
            _ => {}
        }
    }
}

impl SessionObserver for LiveSession<'_> {
    fn notice(&mut self, notice: SessionUpdate<'_>) {
        if self.has_failed {
            return;
        }
        self.has_screen();
        match notice {
            SessionUpdate::Stored(events) => events.iter().for_each(|stored| self.event(stored)),
            SessionUpdate::Hooks { point, count } => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                self.now(|| format!("{point}: {}", present::counted(count, "hook", "hooks")));
            }
            SessionUpdate::Turn { iteration, .. } => {
                if let Some(status) = &self.status {
                    status.now(self.usage_of_limits(iteration));
                }
            }
            SessionUpdate::Said(text) => {
                if let Some(status) = &self.status
                    && let text = String::from_utf8_lossy(text)
                    && let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty())
                {
                    status.say(line.trim());
                }
            }
            SessionUpdate::Did(what) => {
                if let Some(status) = &self.status {
                    status.say(what);
                }
            }
            SessionUpdate::Pause { ms, reason } => self.pause(ms, reason),
            SessionUpdate::Budget => self
                .now(|| "waits for the budget: other sessions have reserved the rest".to_owned()),
            SessionUpdate::Ran(_) => {}
            of_gates => self.notice_of_gates(&of_gates),
        }
    }

    fn watch(&mut self, board: &NowBoard) {
        self.board = board.clone();
        if self.status.is_some() {
            self.status = status_line(self.out, &self.board);
        }
    }

    fn can_ask(&self) -> bool {
        !self.out.json && self.out.terminal && std::io::stdin().is_terminal()
    }

    fn ask(
        &mut self,
        session: &Session,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        if !self.can_ask() {
            return None;
        }
        if let Some(screen) = &self.screen {
            let failing = session.failing.iter().flatten().cloned().collect();
            let question = RetryQuestion { failing, retries: self.limits.gate_retries };
            match screen.ask(question, &self.stop, is_answered) {
                QuestionReply::Answer(answer) => return Some(answer),
                QuestionReply::Elsewhere => return None,
                QuestionReply::Nobody => {}
            }
            self.has_screen();
        }
        self.status.take();
        let answer = self.question(session, is_answered);
        self.status = status_line(self.out, &self.board);
        answer
    }
}

impl LiveSession<'_> {
    /// Returns the usage against the limits as a text whose time advances.
    fn usage_of_limits(&self, iteration: u32) -> StatusText {
        let SessionLimits { max_iterations, max_duration_ms, max_tokens, max_cost_micros, .. } =
            self.limits;
        let began = self.began;
        let most = present::duration(max_duration_ms);
        let used = if self.used.is_none() {
            String::new()
        } else {
            format!(
                ", {} of {} tokens, {}",
                CompactCount(self.used.tokens()),
                CompactCount(max_tokens),
                CostFigure { micros: self.used.cost_micros, unpriced_turns: self.unpriced_turns }
                    .of(max_cost_micros)
            )
        };
        Box::new(move || {
            let ran_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
            let ran = present::clock(ran_ms);
            format!("iteration {iteration} of {max_iterations}, {ran} of {most}{used} | agent")
        })
    }

    fn pause(&mut self, ms: u64, reason: PauseReason) {
        let until =
            now::until_text(Timestamp(crate::environment::now().0.saturating_add_unsigned(ms)));
        let text = match reason {
            PauseReason::RateLimit => format!("waits for the end of a rate limit until {until}"),
            PauseReason::FailedTurn => format!("waits after a failed turn until {until}"),
            PauseReason::Delivery => {
                format!("waits before it tries to deliver again until {until}")
            }
        };
        match self.out.terminal {
            true => self.now(|| text),
            false if self.out.json || reason != PauseReason::RateLimit => {}
            false => self.line(format!("  {text}")),
        }
    }

    fn now(&self, what: impl FnOnce() -> String) {
        if let Some(status) = &self.status {
            let text = what();
            status.now(Box::new(move || text.clone()));
        }
    }

    fn question(
        &mut self,
        session: &Session,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        let failing: Vec<String> = session.failing.iter().flatten().cloned().collect();
        let retries = present::counted(self.limits.gate_retries, "retry", "retries");
        self.line(format!(
            "{BOLD}Retry limit reached after {retries}.{BOLD:#} Still failing: {}",
            present::some(&failing)
        ));
        for _ in 0..QUESTIONS_MAX {
            let mut terminal = std::io::stderr();
            // If standard error is closed, the answer is still read.
            let choices = "[c] continue with all retries, [a] accept without passing gates, [q] stop the session";
            let _ = write!(terminal, "{choices}: ");
            let _ = terminal.flush();
            loop {
                match self.stop.wait_for(std::io::stdin(), HEAR) {
                    InputWait::Input => break,
                    InputWait::Stop => return Some(LimitDecision::Abort),
                    InputWait::Nothing if is_answered() => {
                        let _ = writeln!(terminal, "answered elsewhere");
                        return None;
                    }
                    InputWait::Nothing => {}
                }
            }
            let mut answer = String::new();
            // Input that can't be read counts as no answer, as the end of input does.
            if std::io::stdin().lock().read_line(&mut answer).ok()? == 0 {
                return None;
            }
            match answer.trim() {
                "c" | "continue" => return Some(LimitDecision::Continue),
                "a" | "accept" => return Some(LimitDecision::Accept),
                "q" | "quit" | "abort" => return Some(LimitDecision::Abort),
                _ => {}
            }
        }
        None
    }
}

/// Returns the text without its reason, if the line before it ends with the same reason.
fn without_known_reason<'t>(text: &'t str, line_before: &str) -> &'t str {
    match text.split_once(": ") {
        Some((head, reason)) if line_before.ends_with(&format!(": {reason}")) => head,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_not_printed_twice_in_a_row() {
        let check = |text: &str, line_before: &str, expected: &str| {
            assert_eq!(without_known_reason(text, line_before), expected, "after {line_before}");
        };
        let text = "needs a human after 1 iteration, 87 ms: `make` can't run: not found";
        let short = "needs a human after 1 iteration, 87 ms";
        check(text, "a gate needs a human: `make` can't run: not found", short);
        check(text, "agent took 1 s; message: not found", text);
        check(text, "", text);
        check("task a needs a human: no key", "needs a human: no key", "task a needs a human");
    }
}
