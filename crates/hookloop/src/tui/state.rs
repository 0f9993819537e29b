//! The content of the screen: a plain value. Inputs change it and request effects.

use std::sync::Arc;

use hookloop_core::id::SessionId;
use hookloop_core::session::timeline::{TimelinePart, TimelineStep};
use hookloop_core::time::Timestamp;
use ratatui::crossterm::event::KeyEvent;

use super::data::{
    ProblemFacts, ProblemLine, ProblemMatter, ProjectOverview, ScreenNews, ScreenRequest,
    SessionContent, SessionLine, TaskContent, TaskFacts, WhichTasks,
};
use super::dialog::{ScreenDialog, edit};
use super::editor::{TextEdit, TextEditor};
use super::list::SelectList;
use super::message::{RetryQuestion, ScreenEffect, ScreenInput};
use super::pager::TextPager;
use super::theme::{FRAME_LINES, ScreenTheme};
use crate::undo_preview::UndoPreview;

/// How long a message stays.
const TOLD_MS: i64 = 6_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenView {
    Problems,
    Sessions,
    Tasks,
    Session,
}

impl ScreenView {
    pub(super) const ALL: [ScreenView; 4] =
        [ScreenView::Problems, ScreenView::Sessions, ScreenView::Tasks, ScreenView::Session];

    pub(super) fn name(self) -> &'static str {
        match self {
            ScreenView::Problems => "Problems",
            ScreenView::Sessions => "Sessions",
            ScreenView::Tasks => "Tasks",
            ScreenView::Session => "Session",
        }
    }
}

/// The input of a filter or a search.
#[derive(Clone, Debug)]
pub(super) struct SearchInput {
    pub(super) editor: TextEditor,
}

pub(super) struct ScreenState {
    pub(super) theme: ScreenTheme,
    pub(super) now: Timestamp,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) view: ScreenView,
    pub(super) overview: Option<Arc<ProjectOverview>>,
    pub(super) tasks: Option<Arc<TaskContent>>,
    pub(super) shown: Option<Arc<SessionContent>>,
    pub(super) facts: Option<Arc<ProblemFacts>>,
    pub(super) trouble: Option<String>,
    pub(super) problem_list: SelectList,
    pub(super) session_list: SelectList,
    pub(super) task_list: SelectList,
    pub(super) which_tasks: WhichTasks,
    /// The session that is shown.
    pub(super) session: Option<SessionId>,
    /// The part of it, by its number from the start; none: the latest.
    pub(super) part: Option<usize>,
    /// The step of that; none: the latest.
    pub(super) step: Option<usize>,
    pub(super) pager: Option<TextPager>,
    pub(super) dialog: Option<ScreenDialog>,
    pub(super) seeking: Option<SearchInput>,
    pub(super) question: Option<RetryQuestion>,
    told: Option<(String, Timestamp)>,
    /// The session that this program runs.
    pub(super) own: Option<SessionId>,
    /// Whether an undo that this program performs has not ended yet.
    pub(super) is_undoing: bool,
    /// Nobody has chosen a view yet.
    is_fresh: bool,
    asked: ScreenRequest,
}

impl ScreenState {
    pub(super) fn new(theme: ScreenTheme, now: Timestamp) -> ScreenState {
        ScreenState {
            theme,
            now,
            width: 80,
            height: 24,
            view: ScreenView::Problems,
            overview: None,
            tasks: None,
            shown: None,
            facts: None,
            trouble: None,
            problem_list: SelectList::default(),
            session_list: SelectList::default(),
            task_list: SelectList::default(),
            which_tasks: WhichTasks::Open,
            session: None,
            part: None,
            step: None,
            pager: None,
            dialog: None,
            seeking: None,
            question: None,
            told: None,
            own: None,
            is_undoing: false,
            is_fresh: true,
            asked: ScreenRequest::default(),
        }
    }

    /// Begins with a session.
    pub(super) fn at_session(mut self, id: SessionId) -> ScreenState {
        self.look_at(id);
        self
    }

