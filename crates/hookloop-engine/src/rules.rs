//! What the configuration and the user's switches amount to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::hook::{DeclaredAction, Registry};
use hookloop_core::purse::Purse;
use hookloop_core::session::{self, AtRetryLimit, Conversation, Fallback, StopWhen};

use crate::agents::{NoSuchAgent, Settings};

#[derive(Clone, Debug)]
pub struct Rules {
    pub hooks: Registry,
    pub workflows: BTreeMap<String, Vec<DeclaredAction>>,
    pub limits: Limits,
    /// The project asks for wider limits than the user allows.
    pub is_limited: bool,
    pub types: BTreeMap<String, TypeRules>,
    pub session: Loop,
    /// The agents that the user and the project have settings for.
    pub agents: Vec<Settings>,
}

/// How sessions go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub stop_when: Vec<StopWhen>,
    pub at_retry_limit: AtRetryLimit,
    /// A file with the template for prompts.
    pub prompt: Option<String>,
    /// Who does the work where nobody is named.
    pub agent: Option<String>,
    pub fallback: Option<Fallback>,
    pub conversation: Conversation,
}

impl Default for Loop {
    fn default() -> Self {
        Loop {
            stop_when: vec![StopWhen::Default],
            at_retry_limit: AtRetryLimit::default(),
            prompt: None,
            agent: None,
            fallback: None,
            conversation: Conversation::default(),
        }
    }
}

/// What ends a run that does not end by itself. The user's are the widest that a project may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub cascade: CascadeLimits,
    pub session: session::Limits,
    /// Of all sessions together.
    pub purse: Purse,
}

impl Limits {
    /// These limits under a scope that allows `ceiling`: what is wider is what it allows.
    pub fn within(self, ceiling: Limits) -> Limits {
        Limits {
            cascade: self.cascade.within(ceiling.cascade),
            session: self.session.within(ceiling.session),
            purse: self.purse.within(ceiling.purse),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, cascade {}", self.session, self.cascade)?;
        match self.purse.is_none() {
            true => Ok(()),
            false => write!(f, ", purse {}", self.purse),
        }
    }
}

/// What is different for tasks of a type, beside their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeRules {
    /// Which agents may work on them, by role.
    pub agents: BTreeMap<String, Vec<String>>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            hooks: Registry::builtin(),
            workflows: BTreeMap::new(),
            limits: Limits::default(),
            is_limited: false,
            types: BTreeMap::new(),
            session: Loop::default(),
            agents: Vec::new(),
        }
    }
}

impl Rules {
    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Result<Settings, NoSuchAgent> {
        match self.agents.iter().find(|settings| settings.name == name) {
            Some(settings) => Ok(settings.clone()),
            None => Settings::of_name(name),
        }
    }

    /// The hooks with the switches applied; a switch for a hook that is gone means nothing.
    pub fn switched(&self, switches: &[(String, bool)]) -> Cow<'_, Registry> {
        if switches.is_empty() {
            return Cow::Borrowed(&self.hooks);
        }
        let mut hooks = self.hooks.clone();
        for (name, enabled) in switches {
            if let Some(hook) = hooks.get_mut(name) {
                hook.enabled = *enabled;
            }
        }
        Cow::Owned(hooks)
    }
}
