//! What a session was started with. It is in the log, so a session that is resumed is the same one.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::options::Length;
use crate::promise::Promise;
use crate::trace::TraceParent;

/// What the agent is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Prompt(String),
    /// A file of the project that says it; read again for each prompt.
    Spec(String),
    /// Ready tasks, the most urgent first, until none is left.
    Tasks,
    /// This task alone.
    Task(TaskId),
    /// What the agent's own user asks of it.
    Own,
    /// A review of what is to be delivered: one turn, of which only the answer counts.
    Review(String),
}

/// What decides that an iteration is the last one. Each is asked in turn; the first that does not say
/// "continue" decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopWhen {
    /// The agent's promise; without one, the validation rules.
    Default,
    /// All validation rules pass.
    Validation,
    /// The agent's promise.
    Promise,
    /// The end of a turn.
    Turn,
    /// No task is open.
    Tasks,
    /// A command of the project's, by its name.
    Hook(String),
}

impl StopWhen {
    /// Whether a command of the project's is asked.
    pub fn is_hook(&self) -> bool {
        matches!(self, StopWhen::Hook(_))
    }

    const NAMED: [(StopWhen, &'static str); 5] = [
        (StopWhen::Default, "default"),
        (StopWhen::Validation, "validation"),
        (StopWhen::Promise, "promise"),
        (StopWhen::Turn, "turn"),
        (StopWhen::Tasks, "tasks"),
    ];
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a way to stop: `default`, `validation`, `promise`, `turn` or `tasks`")]
pub struct NoSuchStop(String);

impl FromStr for StopWhen {
    type Err = NoSuchStop;

    fn from_str(text: &str) -> Result<StopWhen, NoSuchStop> {
        let found = StopWhen::NAMED.into_iter().find(|(_, name)| *name == text);
        found.map(|(stop, _)| stop).ok_or_else(|| NoSuchStop(text.to_owned()))
    }
}

impl fmt::Display for StopWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = StopWhen::NAMED.iter().find(|(stop, _)| stop == self);
        match (self, named) {
            (StopWhen::Hook(name), _) => f.write_str(name),
            (_, Some((_, name))) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}

/// What happens when gates have sent the agent back as often as they may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtRetryLimit {
    /// The session ends and says that it needs a human.
    #[default]
    NeedsHuman,
    /// The work is taken as it is, and the record says so.
    Accept,
}

/// Whether an iteration goes on in the conversation of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conversation {
    #[default]
    Fresh,
    Continue,
}

/// Which turns of a session go on in the conversation of the turn before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversationPolicy {
    /// Every iteration begins a new conversation.
    Fresh,
    /// A turn that answers a gate's feedback goes on; any other iteration begins a new conversation.
    #[default]
    Feedback,
    /// Every iteration goes on in the conversation of the one before.
    Continue,
}

