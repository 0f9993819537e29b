//! `hookloop agents list`

use hookloop_agents::AgentPowers;
use hookloop_agents::repo_consent::{AgentChoices, AgentRefusal, fit};
use hookloop_config::agents::AgentSettings;
use hookloop_config::agents::profile::AGENT_PROFILES;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::hook::HookSource;
use serde_json::json;

use super::super::session::runner;
use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{BOLD, DIM, TableCell};
use crate::sanitize::plain;

/// Returns the configured agents, then the other agents that hookloop knows.
pub(in crate::cli) fn names(rules: &EffectiveConfig) -> Vec<&str> {
    let is_new = |name: &&str| rules.agents.iter().all(|settings| settings.name != **name);
    let known = AGENT_PROFILES.iter().map(|known| known.name).filter(is_new);
    rules.agents.iter().map(|settings| settings.name.as_str()).chain(known).collect()
}

/// List agents with their state and permissions
#[derive(clap::Args)]
pub(crate) struct AgentListArgs {}

impl AgentListArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let rules = project.rules();
        let runner = runner(&project)?;
        let names = names(rules);
        let lines: Vec<_> = names
            .iter()
            .map(|name| {
                (
                    *name,
                    rules.agent(name),
                    fit(rules, name, &AgentChoices::default(), runner.ground()),
                )
            })
            .collect();
        let out = &mut context.out;
        if out.json {
            let all: Vec<_> = lines
                .iter()
                .map(|(name, settings, fit)| {
                    // `fit` has the error of settings that are wrong.
                    let settings = settings.as_ref().ok();
                    json!({
                        "name": name,
                        "type": settings.and_then(|settings| settings.base),
                        "source": settings.map(source),
                        "model": settings.and_then(|settings| settings.model.clone()),
                        "permissions": settings.map(|settings| settings.permissions.name()),
                        "allowed_tools": settings.map(|settings| settings.allowed_tools.clone()),
                        "ready": fit.is_ok(),
                        "reason": fit.as_ref().err().map(ToString::to_string),
                        "ignored": fit.as_ref().map_or(&[][..], |fit| &fit.ignored[..]),
                    })
                })
                .collect();
            return out.json(&all);
        }
        let rows: Vec<_> = lines
            .iter()
            .map(|(name, settings, fit)| {
                let state = match fit {
                    Ok(_) => "ready",
                    Err(AgentRefusal::Missing { .. }) => "not installed",
                    Err(AgentRefusal::Forbidden(_)) => "not allowed",
                    Err(AgentRefusal::Undefined(_) | AgentRefusal::Brought { .. }) => "not trusted",
                    Err(_) => "unusable",
                };
                let powers = match (settings, fit) {
                    (Ok(settings), Ok(_)) => format!("may {}", AgentPowers(settings)),
                    (_, Err(why)) => why.to_string(),
                    (Err(why), Ok(_)) => why.to_string(),
                };
                vec![
                    TableCell::new(plain(name)).style(BOLD),
                    TableCell::new(settings.as_ref().map_or("", source)),
                    TableCell::new(state),
                    TableCell::new(plain(&powers)).style(DIM),
                ]
            })
            .collect();
        out.table(&["name", "", "", ""], &rows)
    }
}

fn source(settings: &AgentSettings) -> &'static str {
    match settings.source {
        HookSource::Builtin => "known",
        HookSource::Operator => "operator",
        HookSource::User => "yours",
        HookSource::Project => "project",
    }
}
