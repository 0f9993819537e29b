//! Hook points: the moments of sessions, tasks and deliveries at which hooks run.

use std::fmt;
use std::str::FromStr;

use crate::nearest::did_you_mean;

/// The events that hooks can follow, as every configuration spells them.
pub(crate) const LIFECYCLE: [&str; 8] = [
    "task_created",
    "task_started",
    "task_completed",
    "task_blocked",
    "task_deleted",
    "dependency_added",
    "dependency_removed",
    "dependency_satisfied",
];

/// The start of every type that a hook's `log` action may write.
pub const HOOK_NAMESPACE: &str = "hook.";

/// Declares the points that follow no event, each with its name, so that no list of them can miss one.
macro_rules! fixed_points {
    ($($(#[doc = $doc:literal])* $variant:ident => $name:literal,)*) => {
        /// A hook point.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Point {
            $($(#[doc = $doc])* $variant,)*
            /// After an event of this type: one of a task's life, or one that a hook logs.
            Event(String),
        }

        impl Point {
            /// Every point that follows no event, with its name.
            const FIXED: &[(Point, &'static str)] = &[$((Point::$variant, $name),)*];

            pub fn name(&self) -> &str {
                match self {
                    $(Point::$variant => $name,)*
                    Point::Event(kind) => kind,
                }
            }
        }
    };
}

fixed_points! {
    SessionStart => "session_start",
    /// The installation of packages in a room, before the first gate.
    Setup => "setup",
    PreIteration => "pre_iteration",
    PostIteration => "post_iteration",
    OnError => "on_error",
    /// A stop condition of the project, evaluated after each iteration.
    StopWhen => "stop_when",
    /// Validation rules, for stop conditions that need them and for every claim that the work is complete.
    Validation => "validation",
    Stop => "stop",
    SessionEnd => "session_end",
    BeforeSubmit => "before_submit",
    AfterSubmit => "after_submit",
    BeforeMerge => "before_merge",
    AfterMerge => "after_merge",
}

/// Whether hooks of a point can block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    Gate,
    Reaction,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a hook point{suggestion}; hook points: {list}, and `hook.<name>.<type>`",
    suggestion = did_you_mean(.0, Point::names()),
    list = Point::names().join(", ")
)]
pub struct NoSuchPoint(pub String);

/// An alias of `task_completed` in imported configurations.
const TASK_COMPLETE: &str = "on_task_complete";

impl Point {
    /// Whether hooks at the point judge the work of a session.
    pub fn judges_work(&self) -> bool {
        matches!(self, Point::Stop | Point::Validation)
    }

    /// Returns the names of all points, except events that hooks log.
    pub fn names() -> Vec<&'static str> {
        let fixed = Point::FIXED.iter().map(|(_, name)| *name);
        fixed.chain(LIFECYCLE).chain([TASK_COMPLETE]).collect()
    }

    /// Whether hooks of the point can block.
    pub fn kind(&self) -> PointKind {
        match self {
            Point::Setup
            | Point::StopWhen
            | Point::Validation
            | Point::Stop
            | Point::BeforeSubmit
            | Point::BeforeMerge => PointKind::Gate,
            Point::SessionStart
            | Point::PreIteration
            | Point::PostIteration
            | Point::OnError
            | Point::SessionEnd
            | Point::AfterSubmit
            | Point::AfterMerge
            | Point::Event(_) => PointKind::Reaction,
        }
    }

    /// Whether a policy can require gates at the point. Stop conditions and validation rules are the project's choice.
    pub fn can_be_required(&self) -> bool {
        match self {
            Point::Stop | Point::BeforeSubmit | Point::BeforeMerge => true,
            Point::Setup | Point::StopWhen | Point::Validation => false,
            Point::SessionStart
            | Point::PreIteration
            | Point::PostIteration
            | Point::OnError
            | Point::SessionEnd
            | Point::AfterSubmit
            | Point::AfterMerge
            | Point::Event(_) => false,
        }
    }

    /// Returns the names of the points at which a policy can require gates.
    pub fn required_names() -> Vec<&'static str> {
        let required = Point::FIXED.iter().filter(|(point, _)| point.can_be_required());
        required.map(|(_, name)| *name).collect()
    }

    /// Whether `pipe_output` of the point's hooks has an effect. At `session_end` it has none, and is accepted for
    /// configurations of other tools.
    pub fn takes_pipe_output(&self) -> bool {
        match self {
            Point::Setup | Point::StopWhen | Point::BeforeMerge | Point::AfterMerge => false,
            Point::SessionStart
            | Point::PreIteration
            | Point::PostIteration
            | Point::OnError
            | Point::Validation
            | Point::Stop
            | Point::SessionEnd
            | Point::BeforeSubmit
            | Point::AfterSubmit
            | Point::Event(_) => true,
        }
    }

    /// Returns the name of the point in the dialect that hook scripts of other tools read.
    pub fn event_name(&self) -> &str {
        match self {
            Point::SessionStart => "SessionStart",
            Point::Stop => "Stop",
            Point::SessionEnd => "SessionEnd",
            Point::Event(kind) if kind == "task_created" => "TaskCreated",
            Point::Event(kind) if kind == "task_completed" => "TaskCompleted",
            other => other.name(),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Point {
    type Err = NoSuchPoint;

    fn from_str(name: &str) -> Result<Point, NoSuchPoint> {
        if name == TASK_COMPLETE {
            return Ok(Point::Event("task_completed".to_owned()));
        }
        if LIFECYCLE.contains(&name) || name.starts_with(HOOK_NAMESPACE) {
            return Ok(Point::Event(name.to_owned()));
        }
        let found = Point::FIXED.iter().find(|(_, known)| *known == name);
        found.map(|(point, _)| point.clone()).ok_or_else(|| NoSuchPoint(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hook_point_name_reads_back() {
        for name in Point::names() {
            let point: Point = name.parse().unwrap();
            let expected = if name == TASK_COMPLETE { "task_completed" } else { name };
            assert_eq!((point.name(), point.to_string().as_str()), (expected, expected));
        }
        let logged: Point = "hook.deploy.done".parse().unwrap();
        assert_eq!(logged.name(), "hook.deploy.done");
        let error = "task_done".parse::<Point>().unwrap_err().to_string();
        assert!(error.contains("`task_done`") && error.contains("before_merge"), "{error}");
    }

    #[test]
    fn hook_points_that_are_gates() {
        let gates: Vec<_> = Point::names()
            .into_iter()
            .filter(|name| name.parse::<Point>().unwrap().kind() == PointKind::Gate)
            .collect();
        assert_eq!(
            gates,
            ["setup", "stop_when", "validation", "stop", "before_submit", "before_merge"]
        );
    }

    #[test]
    fn every_point_that_a_policy_can_require_is_a_gate() {
        let required = Point::required_names();
        assert_eq!(required, ["stop", "before_submit", "before_merge"]);
        for name in required {
            assert_eq!(name.parse::<Point>().unwrap().kind(), PointKind::Gate, "{name}");
        }
    }
}
