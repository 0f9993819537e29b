//! One run of the loop, as a machine without a clock or a process.
//!
//! ```text
//! session_start → [ pre_iteration → prompt → turn → post_iteration → stop decision ]* → final delivery → session_end
//!                         ↑ pending output, feedback      └ error → on_error → recovery turn ┘
//! ```
//!
//! A [`Session`] is the state that its events fold into, and [`next_step`] returns its next step. The engine
//! performs the step and appends the result. So a session can be resumed at any point.
//!
//! - [`state`]: the state of a session
//! - `fold`, `turns`, `verdicts`, `tasks`, `outputs`: from events to a state
//! - `queries`: questions about a state
//! - [`step`]: from a state to the next step
//! - [`progress`]: whether iterations make progress
//! - [`stop`]: whether an iteration is the last one
//! - [`timeline`]: the steps of a session in order, for people
//!
//! [`facts`] and [`plan`] name the payloads of a session's events.

mod fold;
mod outputs;
pub mod progress;
mod queries;
pub mod state;
pub mod step;
pub mod stop;
mod tasks;
pub mod timeline;
mod turns;
mod verdicts;

pub use facts::{
    AgentFault, CompletionClaimed, EmptyDifferenceFound, FaultCause, GatesEvaluated,
    IterationStarted, JointVerdict, LimitDecision, PipedOutput, PromptChannel, Receipt,
    SessionEnded, SessionOutcome, SessionReopened, SessionState, SessionTaskClaimed,
    SessionTaskReleased, StopDecision, StopEvaluated, SubmissionEvaluated, SubmitVerdict,
    TurnEnded, TurnKind, TurnResult, Usage,
};
pub use plan::{
    AgentFallback, AtRetryLimit, ConversationMode, ConversationPolicy, FrozenScript, SessionLimit,
    SessionLimits, SessionPlan, SessionWork, StopWhen,
};
pub use state::{AgentConversation, Session, SessionPhase};
pub use step::{IterationPause, NextStep, next_step};
pub use turns::RATE_LIMITED_TURNS_MAX;

/// The payloads of a session's events.
pub mod facts {
    pub use crate::payload::base_tests::*;
    pub use crate::payload::evidence::*;
    pub use crate::payload::piped::*;
    pub use crate::payload::session::*;
    pub use crate::payload::strength::*;
    pub use crate::payload::turn::*;
    pub use crate::payload::verdict::*;
    pub use crate::usage::Usage;
}

/// The parameters of a session, its limits among them.
pub mod plan {
    pub use crate::payload::plan::*;
    pub use crate::payload::session_limits::*;
    pub use crate::quantity::{
        BadAmount, CompactCount, CostFigure, Dollars, counted, counted_items,
    };
}
