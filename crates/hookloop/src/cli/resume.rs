//! `hookloop resume`

use hookloop_engine::project::Project;
use hookloop_engine::session::open;
use hookloop_engine::session::real::Stop;

use super::session::{self, runner};
use super::{Context, machine};
use crate::output::{DIM, Result};

/// Go on with a session that was paused or interrupted: the last one, or the one that is named
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its id, the start of it, or its name
    session: Option<String>,

    /// Go on although the hooks are not those that it began with
    #[arg(long)]
    with_changed_hooks: bool,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project()?;
        let runner = runner(&project)?;
        let wanted = self.session.as_deref();
        let opened = open::resume(&project, runner, wanted, self.with_changed_hooks, &machine())?;
        session::perform(context, &project, &opened)
    }
}

/// Sessions whose program died get the end that they have not had.
pub(super) fn end_interrupted(context: &mut Context, project: &Project) -> Result {
    let config = context.place()?.config();
    for opened in open::interrupted(project, runner(project)?)? {
        if !context.out.json {
            let id = &opened.id;
            context
                .out
                .line(format_args!("{DIM}session {id} was interrupted; it ends now{DIM:#}"))?;
        }
        session::drive(context, project, &opened, &config, Stop::new()?)?;
    }
    Ok(())
}
