//! The agents of a session, each opened when it is needed.

use std::collections::BTreeMap;

use hookloop_core::session::Plan;

use super::repository::{self, Unfit, Wanted};
use super::{Agent, BadAgent, Nobody, Settings};
use crate::rules::Rules;
use crate::runner::Runner;

/// Who may take turns.
#[expect(missing_debug_implementations, reason = "an agent has none")]
pub struct Crew {
    rules: Rules,
    first: String,
    wanted: Wanted,
    opened: BTreeMap<String, (Settings, Box<dyn Agent>)>,
    /// Nobody is asked any more.
    is_empty: bool,
}

impl Crew {
    pub fn new(rules: &Rules, plan: &Plan) -> Crew {
        let wanted = Wanted { model: plan.model.clone(), permissions: plan.permissions.clone() };
        let (rules, first, opened) = (rules.clone(), plan.agent.clone(), BTreeMap::new());
        Crew { rules, first, wanted, opened, is_empty: false }
    }

    /// A crew of nobody.
    pub fn nobody(rules: &Rules, plan: &Plan) -> Crew {
        Crew { is_empty: true, ..Crew::new(rules, plan) }
    }

    /// The agent of that name. What the repository brings for it is looked at each time.
    pub fn agent(&mut self, name: &str, runner: &Runner) -> Result<&mut dyn Agent, CrewError> {
        if self.is_empty {
            let entry = self.opened.entry(name.to_owned());
            let nobody = || (Settings::of_known(&super::known::KNOWN[0]), Box::new(Nobody) as _);
            return Ok(&mut *entry.or_insert_with(nobody).1);
        }
        let none = Wanted::default();
        let wanted = if name == self.first { &self.wanted } else { &none };
        let fit = repository::fit(&self.rules, name, wanted, runner.ground())?;
        let is_same = self.opened.get(name).is_some_and(|(known, _)| *known == fit.settings);
        if !is_same {
            let agent = super::open(fit.settings.clone(), runner.root())?;
            self.opened.insert(name.to_owned(), (fit.settings, agent));
        }
        match self.opened.get_mut(name) {
            Some((_, agent)) => Ok(&mut **agent),
            None => Err(super::NoSuchAgent { name: name.to_owned() }.into()),
        }
    }
}

/// Why nobody can take a turn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrewError {
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error(transparent)]
    Bad(#[from] BadAgent),
}

impl From<super::NoSuchAgent> for CrewError {
    fn from(error: super::NoSuchAgent) -> CrewError {
        CrewError::Unfit(error.into())
    }
}
