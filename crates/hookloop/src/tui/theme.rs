//! How things look. Colours only repeat what words and signs say.

use hookloop_core::session::SessionState;
use hookloop_core::task::TaskState;
use ratatui::style::{Color, Modifier, Style};

use crate::cli::session::words::Weight;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) has_colours: bool,
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

impl Theme {
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

    pub(super) fn weight(self, weight: Weight) -> Style {
        match weight {
            Weight::Heading => BOLD,
            Weight::Good => self.good(),
            Weight::Bad => self.bad(),
            Weight::Plain => PLAIN,
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
    pub(super) fn session(self, state: SessionState) -> Style {
        match state {
            SessionState::Running => self.busy(),
            SessionState::Complete => self.good(),
            SessionState::Paused | SessionState::Cancelled => PLAIN,
            SessionState::NeedsHuman | SessionState::Limit | SessionState::Interrupted => {
                self.bad()
            }
        }
    }
}

/// A session's state as one character.
pub(super) fn sign(state: SessionState) -> &'static str {
    match state {
        SessionState::Running => "▶",
        SessionState::Complete => "✓",
        SessionState::Paused => "‖",
        SessionState::Cancelled => "-",
        SessionState::NeedsHuman | SessionState::Limit | SessionState::Interrupted => "!",
    }
}
