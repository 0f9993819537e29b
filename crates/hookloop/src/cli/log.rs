use std::time::Duration;

use hookloop_core::event::EventBody;
use hookloop_core::id::Subject;
use hookloop_core::nearest::did_you_mean;
use hookloop_core::point::HOOK_NAMESPACE;
use hookloop_engine::project::Project;
use hookloop_engine::session::lookup;
use hookloop_engine::store::{Seq, StoredEvent};

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::ids;
use crate::json_output::EventJson;
use crate::output::{BOLD, CommandOutput, DIM};
use crate::sanitize::plain;

/// Events read at once.
const PAGE: usize = 1_000;
/// Events that a terminal shows by default.
const LATEST: usize = 100;
/// How long `--follow` waits before it checks for Ctrl-C again.
const FOLLOW_WAIT: Duration = Duration::from_secs(60);

/// Print the events of the log, oldest first
///
/// On a terminal, the command prints the latest 100 events, else all of them. With --json, it prints one object a line.
#[derive(clap::Args)]
pub(crate) struct EventLogArgs {
    /// Task of the events
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Session of the events: id, start of the id, or name
    #[arg(long, value_name = "SESSION", conflicts_with = "task")]
    session: Option<String>,

    /// Type of the events (repeatable)
    #[arg(short, long = "type", value_name = "TYPE")]
    types: Vec<String>,

    /// First sequence number
    #[arg(long, value_name = "SEQ")]
    from: Option<Seq>,

    /// Maximum number of events, the latest ones; 0 for all
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,

    /// Print new events as they are recorded
    #[arg(short, long)]
    follow: bool,

    /// Include bookkeeping events
    #[arg(short, long)]
    all: bool,

    /// Events of the fleet: directives, budgets and usage of workers' sessions
    #[arg(long, conflicts_with_all = ["task", "session"])]
    fleet: bool,
}

