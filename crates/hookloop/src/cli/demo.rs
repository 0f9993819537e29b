//! `hookloop demo`

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hookloop_config::paths::ProjectPaths;
use hookloop_core::session::{ConversationPolicy, SessionWork};
use hookloop_engine::gate_agreement::HookConsent;
use hookloop_engine::log_location::{AfterLoss, LaunchContext};
use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::CheckoutUse;
use hookloop_engine::session::open::{self, SessionRequest};
use hookloop_engine::session::stop_switch::StopSwitch;

use super::session::{self, SessionStage, runner};
use crate::cli::context::CommandContext;
use crate::environment::{machine, surroundings};
use crate::error::CliResult;
use crate::output::{BOLD, DIM};

/// The files of the demo's project.
const FILES: [(&str, &str); 4] = [
    ("hookloop.yaml", include_str!("demo/hookloop.yaml")),
    ("sum.sh", include_str!("demo/sum.sh")),
    ("test.sh", include_str!("demo/test.sh")),
    ("turns.json", include_str!("demo/turns.json")),
];

/// Show in seconds how a gate rejects unfinished work
///
/// The demo works offline, in a temporary directory. A scripted agent reports that it is done while a test fails. The
/// gate returns the failure to the agent, the agent fixes it, and the gate passes.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the temporary directory
    #[arg(long)]
    keep: bool,
}

impl DemoArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let directory = tempfile::Builder::new().prefix("hookloop-demo-").tempdir()?;
        let root = directory.path().join("project");
        fs::create_dir(&root)?;
        let root = root.canonicalize()?;
        prepare(&root)?;
        let done = show(context, &root, &directory.path().join("state"));
        if self.keep {
            let kept = directory.keep();
            context.out.line(format_args!("{DIM}kept {}{DIM:#}", kept.display()))?;
        }
        done
    }
}

fn prepare(root: &Path) -> CliResult {
    for (name, text) in FILES {
        fs::write(root.join(name), text)?;
    }
    // Without git the demo continues, and its receipts have no tree.
    let mut git = Command::new("git");
    git.args(["init", "--quiet"]).current_dir(root).stdout(Stdio::null()).stderr(Stdio::null());
    match git.status() {
        Ok(status) => tracing::debug!(%status, "`git init` ended"),
        Err(error) => tracing::warn!(%error, "git does not run"),
    }
    Ok(())
}

fn show(context: &mut CommandContext, root: &Path, state: &Path) -> CliResult {
    let place = ProjectPaths::at(root, state);
    place.prepare()?;
    let around = LaunchContext { store: None, user_file: None, ..surroundings()? };
    trust(&place, &around)?;
    let project = Project::open(&place, crate::environment::caller(&place), &around)?;
    if !context.out.json {
        let out = &mut context.out;
        out.line(format_args!(
            "{BOLD}The project{BOLD:#}: sum.sh adds two numbers, wrongly; test.sh tests it"
        ))?;
        out.line(format_args!(
            "{BOLD}The gate{BOLD:#}: `stop` runs test.sh whenever the agent reports that it is done"
        ))?;
        out.line("")?;
    }
    let request = SessionRequest {
        name: Some("demo".to_owned()),
        work: SessionWork::Prompt("Make the tests of sum.sh pass".to_owned()),
        agent: "scripted:turns.json".to_owned(),
        fallback: None,
        conversation: ConversationPolicy::default(),
        promises: Vec::new(),
        model: None,
        permissions: None,
        stop_when: None,
        at_retry_limit: None,
        limits: project.rules().limits.session,
        machine: machine(),
        no_changes_ok: false,
        may_change: Vec::new(),
        worker: None,
        checkout: CheckoutUse::default(),
    };
    let opened = open::start(&project, runner(&project)?, request)?;
    let stage = SessionStage { config: &place.config(), stop: StopSwitch::new()?, showing: None };
    let session = session::drive(context, &project, &opened, stage)?;
    context.exit = session::exit_code(&session);
    if !context.out.json {
        let out = &mut context.out;
        out.line("")?;
        out.line("The receipt proves the work; the agent's report does not. In your own project:")?;
        out.line(format_args!("  {DIM}run:{DIM:#} hookloop init"))?;
    }
    project.leave();
    Ok(())
}

/// The demo's hooks are part of hookloop.
fn trust(place: &ProjectPaths, around: &LaunchContext) -> CliResult {
    let user = around.user()?;
    let settings = hookloop_config::project_file::settings(&place.config(), &user)?;
    let log =
        Project::open_log(place, crate::environment::caller(place), around, AfterLoss::Refuse)?;
    HookConsent::look(&place.root, &place.state, &settings.rules)?.agree(&log)?;
    log.leave();
    Ok(())
}