impl ConversationPolicy {
    /// The policy for iterations that answer no feedback.
    pub fn of_iterations(self) -> Conversation {
        match self {
            ConversationPolicy::Fresh | ConversationPolicy::Feedback => Conversation::Fresh,
            ConversationPolicy::Continue => Conversation::Continue,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`fresh`, `feedback` or `continue`")]
pub struct UnknownConversationPolicy;

impl FromStr for ConversationPolicy {
    type Err = UnknownConversationPolicy;

    fn from_str(text: &str) -> Result<ConversationPolicy, UnknownConversationPolicy> {
        match text {
            "fresh" => Ok(ConversationPolicy::Fresh),
            "feedback" => Ok(ConversationPolicy::Feedback),
            "continue" => Ok(ConversationPolicy::Continue),
            _ => Err(UnknownConversationPolicy),
        }
    }
}

/// Who takes the turns when the agent only fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fallback {
    /// By their names, in order.
    pub agents: Vec<String>,
    /// Failed turns in a row.
    pub after: u32,
}

/// What a session has until it ends, whatever the agent says. All of them hold by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    pub iterations: u32,
    /// Of time in which it runs; pauses and crashes are not counted.
    pub duration_ms: u64,
    /// Of one turn.
    pub turn_ms: u64,
    /// Failed turns in a row.
    pub errors: u32,
    /// How often gates may send the agent back without its work getting better.
    pub hook_retries: u32,
    /// Iterations in a row in which nothing gets anywhere.
    pub no_progress: u32,
    /// Turns in which agents may fix what hooks of a delivery or a merge found, for each task.
    #[serde(default = "remediations")]
    pub remediations: u32,
    /// How often a task may go back unfinished until a human is asked.
    #[serde(default = "continuations")]
    pub continuations: u32,
    /// Tokens of one session, for agents that report their usage.
    pub tokens: u64,
    pub cost_micros: u64,
    /// Turns whose cost is unknown. No bound unless somebody set a limit of cost: that can't count these turns.
    #[serde(default = "unbound", skip_serializing_if = "is_unbound")]
    pub unpriced_turns: u32,
}

/// Turns of unknown cost that a session may take which has a limit of cost.
pub const UNPRICED_TURNS: u32 = 20;

fn unbound() -> u32 {
    u32::MAX
}

fn is_unbound(turns: &u32) -> bool {
    *turns == u32::MAX
}

fn remediations() -> u32 {
    3
}

fn continuations() -> u32 {
    3
}

impl Default for Limits {
    fn default() -> Limits {
        const HOUR_MS: u64 = 60 * 60 * 1_000;
        Limits {
            iterations: 100,
            duration_ms: 8 * HOUR_MS,
            turn_ms: HOUR_MS,
            errors: 5,
            hook_retries: 5,
            no_progress: 5,
            remediations: remediations(),
            continuations: continuations(),
            tokens: 50_000_000,
            cost_micros: 50_000_000,
            unpriced_turns: unbound(),
        }
    }
}

impl Limits {
    /// These limits under a scope that allows `ceiling`: what is wider is what it allows.
    pub fn within(self, ceiling: Limits) -> Limits {
        Limits {
            iterations: self.iterations.min(ceiling.iterations),
            duration_ms: self.duration_ms.min(ceiling.duration_ms),
            turn_ms: self.turn_ms.min(ceiling.turn_ms),
            errors: self.errors.min(ceiling.errors),
            hook_retries: self.hook_retries.min(ceiling.hook_retries),
            no_progress: self.no_progress.min(ceiling.no_progress),
            remediations: self.remediations.min(ceiling.remediations),
            continuations: self.continuations.min(ceiling.continuations),
            tokens: self.tokens.min(ceiling.tokens),
            cost_micros: self.cost_micros.min(ceiling.cost_micros),
            unpriced_turns: self.unpriced_turns.min(ceiling.unpriced_turns),
        }
    }
}

/// A number of things.
pub fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |ms| Length { ms };
        write!(
            f,
            "{}, {}, {} a turn, {}, {}, {} without progress, {} tokens, {}",
            counted(self.iterations, "iteration", "iterations"),
            length(self.duration_ms),
            length(self.turn_ms),
            counted(self.errors, "error", "errors"),
            counted(self.hook_retries, "retry", "retries"),
            self.no_progress,
            Count(self.tokens),
            Dollars(self.cost_micros),
        )
    }
}

/// A large number for people: `50M`, `1.5M`, `900k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..10_000 => return write!(f, "{}", self.0),
            10_000..1_000_000 => (1_000, "k"),
            _ => (1_000_000, "M"),
        };
        match self.0 % unit * 10 / unit {
            0 => write!(f, "{}{name}", self.0 / unit),
            tenths => write!(f, "{}.{tenths}{name}", self.0 / unit),
        }
    }
}

/// Money, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub u64);

/// An amount that is no amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an amount of dollars: write a number that is 0 or more, such as `5` or `2.50`"
)]
pub struct BadAmount(String);

impl Dollars {
    /// Returns an amount that is neither negative, infinite nor NaN.
    pub fn new(amount: f64) -> Result<Dollars, BadAmount> {
        match amount.is_finite() && amount >= 0.0 {
            true => Ok(Dollars((amount * 1_000_000.0).round() as u64)),
            false => Err(BadAmount(amount.to_string())),
        }
    }
}

impl FromStr for Dollars {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Dollars, BadAmount> {
        let bad = || BadAmount(text.to_owned());
        Dollars::new(text.parse().map_err(|_| bad())?).map_err(|_| bad())
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Less than ten cents has digits that matter.
            1..100_000 => write!(f, "$0.{:04}", self.0 / 100),
            _ => write!(f, "${}.{:02}", self.0 / 1_000_000, self.0 % 1_000_000 / 10_000),
        }
    }
}

