//! What a user is told when something did not work: what happened, and what to type next.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use hookloop_agents::BadAgent;
use hookloop_agents::repository::Unfit;
use hookloop_config::ConfigError;
use hookloop_config::paths::PlaceError;
use hookloop_engine::bulk::ImportError;
use hookloop_engine::delivery::train::TrainError;
use hookloop_engine::error::EngineError;
use hookloop_engine::error::NotPerson;
use hookloop_engine::inbox::InboxError;
use hookloop_engine::inbox::decision_record::flag_of;
use hookloop_engine::launch::PerformError;
use hookloop_engine::session::StartError;
use hookloop_engine::store::{
    FileDamage, JetStreamError, LogError, LogOpenError, Refusal, StoreError,
};
use hookloop_fleet::doctor::restore_hint;
use hookloop_fleet::worker::WorkerError;
use hookloop_hooks::trust::TrustError;
use serde_json::json;

use crate::logs::{Level, Line, Logger};
use crate::native::file::FileError;
use crate::native::plan::PlanError;

/// The kinds of failure; each has its exit code, which scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command was understood and not accepted.
    Refused,
    /// The command line, the configuration or the input is wrong.
    Usage,
    /// Nobody agreed to what the repository wants to run.
    Untrusted,
    /// The machine did not let us: files, disk, damage.
    System,
}

impl Kind {
    fn exit_code(self) -> u8 {
        match self {
            Kind::Refused => 1,
            Kind::Usage => 2,
            Kind::Untrusted => 3,
            Kind::System => 70,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Refused => "refused",
            Kind::Usage => "usage",
            Kind::Untrusted => "untrusted",
            Kind::System => "system",
        }
    }
}

#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// The file of the project's log is damaged or lost.
    is_log_damage: bool,
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl ToString) -> CliError {
        CliError { kind, message: message.to_string(), hint: None, is_log_damage: false }
    }

    pub(crate) fn refused(message: impl ToString) -> CliError {
        CliError::new(Kind::Refused, message)
    }

    pub(crate) fn usage(message: impl ToString) -> CliError {
        CliError::new(Kind::Usage, message)
    }

    pub(crate) fn untrusted(message: impl ToString) -> CliError {
        CliError::new(Kind::Untrusted, message)
    }

    pub(crate) fn system(message: impl ToString) -> CliError {
        CliError::new(Kind::System, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> CliError {
        self.hint = Some(hint.into());
        self
    }

    /// The damage or loss of the log's file.
    fn log_damage(message: impl ToString) -> CliError {
        CliError { is_log_damage: true, ..CliError::system(message) }
    }

    /// The same error, which tells of the damage of the log's file.
    pub(crate) fn about_damage(self) -> CliError {
        CliError { is_log_damage: true, ..self }
    }

    pub(crate) fn is_log_damage(&self) -> bool {
        self.is_log_damage
    }

    /// The same error as the result of a check, which worked.
    pub(crate) fn into_refused(self) -> CliError {
        CliError { kind: Kind::Refused, ..self }
    }

    /// Names the log's file, and the way back where there is none yet.
    pub(crate) fn about_log_file(self, file: &Path) -> CliError {
        let path = file.display().to_string();
        let message = if self.message.contains(&path) {
            self.message
        } else {
            format!("{path}: {}", self.message)
        };
        let hint = self.hint.unwrap_or_else(|| restore_hint(file));
        CliError { message, hint: Some(hint), ..self }
    }

    /// What happened and what to type, in one line.
    pub(crate) fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} (try: {hint})", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to type next.
    pub(crate) fn tip(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The end of output that nobody reads any more; no failure of ours.
    fn is_broken_pipe(&self) -> bool {
        self.message == BROKEN_PIPE
    }

    /// As a line of a log; answers the exit code.
    pub(crate) fn tell(&self, logger: Logger) -> u8 {
        let line = Line::new(Level::Error, "hookloop", self.message.as_str());
        logger.say(line.with("kind", self.kind.name()).with("hint", self.hint.as_deref()));
        self.kind.exit_code()
    }

    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS;
        }
        let mut stderr = anstream::stderr().lock();
        let written = if as_json {
            let error =
                json!({"kind": self.kind.name(), "message": self.message, "hint": self.hint});
            writeln!(stderr, "{}", json!({ "error": error }))
        } else {
            let red = anstyle::AnsiColor::Red.on_default().bold();
            let cyan = anstyle::AnsiColor::Cyan.on_default();
            let message = crate::output::plain_lines(&self.message, 4);
            let hint = match &self.hint {
                Some(hint) => format!("\n  {cyan}try:{cyan:#} {}", crate::output::plain(hint)),
                None => String::new(),
            };
            writeln!(stderr, "{red}error:{red:#} {message}{hint}")
        };
        match written {
            Ok(()) => ExitCode::from(self.kind.exit_code()),
            Err(_) => ExitCode::FAILURE,
        }
    }
}

