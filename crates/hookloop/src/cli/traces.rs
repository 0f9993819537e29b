//! Sessions as traces: what commands that perform sessions, or send them again, have in common.

use std::io::Write;
use std::sync::Arc;

use hookloop_core::trace::SpanNames;
use hookloop_engine::project::Project;
use hookloop_engine::project::SessionTraces as Tracing;
use hookloop_engine::session::open;
use hookloop_fleet::telemetry::export::Listener;
use hookloop_fleet::telemetry::{Exporter, Figures, Misfit, News, Target, settings};
use serde_json::json;

use super::{Context, machine};
use crate::error::CliError;
use crate::logs::{self, Level, Line, Logger};
use crate::output::{Result, plain};

/// The project, with its sessions shown to the user's collector, if there is one. New ones are part of the trace that
/// this program was started in.
pub(super) fn begin(context: &mut Context, project: Project) -> Result<Project> {
    let parent = settings::parent(&context.surroundings()?.environment);
    // Who watches a session is told at its end what was not sent.
    let at_once = context.log.is_some();
    let Some(exporter) = start(context, at_once)? else { return Ok(project) };
    Ok(project.traced(Tracing { exporter: Arc::new(exporter), parent }))
}

/// What sends spans, if the user has a collector. One that can't be used keeps nobody from working.
pub(super) fn start(context: &mut Context, at_once: bool) -> Result<Option<Exporter>> {
    let voice = Voice::of(context);
    let listener: Listener = Box::new(move |news| {
        if at_once {
            voice.tell(news);
        }
    });
    let started = target(context)?.and_then(|target| match target {
        Some(target) => Exporter::start(&target, listener).map(Some),
        None => Ok(None),
    });
    let exporter = started.unwrap_or_else(|misfit| {
        voice.warn(&format!("no traces are sent: {misfit}"), None);
        None
    });
    context.exporter.clone_from(&exporter);
    Ok(exporter)
}

fn target(context: &Context) -> Result<std::result::Result<Option<Target>, Misfit>> {
    let environment = context.surroundings()?.environment;
    Ok(Target::of(&context.user()?, &environment, &machine()))
}

/// Sends what is left, and says what could not be sent.
pub(super) fn conclude(exporter: &Exporter, context: &Context) {
    let Figures { lost, trouble, .. } = exporter.finish();
    if lost == 0 && trouble.is_none() {
        return;
    }
    let why = trouble.unwrap_or_else(|| "the collector did not want them".to_owned());
    let what = match lost {
        0 => "not all spans were sent".to_owned(),
        1 => "1 span was not sent".to_owned(),
        lost => format!("{lost} spans were not sent"),
    };
    let message = format!("{what} to {}: {why}", exporter.url());
    Voice::of(context).warn(&message, Some("hookloop sessions trace SESSION"));
}

/// How something is said that keeps nothing from being done.
#[derive(Clone, Copy)]
struct Voice {
    log: Option<Logger>,
    is_json: bool,
}

impl Voice {
    fn of(context: &Context) -> Voice {
        Voice { log: context.log, is_json: context.out.json }
    }

    fn tell(self, news: &News) {
        match (self.log, news) {
            (Some(logger), news) => logger.say(logs::of_news(news)),
            (None, News::Working) => {}
            (None, news) => self.warn(logs::of_news(news).message(), None),
        }
    }

    fn warn(self, message: &str, hint: Option<&str>) {
        if let Some(logger) = self.log {
            return logger.say(Line::new(Level::Warn, "telemetry", message).with("hint", hint));
        }
        let mut stderr = anstream::stderr().lock();
        let yellow = anstyle::AnsiColor::Yellow.on_default().bold();
        let cyan = anstyle::AnsiColor::Cyan.on_default();
        let hint_line = match hint {
            Some(hint) => format!("\n  {cyan}try:{cyan:#} {hint}"),
            None => String::new(),
        };
        // Nobody to hear it changes nothing.
        let _ = match self.is_json {
            true => {
                let warning = json!({ "message": message, "hint": hint });
                writeln!(stderr, "{}", json!({ "warning": warning }))
            }
            false => writeln!(stderr, "{yellow}warning:{yellow:#} {}{hint_line}", plain(message)),
        };
    }
}

/// Send a session to your collector, as far as the log has it
///
/// It is the trace that was sent while the session ran, span for span: what is there already is the same. docs/operators.md
/// says how a collector is named.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its id, the start of it, or its name
    session: String,
}

impl Args {
    pub(super) fn run(self, context: &mut Context) -> Result {
        let project = context.log_to_read()?;
        let row = open::find(&project, &self.session)?;
        let plan = open::session(&project, &row.id)?.plan;
        let nowhere = || {
            let message = "no collector is named, by OTEL_EXPORTER_OTLP_ENDPOINT or `telemetry:` in your own configuration";
            let example = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318";
            CliError::usage(message).hint(format!("{example} hookloop sessions trace {}", row.id))
        };
        let wrong = |misfit: Misfit| CliError::usage(misfit);
        let target = target(context)?.map_err(wrong)?.ok_or_else(nowhere)?;
        let exporter = Exporter::start(&target, Box::new(|_| {})).map_err(wrong)?;
        exporter.show(&project, &row.id);
        let Figures { sent, lost, trouble, .. } = exporter.finish();
        if let Some(why) = trouble.filter(|_| sent == 0 || lost > 0) {
            return Err(CliError::system(format!("{}: {why}", exporter.url())));
        }
        let trace = SpanNames::new(row.id.clone(), plan.trace_parent).trace().to_string();
        let out = &mut context.out;
        if out.json {
            let url = exporter.url();
            return out
                .json(&json!({ "trace_id": trace, "sent": sent, "lost": lost, "endpoint": url }));
        }
        out.line(format_args!("sent {sent} spans of trace {trace} to {}", plain(exporter.url())))
    }
}
