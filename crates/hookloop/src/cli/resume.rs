//! `hookloop resume`

use hookloop_agents::agent_chain::AgentNames;
use hookloop_core::authority::ControlledAction;
use hookloop_core::id::SessionId;
use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::plan::Dollars;
use hookloop_engine::inbox;
use hookloop_engine::project::Project;
use hookloop_engine::session::abandoned;
use hookloop_engine::session::open::in_worktree;
use hookloop_engine::session::resume::{self, LimitChange, LimitChanges, ResumeChanges};
use hookloop_engine::session::stop_switch::StopSwitch;
use hookloop_git::repo::RepoError;

use super::session::{self, SessionDisplay, SessionStage, runner};
use super::traces;
use super::value_parsers::{length, pattern};
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::CliResult;
use crate::logs::LogArgs;
use crate::output::DIM;

/// Resume a session that was paused, interrupted or stopped
///
/// A session that ended for a question continues with `--answer`; one that reached a limit, with a higher limit.
#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    /// Id, start of the id, or name [default: the last session that can continue]
    session: Option<String>,

    /// Answer to the agent's question; the next prompt has both
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,

    /// Tests that the work may change, as a path or a pattern; the gates then judge the claim again
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    may_change: Vec<String>,

    #[command(flatten)]
    limits: RaisedLimits,

    /// Use the current hooks and scripts instead of those at the start
    #[arg(long)]
    with_changed_hooks: bool,

    /// Take the session over from another machine
    #[arg(long)]
    take_over: bool,

    /// Work in this directory although another session runs there
    #[arg(long)]
    share_checkout: bool,

    /// Print lines instead of the TUI
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    log: LogArgs,
}

impl ResumeArgs {
    /// Continues a session under the rules that it had.
    pub(super) fn of(id: &SessionId) -> ResumeArgs {
        let session = Some(id.to_string());
        ResumeArgs {
            session,
            answer: None,
            may_change: Vec::new(),
            limits: RaisedLimits::default(),
            with_changed_hooks: false,
            take_over: false,
            share_checkout: false,
            plain: false,
            log: LogArgs::default(),
        }
    }

    /// The decision that this command line is.
    pub(super) fn controlled(&self) -> ControlledAction {
        if !self.may_change.is_empty() {
            ControlledAction::ApproveWork
        } else if !self.limits.changes().is_none() {
            ControlledAction::RaiseLimits
        } else if self.answer.is_some() {
            ControlledAction::AnswerQuestion
        } else {
            ControlledAction::ResumeSession
        }
    }

    pub(super) fn has_log_lines(&self) -> bool {
        self.log.is_asked_for()
    }

    /// Whether the session has the terminal for a screen.
    pub(super) fn has_screen(&self) -> bool {
        SessionDisplay::new(self.plain).is_screen()
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        context.log = self.log.logger(&context.out)?;
        let project = context.project()?;
        let project = traces::begin(context, project)?;
        let runner = runner(&project)?;
        let stop = session::handle_signals()?;
        let by = machine();
        let changes = ResumeChanges {
            limits: self.limits.changes(),
            may_change: self.may_change.clone(),
            ..ResumeChanges::default()
        };
        let has_decision = self.answer.is_some() || !changes.is_none();
        let wanted = self.session.as_deref();
        let id = resume::find_resumable(&project, runner, wanted, &by, has_decision)?;
        let decision = ResumeDecision::new(&project, &id, changes, self.answer.as_deref())?;
        // A refusal leaves the session as it is, so all checks come before the first event.
        let ResumeArgs { with_changed_hooks, take_over, share_checkout, plain, .. } = self;
        let how = resume::ResumeTerms { with_changed_hooks, take_over, share_checkout };
        let resumable = resume::check_resume(&project, runner, id.as_str(), how, &by)?;
        session::muster(&project, &AgentNames::from(&resumable.plan))?;
        if wanted.is_none() && !context.out.json && context.log.is_none() {
            let text = format!("resumes the last session that can continue: {id}");
            context.out.line(format_args!("{DIM}{text}{DIM:#}"))?;
        }
        decision.store(&project, &id)?;
        let opened = resumable.resume(&project, &by)?;
        let look = SessionDisplay::new(plain);
        session::worktree::perform_where_it_works(context, &project, &opened, stop, look)
    }
}

/// Limits of a session that ended: `20` sets a limit, `+20` raises it by 20.
#[derive(clap::Args, Default)]
struct RaisedLimits {
    /// Maximum iterations, such as 40 or +20
    #[arg(long, value_name = "N", value_parser = count)]
    max_iterations: Option<LimitChange>,

