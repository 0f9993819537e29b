//! The words of a step of a session.

/// A step of a session in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepText {
    pub(crate) severity: StepSeverity,
    /// The kind of step.
    pub(crate) title: &'static str,
    /// The hook, gate, task or agent of the step; empty if there is none.
    pub(crate) name: String,
    /// The result, for a reader who sees the title and the name.
    pub(crate) detail: String,
    /// The step in one line that stands alone.
    pub(crate) line: String,
}

impl StepText {
    /// A step whose result is a line that stands alone.
    pub(super) fn of_line(
        severity: StepSeverity,
        title: &'static str,
        name: impl Into<String>,
        line: impl Into<String>,
    ) -> StepText {
        let line = line.into();
        StepText { severity, title, name: name.into(), detail: line.clone(), line }
    }
}

/// How much a step matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepSeverity {
    /// Something new begins.
    Heading,
    Good,
    Bad,
    Plain,
}
