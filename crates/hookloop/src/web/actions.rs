//! Decisions that people take on a page, performed by the same functions as commands.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use hookloop_config::variables::DIAGNOSTICS_VARIABLE;
use hookloop_core::authority::ControlledAction;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::inbox::ProblemKey;
use hookloop_core::session::LimitDecision;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::inbox::{self, DecisionResult};
use hookloop_engine::machine;
use hookloop_engine::project::Project;
use hookloop_engine::session::control;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sites::ProjectSite;
use crate::error::{CliError, CliResult, FailureKind};
use crate::undo_preview::undo_as_shown;

/// How long the answer waits for a session to resume, and how often that is checked.
const RESUME_MAX: Duration = Duration::from_secs(10);
const RESUME_POLL: Duration = Duration::from_millis(50);
/// Bytes that are read of a program's last output.
const WORDS_MAX: u64 = 16 * 1024;

/// The actions of a page. A number is a text, because a form sends texts.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum PageAction {
    Approve { key: String },
    Answer { key: String, text: String },
    Continue { key: String },
    Abort { key: String },
    Dismiss { key: String },
    Pause { session: SessionId },
    Stop { session: SessionId },
    Resume { session: SessionId },
    Message { session: SessionId, text: String },
    Undo { session: SessionId, turn: Option<String>, digest: String },
}

/// Performs the action that a body requests. Blocks.
pub(super) fn act(site: &ProjectSite, body: &[u8]) -> (StatusCode, Value) {
    let action = serde_json::from_slice(body)
        .map_err(|error| CliError::usage(format!("invalid action: {error}")));
    match action.and_then(|action| perform(site, &action)) {
        Ok(ActionOutcome { message, next }) => {
            (StatusCode::OK, json!({ "message": message, "next": next }))
        }
        Err(error) => {
            let status = match error.kind() {
                FailureKind::Refused | FailureKind::Untrusted => StatusCode::CONFLICT,
                FailureKind::Usage => StatusCode::BAD_REQUEST,
                FailureKind::System => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, json!({ "error": error.message(), "next": error.tip() }))
        }
    }
}

/// The result, and the next command.
struct ActionOutcome {
    message: String,
    next: Option<String>,
}

fn perform(site: &ProjectSite, action: &PageAction) -> CliResult<ActionOutcome> {
    if let Some(trouble) = &site.trouble {
        return Err(CliError::refused(format!("decisions are disabled: {trouble}")));
    }
    let project = &site.project;
    match action {
        PageAction::Approve { key } => {
            settled(project, "Approved", inbox::approve(project, &parse(key)?)?)
        }
        PageAction::Answer { key, text } => {
            settled(project, "Answered", inbox::answer(project, &parse(key)?, text)?)
        }
        PageAction::Continue { key } => settled(
            project,
            "Continued",
            inbox::settle(project, &parse(key)?, LimitDecision::Continue)?,
        ),
        PageAction::Abort { key } => {
            settled(project, "Aborted", inbox::settle(project, &parse(key)?, LimitDecision::Abort)?)
        }
        PageAction::Dismiss { key } => {
            inbox::dismiss(project, &parse(key)?)?;
            settled(
                project,
                "Dismissed",
                DecisionResult { done: CommandOutcome::default(), next: None },
            )
        }
        PageAction::Pause { session } => {
            let id = control::pause(project, Some(session.as_str()))?;
            Ok(ActionOutcome {
                message: format!("Session {id} pauses when its turn is over"),
                next: None,
            })
        }
        PageAction::Stop { session } => {
            let runner = project.runner();
            let runner = runner.ok_or_else(|| CliError::system("the project has no directory"))?;
            let machine = machine::machine();
            let id = control::stop(project, runner, Some(session.as_str()), &machine)?.id;
            let next = Some(format!("hookloop resume {id}"));
            Ok(ActionOutcome { message: format!("Session {id} is stopping"), next })
        }
        PageAction::Message { session, text } => {
            if text.trim().is_empty() {
                return Err(CliError::usage("the message is empty"));
            }
            let id = control::message(project, Some(session.as_str()), text)?;
            Ok(ActionOutcome {
                message: format!("The next prompt of session {id} contains the message"),
                next: None,
            })
        }
        PageAction::Resume { session } => resume(site, session),
        PageAction::Undo { session, turn, digest } => {
            let turn = turn.as_deref().map(parse_turn).transpose()?;
            let message = undo_as_shown(project, session, turn, digest)?;
            Ok(ActionOutcome { message, next: None })
        }
    }
}