    /// Maximum run time in seconds or with a unit, such as 8h or +1h
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_duration: Option<LimitChange>,

    /// Maximum tokens, such as 2000000 or +500000
    #[arg(long, value_name = "N", value_parser = count)]
    max_tokens: Option<LimitChange>,

    /// Maximum cost in dollars, such as 20 or +5
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true, value_parser = dollars)]
    max_cost: Option<LimitChange>,
}

impl RaisedLimits {
    fn changes(&self) -> LimitChanges {
        LimitChanges {
            max_iterations: self.max_iterations,
            max_duration_ms: self.max_duration,
            max_tokens: self.max_tokens,
            max_cost_micros: self.max_cost,
        }
    }
}

/// Splits `+20` or `20`, and reads the amount.
fn change(
    text: &str,
    read: impl Fn(&str) -> std::result::Result<u64, String>,
) -> std::result::Result<LimitChange, String> {
    let (amount, is_more) = match text.strip_prefix('+') {
        Some(amount) => (amount, true),
        None => (text, false),
    };
    match read(amount)? {
        0 => Err("must be greater than 0".to_owned()),
        amount if is_more => Ok(LimitChange::By(amount)),
        amount => Ok(LimitChange::To(amount)),
    }
}

fn count(text: &str) -> std::result::Result<LimitChange, String> {
    let read = |text: &str| text.parse().map_err(|_| "write a number such as 20 or +20".to_owned());
    change(text, read)
}

fn time(text: &str) -> std::result::Result<LimitChange, String> {
    change(text, length)
}

fn dollars(text: &str) -> std::result::Result<LimitChange, String> {
    let read = |text: &str| text.parse::<Dollars>().map(|Dollars(micros)| micros);
    change(text, |text| read(text).map_err(|error| error.to_string()))
}

/// Other limits and an answer for the session to continue.
struct ResumeDecision<'a> {
    changes: ResumeChanges,
    answer: Option<&'a str>,
    /// The blocked task of the session's question, if the session itself did not ask.
    question: Option<ProblemKey>,
}

impl<'a> ResumeDecision<'a> {
    /// Checks a decision. Stores nothing.
    fn new(
        project: &Project,
        id: &SessionId,
        changes: ResumeChanges,
        answer: Option<&'a str>,
    ) -> CliResult<ResumeDecision<'a>> {
        let question = match answer {
            Some(_) => inbox::question_of_session(project, id)?,
            None => None,
        };
        if let (Some(text), Some(_)) = (answer, &question) {
            inbox::check_answer(text)?;
        }
        let decision = ResumeDecision { changes, answer, question };
        resume::check_preparation(project, id, &decision.changes, decision.for_session())?;
        Ok(decision)
    }

    /// The answer, if the session itself asked.
    fn for_session(&self) -> Option<&'a str> {
        self.answer.filter(|_| self.question.is_none())
    }

    /// Stores the answer, and reopens a session that ended.
    fn store(&self, project: &Project, id: &SessionId) -> CliResult {
        resume::prepare_resume(project, id, &self.changes, self.for_session())?;
        if let (Some(key), Some(text)) = (&self.question, self.answer) {
            inbox::answer(project, key, text)?;
        }
        Ok(())
    }
}

/// Ends sessions whose program died.
pub(super) fn end_interrupted(
    context: &mut CommandContext,
    project: &Project,
    stop: &StopSwitch,
) -> CliResult {
    let config = context.place()?.config();
    for opened in abandoned::interrupted(project, runner(project)?)? {
        if !context.out.json && context.log.is_none() {
            let id = &opened.id;
            context
                .out
                .line(format_args!("{DIM}session {id} was interrupted; it ends now{DIM:#}"))?;
        }
        let stage = SessionStage { config: &config, stop: stop.clone(), showing: None };
        // Its `session_end` runs in its own worktree; if that is gone, it runs in the project.
        let runner = runner(project)?;
        let moved = in_worktree(project, runner, &opened, stop.cancel());
        let gone = |error: &RepoError| {
            tracing::warn!(session = %opened.id, %error, "`session_end` runs in the project");
        };
        let moved = moved.inspect_err(gone).ok().flatten();
        let project = moved.as_ref().map_or(project, |(project, _)| project);
        session::drive(context, project, &opened, stage)?;
    }
    Ok(())
}