const BROKEN_PIPE: &str = "broken pipe";

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> CliError {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => CliError::system(BROKEN_PIPE),
            _ => CliError::system(error),
        }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> CliError {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => CliError::system(error),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> CliError {
        let refused = CliError::refused(&refusal);
        CliError { hint: refusal.hint(), ..refused }
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> CliError {
        let message = error.to_string();
        match error {
            PlaceError::NoProject(_) => CliError::usage(message).hint("hookloop init"),
            PlaceError::NoHome => CliError::usage(message).hint("export HOME=/home/you"),
            PlaceError::Exposed(path) => {
                CliError::system(message).hint(format!("chmod 700 {}", path.display()))
            }
            PlaceError::Foreign(path) => {
                CliError::system(message).hint(format!("ls -ld {}", path.display()))
            }
            PlaceError::NotText(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                CliError::usage(message).hint(format!(
                    "rename the directory, such as `mv -- \"$PWD\" \"../{}\"`",
                    name.replace('\u{fffd}', "_")
                ))
            }
            PlaceError::Io { .. } => CliError::system(message),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        let line = error.line.map_or(String::new(), |line| format!("+{line} "));
        CliError::usage(&error).hint(format!("$EDITOR {line}{}", error.path.display()))
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> CliError {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Place(error) => error.into(),
            EngineError::Config(error) => error.into(),
            EngineError::Store(error) => error.into(),
            EngineError::SessionTaken(_) => CliError::refused(error).hint("hookloop sessions list"),
            EngineError::NoSuchHook(_) => CliError::refused(error).hint("hookloop hooks list"),
            EngineError::UnknownWorker(_) => CliError::refused(error).hint("hookloop fleet status"),
            EngineError::Unlisted(unlisted) => {
                let (urls, path) = (&unlisted.urls, unlisted.path.display());
                let hint =
                    format!("add `stores: {{ \"{urls}\": {{}} }}` to {path} if you trust it");
                CliError::refused(&unlisted).hint(hint)
            }
            EngineError::Trust(error) => error.into(),
            EngineError::Forbidden(error) => CliError::refused(error).hint("hookloop policy"),
            EngineError::Unauthorized(error) => {
                let refused = CliError::refused(&error);
                match error.why {
                    NotPerson::External { .. } => {
                        refused.hint("the same in a terminal that the agent did not start")
                    }
                    _ => refused,
                }
            }
            EngineError::CascadeLimit { .. } => {
                CliError::refused(error).hint("hookloop log --type cascade_cut")
            }
            EngineError::BadCause(_) => CliError::refused(error).hint("unset HOOKLOOP_CAUSE"),
            EngineError::OtherLog { .. } => CliError::refused(error).hint(
                "leave HOME, XDG_STATE_HOME and HOOKLOOP_STORE as the hook or agent got them",
            ),
            EngineError::NoProjectName { path } => {
                let message = EngineError::NoProjectName { path: path.clone() };
                CliError::usage(message)
                    .hint(format!("echo 'project: my-project' >> {}", path.display()))
            }
        }
    }
}

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
                CliError::refused(message).hint("hookloop run \"…\" --agent 'command:./agent.sh'")
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
            StartError::OtherHooks(id) => CliError::untrusted(message).hint(format!(
                "put hookloop.yaml back, or hookloop resume {id} --with-changed-hooks"
            )),
            StartError::OtherScripts { session: id, .. } => CliError::untrusted(message).hint(
                format!("put the scripts back, or hookloop resume {id} --with-changed-hooks"),
            ),
            StartError::Elsewhere(id, _) => {
                CliError::refused(message).hint(format!("hookloop resume {id} --take-over"))
            }
            StartError::Guest(id) | StartError::Review(id) => {
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
            StartError::OutputInCheckout(file) => CliError::usage(message).hint(format!(
                "write it to a file outside of the project, or add {} to .gitignore",
                file.display()
            )),
            StartError::CheckoutBusy(holder) => {
                let session = holder.session.as_deref().unwrap_or("SESSION");
                CliError::refused(message).hint(format!(
                    "wait for it, end it with `hookloop stop {session}`, or use a worktree: `hookloop run … --worktree`"
                ))
            }
            StartError::LongMessage(_) => CliError::usage(message),
        }
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
            PerformError::Template { .. } => CliError::usage(error),
            PerformError::NoSession(_) => CliError::refused(error),
            PerformError::Nowhere => CliError::system(error),
        }
    }
}

