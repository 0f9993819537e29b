//! `hookloop agents trust`

use hookloop_agents::repo_consent;
use hookloop_engine::gate_agreement::agree_to_agents;
use hookloop_engine::log_location::AfterLoss;
use hookloop_hooks::trust::{HookDefinition, Trust};
use serde_json::json;

use super::super::hooks::trust::{ask, compare};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::CommandOutput;

/// Review and trust the agent files of this repository
///
/// Before you trust them, hookloop does not start agents that the repository defines, and does not apply the hooks,
/// servers and permissions that it contains for an agent (.claude/settings.json, .mcp.json, opencode.json, .gemini).
/// You trust content: after a change, trust it again. hookloop does not inspect the programs that these files start.
#[derive(clap::Args)]
pub(crate) struct AgentTrustArgs {
    /// Trust without asking
    #[arg(long, conflicts_with = "show")]
    yes: bool,

    /// Show the files to trust, and change nothing
    #[arg(long)]
    show: bool,
}

impl AgentTrustArgs {
    /// Whether the command may change the trusted content.
    pub(in crate::cli) fn trusts(&self) -> bool {
        !self.show
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let place = context.place()?;
        place.prepare()?;
        let settings = hookloop_config::project_file::settings(&place.config(), &context.user()?)?;
        let found = repo_consent::all(&place.root, &settings.rules)?;
        let mut trust = Trust::load(&place.state)?;
        let is_new = found.as_slice() != trust.agents();
        let out = &mut context.out;
        if !out.json {
            screen(out, &trust, &found)?;
        }
        let agreed = match (self.show, self.yes) {
            (true, _) => false,
            (_, true) => true,
            _ if !is_new => false,
            _ => ask(
                out,
                "the agent files of this repository",
                "Let agents load these files from now on? (Read them first.)",
                |error| error.hint("hookloop agents trust --yes"),
            )?,
        };
        if agreed {
            let log = context.log_alone(AfterLoss::Refuse)?;
            agree_to_agents(&log, &mut trust, found.clone())?;
        }
        let out = &mut context.out;
        if out.json {
            return out.json(&json!({ "trusted": agreed || !is_new, "agents": found }));
        }
        match (agreed, is_new) {
            (true, _) => out.line("Trusted"),
            (false, true) if !self.show => Err(CliError::refused("nothing was trusted")),
            _ => Ok(()),
        }
    }
}

fn screen(out: &mut CommandOutput, trust: &Trust, found: &[HookDefinition]) -> CliResult {
    if found.is_empty() {
        return out.line("This repository has no agent files that need trust.");
    }
    compare(out, trust.agents(), &found.iter().collect::<Vec<_>>(), &mut |_, _| Vec::new())
}
