//! The configuration in effect for a project: all files, and the hooks that the user enabled or disabled.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hookloop_core::delivery::MergeMethod;
use hookloop_core::hook::{DeclaredAction, HookRegistry, HookSource};
use hookloop_core::price::TokenPrice;
use hookloop_core::session::{AgentFallback, AtRetryLimit, ConversationPolicy, StopWhen};
use hookloop_core::slots::WipLimits;
use hookloop_core::urgency::PriorityAging;

use crate::agents::{AgentSettings, NoSuchAgent};
use crate::limits::LimitSettings;
use crate::policy::PolicySet;

#[derive(Clone, Debug)]
pub struct EffectiveConfig {
    pub hooks: HookRegistry,
    pub workflows: BTreeMap<String, Vec<DeclaredAction>>,
    pub limits: LimitSettings,
    /// The session limits that the project's file sets, by name.
    pub set_limits: BTreeMap<String, u64>,
    /// The project's file has wider limits than the user allows.
    pub is_limited: bool,
    pub types: BTreeMap<String, TypeRules>,
    pub session: SessionRules,
    /// The agents with settings of the user or the project.
    pub agents: Vec<AgentSettings>,
    /// `None` in a project whose tasks are done in the user's checkout.
    pub delivery: Option<DeliveryRules>,
    pub gatekeepers: Vec<GatekeeperRules>,
    /// The policies, which override everything else.
    pub policy: PolicySet,
    pub scheduling: SchedulingRules,
    /// Hooks whose declared actions need a person's trust and do not have it.
    pub untrusted_actions: BTreeSet<String>,
    /// The user's own file turns gates off.
    pub wants_no_gates: bool,
    /// Prices of tokens from the user's own file, by model or agent.
    pub prices: BTreeMap<String, TokenPrice>,
}

impl EffectiveConfig {
    /// Returns the token price of an agent: of its model, else of its name.
    pub fn price(&self, agent: &str, model: Option<&str>) -> Option<TokenPrice> {
        let of_model = model.and_then(|model| self.prices.get(model));
        of_model.or_else(|| self.prices.get(agent)).copied()
    }
}

/// Priority aging, and limits of work in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulingRules {
    pub priority_aging: PriorityAging,
    pub slots: WipLimits,
}

/// The settings of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRules {
    pub stop_when: Vec<StopWhen>,
    pub at_retry_limit: AtRetryLimit,
    /// A file with the template for prompts.
    pub prompt_template: Option<String>,
    /// The default agent.
    pub agent: Option<String>,
    pub fallback: Option<AgentFallback>,
    pub conversation: ConversationPolicy,
}

impl Default for SessionRules {
    fn default() -> Self {
        SessionRules {
            stop_when: vec![StopWhen::Default],
            at_retry_limit: AtRetryLimit::default(),
            prompt_template: None,
            agent: None,
            fallback: None,
            conversation: ConversationPolicy::default(),
        }
    }
}

/// The settings of delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRules {
    /// The branch that work is for [default: the remote's default branch].
    pub base: Option<String>,
    /// The remote [default: `origin`, if there is one].
    pub remote: Option<String>,
    /// The prefix of task branches.
    pub branch_prefix: String,
    /// Ignored files that a task's worktree also gets.
    pub copy: Vec<String>,
    pub forge: ForgeName,
    pub method: MergeMethod,
    pub draft: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
    /// Whether a merge waits until the forge's checks have passed.
    pub wait_for_checks: bool,
    /// Whether the forge merges by itself when its requirements are met.
    pub auto_merge: bool,
    pub delete_branch: bool,
}

impl Default for DeliveryRules {
    fn default() -> Self {
        DeliveryRules {
            base: None,
            remote: None,
            branch_prefix: "hookloop/".to_owned(),
            copy: Vec::new(),
            forge: ForgeName::Auto,
            method: MergeMethod::default(),
            draft: false,
            labels: Vec::new(),
            reviewers: Vec::new(),
            wait_for_checks: true,
            auto_merge: false,
            delete_branch: true,
        }
    }
}

/// The forge of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeName {
    /// GitHub if the remote is on GitHub, else none.
    Auto,
    GitHub,
    /// No forge: only branches.
    None,
}

/// An agent that reviews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatekeeperRules {
    pub name: String,
    /// The agent, if it is named.
    pub agent: Option<String>,
    /// The instructions for the review.
    pub prompt: String,
    pub model: Option<String>,
}

/// Returns the agent, the model and the instructions of the gatekeeper of that name; none of them if it is not defined.
pub(crate) fn terms_of(gatekeepers: &[GatekeeperRules], name: &str) -> String {
    let found = gatekeepers.iter().find(|gatekeeper| gatekeeper.name == name);
    let Some(GatekeeperRules { agent, prompt, model, .. }) = found else {
        return String::new();
    };
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    format!("{} {}: {prompt}", word(agent), word(model)).trim().to_owned()
}

/// The role of agents that do the work.
pub const IMPLEMENTER: &str = "implementer";
/// The role of agents that review.
pub(crate) const GATEKEEPER: &str = "gatekeeper";

/// The settings of a task type, beside its hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeRules {
    /// The agents that may work on the tasks, by role.
    pub agents: BTreeMap<String, Vec<String>>,
    /// A task of this type may be complete without a change of files.
    pub no_changes_ok: bool,
    /// Patterns of tests that work on a task of this type may change, from the top of the repository.
    pub may_change: Vec<String>,
}

/// An agent that a task type names and no file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAgent {
    pub task_type: String,
    pub role: String,
    pub agent: String,
}

