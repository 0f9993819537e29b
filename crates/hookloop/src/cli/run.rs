//! `hookloop run`

use std::io::{IsTerminal as _, Read as _};

use hookloop_agents::agent_chain::AgentNames;
use hookloop_agents::repo_consent::AgentChoices;
use hookloop_config::agents::AgentPermissions;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::id::TaskId;
use hookloop_core::session::plan::{Dollars, NoSuchStop, UNPRICED_TURNS};
use hookloop_core::session::{
    AtRetryLimit, ConversationPolicy, SessionLimits, SessionWork, StopWhen,
};
use hookloop_engine::session::checkout::CheckoutUse;
use hookloop_engine::session::open::{self, SessionRequest};

use super::session::{self, SessionDisplay, runner};
use super::traces;
use super::value_parsers::{length, pattern, permissions};
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::logs::LogArgs;

/// The agent if the command line names none.
pub(super) const AGENT_VARIABLE: &str = "HOOKLOOP_AGENT";

/// The prompt that stands for standard input.
const FROM_INPUT: &str = "-";

/// The longest prompt on standard input.
const PROMPT_MAX_BYTES: u64 = 1024 * 1024;

/// A command with a prompt, for a person who gave none.
const PROMPT_EXAMPLE: &str = "hookloop run \"Make the tests pass\"";

/// Run an agent in a loop until its work is proven
///
/// Exit code: 0 complete and proven, 3 needs a person, 4 a limit was reached, 5 paused, 6 complete without proof,
/// 130 cancelled. Ctrl-C ends the session in order: `session_end` hooks run. A second Ctrl-C ends the program at once.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("work").required(true).args(["prompt", "spec", "task", "tasks"])))]
pub(crate) struct RunArgs {
    /// Prompt: the work of the agent; `-` reads it from standard input
    prompt: Option<String>,

    /// File of the project that describes the work
    #[arg(long, value_name = "FILE")]
    spec: Option<String>,

    /// Id of the only task to work on, or the start of it
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Work on ready tasks, the most urgent first, until none is ready
    #[arg(long)]
    tasks: bool,

    /// Agent [default: $HOOKLOOP_AGENT, else the configuration]
    ///
    /// One of claude, codex, opencode, gemini, codex-acp and claude-agent-acp; a name under `agents:` in the
    /// configuration; `acp:PROGRAM`; or `command:PROGRAM`, which reads the prompt from standard input.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Model of the agent
    #[arg(long)]
    model: Option<String>,

    /// Permissions of the agent: read, edit or full
    #[arg(long, value_name = "PERMISSIONS", value_parser = permissions)]
    permissions: Option<String>,

    /// Turns that continue the agent's conversation: fresh, feedback or continue
    ///
    /// `fresh`: no turn. `feedback`: a turn that answers a gate's feedback. `continue`: every turn.
    #[arg(long, value_name = "POLICY")]
    conversation: Option<ConversationPolicy>,

    /// Name of the session
    #[arg(long)]
    name: Option<String>,

    /// Stop conditions: default, validation, promise, turn, tasks (separated by commas)
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    stop_when: Vec<String>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Result at the retry limit: needs_human or accept
    #[arg(long, value_name = "RESULT", value_parser = at_retry_limit)]
    at_retry_limit: Option<AtRetryLimit>,

    /// Accept completion without changed files
    #[arg(long)]
    no_changes_ok: bool,

    /// Tests that the work may change, as a path or a pattern
    ///
    /// Without it, a person is asked about changed expectations of gates with `base_tests`.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    may_change: Vec<String>,

    /// Work in a new git worktree, on a new branch
    #[arg(long, conflicts_with = "share_checkout")]
    worktree: bool,

    /// Work in this directory although another session runs there
    #[arg(long)]
    share_checkout: bool,

    /// Print lines instead of the TUI
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    log: LogArgs,
}

/// Limits of this session, instead of those of the configuration.
#[derive(clap::Args)]
struct LimitArgs {
    /// Maximum iterations [default: 100]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,

