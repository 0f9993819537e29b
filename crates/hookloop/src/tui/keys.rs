//! Handles keys.

use hookloop_core::id::SessionId;
use hookloop_core::inbox::ProblemSubject;
use hookloop_core::session::SessionState;
use hookloop_core::session::timeline::StepContent;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::data::{ProblemLine, ProblemMatter, WhichTasks};
use super::dialog::{ScreenDialog, TextReceiver};
use super::list::ListMotion;
use super::pager::{PagerSource, TextPager};
use super::state::{ScreenState, ScreenView};
use super::steps;
use crate::tui::message::{ScreenEffect, ScreenParting};

/// Lines of a page that the next one has, too.
const OVERLAP: usize = 2;

impl ScreenState {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<ScreenEffect> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return vec![self.interrupt()],
                KeyCode::Char('z') => return vec![ScreenEffect::Suspend],
                _ => {}
            }
        }
        if let Some(dialog) = self.dialog.take() {
            return self.key_in_dialog(dialog, key);
        }
        if let Some(seeking) = self.seeking.take() {
            self.key_in_seeking(seeking, key);
            return Vec::new();
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Vec::new();
        }
        if self.pager.is_some() {
            return self.key_in_pager(key);
        }
        self.key_in_view(key)
    }

    /// A screen of a running session asks it to end; a screen that only watches closes.
    fn interrupt(&self) -> ScreenEffect {
        match self.own {
            Some(_) => ScreenEffect::Interrupt,
            None => ScreenEffect::Part(ScreenParting::Left),
        }
    }

    fn key_in_view(&mut self, key: KeyEvent) -> Vec<ScreenEffect> {
        match key.code {
            KeyCode::Char('q') => return self.quit(),
            KeyCode::Char('?') => self.dialog = Some(ScreenDialog::Help),
            KeyCode::Char('!') => self.decide(),
            KeyCode::Char(digit @ '1'..='4') => self.go_to(digit as usize - '1' as usize),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(ScreenView::ALL.len() - 1),
            KeyCode::Char('/') if self.view != ScreenView::Session => self.seek(),
            KeyCode::Esc => self.back(),
            KeyCode::Char('m') => self.say(),
            KeyCode::Char('p') => return self.pause(),
            KeyCode::Char('r') => return self.resume(),
            KeyCode::Char('x') => self.stop(),
            KeyCode::Char('u') => return self.preview_undo(),
            _ => return self.key_of_view(key.code),
        }
        Vec::new()
    }

    fn key_of_view(&mut self, code: KeyCode) -> Vec<ScreenEffect> {
        if self.view == ScreenView::Session {
            return self.key_in_session(code);
        }
        let page = self.page();
        if let (Some(motion), Some(list)) = (motion(code, page), self.list()) {
            list.go(motion);
            return Vec::new();
        }
        match (self.view, code) {
            (ScreenView::Problems, KeyCode::Enter) => self.open_problem(),
            (ScreenView::Problems, KeyCode::Char('a')) => self.approve(),
            (ScreenView::Problems, KeyCode::Char('d')) => self.dismiss(),
            (ScreenView::Sessions, KeyCode::Enter) => {
                if let Some(id) = self.session_line().map(|line| line.row.id.clone()) {
                    self.look_at(id);
                }
            }
            (ScreenView::Tasks, KeyCode::Enter) => self.open_task(),
            (ScreenView::Tasks, KeyCode::Char('c')) => {
                self.which_tasks = match self.which_tasks {
                    WhichTasks::Open => WhichTasks::All,
                    WhichTasks::All => WhichTasks::Open,
                };
            }
            _ => {}
        }
        Vec::new()
    }

    fn decide(&mut self) {
        if let Some(ProblemLine { matter: ProblemMatter::Problem(key), reason, .. }) = self.asking()
        {
            self.dialog = Some(ScreenDialog::Settle { key: key.clone(), reason: reason.clone() });
        } else if self.question.is_some() {
            self.dialog = Some(ScreenDialog::Retry);
        }
    }

    fn quit(&mut self) -> Vec<ScreenEffect> {
        match self.own {
            Some(_) => {
                self.dialog = Some(ScreenDialog::Leave);
                Vec::new()
            }
            // The end of this program would interrupt the undo.
            None if self.is_undoing => {
                self.tell("the undo is not finished yet");
                Vec::new()
            }
            None => vec![ScreenEffect::Part(ScreenParting::Left)],
        }
    }

    fn go_to(&mut self, place: usize) {
        self.view = ScreenView::ALL[place];
        if self.view == ScreenView::Session && self.session.is_none() {
            // The selected step, or the running one.
            let chosen = self.session_line().map(|line| line.row.id.clone());
            match chosen {
                Some(id) => self.look_at(id),
                None => self.tell("no sessions yet: hookloop run \"…\""),
            }
        }
    }

    fn turn(&mut self, by: usize) {
        let at = ScreenView::ALL.iter().position(|view| *view == self.view).unwrap_or(0);
        self.go_to((at + by) % ScreenView::ALL.len());
    }

    fn back(&mut self) {
        let has_filter = !self.filter().is_empty();
        match (self.view, has_filter) {
            (ScreenView::Session, _) if self.part.is_some() || self.step.is_some() => {
                self.part = None;
                self.step = None;
            }
            (ScreenView::Session, _) => self.view = ScreenView::Sessions,
            (_, true) => {
                if let Some(list) = self.list() {
                    list.filter.clear();
                }
                self.fill_problems();
                self.fill_sessions();
                self.fill_tasks();
            }
            (_, false) => {}
        }
    }

    /// The session that a key is about, and its state.
    pub(super) fn subject(&self) -> Option<(SessionId, SessionState)> {
        let of_list = |id: &SessionId| {
            let lines = &self.overview.as_ref()?.sessions;
            let line = lines.iter().find(|line| line.row.id == *id)?;
            Some((id.clone(), line.state))
        };
        match self.view {
            ScreenView::Session => {
                let shown = self.shown.as_ref()?;
                Some((shown.id.clone(), shown.state))
            }
            ScreenView::Sessions => {
                self.session_line().map(|line| (line.row.id.clone(), line.state))
            }
            ScreenView::Tasks => of_list(self.task()?.session.as_ref()?),
            ScreenView::Problems => of_list(self.problem()?.matter.session()?),
        }
    }

    fn say(&mut self) {
        if let (ScreenView::Problems, Some(line)) = (self.view, self.problem()) {
            match &line.matter {
                ProblemMatter::Problem(key) if line.can_answer => {
                    let to = TextReceiver::Problem(key.clone());
                    self.dialog = Some(ScreenDialog::Say { to, editor: Default::default() });
                }
                _ => self.tell("this problem takes no answer: see the commands below"),
            }
            return;
        }
        let Some((id, state)) = self.subject() else { return self.tell("no session selected") };
        let question = self.question_of(&id).map(|line| line.matter.clone());
        let to = match question {
            _ if is_open(state) => TextReceiver::Agent(id),
            Some(ProblemMatter::Problem(key)) => TextReceiver::Problem(key),
            _ => {
                return self.tell(&format!(
                    "session {id} has ended ({state}): no agent would get the message"
                ));
            }
        };
        self.dialog = Some(ScreenDialog::Say { to, editor: Default::default() });
    }

    fn pause(&mut self) -> Vec<ScreenEffect> {
        match self.subject() {
            Some((id, SessionState::Running)) => return vec![ScreenEffect::Pause(id)],
            Some((id, state)) => self.tell(&format!("session {id} is not running: {state}")),
            None => self.tell("no session selected"),
        }
        Vec::new()
    }

    fn stop(&mut self) {
        match self.subject() {
            Some((id, SessionState::Running)) => {
                let question = format!(
                    "Stop session {id} now? This ends its agent. You can resume the session later."
                );
                self.dialog = Some(ScreenDialog::Sure { question, yes: ScreenEffect::Stop(id) });
            }
            Some((id, state)) => self.tell(&format!("session {id} is not running: {state}")),
            None => self.tell("no session selected"),
        }
    }

    /// Requests the files that the undo of a session would change. The dialog shows them later.
    fn preview_undo(&mut self) -> Vec<ScreenEffect> {
        match self.subject() {
            Some((id, SessionState::Running)) => {
                self.tell(&format!("session {id} is running: pause or stop it first"));
            }
            Some((id, _)) => {
                self.dialog = Some(ScreenDialog::UndoReading(id.clone()));
                return vec![ScreenEffect::PreviewUndo(id)];
            }
            None => self.tell("no session selected"),
        }
        Vec::new()
    }

    fn resume(&mut self) -> Vec<ScreenEffect> {
        match self.subject() {
            Some((id, state)) if can_resume(state) => {
                match self.own {
                    // This program has a session already.
                    Some(_) => self.tell(&format!("in another terminal: hookloop resume {id}")),
                    None => {
                        let question = format!(
                            "Resume session {id} in this terminal? Elsewhere: hookloop resume {id}"
                        );
                        let yes = ScreenEffect::Part(ScreenParting::Resume(id));
                        self.dialog = Some(ScreenDialog::Sure { question, yes });
                    }
                }
            }
            Some((id, state)) => self.tell(&format!("session {id} can't be resumed: {state}")),
            None => self.tell("no session selected"),
        }
        Vec::new()
    }

    fn open_problem(&mut self) {
        let Some(line) = self.problem() else { return };
        let known = self.facts_of(&line.matter).and_then(|facts| facts.session.clone());
        match line.matter.session().cloned().or(known) {
            Some(id) => self.look_at(id),
            None => self.tell("no session belongs to this problem"),
        }
    }

    fn approve(&mut self) {
        let Some(line) = self.problem() else { return };
        match &line.matter {
            ProblemMatter::Problem(key) if self.can_approve(line) => {
                let question = match key.about {
                    _ if line.asks => {
                        format!("Accept the work of {} without passing gates?", key.about)
                    }
                    ProblemSubject::Session(_) => {
                        format!("Allow these changes of tests of {}?", key.about)
                    }
                    _ => format!("Accept the submitted work of {}?", key.about),
                };
                let yes = ScreenEffect::Approve(key.clone());
                self.dialog = Some(ScreenDialog::Sure { question, yes });
            }
            _ => self
                .tell("nothing to approve: only submitted work and changed tests can be approved"),
        }
    }

    fn dismiss(&mut self) {
        let Some(line) = self.problem() else { return };
        match &line.matter {
            ProblemMatter::Problem(key) => {
                let question = format!("Dismiss {key}? Nothing else changes.");
                let yes = ScreenEffect::Dismiss(key.clone());
                self.dialog = Some(ScreenDialog::Sure { question, yes });
            }
            ProblemMatter::Interrupted(id) => {
                let text = format!(
                    "the session ends when the next one starts; to continue it: hookloop resume {id}"
                );
                self.tell(&text);
            }
        }
    }

    fn open_task(&mut self) {
        let Some(task) = self.task() else { return };
        match task.session.clone() {
            Some(id) => self.look_at(id),
            None => {
                let text = task.details.join("\n");
                self.pager = Some(TextPager::new(format!("task {}", task.id), &text));
            }
        }
    }

    fn key_in_session(&mut self, code: KeyCode) -> Vec<ScreenEffect> {
        let Some(dropped) = self.shown.as_ref().map(|shown| shown.timeline.parts_dropped) else {
            return Vec::new();
        };
        let part = self.part_at().unwrap_or(0);
        let step = self.step_at().unwrap_or(0);
        let steps_dropped = self.current_part().map_or(0, |part| part.steps_dropped);
        let last_part =
            self.shown.as_ref().map_or(0, |shown| shown.timeline.parts.len()).max(1) - 1;
        let last_step = self.current_part().map_or(0, |part| part.steps.len()).max(1) - 1;
        match code {
            KeyCode::Left | KeyCode::Char('h') => {
                self.part = Some(part.saturating_sub(1) + dropped);
                self.step = None;
            }
            KeyCode::Right | KeyCode::Char('l') => {
                // At the end, the selection follows new steps.
                self.part = (part + 1 < last_part).then_some(part + 1 + dropped);
                self.step = None;
            }
            KeyCode::Up | KeyCode::Char('k') => {
                self.part = Some(part + dropped);
                self.step = Some(step.saturating_sub(1) + steps_dropped);
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.step = (step < last_step).then_some(step + 1 + steps_dropped);
            }
            KeyCode::Home | KeyCode::Char('g') => {
                self.part = Some(dropped);
                self.step = None;
            }
            KeyCode::End | KeyCode::Char('G') => (self.part, self.step) = (None, None),
            KeyCode::Enter | KeyCode::Char('o') => return self.open_step(),
            KeyCode::Char('w') => self.open_waiting(),
            _ => {}
        }
        Vec::new()
    }

    fn open_step(&mut self) -> Vec<ScreenEffect> {
        let leaf = self.current_step().and_then(|step| leaf_of(&step.what));
        match leaf {
            Some(leaf) => vec![ScreenEffect::Open(leaf)],
            None => {
                self.tell("this step has no further output");
                Vec::new()
            }
        }
    }

    fn open_waiting(&mut self) {
        let Some(shown) = &self.shown else { return };
        let pending = &shown.session.pending;
        if pending.is_empty() {
            self.tell("no pending output for the next prompt");
            return;
        }
        let text: String = pending
            .iter()
            .map(|piped| format!("── {} ({}) ──\n{}\n", piped.from, piped.point, piped.text))
            .collect();
        self.pager = Some(TextPager::new("pending output for the next prompt".to_owned(), &text));
    }

    fn key_in_pager(&mut self, key: KeyEvent) -> Vec<ScreenEffect> {
        // The title needs a line.
        let page = self.page().saturating_sub(1).max(1);
        let Some(pager) = &mut self.pager else { return Vec::new() };
        if let Some(motion) = motion(key.code, page) {
            pager.go(motion, page);
            return Vec::new();
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => self.pager = None,
            KeyCode::Left | KeyCode::Char('h') => pager.shift(false),
            KeyCode::Right | KeyCode::Char('l') => pager.shift(true),
            KeyCode::Char(' ') => pager.go(ListMotion::By(page as isize), page),
            KeyCode::Char('/') => self.seek(),
            KeyCode::Char(c @ ('n' | 'N')) if !pager.sought.is_empty() && !pager.seek(c == 'N') => {
                self.tell("not found");
            }
            KeyCode::Char('o') => return vec![ScreenEffect::Lend(pager.text())],
            KeyCode::Char('?') => self.dialog = Some(ScreenDialog::Help),
            _ => {}
        }
        Vec::new()
    }
}

