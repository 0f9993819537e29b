//! The agents of a session, each opened when it is needed.

use std::collections::BTreeMap;

use hookloop_config::agents::AgentSettings;
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::price::TokenPrice;
use hookloop_core::session::{AgentFault, SessionPlan};
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::secrets::SecretError;
use hookloop_hooks::trust::AgentGround;

use super::readiness::check_ready;
use super::repo_consent::{self, AgentChoices, AgentRefusal, AllowedAgent};
use super::{Agent, BadAgent, CommandAccess, NoAgent};

/// The agents of a session by name: the first one and its fallbacks.
#[derive(Clone, Debug)]
pub struct AgentNames {
    pub agent: String,
    /// The model and the permissions of the first agent. Its fallbacks get no more permissions.
    pub wanted: AgentChoices,
    /// The agents that follow if the first one keeps failing.
    pub fallback: Vec<String>,
}

impl From<&SessionPlan> for AgentNames {
    fn from(plan: &SessionPlan) -> AgentNames {
        let wanted =
            AgentChoices { model: plan.model.clone(), permissions: plan.permissions.clone() };
        let fallback = plan.fallback.iter().flat_map(|fallback| fallback.agents.clone());
        AgentNames { agent: plan.agent.clone(), wanted, fallback: fallback.collect() }
    }
}

impl AgentNames {
    /// Returns the agents that may be started, in order. If one of them may not, returns the reason.
    pub fn muster(
        &self,
        rules: &EffectiveConfig,
        ground: AgentGround<'_>,
    ) -> Result<Vec<(&str, AllowedAgent)>, AgentRefusal> {
        let fallback = self.fallback.iter().map(String::as_str);
        let names = std::iter::once(self.agent.as_str()).chain(fallback);
        names.map(|name| Ok((name, self.fit(rules, name, ground)?))).collect()
    }

    fn fit(
        &self,
        rules: &EffectiveConfig,
        name: &str,
        ground: AgentGround<'_>,
    ) -> Result<AllowedAgent, AgentRefusal> {
        if name == self.agent {
            return repo_consent::fit(rules, name, &self.wanted, ground);
        }
        let of_first = match &self.wanted.permissions {
            Some(word) => word.parse().map_err(|_| AgentRefusal::Permissions(word.clone()))?,
            None => rules.agent(&self.agent)?.permissions,
        };
        let permissions = rules.agent(name)?.permissions.min(of_first);
        let permissions = Some(permissions.name().to_owned());
        repo_consent::fit(rules, name, &AgentChoices { model: None, permissions }, ground)
    }
}

/// The agents of a session, opened as they are needed.
#[expect(missing_debug_implementations, reason = "an agent has none")]
pub struct AgentChain {
    rules: EffectiveConfig,
    roll: AgentNames,
    opened: BTreeMap<String, (AllowedAgent, Box<dyn Agent>)>,
    /// Files that an agent ignores now and did not ignore when it was opened.
    news: Vec<String>,
    /// No agent is asked for a turn any more.
    is_empty: bool,
}

impl AgentChain {
    pub fn new(rules: &EffectiveConfig, plan: &SessionPlan) -> AgentChain {
        let (rules, roll, opened) = (rules.clone(), AgentNames::from(plan), BTreeMap::new());
        AgentChain { rules, roll, opened, news: Vec::new(), is_empty: false }
    }

    /// Returns a agents for a session that takes no more turns.
    pub fn nobody(rules: &EffectiveConfig, plan: &SessionPlan) -> AgentChain {
        AgentChain { is_empty: true, ..AgentChain::new(rules, plan) }
    }

    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns the agent of that name. The repository's files for it are checked each time.
    pub fn agent(&mut self, name: &str, runner: &HookRunner) -> Result<&mut dyn Agent, CrewError> {
        let fit = match self.is_empty {
            true => {
                let settings =
                    AgentSettings::of_known(&hookloop_config::agents::profile::AGENT_PROFILES[0]);
                AllowedAgent { settings, ignored: Vec::new() }
            }
            false => self.roll.fit(&self.rules, name, runner.ground())?,
        };
        // From here on the redactor removes these secrets from the agent's output.
        runner.secrets(fit.settings.named.iter().map(String::as_str))?;
        let is_opened = self.opened.get(name).is_some_and(|(known, _)| *known == fit);
        if !is_opened && !self.is_empty {
            check_ready(&fit.settings, runner).map_err(AgentRefusal::from)?;
        }
        let known = self.opened.remove(name);
        let agent = match known {
            Some((known, agent)) if known == fit => agent,
            known => {
                let before = known.map_or_else(|| fit.ignored.clone(), |(known, _)| known.ignored);
                let is_new = |file: &&String| !before.contains(file);
                self.news.extend(fit.ignored.iter().filter(is_new).cloned());
                match self.is_empty {
                    true => Box::new(NoAgent),
                    false => super::open(fit.settings.clone(), runner.home())?,
                }
            }
        };
        Ok(&mut *self.opened.entry(name.to_owned()).or_insert((fit, agent)).1)
    }

    /// Returns the commands that an agent may run; `None` if hookloop does not know.
    pub fn command_access(&self, name: &str, runner: &HookRunner) -> Option<CommandAccess> {
        if self.is_empty {
            return None;
        }
        CommandAccess::of(&self.roll.fit(&self.rules, name, runner.ground()).ok()?.settings)
    }

    /// Returns the token price of an agent, if the user's file has one.
    pub fn price(&self, name: &str) -> Option<TokenPrice> {
        let configured = self.rules.agent(name).ok().and_then(|settings| settings.model);
        let wanted = self.roll.wanted.model.clone().filter(|_| name == self.roll.agent);
        self.rules.price(name, wanted.or(configured).as_deref())
    }

    /// Returns the repository files that an agent read before and ignores now, each once.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }
}

/// Why no agent can take a turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrewError {
    #[error(transparent)]
    Unfit(#[from] AgentRefusal),
    #[error(transparent)]
    Bad(#[from] BadAgent),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl CrewError {
    /// Returns the fault that no further turn removes, if the error is one.
    pub fn fault(&self) -> Option<AgentFault> {
        match self {
            CrewError::Unfit(unfit) => unfit.fault(),
            CrewError::Bad(_) | CrewError::Secret(_) => None,
        }
    }
}
