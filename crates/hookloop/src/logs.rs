//! Log lines of unattended programs, on standard error.
//!
//! The lines replace the texts that standard output has otherwise, so nothing is printed twice.

use std::io::Write;

use clap::ValueEnum;
use hookloop_core::session::Session;
use hookloop_core::trace::TraceId;
use hookloop_engine::project::Project;
use hookloop_engine::session::observer::SessionObserver;
use hookloop_engine::session::{SessionHandle, SessionUpdate};
use hookloop_fleet::telemetry::ExportNews;
use serde_json::{Map, Value, json};

use crate::error::{CliError, CliResult};
use crate::output::CommandOutput;
use crate::present::{self, StepSeverity};
use crate::quiet;
use crate::sanitize::plain;

const FORMAT_VARIABLE: &str = "HOOKLOOP_LOG_FORMAT";
const LEVEL_VARIABLE: &str = "HOOKLOOP_LOG_LEVEL";

/// The options of log lines.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct LogArgs {
    /// Format of log lines on standard error; standard output stays empty
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,

    /// Minimum level of log lines [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
}

impl LogLevel {
    fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
        }
    }
}

impl LogArgs {
    /// Returns whether standard error is for log lines.
    pub(crate) fn is_asked_for(self) -> bool {
        self.log_format.is_some()
            || std::env::var_os(FORMAT_VARIABLE).is_some_and(|v| !v.is_empty())
    }

    /// Returns the logger that the options or the environment ask for; none if there is none.
    pub(crate) fn logger(self, out: &CommandOutput) -> CliResult<Option<Logger>> {
        if self.log_format.is_some() && out.json {
            let message = "--json and --log-format can't be combined";
            return Err(
                CliError::usage(message).advice("use `--log-format json` or `--json`, not both")
            );
        }
        let format = match self.log_format {
            Some(format) => Some(format),
            None => variable(FORMAT_VARIABLE)?,
        };
        let level = match self.log_level {
            Some(level) => Some(level),
            None => variable(LEVEL_VARIABLE)?,
        };
        let level = level.unwrap_or(if quiet::is_set() { LogLevel::Error } else { LogLevel::Info });
        Ok(format.filter(|_| !out.json).map(|format| Logger { format, level }))
    }
}

fn variable<T: ValueEnum>(name: &str) -> CliResult<Option<T>> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong = |_| {
        let known = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        CliError::usage(format!("{name}: `{text}` is not one of {}", known.join(", ")))
    };
    T::from_str(&text, false).map(Some).map_err(wrong)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Logger {
    format: LogFormat,
    level: LogLevel,
}

/// One line of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogLine {
    level: LogLevel,
    /// The part of the program that writes the line.
    target: &'static str,
    message: String,
    fields: Map<String, Value>,
}

impl LogLine {
    pub(crate) fn new(
        level: LogLevel,
        target: &'static str,
        message: impl Into<String>,
    ) -> LogLine {
        LogLine { level, target, message: message.into(), fields: Map::new() }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a field, unless its value is null.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> LogLine {
        let value = value.into();
        if !value.is_null() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }
}

impl Logger {
    /// Writes an error as a log line and returns its exit code.
    pub(crate) fn error(&self, error: &CliError) -> u8 {
        let line = LogLine::new(LogLevel::Error, "hookloop", error.message());
        self.say(line.with("type", error.kind().name()).with("hint", error.tip()));
        error.kind().exit_code()
    }

    pub(crate) fn say(&self, line: LogLine) {
        if line.level > self.level {
            return;
        }
        let now = time();
        let text = match self.format {
            LogFormat::Json => {
                let mut all = Map::from_iter([
                    ("time".to_owned(), json!(now)),
                    ("level".to_owned(), json!(line.level.name())),
                    ("target".to_owned(), json!(line.target)),
                    ("message".to_owned(), json!(line.message)),
                ]);
                all.extend(line.fields);
                Value::Object(all).to_string()
            }
            LogFormat::Text => {
                let level = line.level.name();
                let field = |(name, value): (&String, &Value)| match value {
                    Value::String(text) => format!(" {name}={}", plain(text)),
                    value => format!(" {name}={value}"),
                };
                let fields: String = line.fields.iter().map(field).collect();
                format!("{now} {level:<5} {}: {}{fields}", line.target, plain(&line.message))
            }
        };
        // One write for the whole line, so threads do not mix lines. If standard error is closed, there is no other place for the line.
        let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
    }
}

fn time() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    hookloop_core::time::Timestamp(ms).to_string()
}

/// Returns a notice of the trace exporter as a log line.
pub(crate) fn of_news(news: &ExportNews) -> LogLine {
    match news {
        ExportNews::Failing { why } => {
            LogLine::new(LogLevel::Warn, "telemetry", format!("spans can't be sent: {why}"))
        }
        ExportNews::Working => LogLine::new(LogLevel::Info, "telemetry", "spans are sent again"),
        ExportNews::Lost { spans, why } => {
            let text = format!("{spans} spans are dropped: {why}");
            LogLine::new(LogLevel::Warn, "telemetry", text).with("spans", *spans)
        }
    }
}

/// Writes the events of a session as log lines.
pub(crate) struct SessionLog<'a> {
    logger: Logger,
    project: &'a Project,
    opened: &'a SessionHandle,
    trace: Option<TraceId>,
    task: Option<String>,
}

impl<'a> SessionLog<'a> {
    pub(crate) fn new(
        logger: Logger,
        project: &'a Project,
        opened: &'a SessionHandle,
    ) -> SessionLog<'a> {
        let logged =
            SessionLog { logger, project, opened, trace: opened.trace(project), task: None };
        let work = present::work(&opened.plan.work);
        logged.say(LogLevel::Info, format!("session {}: {work}", opened.id), "session_opened");
        logged
    }

    pub(crate) fn conclude(&self, session: &Session) {
        let (weight, text, _) = present::conclusion(self.opened.id.as_str(), session);
        self.say(level(weight), text, "session_concluded");
    }

    fn say(&self, level: LogLevel, message: String, event: &str) {
        let line = LogLine::new(level, "session", message)
            .with("event", event)
            .with("project", self.project.name())
            .with("session", self.opened.id.as_str())
            .with("task", self.task.as_deref())
            .with("trace_id", self.trace.map(|trace| trace.to_string()));
        self.logger.say(line);
    }
}

fn level(weight: StepSeverity) -> LogLevel {
    match weight {
        StepSeverity::Bad => LogLevel::Warn,
        StepSeverity::Heading | StepSeverity::Good | StepSeverity::Plain => LogLevel::Info,
    }
}

impl SessionObserver for SessionLog<'_> {
    fn notice(&mut self, notice: SessionUpdate<'_>) {
        use hookloop_core::event::EventBody;
        let SessionUpdate::Stored(events) = notice else { return };
        for stored in events {
            let body = &stored.event.body;
            if let EventBody::SessionTaskClaimed(taken) = body {
                self.task = Some(taken.task.to_string());
            }
            if let Some((weight, text)) = present::line(body, &self.opened.plan.limits) {
                // Columns are for terminals only.
                let text: Vec<&str> = text.split_whitespace().collect();
                self.say(level(weight), text.join(" "), body.kind());
            }
            if let EventBody::SessionTaskReleased(_) = body {
                self.task = None;
            }
        }
    }
}