    /// Whose program this is.
    pub(super) fn of_run(mut self, id: SessionId) -> ScreenState {
        self.own = Some(id.clone());
        self.at_session(id)
    }

    /// Applies an input, and returns the requested effects.
    pub(super) fn update(&mut self, input: ScreenInput) -> Vec<ScreenEffect> {
        let mut effects = match input {
            ScreenInput::Key(key) => {
                // The user has read the message.
                self.told = None;
                self.key(key)
            }
            ScreenInput::Paste(text) => self.paste(&text),
            ScreenInput::Size { width, height } => {
                self.width = width;
                self.height = height;
                Vec::new()
            }
            ScreenInput::Tick(now) => {
                self.now = now;
                self.told.take_if(|(_, until)| *until <= now);
                Vec::new()
            }
            ScreenInput::News(news) => self.take(news),
            ScreenInput::Asked(question) => self.ask(question),
            ScreenInput::Done(said) => self.tell_result(said),
            ScreenInput::Opened(pager) => {
                self.pager = Some(pager);
                Vec::new()
            }
            ScreenInput::UndoPreviewed { session, preview } => self.show_undo(&session, preview),
            ScreenInput::Undone(said) => {
                self.is_undoing = false;
                self.tell_result(said)
            }
        };
        let request = self.request();
        if request != self.asked {
            self.asked = request.clone();
            effects.push(ScreenEffect::Look(request));
        }
        effects
    }

    fn request(&self) -> ScreenRequest {
        let is_at = |view: ScreenView| self.view == view;
        ScreenRequest {
            session: self.session.clone().filter(|_| is_at(ScreenView::Session)),
            problem: self
                .problem()
                .map(|line| line.matter.clone())
                .filter(|_| is_at(ScreenView::Problems)),
            tasks: is_at(ScreenView::Tasks).then_some(self.which_tasks),
        }
    }

    fn take(&mut self, news: ScreenNews) -> Vec<ScreenEffect> {
        self.trouble = news.trouble;
        if let Some(overview) = news.overview.filter(|new| is_other(new, self.overview.as_ref())) {
            let is_gone = |dialog: &mut ScreenDialog| match dialog {
                ScreenDialog::Settle { key, .. } => {
                    let matter = ProblemMatter::Problem(key.clone());
                    !overview.problems.iter().any(|line| line.matter == matter)
                }
                _ => false,
            };
            self.dialog.take_if(is_gone);
            self.overview = Some(overview);
            self.fill_problems();
            self.fill_sessions();
            let is_quiet = self.problem_list.is_empty();
            if std::mem::take(&mut self.is_fresh) && is_quiet && self.view == ScreenView::Problems {
                self.view = ScreenView::Sessions;
            }
        }
        if let Some(tasks) = news.tasks.filter(|new| is_other(new, self.tasks.as_ref())) {
            self.tasks = Some(tasks);
            self.fill_tasks();
        }
        // An older answer may arrive after a newer request.
        if let Some(shown) = news.shown.filter(|shown| Some(&shown.id) == self.session.as_ref()) {
            self.shown = Some(shown);
        }
        if news.facts.is_some() {
            self.facts = news.facts;
        }
        Vec::new()
    }

    pub(super) fn fill_problems(&mut self) {
        let Some(overview) = &self.overview else { return };
        let lines = overview.problems.iter();
        self.problem_list
            .fill(lines.map(|line| (Some(line.matter.name()), &*line.title, &*line.reason)));
    }

    pub(super) fn fill_sessions(&mut self) {
        let Some(overview) = &self.overview else { return };
        let lines = overview.sessions.iter();
        self.session_list.fill(
            lines.map(|line| (Some(line.row.id.to_string()), &*line.row.work, line.state.name())),
        );
    }

    pub(super) fn fill_tasks(&mut self) {
        let Some(tasks) = &self.tasks else { return };
        self.task_list.fill(tasks.lines.iter().map(|line| match &line.task {
            Some(task) => (Some(task.id.clone()), &*task.goal, task.state.name()),
            None => (None, "", ""),
        }));
    }