    /// Maximum run time in seconds or with a unit [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = length)]
    max_duration: Option<u64>,

    /// Timeout of one turn in seconds or with a unit [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = length)]
    turn_timeout: Option<u64>,

    /// Maximum failed turns in a row [default: 5]
    #[arg(long, value_name = "N")]
    max_errors: Option<u32>,

    /// Retries after failing gates without improvement [default: 5]
    #[arg(long, value_name = "N")]
    gate_retries: Option<u32>,

    /// Maximum iterations in a row without progress [default: 5]
    #[arg(long, value_name = "N")]
    max_no_progress: Option<u32>,

    /// Maximum tokens, if the agent reports them [default: 50000000]
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Maximum cost in dollars, if the agent reports it [default: 50]
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    max_cost: Option<Dollars>,

    /// Maximum turns of unknown cost [default: 20 if you set a cost limit]
    #[arg(long, value_name = "N")]
    max_unpriced_turns: Option<u32>,
}

impl LimitArgs {
    fn over(&self, limits: SessionLimits) -> SessionLimits {
        SessionLimits {
            max_iterations: self.max_iterations.unwrap_or(limits.max_iterations),
            max_duration_ms: self.max_duration.unwrap_or(limits.max_duration_ms),
            turn_timeout_ms: self.turn_timeout.unwrap_or(limits.turn_timeout_ms),
            max_errors: self.max_errors.unwrap_or(limits.max_errors),
            gate_retries: self.gate_retries.unwrap_or(limits.gate_retries),
            max_no_progress: self.max_no_progress.unwrap_or(limits.max_no_progress),
            max_remediations: limits.max_remediations,
            max_continuations: limits.max_continuations,
            max_tokens: self.max_tokens.unwrap_or(limits.max_tokens),
            max_cost_micros: self.max_cost.map_or(limits.max_cost_micros, |Dollars(micros)| micros),
            max_unpriced_turns: match (self.max_unpriced_turns, self.max_cost) {
                (Some(turns), _) => turns,
                (None, Some(_)) => limits.max_unpriced_turns.min(UNPRICED_TURNS),
                (None, None) => limits.max_unpriced_turns,
            },
        }
    }
}

impl RunArgs {
    pub(super) fn has_log_lines(&self) -> bool {
        self.log.is_asked_for()
    }

    /// Whether the session has the terminal for a screen.
    pub(super) fn has_screen(&self) -> bool {
        SessionDisplay::new(self.plain).is_screen()
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let mut args = self;
        if args.prompt.as_deref() == Some(FROM_INPUT) {
            args.prompt = Some(prompt_from_input()?);
        }
        args.start(context)
    }

