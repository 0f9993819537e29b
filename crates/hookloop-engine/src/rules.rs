//! What the configuration and the user's switches amount to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::hook::{DeclaredAction, Registry};

#[derive(Clone, Debug)]
pub struct Rules {
    pub hooks: Registry,
    pub workflows: BTreeMap<String, Vec<DeclaredAction>>,
    pub limits: CascadeLimits,
    pub types: BTreeMap<String, TypeRules>,
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
            limits: CascadeLimits::default(),
            types: BTreeMap::new(),
        }
    }
}

impl Rules {
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