    fn ask(&mut self, question: Option<RetryQuestion>) -> Vec<ScreenEffect> {
        self.dialog.take_if(|dialog| question.is_none() && matches!(dialog, ScreenDialog::Retry));
        // A dialog that is open is not replaced.
        if question.is_some() && self.dialog.is_none() {
            self.dialog = Some(ScreenDialog::Retry);
        }
        self.question = question;
        Vec::new()
    }

    /// Shows the files that an undo would change, unless the user has closed the dialog meanwhile.
    fn show_undo(
        &mut self,
        session: &SessionId,
        preview: Result<UndoPreview, String>,
    ) -> Vec<ScreenEffect> {
        let is_reading = |dialog: &mut ScreenDialog| match dialog {
            ScreenDialog::UndoReading(id) => *id == *session,
            _ => false,
        };
        if self.dialog.take_if(is_reading).is_none() {
            return Vec::new();
        }
        match preview {
            Ok(preview) => match preview.nothing() {
                Some(reason) => self.tell(&reason),
                None => self.dialog = Some(ScreenDialog::Undo(preview)),
            },
            Err(why) => return self.tell_result(Err(why)),
        }
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> Vec<ScreenEffect> {
        match (&mut self.dialog, &mut self.seeking) {
            (Some(ScreenDialog::Say { editor, .. }), _) => editor.edit(TextEdit::Insert(text)),
            (None, Some(seeking)) => {
                seeking.editor.edit(TextEdit::Insert(text.lines().next().unwrap_or_default()));
                self.sought();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Says something for a while.
    pub(super) fn tell(&mut self, text: &str) {
        let until = Timestamp(self.now.0.saturating_add(TOLD_MS));
        self.told = Some((text.to_owned(), until));
    }

    /// Shows the result of an effect: a message, or an error.
    fn tell_result(&mut self, said: Result<String, String>) -> Vec<ScreenEffect> {
        self.tell(&said.unwrap_or_else(|why| format!("! {why}")));
        Vec::new()
    }

    pub(super) fn told(&self) -> Option<&str> {
        self.told.as_ref().map(|(text, _)| text.as_str())
    }

    pub(super) fn look_at(&mut self, id: SessionId) {
        self.is_fresh = false;
        self.view = ScreenView::Session;
        if self.session.as_ref() != Some(&id) {
            self.shown = None;
            self.part = None;
            self.step = None;
            self.session = Some(id);
        }
    }

    pub(super) fn problem(&self) -> Option<&ProblemLine> {
        self.overview.as_ref()?.problems.get(self.problem_list.place()?)
    }

    /// Returns the question of the shown session, if it runs elsewhere.
    pub(super) fn asking(&self) -> Option<&ProblemLine> {
        let line = match self.view {
            ScreenView::Problems => self.problem(),
            ScreenView::Session => {
                let id = self.session.as_ref()?;
                let problems = &self.overview.as_ref()?.problems;
                problems.iter().find(|line| line.asks && line.matter.session() == Some(id))
            }
            ScreenView::Sessions | ScreenView::Tasks => None,
        };
        line.filter(|line| line.asks && line.matter.session() != self.own.as_ref())
    }

    /// Returns the problem of an ended session that takes an answer.
    pub(super) fn question_of(&self, id: &SessionId) -> Option<&ProblemLine> {
        let problems = &self.overview.as_ref()?.problems;
        problems.iter().find(|line| line.can_answer && line.matter.session() == Some(id))
    }

    pub(super) fn session_line(&self) -> Option<&SessionLine> {
        self.overview.as_ref()?.sessions.get(self.session_list.place()?)
    }

    pub(super) fn task(&self) -> Option<&TaskFacts> {
        self.tasks.as_ref()?.lines.get(self.task_list.place()?)?.task.as_ref()
    }

    /// Returns the details of the selected problem.
    pub(super) fn facts_of(&self, matter: &ProblemMatter) -> Option<&ProblemFacts> {
        self.facts.as_deref().filter(|facts| facts.matter == *matter)
    }

    /// Whether a person can approve the problem.
    pub(super) fn can_approve(&self, line: &ProblemLine) -> bool {
        line.can_approve || self.facts_of(&line.matter).is_some_and(|facts| facts.can_allow)
    }

    /// Returns the position of the selected part in the timeline. Dropped parts count, so that positions stay the same.
    pub(super) fn part_at(&self) -> Option<usize> {
        let timeline = &self.shown.as_ref()?.timeline;
        let last = timeline.parts.len().checked_sub(1)?;
        Some(match self.part {
            Some(part) => part.saturating_sub(timeline.parts_dropped).min(last),
            // The end of a session has steps only if hooks ran at it.
            None if timeline.ended.is_some() => {
                timeline.parts.iter().rposition(|part| !part.steps.is_empty()).unwrap_or(last)
            }
            None => last,
        })
    }

    pub(super) fn current_part(&self) -> Option<&TimelinePart> {
        self.shown.as_ref()?.timeline.parts.get(self.part_at()?)
    }

    pub(super) fn step_at(&self) -> Option<usize> {
        let part = self.current_part()?;
        let last = part.steps.len().checked_sub(1)?;
        Some(match self.step {
            Some(step) => step.saturating_sub(part.steps_dropped).min(last),
            None => last,
        })
    }

    pub(super) fn current_step(&self) -> Option<&TimelineStep> {
        self.current_part()?.steps.get(self.step_at()?)
    }

    /// The list of the view that is shown.
    pub(super) fn list(&mut self) -> Option<&mut SelectList> {
        match self.view {
            ScreenView::Problems => Some(&mut self.problem_list),
            ScreenView::Sessions => Some(&mut self.session_list),
            ScreenView::Tasks => Some(&mut self.task_list),
            ScreenView::Session => None,
        }
    }

    pub(super) fn filter(&self) -> &str {
        match self.view {
            ScreenView::Problems => &self.problem_list.filter,
            ScreenView::Sessions => &self.session_list.filter,
            ScreenView::Tasks => &self.task_list.filter,
            ScreenView::Session => "",
        }
    }

    /// Opens the input of a filter or a search.
    pub(super) fn seek(&mut self) {
        let known = match &self.pager {
            Some(pager) => pager.sought.clone(),
            None => self.filter().to_owned(),
        };
        self.seeking = Some(SearchInput { editor: TextEditor::with(&known) });
    }

    /// A key while a filter or a search is typed.
    pub(super) fn key_in_seeking(&mut self, mut seeking: SearchInput, key: KeyEvent) {
        use ratatui::crossterm::event::KeyCode;
        match key.code {
            KeyCode::Enter => {
                let is_found = self.pager.as_mut().is_none_or(|pager| pager.seek(false));
                if !is_found {
                    self.tell("not found");
                }
                return;
            }
            KeyCode::Esc => seeking.editor = TextEditor::default(),
            _ => edit(&mut seeking.editor, key),
        }
        let goes_on = key.code != KeyCode::Esc;
        self.seeking = Some(seeking);
        self.sought();
        self.seeking.take_if(|_| !goes_on);
    }

    /// Applies the typed text as filter or search.
    fn sought(&mut self) {
        let Some(seeking) = &self.seeking else { return };
        let text = seeking.editor.text().to_owned();
        if let Some(pager) = &mut self.pager {
            pager.sought = text;
            return;
        }
        if let Some(list) = self.list() {
            list.filter = text;
        }
        match self.view {
            ScreenView::Problems => self.fill_problems(),
            ScreenView::Sessions => self.fill_sessions(),
            ScreenView::Tasks => self.fill_tasks(),
            ScreenView::Session => {}
        }
    }

    /// Lines that a page has.
    pub(super) fn page(&self) -> usize {
        usize::from(self.height).saturating_sub(FRAME_LINES).max(1)
    }
}

/// Whether the content has changed; equal content is not processed again.
fn is_other<T>(new: &Arc<T>, known: Option<&Arc<T>>) -> bool {
    known.is_none_or(|known| !Arc::ptr_eq(new, known))
}