impl From<WorkerError> for CliError {
    fn from(error: WorkerError) -> CliError {
        match error {
            WorkerError::Engine(error) => error.into(),
            WorkerError::Io(error) => error.into(),
        }
    }
}

impl From<TrainError> for CliError {
    fn from(error: TrainError) -> CliError {
        match error {
            TrainError::Engine(error) => error.into(),
            TrainError::Start(error) => error.into(),
            error @ (TrainError::NoDelivery | TrainError::Busy) => {
                CliError::refused(error.to_string())
            }
            error @ TrainError::Trouble(_) => CliError::refused(error.to_string()),
        }
    }
}

impl From<Unfit> for CliError {
    fn from(error: Unfit) -> CliError {
        let list = || Some("hookloop agents list".to_owned());
        let (kind, hint) = match error {
            Unfit::Undefined(_) | Unfit::Brought { .. } => (Kind::Untrusted, error.hint()),
            Unfit::Unknown(_) | Unfit::Missing { .. } => (Kind::Usage, error.hint().or_else(list)),
            Unfit::Permissions(_) => (Kind::Usage, None),
            Unfit::NotReady(_) => (Kind::Refused, error.hint()),
            Unfit::Forbidden(_) => (Kind::Refused, error.hint()),
            Unfit::Unreadable { .. } => (Kind::System, None),
        };
        CliError { hint, ..CliError::new(kind, error) }
    }
}

impl From<PlanError> for CliError {
    fn from(error: PlanError) -> CliError {
        let message = error.to_string();
        match error {
            PlanError::Fault { path, fault } => {
                CliError::usage(message).hint(format!("$EDITOR +{} {}", fault.line, path.display()))
            }
            PlanError::NoText(_) => CliError::usage(message),
            PlanError::NoHome => CliError::usage(message).hint("export HOME=/home/you"),
            PlanError::LeadsOut { .. } => {
                CliError::refused(message).hint("the same with --user, or put a file there")
            }
            PlanError::File(error) => error.into(),
        }
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> CliError {
        match error {
            FileError::Changed(_) => CliError::refused(error).hint("the same again"),
            FileError::Long(_) | FileError::NoFile(_) => CliError::usage(error),
            FileError::Io { .. } => CliError::system(error),
        }
    }
}

impl From<BadAgent> for CliError {
    fn from(error: BadAgent) -> CliError {
        CliError::usage(error)
    }
}

impl From<TrustError> for CliError {
    fn from(error: TrustError) -> CliError {
        let failed = CliError::system(&error);
        match error {
            TrustError::Unreadable { path, .. } => failed.hint(format!(
                "rm {}, then hookloop hooks trust: nothing is trusted until then",
                path.display()
            )),
            TrustError::OtherDigest { .. } => {
                CliError::untrusted(failed.message).hint("hookloop hooks trust --show")
            }
            TrustError::Io { .. } | TrustError::TooLong { .. } | TrustError::TooMany { .. } => {
                failed
            }
        }
    }
}

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
                CliError::log_damage(loss).hint(format!(
                    "{restore}, or accept the loss: `hookloop rebuild --accept-loss`"
                ))
            }
            StoreError::Open(LogOpenError::Newer { .. }) => {
                CliError::system(message).hint("update hookloop; older versions can't read it")
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
            JetStreamError::UnknownUser { .. } => failed.hint(
                "check `credentials`, `nkey` or `token` of this store in your own configuration",
            ),
            JetStreamError::Untrusted { .. } => {
                failed.hint("check `ca` and `certificate` of this store in your own configuration")
            }
            JetStreamError::Denied { subject } if subject.starts_with("$JS.API.STREAM.CREATE.") => {
                failed.hint("let someone who may make streams run `hookloop status` here once")
            }
            JetStreamError::Denied { .. } => failed.hint(
                "`hookloop nats permissions` prints what a user must be allowed, docs/nats.md why",
            ),
            JetStreamError::Lost { .. } => failed.hint(
                "restore the servers' data, or accept the loss: `hookloop rebuild --accept-loss`",
            ),
            JetStreamError::Unsafe(_) => failed.hint(
                "mend the server; `durability: unsafe` in your own configuration takes the risk",
            ),
            _ => failed,
        }
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> CliError {
        match error {
            ImportError::Engine(error) => error.into(),
            ImportError::Io(error) => error.into(),
            error => CliError::usage(error),
        }
    }
}
