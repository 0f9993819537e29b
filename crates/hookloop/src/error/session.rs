//! Errors of sessions and of the inbox as a user sees them.

use hookloop_engine::inbox::InboxError;
use hookloop_engine::inbox::decision_record::flag_of;
use hookloop_engine::launch::PerformError;
use hookloop_engine::session::StartError;
use hookloop_engine::session::prompt_template::PromptTemplateError;

use super::CliError;

impl From<StartError> for CliError {
    fn from(error: StartError) -> CliError {
        let message = error.to_string();
        match error {
            StartError::Engine(error) => error.into(),
            StartError::Untrusted(_) => CliError::untrusted(message).hint("hookloop hooks trust"),
            StartError::WeakenedGates(_) => {
                CliError::untrusted(message).hint("hookloop hooks trust")
            }
            StartError::NoSuchSession(_) => {
                CliError::refused(message).hint("hookloop sessions list")
            }
            StartError::NothingToResume => {
                CliError::refused(message).hint("hookloop run \"…\" --agent claude")
            }
            StartError::Over(id, _) => {
                CliError::refused(message).hint(format!("hookloop why {id}"))
            }
            StartError::NeedsAnswer(id) => {
                CliError::refused(message).hint(format!("hookloop resume {id} --answer \"…\""))
            }
            StartError::Running(id) => {
                CliError::refused(message).hint(format!("hookloop pause {id}"))
            }
            StartError::OtherHooks(id) => CliError::untrusted(message).advice(format!(
                "restore hookloop.yaml, or run `hookloop resume {id} --with-changed-hooks`"
            )),
            StartError::OtherScripts { session: id, .. } => CliError::untrusted(message).advice(
                format!("restore the scripts, or run `hookloop resume {id} --with-changed-hooks`"),
            ),
            StartError::Elsewhere(id, _) => {
                CliError::refused(message).hint(format!("hookloop resume {id} --take-over"))
            }
            StartError::External(id) | StartError::Review(id) => {
                CliError::refused(message).hint(format!("hookloop sessions show {id}"))
            }
            StartError::NotOver(id) => {
                CliError::refused(message).hint(format!("hookloop stop {id}"))
            }
            StartError::OfWorker(..) => CliError::refused(message).hint("hookloop inbox"),
            StartError::NothingLeft { task: Some(task), .. } => {
                CliError::refused(message).hint(format!("hookloop task show {task}"))
            }
            StartError::NothingLeft { task: None, .. } => {
                CliError::refused(message).hint("hookloop task list")
            }
            StartError::SeveralBegin(..) => {
                CliError::refused(message).hint("hookloop sessions list")
            }
            StartError::AtLimit { session: id, limit, .. } => {
                let flag = flag_of(limit).unwrap_or_default();
                CliError::refused(message).hint(format!("hookloop resume {id} {flag}"))
            }
            StartError::NotRunning(id, _) => {
                CliError::refused(message).hint(format!("hookloop resume {id}"))
            }
            StartError::NothingRuns => CliError::refused(message).hint("hookloop sessions list"),
            StartError::SeveralRun(ids) => {
                let first = ids.first().map_or("", hookloop_core::id::SessionId::as_str);
                CliError::refused(message).hint(format!("hookloop stop {first}"))
            }
            StartError::Io { .. } => CliError::system(message),
            StartError::OutputInCheckout(file) => CliError::usage(message).advice(format!(
                "write it to a file outside of the project, or add {} to .gitignore",
                file.display()
            )),
            StartError::CheckoutBusy(holder) => {
                let session = holder.session.as_deref().unwrap_or("SESSION");
                CliError::refused(message).advice(format!(
                    "wait for it, end it with `hookloop stop {session}`, or use a worktree: `hookloop run … --worktree`"
                ))
            }
            StartError::RestoreUnfinished(_) => CliError::refused(message)
                .advice("`hookloop undo` finishes it, `hookloop undo --abandon` gives it up"),
            StartError::Template(error) => error.into(),
            StartError::LongMessage(_) => CliError::usage(message),
        }
    }
}

impl From<PromptTemplateError> for CliError {
    fn from(error: PromptTemplateError) -> CliError {
        CliError::usage(error)
            .advice("create the file, or change `prompt_template` in hookloop.yaml")
    }
}

impl From<InboxError> for CliError {
    fn from(error: InboxError) -> CliError {
        let message = error.to_string();
        match error {
            InboxError::Engine(error) => error.into(),
            InboxError::NoSuchProblem(_) => CliError::refused(message).hint("hookloop inbox list"),
            InboxError::Ambiguous { keys, .. } => {
                let first = keys.first().map_or("", String::as_str);
                CliError::refused(message).hint(format!("hookloop inbox show {first}"))
            }
            InboxError::Unfit { instead, .. } => CliError::refused(message).hint(instead),
            InboxError::Start(error) => error.into(),
            InboxError::SeveralQuestions { keys, .. } => {
                let first = keys.first().map_or("", String::as_str);
                CliError::refused(message).hint(format!("hookloop inbox answer {first} \"…\""))
            }
            InboxError::Length(_) => CliError::usage(message),
        }
    }
}

impl From<PerformError> for CliError {
    fn from(error: PerformError) -> CliError {
        match error {
            PerformError::Engine(error) => error.into(),
            PerformError::Io(error) => error.into(),
            PerformError::Template(error) => error.into(),
            PerformError::NoSession(_) => CliError::refused(error),
            PerformError::Nowhere => CliError::system(error),
        }
    }
}
