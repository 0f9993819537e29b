//! The hook protocol: the meaning of a hook's exit code and output.
//!
//! Exit code 0 passes, 2 blocks, any other is a failed hook. Standard output that is one JSON object is the answer,
//! in the dialect that hooks of other agents use. A JSON list of actions stands for an object with these `actions`.
//! Any other output is plain text, which is never searched for a meaning.
//!
//! - `process`: the exit and the output of a hook's process
//! - `answer_format`: the JSON of an answer
//! - `outcome`: the outcome of a run
//! - `interpret`: from exit and output to an outcome

mod answer_format;
mod interpret;
mod outcome;
mod process;
#[cfg(test)]
mod tests;

pub use crate::hook_status::HookStatus;
pub use answer_format::{ACTIONS_MAX, ANSWER_MAX, SKIP, looks_like_answer};
pub use interpret::interpret;
pub use outcome::{AnswerRules, HookOutcome, HookVerdict};
pub use process::{CapturedOutput, ProcessExit};
