//! The variables of hooks: in commands (`{{name}}`), in conditions (`when`) and in declared actions.
//!
//! One row of the table is one variable. The value of a new variable is defined where the compiler asks for it: in
//! `hookloop_hooks::hook_values` for commands and conditions, and in [`crate::template`] for declared actions.

use serde_json::{Value, json};

use crate::point::Point;

/// Declares the variables, each with its name, so that no list of them can miss one.
macro_rules! hook_variables {
    ($($(#[doc = $doc:literal])* $variant:ident => $name:literal,)*) => {
        /// A variable that hooks can use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HookVariable {
            $($(#[doc = $doc])* $variant,)*
        }

        impl HookVariable {
            /// Every variable, in the order in which lists show them.
            pub const ALL: &[HookVariable] = &[$(HookVariable::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(HookVariable::$variant => $name,)*
                }
            }
        }
    };
}

hook_variables! {
    /// The name of the session.
    Session => "session",
    /// The type of the event.
    Event => "event",
    /// The number of the iteration.
    Iteration => "iteration",
    /// Whether a gate sent the agent back before.
    StopHookActive => "stop_hook_active",
    /// The error of the turn that failed.
    Error => "error",
    /// The task with all its fields.
    Task => "task",
    TaskId => "task_id",
    /// The goal of the task.
    TaskContent => "task_content",
    Description => "description",
    TaskType => "task_type",
    Priority => "priority",
    Labels => "labels",
    /// The result of the completed task.
    Result => "result",
    /// The reason why the task is blocked.
    Reason => "reason",
    Branch => "branch",
    BaseBranch => "base_branch",
    /// The address of the request to merge.
    PrUrl => "pr_url",
    /// The agent that did the work.
    Agent => "agent",
    /// The number of commits.
    Commits => "commits",
    Point => "point",
    /// The directory of the project.
    Project => "project",
}

/// Points that have the same variables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PointGroup {
    SessionEnds,
    Iterations,
    Errors,
    Submissions,
    Merges,
    Events,
}

impl PointGroup {
    fn of(point: &Point) -> PointGroup {
        match point {
            Point::SessionStart | Point::Setup | Point::SessionEnd => PointGroup::SessionEnds,
            Point::PreIteration
            | Point::PostIteration
            | Point::StopWhen
            | Point::Validation
            | Point::Stop => PointGroup::Iterations,
            Point::OnError => PointGroup::Errors,
            Point::BeforeSubmit | Point::AfterSubmit => PointGroup::Submissions,
            Point::BeforeMerge | Point::AfterMerge => PointGroup::Merges,
            Point::Event(_) => PointGroup::Events,
        }
    }
}

impl HookVariable {
    /// Returns whether commands of the point's hooks can use the variable.
    pub fn is_in_commands(self, point: &Point) -> bool {
        use PointGroup::{Errors, Events, Iterations, Merges, Submissions};
        let group = PointGroup::of(point);
        match self {
            HookVariable::Session | HookVariable::Point | HookVariable::Project => true,
            HookVariable::Iteration => matches!(group, Iterations | Errors),
            HookVariable::Error => group == Errors,
            HookVariable::TaskId => matches!(group, Iterations | Submissions | Merges | Events),
            HookVariable::TaskContent | HookVariable::TaskType => {
                matches!(group, Submissions | Merges | Events)
            }
            HookVariable::Branch
            | HookVariable::BaseBranch
            | HookVariable::PrUrl
            | HookVariable::Agent
            | HookVariable::Commits => matches!(group, Submissions | Merges),
            HookVariable::Event
            | HookVariable::Priority
            | HookVariable::Labels
            | HookVariable::Result
            | HookVariable::Reason => group == Events,
            HookVariable::Task | HookVariable::Description | HookVariable::StopHookActive => false,
        }
    }

    /// Returns whether conditions of the point's hooks can use the variable. A merge belongs to no session.
    pub fn is_in_conditions(self, point: &Point) -> bool {
        use PointGroup::{Errors, Events, Iterations, Merges, Submissions};
        let group = PointGroup::of(point);
        match self {
            HookVariable::Point | HookVariable::Project | HookVariable::Task => true,
            HookVariable::Session => !matches!(group, Events | Merges),
            HookVariable::Iteration | HookVariable::StopHookActive => {
                matches!(group, Iterations | Errors)
            }
            HookVariable::Error => group == Errors,
            HookVariable::Branch
            | HookVariable::BaseBranch
            | HookVariable::PrUrl
            | HookVariable::Agent
            | HookVariable::Commits => matches!(group, Submissions | Merges),
            HookVariable::Event => group == Events,
            HookVariable::TaskId
            | HookVariable::TaskContent
            | HookVariable::Description
            | HookVariable::TaskType
            | HookVariable::Priority
            | HookVariable::Labels
            | HookVariable::Result
            | HookVariable::Reason => false,
        }
    }

    /// Returns the name of the variable in declared actions, if they can use it.
    pub fn action_name(self) -> Option<&'static str> {
        match self {
            HookVariable::TaskContent => Some("goal"),
            HookVariable::TaskType => Some("type"),
            HookVariable::Event
            | HookVariable::TaskId
            | HookVariable::Description
            | HookVariable::Priority
            | HookVariable::Labels
            | HookVariable::Result
            | HookVariable::Reason => Some(self.name()),
            HookVariable::Session
            | HookVariable::Iteration
            | HookVariable::StopHookActive
            | HookVariable::Error
            | HookVariable::Task
            | HookVariable::Branch
            | HookVariable::BaseBranch
            | HookVariable::PrUrl
            | HookVariable::Agent
            | HookVariable::Commits
            | HookVariable::Point
            | HookVariable::Project => None,
        }
    }

    /// Returns whether the value is text that a person or an agent wrote. Such a text may begin with `-`.
    pub fn is_free_text(self) -> bool {
        matches!(
            self,
            HookVariable::TaskContent
                | HookVariable::Error
                | HookVariable::Result
                | HookVariable::Reason
        )
    }

    /// Returns a value of the variable's type, for checks of conditions before they run.
    pub fn sample(self, point: &Point) -> Value {
        match self {
            HookVariable::Point | HookVariable::Event => json!(point.name()),
            HookVariable::Iteration | HookVariable::Commits => json!(1),
            HookVariable::Priority => json!(2),
            HookVariable::StopHookActive => json!(false),
            HookVariable::Labels => json!(["sample"]),
            HookVariable::BaseBranch => json!("main"),
            HookVariable::PrUrl => json!("https://example.org/pull/1"),
            HookVariable::Task => json!({
                "id": "sample", "type": "sample", "goal": "sample", "description": "sample",
                "labels": ["sample"], "priority": 2, "state": "ready", "result": "sample",
            }),
            HookVariable::Session
            | HookVariable::Error
            | HookVariable::TaskId
            | HookVariable::TaskContent
            | HookVariable::Description
            | HookVariable::TaskType
            | HookVariable::Result
            | HookVariable::Reason
            | HookVariable::Branch
            | HookVariable::Agent
            | HookVariable::Project => json!("sample"),
        }
    }
}

impl Point {
    /// Returns the names of the variables that commands of the point's hooks can use.
    pub fn variables(&self) -> Vec<&'static str> {
        let used = HookVariable::ALL.iter().filter(|variable| variable.is_in_commands(self));
        used.map(|variable| variable.name()).collect()
    }

    /// Returns the names of the variables that conditions of the point's hooks can use.
    pub fn condition_names(&self) -> Vec<&'static str> {
        let used = HookVariable::ALL.iter().filter(|variable| variable.is_in_conditions(self));
        used.map(|variable| variable.name()).collect()
    }
}
