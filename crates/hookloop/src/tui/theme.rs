//! Colours and styles. Colours only repeat the meaning of words and signs.

use hookloop_core::session::SessionState;
use hookloop_core::task::TaskState;
use ratatui::style::{Color, Modifier, Style};

/// Lines around what a view shows: header, names of the views, a blank, footer.
pub(super) const FRAME_LINES: usize = 4;

use crate::present::StepSeverity;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScreenTheme {
    pub(crate) has_colours: bool,
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

impl ScreenTheme {
    pub(super) fn colour(self, colour: Color) -> Style {
        if self.has_colours { PLAIN.fg(colour) } else { PLAIN }
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn busy(self) -> Style {
        self.colour(Color::Cyan)
    }

    pub(super) fn severity(self, severity: StepSeverity) -> Style {
        match severity {
            StepSeverity::Heading => BOLD,
            StepSeverity::Good => self.good(),
            StepSeverity::Bad => self.bad(),
            StepSeverity::Plain => PLAIN,
        }
    }

    pub(super) fn task(self, state: TaskState) -> Style {
        match state {
            TaskState::Created | TaskState::Completed => DIM,
            TaskState::Ready => self.good(),
            TaskState::Active => self.colour(Color::Blue).add_modifier(Modifier::BOLD),
            TaskState::Submitted => self.busy(),
            TaskState::Blocked => self.bad(),
        }
    }

    /// The style of a session's state.
    pub(super) fn session(self, state: SessionState, is_unproven: bool) -> Style {
        match state {
            SessionState::Complete if is_unproven => PLAIN,
            SessionState::Running => self.busy(),
            SessionState::Complete => self.good(),
            SessionState::Paused | SessionState::Cancelled => PLAIN,
            SessionState::NeedsHuman | SessionState::Limit | SessionState::Interrupted => {
                self.bad()
            }
        }
    }
}

/// A session's state in words.
pub(super) fn state_name(state: SessionState, is_unproven: bool) -> &'static str {
    match state {
        SessionState::Complete if is_unproven => "complete, not proven",
        _ => state.name(),
    }
}

/// A session's state as one character.
pub(super) fn sign(state: SessionState, is_unproven: bool) -> &'static str {
    match state {
        SessionState::Complete if is_unproven => "·",
        SessionState::Running => "▶",
        SessionState::Complete => "✓",
        SessionState::Paused => "‖",
        SessionState::Cancelled => "-",
        SessionState::NeedsHuman | SessionState::Limit | SessionState::Interrupted => "!",
    }
}
