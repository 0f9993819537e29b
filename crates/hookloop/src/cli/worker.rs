//! `hookloop worker`

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use hookloop_core::claim::LEASE_MAX_MS;
use hookloop_core::fleet::WorkerName;
use hookloop_core::id::TaskId;
use hookloop_core::options::Length;
use hookloop_engine::agents::Permissions;
use hookloop_engine::delivery::repo::RepoError;
use hookloop_engine::fleet::{Fleet, WorkerState};
use hookloop_engine::kept::{Kept, Surroundings};
use hookloop_engine::lifeline;
use hookloop_engine::place::Place;
use hookloop_engine::process::Cancel;
use hookloop_engine::project::{EngineError, Project};
use hookloop_engine::store::Links;
use hookloop_engine::user::{ProjectHome, ProjectRules};
use hookloop_engine::worker::{
    End, Post, Quit, SLOTS_MAX, Site, Told, Worker, WorkerPlan, check_out,
};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::merge::ArrivalJson;
use super::run::{AGENT_VARIABLE, length, permissions};
use super::{Context, actor, machine, state_home};
use crate::error::CliError;
use crate::output::{DIM, Output, Result, plain};

/// A lease has to outlast an election of servers, with signs of life to spare.
const LEASE_MIN_MS: u64 = 5_000;
const CANCELLED: i32 = 130;

/// Take tasks that are ready and have them done, many at once, until told to end
///
/// Each task has a session of its own; in projects that deliver, it is submitted and merged. SIGTERM or Ctrl-C: nothing more
/// is taken, what is under way is finished or handed back within --drain; a second time: handed back now. What a worker
/// had in hands when it was killed it goes on with when it starts again; others take it after --lease.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directories of the projects to work on, or names of `projects:` in your own configuration; if none is given the
    /// project of the current directory, else all of those
    #[arg(value_name = "PROJECT")]
    projects: Vec<String>,

    /// Who does the work, as for `run`
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Which model it uses
    #[arg(long)]
    model: Option<String>,

    /// What it may do without being asked: read, edit or full
    #[arg(long, value_name = "WHAT", value_parser = permissions)]
    permissions: Option<String>,

    /// Tasks at once
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(SLOTS_MAX)))]
    jobs: u32,

    /// What the fleet calls this worker; the machine's name and a number if it is not given
    #[arg(long)]
    name: Option<WorkerName>,

    /// Only tasks of these types (several with commas)
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,

    /// Only tasks with one of these labels (several with commas)
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,

    /// How long this worker may be silent until others take its tasks
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = lease)]
    lease: u64,

    /// How long it has to finish when it is to end
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = length)]
    drain: u64,

    /// Leave it to others to merge what was submitted
    #[arg(long)]
    no_merge: bool,

    /// End when there is nothing left to do
    #[arg(long)]
    until_idle: bool,

    /// How much less urgent than this worker's signs of life its agents and hooks are, 0 to 19
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: i32,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        super::by_a_person("start a worker")?;
        let surroundings =
            Surroundings { stays: Some(Links::default()), ..context.surroundings()? };
        let home = state_home()?;
        let sites = self.sites(context, &home, &surroundings)?;
        let Some(first) = sites.first() else {
            return Err(CliError::usage("there is no project to work on"));
        };
        let urls = |site: &Site| match site.project.kept() {
            Kept::Here => String::new(),
            Kept::Nats { urls, .. } => urls.clone(),
        };
        if sites.iter().any(|site| urls(site) != urls(first)) {
            let message =
                "these projects are kept in different stores, and a worker is in the fleet of one";
            return Err(
                CliError::usage(message).hint("hookloop worker PROJECT, once for each store")
            );
        }
        let fleet = Fleet::beside(&first.project, &home, &surroundings)?;
        let plan = self.plan(&first.project, context.user()?.agent)?;
        lifeline::start();
        let quit = heed_signals()?;
        // Its signs of life are more urgent than all that it starts from here on. Where that can't be had, they are
        // as urgent as the rest.
        let _ = rustix::process::setpriority_process(None, self.nice);
        let posts: Vec<Post> = sites.into_iter().map(|site| Post::open(site, &fleet)).collect();
        if !context.out.json {
            let names: Vec<&str> = posts.iter().map(Post::name).collect();
            context.out.line(format_args!(
                "worker {}: {} at once by {} on {}",
                plan.name,
                plan.slots,
                plain(&plan.agent),
                plain(&names.join(", "))
            ))?;
            context.out.flush()?;
        }
        let worker = Worker::new(plan, posts, fleet);
        let out = &mut context.out;
        let (says, said) = mpsc::channel();
        let is_json = out.json;
        std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                // Moved here: nothing more is said when the worker is done.
                let says = says;
                let listener = |told: &Told<'_>| {
                    let line = match is_json {
                        true => Output::json_line(&json_of(told)).unwrap_or_default(),
                        false => line_of(told),
                    };
                    // Nobody to hear it does not keep it from working.
                    let _ = says.send(line);
                };
                worker.run(&quit, &listener)
            });
            let mut is_heard = true;
            for line in said {
                is_heard = is_heard && out.line(line).and_then(|()| out.flush()).is_ok();
            }
            working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok(())
    }

    /// The projects to work on, each opened.
    fn sites(
        &self,
        context: &Context,
        home: &Path,
        surroundings: &Surroundings,
    ) -> Result<Vec<Site>> {
        let known = context.user()?.projects;
        let wanted: Vec<Wanted> = match self.projects.as_slice() {
            [] => match context.place() {
                Ok(place) => vec![Wanted::There(place)],
                Err(_) if !known.is_empty() => {
                    known.iter().map(|(name, rules)| Wanted::Known(name, rules)).collect()
                }
                Err(error) => return Err(error),
            },
            named => {
                let find = |named: &'_ String| match known.get_key_value(named) {
                    Some((name, rules)) => Ok(Wanted::Known(name, rules)),
                    None => Ok(Wanted::There(Place::find(Path::new(named), home)?)),
                };
                named.iter().map(find).collect::<Result<_>>()?
            }
        };
        let mut sites: Vec<Site> = Vec::new();
        for wanted in wanted {
            let site = wanted.open(home, surroundings)?;
            if !sites.iter().any(|known| known.place == site.place) {
                sites.push(site);
            }
        }
        Ok(sites)
    }

    fn plan(&self, first: &Project, own: Option<String>) -> Result<WorkerPlan> {
        let named = self.agent.clone().or_else(|| std::env::var(AGENT_VARIABLE).ok());
        let named = named.filter(|agent| !agent.is_empty());
        let rules = first.rules();
        // What may do everything is named by who has it, not by who wants it.
        let of_project = rules.session.agent.clone().filter(|agent| {
            self.permissions.is_some()
                || rules.agent(agent).is_ok_and(|agent| agent.permissions != Permissions::Full)
        });
        let no_agent = || {
            let message = "no agent is named, by --agent, HOOKLOOP_AGENT or the configuration";
            CliError::usage(message).hint("hookloop worker --agent claude")
        };
        let agent = named.or(of_project).or(own).ok_or_else(no_agent)?;
        Ok(WorkerPlan {
            name: self.name.clone().unwrap_or_else(default_name),
            machine: machine(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: self.jobs,
            agent,
            model: self.model.clone(),
            permissions: self.permissions.clone(),
            types: self.types.clone(),
            labels: self.labels.clone(),
            lease: Duration::from_millis(self.lease),
            drain: Duration::from_millis(self.drain),
            merges: !self.no_merge,
            until_idle: self.until_idle,
        })
    }
}

