//! One run of the loop, as a machine without a clock or a process.
//!
//! ```text
//! session_start → [ pre_iteration → prompt → turn → post_iteration → stop decision ]* → final delivery → session_end
//!                         ↑ pending output, feedback      └ error → on_error → recovery turn ┘
//! ```
//!
//! A [`Session`] is what its events amount to, and [`next_step`] says what is to be done next; whoever does it
//! appends what came of it. So a session goes on from wherever it was left.
//!
//! - [`facts`]: the events of a session
//! - [`plan`]: what a session was started with, its limits among it
//! - [`state`]: from events to a state
//! - [`step`]: from a state to the next step
//! - [`progress`]: whether the work gets anywhere
//! - [`stop`]: whether an iteration is the last one
//! - [`timeline`]: what was done when, as people look at it

pub mod facts;
pub mod plan;
pub mod progress;
pub mod state;
pub mod step;
pub mod stop;
pub mod timeline;

pub use facts::{
    AgentFault, Answer, Claimed, Decision, EmptyDifferenceFound, FaultCause, GatesJudged,
    IterationStarted, Outcome, Piped, PromptChannel, Receipt, SessionEnded, SessionReopened,
    StopDecided, SubmitJudged, SubmitVerdict, TaskLeft, TaskTaken, TurnEnded, TurnKind, TurnResult,
    Usage, Verdict,
};
pub use plan::{
    AtRetryLimit, Conversation, ConversationPolicy, Fallback, FrozenScript, Limit, Limits, Plan,
    StopWhen, Work,
};
pub use state::{Phase, Session, Talk};
pub use step::{Pause, Step, next_step};
