//! `hookloop resume`

use hookloop_core::id::SessionId;
use hookloop_engine::project::Project;
use hookloop_engine::session::checkout::in_worktree;
use hookloop_engine::session::open;
use hookloop_engine::session::real::Stop;

use super::session::{self, Look, Stage, runner};
use super::{Context, machine, traces};
use crate::logs::LogArgs;
use crate::output::{DIM, Result};

/// Go on with a session that was paused or interrupted: the last one, or the one that is named
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its id, the start of it, or its name
    session: Option<String>,

    /// Use the current hooks and scripts, not those that it began with
    #[arg(long)]
    with_changed_hooks: bool,

    /// Go on although another machine has it
    #[arg(long)]
    take_over: bool,

    /// Work in this directory although another session is live there
    #[arg(long)]
    share_checkout: bool,

    /// Print lines on a terminal, too, instead of a screen
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    log: LogArgs,
}

impl Args {
    /// Goes on with a session under the rules that it had.
    pub(super) fn of(id: &SessionId) -> Args {
        let session = Some(id.to_string());
        Args {
            session,
            with_changed_hooks: false,
            take_over: false,
            share_checkout: false,
            plain: false,
            log: LogArgs::default(),
        }
    }

    pub(crate) fn run(self, context: &mut Context) -> Result {
        context.log = self.log.logger(&context.out)?;
        let project = context.project()?;
        let project = traces::begin(context, project)?;
        let runner = runner(&project)?;
        let wanted = self.session.as_deref();
        let Args { with_changed_hooks, take_over, share_checkout, plain, .. } = self;
        let how = open::Resume { with_changed_hooks, take_over, share_checkout };
        let stop = session::heed_signals()?;
        let opened = open::resume(&project, runner, wanted, how, &machine())?;
        session::worktree::perform_where_it_works(
            context,
            &project,
            &opened,
            stop,
            Look::new(plain),
        )
    }
}

/// Sessions whose program died get the end that they have not had.
pub(super) fn end_interrupted(context: &mut Context, project: &Project, stop: &Stop) -> Result {
    let config = context.place()?.config();
    for opened in open::interrupted(project, runner(project)?)? {
        if !context.out.json && context.log.is_none() {
            let id = &opened.id;
            context
                .out
                .line(format_args!("{DIM}session {id} was interrupted; it ends now{DIM:#}"))?;
        }
        let stage = Stage { config: &config, stop: stop.clone(), showing: None };
        // Its session_end runs in its own worktree, if that can still be entered.
        let runner = runner(project)?;
        let moved = in_worktree(project, runner, &opened, stop.cancel()).ok().flatten();
        let project = moved.as_ref().map_or(project, |(project, _)| project);
        session::drive(context, project, &opened, stage)?;
    }
    Ok(())
}
