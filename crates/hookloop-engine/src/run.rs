//! Hooks that start something: run before the batch that records what came of them.
//!
//! No batch waits for a process. The dispatcher runs what an event's hooks start, then stores the
//! outcome, the actions that were asked for and the cursor's move together: a crash before that runs
//! the process again, and no action takes effect twice.

use std::path::Path;

use hookloop_config::clock::now;
use hookloop_core::answer::{Outcome, Status};
use hookloop_core::environment::{CommandResult, EnvironmentFacts, EnvironmentGap, cannot_run};
use hookloop_core::event::{Event, HookRan};
use hookloop_core::excerpt::LeftOut;
use hookloop_core::hook::{CommandText, Handler, Hook};
use hookloop_core::id::EventId;
use hookloop_core::point::Point;
use hookloop_core::task::Task;
use hookloop_store::log::Seq;

use crate::environment;
use crate::error::EngineError;
use crate::hook_context::Occasion;
use crate::hook_context::ReactionRun;
use crate::hook_run::{RunRefusal, command_for};
use crate::kept::Kept;
use crate::project::Project;
use crate::reactions::{EventClaim, ReactionHold};
use crate::runner::Runner;
use crate::turns;
use crate::work::Work;