impl MissingAgent {
    /// Returns the change of the configuration that defines the agent, or names another one.
    pub fn remedy(&self) -> String {
        let MissingAgent { task_type, role, agent } = self;
        format!(
            "write `agents: {{{agent}: {{type: claude}}}}` into hookloop.yaml, or another agent under \
             `task_types: {{{task_type}: {{agents: {{{role}: […]}}}}}}`"
        )
    }
}

impl Default for EffectiveConfig {
    fn default() -> Self {
        EffectiveConfig {
            hooks: HookRegistry::builtin(),
            workflows: BTreeMap::new(),
            limits: LimitSettings::default(),
            set_limits: BTreeMap::new(),
            is_limited: false,
            types: BTreeMap::new(),
            session: SessionRules::default(),
            agents: Vec::new(),
            delivery: None,
            gatekeepers: Vec::new(),
            policy: PolicySet::default(),
            scheduling: SchedulingRules::default(),
            untrusted_actions: BTreeSet::new(),
            wants_no_gates: false,
            prices: BTreeMap::new(),
        }
    }
}

impl EffectiveConfig {
    /// Returns the agents that may work on tasks of a type; `None` if any may.
    pub fn implementers(&self, kind: &str) -> Option<&[String]> {
        self.types.get(kind)?.agents.get(IMPLEMENTER).map(Vec::as_slice)
    }

    /// Returns a sentence about the agents for tasks of a type, with the next step; `None` if any agent may work on
    /// them.
    pub fn implementers_in_words(&self, kind: &str) -> Option<String> {
        let named = self.implementers(kind)?;
        let who = format!("tasks of type `{kind}` are for the implementer {}", quoted(named));
        let (defined, missing): (Vec<&String>, Vec<&String>) =
            named.iter().partition(|name| self.agent(name).is_ok());
        Some(match (defined.first(), missing.first()) {
            (Some(agent), _) => format!("{who}: `hookloop run --tasks --agent {agent}`"),
            (None, Some(agent)) => {
                let missing = MissingAgent {
                    task_type: kind.to_owned(),
                    role: IMPLEMENTER.to_owned(),
                    agent: (*agent).clone(),
                };
                format!("{who}, and no agent `{agent}` is defined: {}", missing.remedy())
            }
            (None, None) => {
                format!("nobody works on tasks of type `{kind}`: `implementer` is an empty list")
            }
        })
    }

    /// Returns each agent that a task type names and no file defines.
    pub fn missing_agents(&self) -> Vec<MissingAgent> {
        let mut missing = Vec::new();
        for (kind, rules) in &self.types {
            for (role, names) in &rules.agents {
                let unknown = names.iter().filter(|name| self.agent(name).is_err());
                missing.extend(unknown.map(|agent| MissingAgent {
                    task_type: kind.clone(),
                    role: role.clone(),
                    agent: agent.clone(),
                }));
            }
        }
        missing
    }

    /// Returns whether a task of this type may be complete without a change of files.
    pub fn allows_no_changes(&self, kind: Option<&str>) -> bool {
        kind.and_then(|kind| self.types.get(kind)).is_some_and(|rules| rules.no_changes_ok)
    }

    /// Returns the patterns of tests that work on a task of this type may change.
    pub fn may_change(&self, kind: Option<&str>) -> &[String] {
        let rules = kind.and_then(|kind| self.types.get(kind));
        rules.map_or(&[], |rules| rules.may_change.as_slice())
    }

    /// Returns the types that `worker` does not work on.
    pub fn types_closed_to(&self, worker: &str) -> Vec<String> {
        let is_closed = |kind: &&String| {
            let agents = self.implementers(kind);
            agents.is_some_and(|agents| !agents.iter().any(|agent| agent == worker))
        };
        self.types.keys().filter(is_closed).cloned().collect()
    }

    /// Returns the gatekeeper of that name. An undefined one has only a name.
    pub fn gatekeeper(&self, name: &str) -> GatekeeperRules {
        let defined = self.gatekeepers.iter().find(|gatekeeper| gatekeeper.name == name);
        defined.cloned().unwrap_or_else(|| GatekeeperRules {
            name: name.to_owned(),
            agent: None,
            prompt: String::new(),
            model: None,
        })
    }

    /// Returns the agents that review tasks of a type; `None` if any may.
    pub fn reviewers(&self, kind: Option<&str>) -> Option<&[String]> {
        self.types.get(kind?)?.agents.get(GATEKEEPER).map(Vec::as_slice)
    }

    /// Returns the agent of that name, with at most the permissions that the policy allows.
    pub fn agent(&self, name: &str) -> Result<AgentSettings, NoSuchAgent> {
        let mut settings = match self.agents.iter().find(|settings| settings.name == name) {
            Some(settings) => settings.clone(),
            None => AgentSettings::of_name(name)?,
        };
        if let Some(most) = self.policy.permissions() {
            settings.permissions = settings.permissions.min(most.value);
        }
        Ok(settings)
    }

    /// Returns the hooks with the user's switches applied. A switch of a missing hook, or of a gate that a policy
    /// requires, has no effect.
    pub fn switched(&self, switches: &[(String, bool)]) -> Cow<'_, HookRegistry> {
        if switches.is_empty() {
            return Cow::Borrowed(&self.hooks);
        }
        let mut hooks = self.hooks.clone();
        for (name, enabled) in switches {
            let hook = hooks.get_mut(name).filter(|hook| hook.source != HookSource::Operator);
            if let Some(hook) = hook {
                hook.enabled = *enabled;
            }
        }
        Cow::Owned(hooks)
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}