/// Whether `hookloop resume` continues such a session without further options.
pub(super) fn can_resume(state: SessionState) -> bool {
    use SessionState::{Cancelled, Interrupted, NeedsHuman, Paused};
    matches!(state, Paused | Interrupted | NeedsHuman | Cancelled)
}

pub(super) fn is_open(state: SessionState) -> bool {
    matches!(state, SessionState::Running | SessionState::Paused | SessionState::Interrupted)
}

/// How far a key moves in lines.
fn motion(code: KeyCode, page: usize) -> Option<ListMotion> {
    let page = isize::try_from(page.saturating_sub(OVERLAP).max(1)).unwrap_or(1);
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => ListMotion::By(-1),
        KeyCode::Down | KeyCode::Char('j') => ListMotion::By(1),
        KeyCode::PageUp => ListMotion::By(-page),
        KeyCode::PageDown => ListMotion::By(page),
        KeyCode::Home | KeyCode::Char('g') => ListMotion::First,
        KeyCode::End | KeyCode::Char('G') => ListMotion::Last,
        _ => return None,
    })
}

/// Returns the text of a step for the pager.
fn leaf_of(what: &StepContent) -> Option<PagerSource> {
    let title = steps::title(what);
    Some(match what {
        StepContent::Hook(ran) => {
            let reason =
                ran.reason.as_deref().map(|reason| format!("{reason}\n")).unwrap_or_default();
            let tail = match &ran.artifact {
                Some(_) => String::new(),
                None => ran.output_tail.join("\n"),
            };
            PagerSource { title, text: format!("{reason}{tail}"), artifact: ran.artifact.clone() }
        }
        StepContent::Turn { ended: Some(ended), .. } => {
            let text = format!("── final message ──\n{}\n", ended.message);
            PagerSource { title, text, artifact: ended.artifact.clone() }
        }
        StepContent::Piped(piped) => {
            PagerSource { title, text: piped.text.clone(), artifact: None }
        }
        StepContent::Receipt(receipt) => {
            let text = serde_json::to_string_pretty(receipt).unwrap_or_default();
            PagerSource { title, text, artifact: None }
        }
        StepContent::ReactionFailed(failed) => {
            let text = format!("{}\n{}", failed.error, failed.output_tail.join("\n"));
            PagerSource { title, text, artifact: None }
        }
        StepContent::Judged(judged) if !judged.failing.is_empty() => {
            PagerSource { title, text: judged.failing.join("\n"), artifact: None }
        }
        _ => return None,
    })
}