impl EventLogArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = if self.fleet {
            super::fleet::open(context)?.log().clone()
        } else {
            context.log_to_read()?
        };
        self.check_types(&project)?;
        let subject = self.subject(&project)?;
        let limit = match (self.limit, context.out.terminal && !context.out.json && !self.follow) {
            (Some(0), _) => usize::MAX,
            (Some(limit), _) => limit,
            (None, true) => LATEST,
            (None, false) => usize::MAX,
        };
        let out = &mut context.out;
        let next = match &subject {
            Some(subject) => self.print_history(&project, subject, limit, out)?,
            None => self.print_from_start(&project, limit, out)?,
        };
        out.flush()?;
        if self.follow {
            self.print_as_it_comes(&project, subject.as_ref(), next, out)
        } else {
            Ok(())
        }
    }

    /// Returns the task or session of the wanted events.
    fn subject(&self, project: &Project) -> CliResult<Option<Subject>> {
        match (&self.task, &self.session) {
            (Some(task), _) => task_subject(project, task).map(Some),
            (None, Some(session)) => session_subject(project, session).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Refuses a type that this version does not know, unless a newer version wrote an event of it.
    fn check_types(&self, project: &Project) -> CliResult {
        let known = EventBody::type_names();
        let is_known = |wanted: &str| known.contains(&wanted) || wanted.starts_with(HOOK_NAMESPACE);
        let mut unknown: Vec<&str> = self.types.iter().map(String::as_str).collect();
        unknown.retain(|wanted| !is_known(wanted));
        let mut next = 1;
        while let Some(wanted) = unknown.first() {
            let events = project.log().read(next, PAGE)?;
            let Some(last) = events.last() else {
                let nearest = did_you_mean(wanted, known.iter().copied());
                return Err(CliError::usage(format!("unknown event type `{wanted}`{nearest}"))
                    .advice("`hookloop log` prints the type of each event"));
            };
            next = last.seq + 1;
            unknown.retain(|wanted| !events.iter().any(|one| one.event.body.kind() == *wanted));
        }
        Ok(())
    }

    fn admits(&self, stored: &StoredEvent) -> bool {
        let kind = stored.event.body.kind();
        (self.all || !stored.event.body.is_bookkeeping())
            && (self.types.is_empty() || self.types.iter().any(|wanted| wanted == kind))
            && self.from.is_none_or(|from| stored.seq >= from)
    }

    fn print_history(
        &self,
        project: &Project,
        subject: &Subject,
        limit: usize,
        out: &mut CommandOutput,
    ) -> CliResult<Seq> {
        let next = project.read(|view| Ok(view.totals()?.head + 1))?;
        let mut events = project.log().history(subject, usize::MAX)?;
        events.retain(|event| self.admits(event));
        let skipped = events.len().saturating_sub(limit);
        events.iter().skip(skipped).try_for_each(|event| print(event, out))?;
        Ok(next)
    }

    fn print_from_start(
        &self,
        project: &Project,
        limit: usize,
        out: &mut CommandOutput,
    ) -> CliResult<Seq> {
        let from = match limit {
            usize::MAX => self.from.unwrap_or(1),
            limit => self.start_of_latest(project, limit)?,
        };
        let mut next = from.max(1);
        loop {
            let events = project.log().read(next, PAGE)?;
            let Some(last) = events.last() else { return Ok(next) };
            next = last.seq + 1;
            for event in events.iter().filter(|event| self.admits(event)) {
                print(event, out)?;
            }
        }
    }

    /// Where the latest `limit` events that are wanted begin.
    fn start_of_latest(&self, project: &Project, limit: usize) -> CliResult<Seq> {
        let head = project.read(|view| Ok(view.totals()?.head))?;
        let first = self.from.unwrap_or(1).max(1);
        let mut found = 0;
        let mut end = head + 1;
        while end > first {
            let start = end.saturating_sub(PAGE as Seq).max(first);
            let events = project.log().read(start, (end - start) as usize)?;
            for event in events.iter().rev().filter(|event| self.admits(event)) {
                found += 1;
                if found == limit {
                    return Ok(event.seq);
                }
            }
            end = start;
        }
        Ok(first)
    }

    fn print_as_it_comes(
        &self,
        project: &Project,
        subject: Option<&Subject>,
        next: Seq,
        out: &mut CommandOutput,
    ) -> CliResult {
        let mut follower = project.log().follow(next)?;
        loop {
            for event in follower.next(FOLLOW_WAIT)? {
                let wanted = subject.is_none_or(|subject| event.event.subject == *subject);
                if wanted && self.admits(&event) {
                    print(&event, out)?;
                }
            }
            out.flush()?;
        }
    }
}

/// The task that `text` names; its whole id names one that is deleted too.
fn task_subject(project: &Project, text: &str) -> CliResult<Subject> {
    if let Ok(id) = text.parse() {
        let subject = Subject::Task(id);
        if project.log().last(&subject)?.is_some() {
            return Ok(subject);
        }
    }
    ids::resolve(project, text).map(Subject::Task)
}

fn session_subject(project: &Project, text: &str) -> CliResult<Subject> {
    Ok(Subject::Session(lookup::find(project, text)?.id))
}

fn print(stored: &StoredEvent, out: &mut CommandOutput) -> CliResult {
    if out.json {
        return out.json(&EventJson::from(stored));
    }
    let event = &stored.event;
    let data = match event.body.data() {
        serde_json::Value::Object(map) if map.is_empty() => String::new(),
        data => data.to_string(),
    };
    let seq = stored.seq;
    let at = event.at;
    let kind = event.body.kind();
    let node = event.node_id();
    let actor = plain(&event.actor);
    let used = format!("{seq:>6} {at} {kind} {node} {actor} ").chars().count();
    let data = out.fitting(&plain(&data), used);
    out.line(format_args!(
        "{DIM}{seq:>6} {at}{DIM:#} {BOLD}{kind}{BOLD:#} {node} {DIM}{actor}{DIM:#} {data}"
    ))
}
