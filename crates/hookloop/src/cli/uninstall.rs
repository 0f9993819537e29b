//! `hookloop uninstall`

use super::hooks::trust::ask;
use super::install::{ScopeArgs, agent_of, conclude, outcome, screen};
use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::native::plan;
use crate::native::record::InstallRecords;

/// Remove hookloop's hooks from an agent's settings
///
/// Files that did not change since `hookloop install` are restored byte for byte. From other files, the command removes
/// exactly hookloop's entries.
#[derive(clap::Args)]
pub(crate) struct UninstallArgs {
    /// Agent: claude, codex or gemini
    agent: String,

    #[command(flatten)]
    scope: ScopeArgs,

    /// Write without asking
    #[arg(short, long)]
    yes: bool,
}

impl UninstallArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let agent = agent_of(&self.agent)?;
        let ground = self.scope.ground(context, agent)?;
        let mut records = InstallRecords::load(&state_home()?);
        let plan = plan::uninstall(&ground, &records)?;
        let out = &mut context.out;
        screen(out, &plan)?;
        let name = agent.name();
        let scope = ground.scope.name();
        if !plan.changes.is_empty() && !self.yes {
            let hint = format!("hookloop uninstall {name} --{scope} --yes");
            let what = format!("these changes for {name}");
            if !ask(out, &what, "Write these changes?", |error| error.hint(hint))? {
                return Err(CliError::refused("nothing was written"));
            }
        }
        plan::perform(&plan, &mut records, &state_home()?)?;
        match (out.json, plan.changes.is_empty()) {
            (true, _) => out.json(&outcome(&ground, &plan)),
            (false, true) => {
                out.line(format_args!("hookloop is not installed for {name} ({scope})"))
            }
            (false, false) => conclude(out, &plan),
        }
    }
}