/// A cost of which a part may be unknown: agents do not report it, and no price applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostFigure {
    /// The known part, in millionths of a dollar.
    pub micros: u64,
    /// Turns whose cost is unknown.
    pub unpriced_turns: u64,
}

impl CostFigure {
    /// The known part; none if nothing is known.
    pub fn known_micros(self) -> Option<u64> {
        (self.micros > 0 || self.unpriced_turns == 0).then_some(self.micros)
    }

    /// The cost, and what it may be; without the limit where that can't be compared with anything.
    pub fn of(self, limit_micros: u64) -> String {
        match self.known_micros() {
            Some(_) => format!("{self} of {}", Dollars(limit_micros)),
            None => "cost unknown".to_owned(),
        }
    }
}

impl fmt::Display for CostFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.known_micros(), self.unpriced_turns) {
            (None, _) => f.write_str("unknown"),
            (Some(micros), 0) => Dollars(micros).fmt(f),
            (Some(micros), _) => write!(f, "at least {}", Dollars(micros)),
        }
    }
}

/// A limit that ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Iterations,
    Duration,
    Errors,
    Tokens,
    Cost,
    /// Of all sessions together.
    Purse,
}

impl Limit {
    pub fn name(self) -> &'static str {
        match self {
            Limit::Iterations => "iterations",
            Limit::Duration => "duration",
            Limit::Errors => "errors",
            Limit::Tokens => "tokens",
            Limit::Cost => "cost",
            Limit::Purse => "purse",
        }
    }
}

/// How the agent of a session is called that hookloop does not start.
pub const GUEST: &str = "guest:";

/// A script of the project that a hook of a session runs, with the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenScript {
    /// The hook.
    pub hook: String,
    /// The list that the hook is in: a task type's, or an agent's; none for the project's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// Which word of the hook's command names the script, from 0.
    pub word: u32,
    /// The script, from the project's root.
    pub path: String,
    /// The digest of its bytes.
    pub sha256: String,
}

/// Everything that a session is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What `{{session}}` stands for.
    pub name: String,
    pub work: Work,
    /// As the user named it: `claude`, `command:…`, `scripted:…`.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    #[serde(default)]
    pub conversation: Conversation,
    /// A turn that answers a gate's feedback continues the conversation of the previous turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_feedback: bool,
    /// The promises that end the session; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// What the user wants of the agent beside its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    pub stop_when: Vec<StopWhen>,
    pub at_retry_limit: AtRetryLimit,
    pub limits: Limits,
    /// The hooks that the session has, by digest: with others it is not resumed unasked.
    pub hooks: String,
    /// The scripts that its hooks run; none where an older version started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<FrozenScript>>,
    /// Random, so that nothing that a hook prints can end the part of a prompt that it stands in.
    pub fence: String,
    pub machine: String,
    /// Its tasks are worked on in worktrees of their own, and submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivers: bool,
    /// Completing without any change is fine, by the word of the person who started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_changes_ok: bool,
    /// The user's own file says `gates: none`: tasks are completed without proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_no_gates: bool,
    /// The worker whose session it is: nobody watches it, and who takes its task next may be elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The span that it was started in, if its starter has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<TraceParent>,
}

impl Plan {
    /// Whether the promise ends the session.
    pub fn ends_with(&self, promise: Promise) -> bool {
        self.promises.is_empty() || self.promises.contains(&promise)
    }

    /// Whether work that changes nothing is in question. External sessions and reviews may only answer.
    pub fn must_change_files(&self) -> bool {
        let is_work = !matches!(self.work, Work::Own | Work::Review(_));
        is_work && !self.has_guest() && !self.no_changes_ok
    }

    /// Whether nobody sees how often it is begun anew.
    pub fn is_unwatched(&self) -> bool {
        self.has_guest() || self.worker.is_some()
    }

    /// Whether the agent comes by itself: its turns are its own affair, and what they use is not known.
    pub fn has_guest(&self) -> bool {
        self.agent.starts_with(GUEST)
    }
}

impl Work {
    /// Whether it comes from the graph.
    pub fn is_of_tasks(&self) -> bool {
        matches!(self, Work::Tasks | Work::Task(_))
    }
}