/// A project that somebody wants to be worked on.
enum Wanted<'a> {
    There(Place),
    Known(&'a str, &'a ProjectRules),
}

impl Wanted<'_> {
    fn open(self, home: &Path, surroundings: &Surroundings) -> Result<Site> {
        let name = match self {
            Wanted::There(_) => "",
            Wanted::Known(name, _) => name,
        };
        let (place, weight, source) = match self {
            Wanted::There(place) => (place, 1, None),
            Wanted::Known(_, ProjectRules { home: ProjectHome::Here(path), weight }) => {
                (Place::find(path, home)?, *weight, None)
            }
            Wanted::Known(name, ProjectRules { home: ProjectHome::Repository(source), weight }) => {
                (Place::of_copy(home, name), *weight, Some(source.clone()))
            }
        };
        let mut surroundings = surroundings.clone();
        if let Some(source) = &source {
            surroundings.cloned_from = Some(source.url.clone());
            surroundings
                .user()?
                .policy
                .check_project(&place.root, Some(&source.url))
                .map_err(EngineError::from)?;
            let failed = |error: RepoError| CliError::system(format!("{name}: {error}"));
            check_out(&place, source, &surroundings, &Cancel::new()?).map_err(failed)?;
        }
        let project = Project::open(&place, &actor(), &surroundings)?;
        project.tend()?;
        Ok(Site { project, place, weight, source, surroundings })
    }
}

