//! The decisions of hookloop: from events to states, and from states to the next step.
//!
//! Pure by rule: no async, clock, files, environment or network. Time and new ids are arguments. Results are
//! data that the engine acts on.
//!
//! Data, from the bottom up:
//!
//! - [`id`], [`time`], [`quantity`], [`usage`]: names, instants, amounts for people, and usage of turns
//! - [`excerpt`], [`nearest`]: shortened texts and lists, and the name that a user meant
//! - [`digest`]: SHA-256 digests as text
//! - [`claim`], [`task`], [`schedule`], [`workflow`]: claims, tasks, schedules, and runs of workflows
//! - [`point`], [`options`], [`limits`], [`rule`], [`template`], [`command_line`]: parts of a hook's definition
//! - [`hook_status`], [`action`]: the status of a hook's run, and the actions that it requests
//! - [`shared_budget`], [`price`], [`fleet`], [`slots`], [`urgency`]: shared budget, prices, directives, WIP limits, aging
//! - [`payload`]: the data of each type of event
//! - [`event`]: events and their stored format
//!
//! Reading of texts:
//!
//! - [`promise`]: promises in an agent's final message
//! - [`checks`], [`failure_fingerprint`], [`environment`]: output of test runners and tools
//! - [`review`]: verdicts of gatekeepers
//! - [`hook_protocol`]: exit code and output of a hook
//! - [`redact`]: removal of secrets from output
//! - [`feedback`]: the feedback for an agent about a failed gate
//!
//! Decisions:
//!
//! - [`command`], [`authority`], [`decide`], [`refusal`], [`graph`]: from a command to events, or a refusal
//! - [`hook`], [`builtin`], [`cascade`]: hooks, their registry and order, and limits of cascades
//! - [`gates`]: the joint verdict of gates
//! - [`gate_ledger`]: trusted gates, and the differences of later ones
//! - [`delivery`], [`inbox`], [`remark`], [`budget_change`]: states that events fold into
//! - [`session`]: the state machine of a session
//! - [`trace`]: the span ids of a session

pub mod action;
pub mod authority;
pub mod budget_change;
pub mod builtin;
pub mod cascade;
pub mod checks;
pub mod claim;
pub mod command;
pub mod command_line;
pub mod decide;
pub mod delivery;
pub mod digest;
pub mod environment;
pub mod event;
pub mod excerpt;
pub mod failure_fingerprint;
pub mod feedback;
pub mod fleet;
pub mod gate_ledger;
pub mod gates;
pub mod graph;
pub mod hook;
pub mod hook_protocol;
pub mod hook_status;
pub mod hook_vars;
pub mod id;
pub mod inbox;
pub mod limits;
pub mod nearest;
pub mod options;
pub mod payload;
pub mod point;
pub mod price;
pub mod promise;
pub mod quantity;
pub mod redact;
pub mod refusal;
pub mod remark;
pub mod review;
pub mod rule;
pub mod schedule;
pub mod session;
pub mod shared_budget;
pub mod slots;
pub mod store_config;
pub mod task;
pub mod template;
pub mod time;
pub mod trace;
pub mod urgency;
pub mod usage;
pub mod workflow;
