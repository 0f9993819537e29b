//! Sends sessions as traces, while they run or again later.
use std::sync::Arc;

use hookloop_core::trace::SpanNames;
use hookloop_engine::project::{Project, SessionTraces};
use hookloop_engine::session::lookup;
use hookloop_fleet::telemetry::export::ExportListener;
use hookloop_fleet::telemetry::{
    ExportFigures, ExportMisfit, ExportTarget, TraceExporter, settings,
};
use serde_json::json;

use super::trace_notices::TraceNotices;
use crate::cli::context::CommandContext;
use crate::environment::machine;
use crate::error::{CliError, CliResult};
use crate::sanitize::plain;

/// Returns the project, with its sessions sent to the user's collector, if there is one. New ones are part of the trace
/// that this program was started in.
pub(super) fn begin(context: &mut CommandContext, project: Project) -> CliResult<Project> {
    let parent = settings::parent(&context.surroundings()?.environment);
    // Without a log, failures are reported at the end of the session.
    let at_once = context.log.is_some();
    let Some(exporter) = start(context, at_once)? else { return Ok(project) };
    Ok(project.traced(SessionTraces { exporter: Arc::new(exporter), parent }))
}

/// Starts the exporter of spans, if the user has a collector. A collector that can't be used does not stop the work.
pub(super) fn start(
    context: &mut CommandContext,
    at_once: bool,
) -> CliResult<Option<TraceExporter>> {
    let notices = TraceNotices::new(context.log, context.out.json);
    let listener: ExportListener = Box::new(move |news| {
        if at_once {
            notices.tell(news);
        }
    });
    let started = target(context)?.and_then(|target| match target {
        Some(target) => TraceExporter::start(&target, listener).map(Some),
        None => Ok(None),
    });
    let exporter = started.unwrap_or_else(|misfit| {
        notices.warn(&format!("no traces are sent: {misfit}"), None);
        None
    });
    context.exporter.clone_from(&exporter);
    Ok(exporter)
}

fn target(
    context: &CommandContext,
) -> CliResult<std::result::Result<Option<ExportTarget>, ExportMisfit>> {
    let environment = context.surroundings()?.environment;
    Ok(ExportTarget::of(&context.user()?, &environment, &machine()))
}

/// Send the trace of a session to your collector
///
/// The spans are the same as those that were sent while the session ran. docs/operators.md describes how to name a
/// collector.
#[derive(clap::Args)]
pub(crate) struct SessionTraceArgs {
    /// Id, start of the id, or name of the session
    session: String,
}

impl SessionTraceArgs {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.log_to_read()?;
        let row = lookup::find(&project, &self.session)?;
        let plan = lookup::session(&project, &row.id)?.plan;
        let nowhere = || {
            let message = "no collector: neither OTEL_EXPORTER_OTLP_ENDPOINT nor `telemetry:` in your own configuration names one";
            let example = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318";
            CliError::usage(message).hint(format!("{example} hookloop sessions trace {}", row.id))
        };
        let wrong = |misfit: ExportMisfit| CliError::usage(misfit);
        let target = target(context)?.map_err(wrong)?.ok_or_else(nowhere)?;
        let exporter = TraceExporter::start(&target, Box::new(|_| {})).map_err(wrong)?;
        exporter.show(&project, &row.id);
        let ExportFigures { sent, lost, trouble, .. } = exporter.finish();
        if let Some(why) = trouble.filter(|_| sent == 0 || lost > 0) {
            return Err(CliError::system(format!("{}: {why}", exporter.url())));
        }
        let trace = SpanNames::new(row.id.clone(), plan.trace_parent).trace().to_string();
        let out = &mut context.out;
        if out.json {
            let url = exporter.url();
            return out.json(
                &json!({ "trace_id": trace, "sent": sent, "dropped": lost, "endpoint": url }),
            );
        }
        out.line(format_args!("sent {sent} spans of trace {trace} to {}", plain(exporter.url())))
    }
}