/// The machine's name and the program's number.
fn default_name() -> WorkerName {
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let machine: String = machine().chars().filter(fits).take(40).collect();
    let name = format!("{}-{}", machine.trim_matches('-'), std::process::id());
    name.parse().unwrap_or_else(|_| TaskId::generate(hookloop_core::id::EventId([0; 16])))
}

fn lease(text: &str) -> std::result::Result<u64, String> {
    let ms = length(text)?;
    match (LEASE_MIN_MS..=LEASE_MAX_MS).contains(&ms) {
        true => Ok(ms),
        false => {
            let (least, most) = (Length { ms: LEASE_MIN_MS }, Length { ms: LEASE_MAX_MS });
            Err(format!("a lease is {least} to {most}"))
        }
    }
}

/// The first signal has the worker finish, the second has it give back what it has, the third ends the program.
fn heed_signals() -> Result<Quit> {
    let quit = Quit { drain: Cancel::new()?, now: Cancel::new()? };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let of_thread = quit.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            match count {
                0 => of_thread.drain.trigger(),
                1 => of_thread.now.trigger(),
                _ => std::process::exit(CANCELLED),
            }
        }
    })?;
    Ok(quit)
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "worker", rename_all = "snake_case")]
enum ToldJson<'a> {
    Took {
        project: &'a str,
        task: &'a str,
        session: &'a str,
        resumed: bool,
    },
    Ended {
        project: &'a str,
        task: &'a str,
        session: &'a str,
        outcome: &'a str,
        reason: Option<String>,
    },
    Arrived {
        project: &'a str,
        #[serde(flatten)]
        arrival: ArrivalJson<'a>,
    },
    Expired {
        project: &'a str,
        task: &'a str,
        agent: &'a str,
    },
    State {
        state: &'static str,
    },
    Unfit {
        project: &'a str,
        reason: Option<&'a str>,
    },
    Trouble {
        project: Option<&'a str>,
        reason: &'a str,
    },
}

fn end_words(end: &End) -> (&str, Option<String>) {
    use hookloop_core::session::Outcome;
    match end {
        End::Outcome(outcome) => {
            let reason = match outcome {
                Outcome::NeedsHuman { reason } => Some(reason.clone()),
                Outcome::Limit { limit } => Some(limit.name().to_owned()),
                _ => None,
            };
            (outcome.name(), reason)
        }
        End::Taken => ("taken", None),
        End::Trouble(why) => ("trouble", Some(why.clone())),
    }
}

fn json_of<'a>(told: &'a Told<'a>) -> ToldJson<'a> {
    match told {
        Told::Took { project, task, session, is_resumed } => ToldJson::Took {
            project,
            task: task.as_str(),
            session: session.as_str(),
            resumed: *is_resumed,
        },
        Told::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let (task, session) = (task.as_str(), session.as_str());
            ToldJson::Ended { project, task, session, outcome, reason }
        }
        Told::Arrived { project, arrival } => {
            ToldJson::Arrived { project, arrival: ArrivalJson::from(*arrival) }
        }
        Told::Expired { project, task, agent } => {
            ToldJson::Expired { project, task: task.as_str(), agent }
        }
        Told::State(state) => ToldJson::State { state: state.name() },
        Told::Unfit { project, why } => ToldJson::Unfit { project, reason: *why },
        Told::Trouble { project, why } => ToldJson::Trouble { project: *project, reason: why },
    }
}

fn line_of(told: &Told<'_>) -> String {
    let line = match told {
        Told::Took { project, task, session, is_resumed } => {
            let verb = if *is_resumed { "goes on with" } else { "took" };
            format!("{project}: {verb} {task} (session {session})")
        }
        Told::Ended { project, task, session, end } => {
            let (outcome, reason) = end_words(end);
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            format!("{project}: {task} {outcome}{reason} (session {session})")
        }
        Told::Arrived { project, arrival } => format!("{project}: {arrival}"),
        Told::Expired { project, task, agent } => {
            format!("{project}: {task} is ready again: {agent} was silent for its lease")
        }
        Told::State(WorkerState::Working) => "working".to_owned(),
        Told::State(state) => format!("{}: nothing new is begun", state.name()),
        Told::Unfit { project, why: Some(why) } => format!("{project}: takes nothing: {why}"),
        Told::Unfit { project, why: None } => format!("{project}: takes tasks again"),
        Told::Trouble { project: Some(project), why } => format!("{project}: {why}"),
        Told::Trouble { project: None, why } => why.clone(),
    };
    let line = plain(&line).to_string();
    match told {
        Told::Trouble { .. } => format!("{DIM}{line}{DIM:#}"),
        _ => line,
    }
}