fn parse(key: &str) -> CliResult<ProblemKey> {
    key.parse().map_err(CliError::usage)
}

pub(super) fn parse_turn(text: &str) -> CliResult<u32> {
    text.parse().map_err(|_| CliError::usage(format!("`{text}` is not the number of a turn")))
}

/// Returns the state of the task after a decision, and runs the reactions.
fn settled(project: &Project, word: &str, settled: DecisionResult) -> CliResult<ActionOutcome> {
    let DecisionResult { mut done, next } = settled;
    if done.pending {
        project.react_here(&mut done)?;
    }
    if done.pending {
        // The remaining reactions may take long, so the answer does not wait for them. If the thread can't start or
        // fails, the next command runs them.
        let project = project.clone();
        let tender = std::thread::Builder::new();
        let tended = tender.name("reactions".to_owned()).spawn(move || {
            if let Err(error) = project.tend() {
                tracing::warn!(project = project.name(), %error, "reactions are left");
            }
        });
        if let Err(error) = tended {
            tracing::warn!(%error, "reactions are left: no thread starts");
        }
    }
    let state = done.task.map(|task| format!(": task {} is {}", task.id, task.state));
    let failures = done.failures.iter().map(|failure| format!("; {failure}"));
    let words = [word.to_owned(), state.unwrap_or_default()].into_iter();
    let message = words.chain(failures).collect();
    Ok(ActionOutcome { message, next })
}

/// Starts another process that resumes a session. It stays when this one ends.
fn resume(site: &ProjectSite, id: &SessionId) -> CliResult<ActionOutcome> {
    site.project.authorize(ControlledAction::ResumeSession)?;
    let before = version(&site.project, id)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["resume", id.as_str(), "--json"])
        .arg("--directory")
        .arg(&site.place.root)
        // The error of the command is read from its standard error, which has nothing else then.
        .env_remove(DIAGNOSTICS_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let began = Instant::now();
    while began.elapsed() < RESUME_MAX {
        if let Some(status) = child.try_wait()? {
            return if status.success() || version(&site.project, id)? > before {
                let message = format!("Session {id} resumed, and has ended");
                Ok(ActionOutcome { message, next: None })
            } else {
                Err(last_words(&mut child))
            };
        }
        if version(&site.project, id)? > before {
            tend(child)?;
            return Ok(ActionOutcome { message: format!("Session {id} resumed"), next: None });
        }
        std::thread::sleep(RESUME_POLL);
    }
    tend(child)?;
    Ok(ActionOutcome {
        message: format!("Session {id} is about to resume"),
        next: Some(format!("hookloop why {id}")),
    })
}

fn version(project: &Project, id: &SessionId) -> CliResult<u64> {
    Ok(project.read(|view| view.version(&Subject::Session(id.clone())))?)
}

/// Reaps a process, and drains its standard error.
fn tend(mut child: Child) -> CliResult {
    let tender = std::thread::Builder::new().name("resumed".to_owned());
    tender.spawn(move || {
        if let Some(mut words) = child.stderr.take() {
            // The pipe is read so that the program does not block; the text is not used.
            let _ = std::io::copy(&mut words, &mut std::io::sink());
        }
        // The program records its own result in the log.
        let _ = child.wait();
    })?;
    Ok(())
}

/// Returns the error of a process that has ended at once, from its output.
fn last_words(child: &mut Child) -> CliError {
    let mut words = String::new();
    if let Some(stderr) = child.stderr.take() {
        // The bytes that were read before a failure are shown.
        let _ = stderr.take(WORDS_MAX).read_to_string(&mut words);
    }
    let said: Value = serde_json::from_str(words.trim()).unwrap_or_default();
    let text = |name: &str| said["error"][name].as_str().map(str::to_owned);
    let message =
        text("message").unwrap_or_else(|| format!("the session did not resume: {}", words.trim()));
    let error = CliError::refused(message);
    match text("hint") {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
