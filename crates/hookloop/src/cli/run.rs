//! `hookloop run`

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
use super::value_parsers::{length, permissions};
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::logs::LogArgs;

/// The agent if the command line names none.
pub(super) const AGENT_VARIABLE: &str = "HOOKLOOP_AGENT";

/// A command with a prompt, for a person who gave none.
const PROMPT_EXAMPLE: &str = "hookloop run \"Make the tests pass\"";

/// Run an agent in a loop until its work is proven
///
/// Exit code: 0 complete and proven, 3 needs a human, 4 a limit was reached, 5 paused, 6 complete without proof,
/// 130 cancelled.
/// Ctrl-C ends the session in order (session_end hooks run), twice at once.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("work").required(true).args(["prompt", "spec", "task", "tasks"])))]
pub(crate) struct RunArgs {
    /// What the agent is to do
    prompt: Option<String>,

    /// A file of the project that says what to do
    #[arg(long, value_name = "FILE")]
    spec: Option<String>,

    /// Work on this task alone
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Work on ready tasks, the most urgent first, until none is left
    #[arg(long)]
    tasks: bool,

    /// Who does it: claude, codex, opencode, gemini, codex-acp, claude-agent-acp, a name of `agents:` in the
    /// configuration, `acp:PROGRAM`, or `command:PROGRAM` (prompt on its input)
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Which model it uses
    #[arg(long)]
    model: Option<String>,

    /// What it may do without being asked: read, edit or full
    #[arg(long, value_name = "WHAT", value_parser = permissions)]
    permissions: Option<String>,

    /// Which turns go on in the agent's last conversation: fresh, feedback, continue
    ///
    /// `fresh`: no iteration. `feedback`: a turn that answers a gate's feedback. `continue`: every iteration.
    #[arg(long, value_name = "HOW")]
    conversation: Option<ConversationPolicy>,

    /// What the session is called
    #[arg(long)]
    name: Option<String>,

    /// What makes an iteration the last: default, validation, promise, turn, tasks (several with commas)
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    stop_when: Vec<String>,

    #[command(flatten)]
    limits: LimitArgs,

    /// When gates said no too often: needs_human or accept
    #[arg(long, value_name = "WHAT", value_parser = at_retry_limit)]
    at_retry_limit: Option<AtRetryLimit>,

    /// Accept completion without any change of files
    #[arg(long)]
    no_changes_ok: bool,

    /// Work in a git worktree of the session's own, on a branch of its own
    #[arg(long, conflicts_with = "share_checkout")]
    worktree: bool,

    /// Work in this directory although another session is live there
    #[arg(long)]
    share_checkout: bool,

    /// Print lines on a terminal, too, instead of a screen
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    log: LogArgs,
}

/// Limits of this session, instead of those of the configuration.
#[derive(clap::Args)]
struct LimitArgs {
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,

    /// Seconds, or a time with its unit, such as 30m or 8h
    #[arg(long, value_name = "TIME", value_parser = length)]
    max_duration: Option<u64>,

    /// How long one turn of the agent may take
    #[arg(long, value_name = "TIME", value_parser = length)]
    max_turn: Option<u64>,

    /// Failed turns in a row
    #[arg(long, value_name = "N")]
    max_errors: Option<u32>,

    /// How often gates may send the agent back without its work getting better
    #[arg(long, value_name = "N")]
    hook_retries: Option<u32>,

    /// Iterations in a row that get nowhere
    #[arg(long, value_name = "N")]
    max_no_progress: Option<u32>,

    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// In dollars
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    max_cost: Option<Dollars>,

    /// Turns whose cost is unknown [default: 20 with a limit of cost, else no bound]
    #[arg(long, value_name = "N")]
    max_unpriced_turns: Option<u32>,
}

impl LimitArgs {
    fn over(&self, limits: SessionLimits) -> SessionLimits {
        SessionLimits {
            iterations: self.max_iterations.unwrap_or(limits.iterations),
            duration_ms: self.max_duration.unwrap_or(limits.duration_ms),
            turn_ms: self.max_turn.unwrap_or(limits.turn_ms),
            errors: self.max_errors.unwrap_or(limits.errors),
            hook_retries: self.hook_retries.unwrap_or(limits.hook_retries),
            no_progress: self.max_no_progress.unwrap_or(limits.no_progress),
            remediations: limits.remediations,
            continuations: limits.continuations,
            tokens: self.max_tokens.unwrap_or(limits.tokens),
            cost_micros: self.max_cost.map_or(limits.cost_micros, |Dollars(micros)| micros),
            unpriced_turns: match (self.max_unpriced_turns, self.max_cost) {
                (Some(turns), _) => turns,
                (None, Some(_)) => limits.unpriced_turns.min(UNPRICED_TURNS),
                (None, None) => limits.unpriced_turns,
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
            let message = format!("the specification `{spec}` can't be read: {error}");
            return Err(CliError::usage(message).hint("hookloop run --spec FILE"));
        }
        let in_worktree = self.worktree;
        let share_checkout = self.share_checkout;
        let wish = self.wish(project.rules(), own, task)?;
        if in_worktree && project.rules().delivery.is_some() && wish.work.is_of_tasks() {
            let message = "a session that delivers tasks has a worktree for each of them already";
            return Err(CliError::usage(message).hint("the same without --worktree"));
        }
        let wanted =
            AgentChoices { model: wish.model.clone(), permissions: wish.permissions.clone() };
        let fallback = wish.fallback.iter().flat_map(|fallback| fallback.agents.clone()).collect();
        session::muster(&project, &AgentNames { agent: wish.agent.clone(), wanted, fallback })?;
        let stop = session::heed_signals()?;
        super::resume::end_interrupted(context, &project, &stop)?;
        if in_worktree {
            return session::worktree::run(context, &project, wish, stop, look);
        }
        let checkout = if share_checkout { CheckoutUse::Shared } else { CheckoutUse::Alone };
        let opened = open::start(&project, runner, SessionRequest { checkout, ..wish })?;
        session::perform(context, &project, &opened, stop, look)
    }

    fn wish(
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
            let message = format!("this repository asks for `{agent}`, which may do everything");
            return Err(
                CliError::untrusted(message).hint(format!("hookloop run … --agent {agent}"))
            );
        }
        let agent = named.or_else(|| rules.session.agent.clone()).or(own);
        let no_agent = || {
            let message =
                format!("no agent is named, by --agent, {AGENT_VARIABLE} or the configuration");
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
            worker: None,
            checkout: CheckoutUse::default(),
        })
    }
}

fn at_retry_limit(text: &str) -> std::result::Result<AtRetryLimit, String> {
    match text {
        "needs_human" => Ok(AtRetryLimit::NeedsHuman),
        "accept" => Ok(AtRetryLimit::Accept),
        _ => Err("`needs_human` or `accept`".to_owned()),
    }
}
