//! Notices about traces that were not sent: they never fail the command.

use std::io::Write;

use hookloop_fleet::telemetry::{ExportFigures, ExportNews, TraceExporter};
use serde_json::json;

use crate::logs::{self, LogLevel, LogLine, Logger};
use crate::sanitize::plain;

/// Sends the remaining spans, and warns about spans that could not be sent.
pub(super) fn conclude(exporter: &TraceExporter, notices: TraceNotices) {
    let ExportFigures { lost, trouble, .. } = exporter.finish();
    if lost == 0 && trouble.is_none() {
        return;
    }
    let why = trouble.unwrap_or_else(|| "the collector rejected them".to_owned());
    let what = match lost {
        0 => "not all spans were sent".to_owned(),
        1 => "1 span was not sent".to_owned(),
        lost => format!("{lost} spans were not sent"),
    };
    let message = format!("{what} to {}: {why}", exporter.url());
    notices.warn(&message, Some("hookloop sessions trace SESSION"));
}

/// Prints warnings that do not fail the command.
#[derive(Clone, Copy)]
pub(super) struct TraceNotices {
    log: Option<Logger>,
    is_json: bool,
}

impl TraceNotices {
    /// Notices as lines of the log if there is one, else as warnings on standard error.
    pub(super) fn new(log: Option<Logger>, is_json: bool) -> TraceNotices {
        TraceNotices { log, is_json }
    }

    pub(super) fn tell(self, news: &ExportNews) {
        match (self.log, news) {
            (Some(logger), news) => logger.say(logs::of_news(news)),
            (None, ExportNews::Working) => {}
            (None, news) => self.warn(logs::of_news(news).message(), None),
        }
    }

    pub(super) fn warn(self, message: &str, hint: Option<&str>) {
        if let Some(logger) = self.log {
            return logger
                .say(LogLine::new(LogLevel::Warn, "telemetry", message).with("hint", hint));
        }
        if crate::quiet::is_set() {
            return;
        }
        let mut stderr = anstream::stderr().lock();
        let yellow = anstyle::AnsiColor::Yellow.on_default().bold();
        let cyan = anstyle::AnsiColor::Cyan.on_default();
        let hint_line = match hint {
            Some(hint) => format!("\n  {cyan}hint:{cyan:#} {hint}"),
            None => String::new(),
        };
        // If standard error is closed, nobody can be warned.
        let _ = if self.is_json {
            let warning = json!({ "message": message, "hint": hint });
            writeln!(stderr, "{}", json!({ "warning": warning }))
        } else {
            writeln!(stderr, "{yellow}warning:{yellow:#} {}{hint_line}", plain(message))
        };
    }
}
