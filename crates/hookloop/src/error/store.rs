//! Errors of the project's log as a user sees them.

use hookloop_engine::store::{FileDamage, JetStreamError, LogError, LogOpenError, StoreError};
use hookloop_fleet::doctor::restore_hint;

use super::CliError;

impl From<LogError> for CliError {
    fn from(error: LogError) -> CliError {
        StoreError::from(error).into()
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> CliError {
        let message = format!("the project's database: {error}");
        match error.damage() {
            Some(FileDamage::File(reason)) => {
                return CliError::log_damage(format!("the log's file is damaged: {reason}"));
            }
            Some(FileDamage::View(reason)) => {
                let message =
                    format!("the tables that are derived from the log are damaged: {reason}");
                return CliError::log_damage(message).hint("hookloop rebuild");
            }
            None => {}
        }
        match error {
            StoreError::Open(LogOpenError::Lost(loss)) => {
                let restore = restore_hint(&loss.path);
                CliError::log_damage(loss).advice(format!(
                    "{restore}, or accept the loss: `hookloop rebuild --accept-loss`"
                ))
            }
            StoreError::Open(LogOpenError::Newer { .. }) => {
                CliError::system(message).advice("update hookloop; older versions can't read it")
            }
            StoreError::Log(LogError::Damaged { .. }) => {
                CliError::system(message).hint("hookloop verify")
            }
            StoreError::Log(LogError::Engine(source)) => {
                match source.downcast::<JetStreamError>() {
                    Ok(error) => (*error).into(),
                    Err(_) => CliError::system(message),
                }
            }
            _ => CliError::system(message),
        }
    }
}

impl From<JetStreamError> for CliError {
    fn from(error: JetStreamError) -> CliError {
        let failed = CliError::system(&error);
        match error {
            JetStreamError::Unreachable { .. } => {
                failed.hint("hookloop nats up  # or check `store` and HOOKLOOP_STORE")
            }
            JetStreamError::UnknownUser { .. } => failed.advice(
                "check `credentials`, `nkey` or `token` of this store in your own configuration",
            ),
            JetStreamError::Untrusted { .. } => failed
                .advice("check `ca` and `certificate` of this store in your own configuration"),
            JetStreamError::Denied { subject } if subject.starts_with("$JS.API.STREAM.CREATE.") => {
                failed.advice("let a user who may create streams run `hookloop status` once")
            }
            JetStreamError::Denied { .. } => failed.advice(
                "`hookloop nats permissions` prints the permissions of a user; see docs/nats.md",
            ),
            JetStreamError::Lost { .. } => failed.advice(
                "restore the servers' data, or accept the loss: `hookloop rebuild --accept-loss`",
            ),
            JetStreamError::Unsafe(_) => failed.advice(
                "fix the server; `durability: unsafe` in your own configuration accepts the risk",
            ),
            _ => failed,
        }
    }
}
