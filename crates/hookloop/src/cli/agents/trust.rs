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

/// Look at what this repository defines and brings for agents, and agree to it
///
/// Agents that the repository defines are not started, and hooks, servers and permissions that it brings
/// for an agent (.claude/settings.json, .mcp.json, opencode.json, .gemini) are not heeded, before you agree.
/// What you agree to is content: a change has to be agreed to again. Programs that these files start are not
/// looked into.
#[derive(clap::Args)]
pub(crate) struct AgentTrustArgs {
    /// Agree without a question
    #[arg(long, conflicts_with = "show")]
    yes: bool,

    /// Show what there is to agree to, and nothing else
    #[arg(long)]
    show: bool,
}

impl AgentTrustArgs {
    /// Whether it may agree to something.
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
                "what this repository has for agents",
                "Let agents heed these from now on? (Read the files first.)",
                "hookloop agents trust --yes",
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
            (false, true) if !self.show => Err(CliError::refused("nothing was agreed to")),
            _ => Ok(()),
        }
    }
}

fn screen(out: &mut CommandOutput, trust: &Trust, found: &[HookDefinition]) -> CliResult {
    if found.is_empty() {
        return out.line("This repository has nothing for agents that has to be agreed to.");
    }
    compare(out, trust.agents(), &found.iter().collect::<Vec<_>>(), &mut |_, _| Vec::new())
}