    fn start(self, context: &mut CommandContext) -> CliResult {
        if self.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            let message = "the prompt is empty, so the agent has nothing to do";
            return Err(CliError::usage(message).hint(PROMPT_EXAMPLE));
        }
        let look = SessionDisplay::new(self.plain);
        context.log = self.log.logger(&context.out)?;
        let project = context.project()?;
        let project = traces::begin(context, project)?;
        let own = context.user()?.agent;
        let task = self.task.as_deref().map(|task| ids::resolve(&project, task)).transpose()?;
        let runner = runner(&project)?;
        if let Some(spec) = &self.spec
            && let Err(error) = std::fs::File::open(runner.home().join(spec))
        {
            let message = format!("the file `{spec}` can't be read: {error}");
            return Err(CliError::usage(message).hint("hookloop run --spec FILE"));
        }
        let in_worktree = self.worktree;
        let share_checkout = self.share_checkout;
        let request = self.request(project.rules(), own, task)?;
        if in_worktree && project.rules().delivery.is_some() && request.work.is_of_tasks() {
            let message = "a session that delivers tasks has a worktree for each task";
            return Err(CliError::usage(message).advice("repeat the command without `--worktree`"));
        }
        let wanted =
            AgentChoices { model: request.model.clone(), permissions: request.permissions.clone() };
        let fallback =
            request.fallback.iter().flat_map(|fallback| fallback.agents.clone()).collect();
        session::muster(&project, &AgentNames { agent: request.agent.clone(), wanted, fallback })?;
        let stop = session::handle_signals()?;
        super::resume::end_interrupted(context, &project, &stop)?;
        if in_worktree {
            return session::worktree::run(context, &project, request, stop, look);
        }
        let checkout = if share_checkout { CheckoutUse::Shared } else { CheckoutUse::Alone };
        let opened = open::start(&project, runner, SessionRequest { checkout, ..request })?;
        session::perform(context, &project, &opened, stop, look)
    }

    fn request(
        self,
        rules: &EffectiveConfig,
        own: Option<String>,
        task: Option<TaskId>,
    ) -> CliResult<SessionRequest> {
        let work = match (self.prompt, self.spec, task) {
            (Some(prompt), ..) => SessionWork::Prompt(prompt),
            (None, Some(spec), _) => SessionWork::Spec(spec),
            (None, None, Some(task)) => SessionWork::Task(task),
            (None, None, None) => SessionWork::Tasks,
        };
        let ways = self.stop_when.iter().map(|way| way.parse());
        let ways = ways.collect::<std::result::Result<Vec<StopWhen>, NoSuchStop>>();
        let ways = ways.map_err(CliError::usage)?;
        let named = self.agent.or_else(|| std::env::var(AGENT_VARIABLE).ok());
        let named = named.filter(|agent| !agent.is_empty());
        // Only the user can name an agent with full permissions; a repository can't.
        if let (None, None, Some(agent)) = (&named, &self.permissions, &rules.session.agent)
            && rules.agent(agent).is_ok_and(|agent| agent.permissions == AgentPermissions::Full)
        {
            let message = format!("this repository names `{agent}`, which has full permissions");
            return Err(
                CliError::untrusted(message).hint(format!("hookloop run … --agent {agent}"))
            );
        }
        let agent = named.or_else(|| rules.session.agent.clone()).or(own);
        let no_agent = || {
            let message = format!(
                "no agent: neither --agent, {AGENT_VARIABLE} nor the configuration names one"
            );
            CliError::usage(message).hint("hookloop run … --agent claude")
        };
        Ok(SessionRequest {
            name: self.name,
            work,
            agent: agent.ok_or_else(no_agent)?,
            fallback: rules.session.fallback.clone(),
            conversation: self.conversation.unwrap_or(rules.session.conversation),
            promises: Vec::new(),
            model: self.model,
            permissions: self.permissions,
            stop_when: (!ways.is_empty()).then_some(ways),
            at_retry_limit: self.at_retry_limit,
            limits: self.limits.over(rules.limits.session),
            machine: machine(),
            no_changes_ok: self.no_changes_ok,
            may_change: self.may_change,
            worker: None,
            checkout: CheckoutUse::default(),
        })
    }
}

/// Reads the prompt from standard input.
fn prompt_from_input() -> CliResult<String> {
    let mut prompt = String::new();
    let input = std::io::stdin();
    if input.is_terminal() {
        let message = "the prompt `-` is standard input, and standard input is a terminal";
        return Err(CliError::usage(message).hint("hookloop run - < PROMPT.md"));
    }
    let read = input.lock().take(PROMPT_MAX_BYTES + 1).read_to_string(&mut prompt);
    read.map_err(|error| CliError::usage(format!("the prompt on standard input: {error}")))?;
    if prompt.len() as u64 > PROMPT_MAX_BYTES {
        let message =
            format!("the prompt on standard input has more than {PROMPT_MAX_BYTES} bytes");
        return Err(CliError::usage(message).hint("hookloop run --spec FILE"));
    }
    Ok(prompt)
}

fn at_retry_limit(text: &str) -> std::result::Result<AtRetryLimit, String> {
    match text {
        "needs_human" => Ok(AtRetryLimit::NeedsHuman),
        "accept" => Ok(AtRetryLimit::Accept),
        _ => Err("`needs_human` or `accept`".to_owned()),
    }
}
