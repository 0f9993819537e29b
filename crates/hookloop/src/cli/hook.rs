//! `hookloop hook`

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use hookloop_config::paths::{PlaceError, ProjectPaths};
use hookloop_core::authority::ActorKind;
use hookloop_engine::caller::{Caller, CallerIdentity, record_agent};
use hookloop_engine::external::native::{HookVisit, visit};
use hookloop_engine::session::stop_switch::StopSwitch;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::native::agent::NativeAgent;
use crate::native::dialect::{HookPayload, NativeEvent, answer, message};

/// The largest input of a hook; most of it is the agent's last message.
const PAYLOAD_MAX: u64 = 8 * 1024 * 1024;

/// Answer an agent's native hook
///
/// Claude Code, Codex and Gemini run this command after `hookloop install`. It reads one JSON object from standard
/// input and prints an answer in the agent's own format. It does nothing outside of a project, and if `hookloop run`
/// started the agent and runs the gates itself.
#[derive(clap::Args)]
pub(crate) struct HookArgs {
    /// Event name of the agent, such as Stop or AfterAgent; unknown events are ignored
    event: String,

    /// Agent of the hook: claude, codex or gemini [default: detected from the input]
    #[arg(long)]
    agent: Option<String>,
}

impl HookArgs {
    /// Always exits with 0 or 1: agents read 2, and Gemini every code above 1, as "continue".
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        if std::io::stdin().is_terminal() {
            return Err(CliError::usage(
                "an agent's native hook runs this command, with JSON on standard input",
            )
            .hint("hookloop install claude"));
        }
        let payload = read_input()?;
        if std::env::var_os("HOOKLOOP_SESSION").is_some() {
            return Ok(());
        }
        let payload = HookPayload::read(&payload)
            .map_err(|error| CliError::refused(format!("the input of this hook: {error}")))?;
        match self.reply(context, &payload) {
            Ok(()) => Ok(()),
            Err(error) => self.admit(context, &error),
        }
    }

    fn reply(&self, context: &mut CommandContext, payload: &HookPayload) -> CliResult {
        let agent = self.agent(payload)?;
        let event = NativeEvent::of_name(&self.event);
        let Some(moment) = payload.moment(event) else { return Ok(()) };
        // The directory that the agent was started in; its working directory may have changed since.
        let started = agent.directory_variable().and_then(|name| std::env::var(name).ok());
        let directory = started.filter(|directory| !directory.is_empty());
        if let Some(directory) = directory.as_deref().or(payload.directory()) {
            context.enter(Path::new(directory));
        }
        match whereabouts(context)? {
            HookPlace::Project => {}
            HookPlace::Elsewhere => return Ok(()),
            HookPlace::Deserted(root) if event == NativeEvent::Stop => {
                let message = format!("hookloop.yaml is missing in {}", root.display());
                return Err(CliError::usage(message).hint("git checkout hookloop.yaml"));
            }
            HookPlace::Deserted(_) => return Ok(()),
        }
        record_agent(&crate::environment::state_home()?, agent.name());
        let external = CallerIdentity::agent(ActorKind::ExternalSession);
        let project = context
            .project()?
            .for_caller(Caller::known(&crate::environment::user_name(), external));
        let visitor = HookVisit {
            agent: agent.name(),
            blocks_max: agent.blocks_max(),
            conversation: payload.conversation(),
            moment,
        };
        let reply = visit(&project, &visitor, &StopSwitch::new()?)?;
        match answer(agent, payload, &self.event, reply) {
            Some(answer) => context.out.json(&answer),
            None => Ok(()),
        }
    }

    fn agent(&self, payload: &HookPayload) -> CliResult<NativeAgent> {
        let Some(name) = &self.agent else { return Ok(payload.agent()) };
        let unknown = || CliError::refused(format!("`{name}` is not an agent with native hooks"));
        NativeAgent::of_name(name).ok_or_else(unknown)
    }

    /// Reports a failure of hookloop itself. A block would keep the agent running for ever, for a reason that it can't
    /// fix. So the agent may stop, and a message to its user says that nothing was checked.
    fn admit(&self, context: &mut CommandContext, error: &CliError) -> CliResult {
        let what = match NativeEvent::of_name(&self.event) {
            NativeEvent::Stop => "the stop gates did NOT run",
            NativeEvent::Start | NativeEvent::Prompt => "the agent did not get its pending context",
            // Nobody reads an answer to these.
            NativeEvent::End | NativeEvent::Other => return Err(CliError::refused(error.told())),
        };
        context.out.json(&message(&format!("hookloop: {what}: {}", error.told())))
    }
}

/// All of standard input.
fn read_input() -> CliResult<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .take(PAYLOAD_MAX + 1)
        .read_to_end(&mut input)
        .map_err(|error| CliError::refused(format!("the input of this hook: {error}")))?;
    if input.len() as u64 > PAYLOAD_MAX {
        Err(CliError::refused(format!("the input of this hook has more than {PAYLOAD_MAX} bytes")))
    } else {
        Ok(input)
    }
}

enum HookPlace {
    Project,
    Elsewhere,
    /// A directory that was a project and whose file is missing.
    Deserted(PathBuf),
}

/// Where the agent works.
fn whereabouts(context: &CommandContext) -> CliResult<HookPlace> {
    let directory = context.directory()?;
    let state = crate::environment::state_home()?;
    match ProjectPaths::find(&directory, &state) {
        Ok(_) => Ok(HookPlace::Project),
        Err(PlaceError::NoProject(real)) => {
            let was_project = |root: &&Path| ProjectPaths::at(root, &state).state.is_dir();
            let root = real.ancestors().find(was_project).map(Path::to_owned);
            Ok(root.map_or(HookPlace::Elsewhere, HookPlace::Deserted))
        }
        Err(error) => Err(error.into()),
    }
}
