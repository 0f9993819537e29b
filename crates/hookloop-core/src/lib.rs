//! The decisions of hookloop: from events to states, and from states to the next step.
//!
//! Pure by rule: no async, clock, files, environment or network. Time and new ids are arguments. Results are
//! data that the engine acts on.
//!
//! - [`id`]: names of tasks, events and subjects
//! - [`time`]: instants, in milliseconds
//! - [`task`]: a node of the graph and its states
//! - [`claim`]: who holds a task, and the fence that keeps others out
//! - [`event`]: the facts a log holds, and their stored format
//! - [`fleet`]: what those who run many workers have said
//! - [`command`]: what can be asked for
//! - [`authority`]: the decisions that only some actors may take
//! - [`delivery`]: what becomes of a task's work when it is done
//! - [`decide`]: from a command and the facts it touches to events, or a refusal
//! - [`inbox`]: what needs a human
//! - [`refusal`]: why a command was not accepted
//! - [`remark`]: what is said about a task beside its state
//! - [`review`]: what gatekeepers answer
//! - [`gate_ledger`]: the gates that a person agreed to, and how others differ from them
//! - [`graph`]: the search for a path that an edge would close into a cycle
//! - [`action`]: what a hook may ask for
//! - [`point`]: where hooks run
//! - [`hook`]: hooks, their registry, and the order they run in
//! - [`rule`]: validation rules that need no process
//! - [`limits`]: what a hook may use of the machine
//! - [`options`]: what a hook may be told beside what it does
//! - [`answer`]: what a hook's exit code and output mean
//! - [`price`]: what tokens cost, where the agent does not say
//! - [`promise`]: an agent's promises in its final message
//! - [`checks`]: what test runners print about what fails
//! - [`environment`]: whether a command could check anything on this machine
//! - [`gates`]: what several gates say together
//! - [`failure_fingerprint`]: whether two failures are the same one
//! - [`feedback`]: what an agent is told about a gate that said no
//! - [`excerpt`]: long text as its first and last lines
//! - [`builtin`]: the hooks that come with the product
//! - [`template`]: `{{name}}` in the actions that a configuration declares
//! - [`command_line`]: commands of hooks, and how values reach them
//! - [`redact`]: secrets, kept out of what hooks print
//! - [`cascade`]: how far hooks may set off hooks
//! - [`slots`]: how many tasks may be in somebody's hands at once
//! - [`urgency`]: how urgent a task is that has waited
//! - [`schedule`]: tasks that come again
//! - [`purse`]: what all sessions of a project together may spend
//! - [`session`]: one run of the loop, as a machine without a clock or a process
//! - [`trace`]: a session as a trace: the ids of its spans
//! - [`workflow`]: a named list of steps, and how far a run of it is

pub mod action;
pub mod answer;
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
pub mod id;
pub mod inbox;
pub mod limits;
pub mod options;
pub mod payload;
pub mod point;
pub mod price;
pub mod promise;
pub mod purse;
pub mod quantity;
pub mod redact;
pub mod refusal;
pub mod remark;
pub mod review;
pub mod rule;
pub mod schedule;
pub mod session;
pub mod slots;
pub mod task;
pub mod template;
pub mod time;
pub mod trace;
pub mod urgency;
pub mod usage;
pub mod workflow;
