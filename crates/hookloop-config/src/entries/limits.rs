//! `limits:` of a configuration file.

use std::collections::BTreeMap;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::purse::{BudgetBounds, Purse};
use hookloop_core::session::SessionLimits;
use hookloop_core::session::plan::{Dollars, UNPRICED_TURNS};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Location;

use super::values::{DollarAmount, Located, TimeText, length};
use crate::limits::LimitSettings;
use crate::yaml::ConfigComplaint;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(crate) struct LimitEntries {
    #[serde(default)]
    pub(crate) cascade: CascadeEntry,
    /// How often gates may send the agent back before a human is asked; 5 if it is not given.
    pub(crate) hook_retries: Option<u32>,
    /// Of one session; 100 if it is not given.
    pub(crate) iterations: Option<u32>,
    /// For how long a session may run, in seconds or with a unit such as `90m`; 8 hours if it is not given.
    pub(crate) duration: Option<Located<TimeText>>,
    /// How long one turn of the agent may take, in seconds or with a unit such as `20m`; 1 hour if it is not given.
    pub(crate) turn: Option<Located<TimeText>>,
    /// Failed turns in a row; 5 if it is not given.
    pub(crate) errors: Option<u32>,
    /// Iterations in a row that get nowhere; 5 if it is not given.
    pub(crate) no_progress: Option<u32>,
    /// Turns in which agents may fix what hooks of a delivery or a merge found, for each task; 3 if it is not given.
    pub(crate) remediations: Option<u32>,
    /// How often a task may go back unfinished until a human is asked; 3 if it is not given.
    pub(crate) continuations: Option<u32>,
    /// Tokens of one session, where the agent tells; 50 million if it is not given.
    pub(crate) tokens: Option<u64>,
    /// Dollars that one session may cost, where the agent tells; 50 if it is not given.
    pub(crate) cost: Option<DollarAmount>,
    /// Turns of one session whose cost is unknown; 20 if `cost` is given and this is not, else no bound.
    pub(crate) unpriced_turns: Option<u32>,
    /// What all sessions of the project together may use; no bound if it is not given.
    pub(crate) purse: Option<Located<PurseEntry>>,
    /// Dollars of the purse that are set aside for a turn before it begins; 1 if it is not given.
    pub(crate) turn_cost: Option<Located<DollarAmount>>,
    /// Tokens of the purse that are set aside for a turn before it begins; 2 million if it is not given.
    pub(crate) turn_tokens: Option<Located<u64>>,
}

/// What all sessions of a project together may use: turns, and dollars and tokens where agents tell.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PurseEntry {
    /// In dollars.
    pub(crate) cost: Option<DollarAmount>,
    pub(crate) tokens: Option<u64>,
    /// Turns of agents.
    pub(crate) turns: Option<u64>,
    /// `day`: for each day of the calendar, in UTC; `ever`: for good. `day` if it is not given.
    pub(crate) per: Option<PerEntry>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PerEntry {
    Day,
    Ever,
}

impl PurseEntry {
    fn read(self, at: Location) -> Result<Purse, ConfigComplaint> {
        let PurseEntry { cost, tokens, turns, per } = self;
        let bounds = BudgetBounds { cost_micros: cost.map(|cost| cost.0.0), tokens, turns };
        if bounds.is_none() {
            return Err(ConfigComplaint::new(
                at,
                "a purse has `cost`, `tokens`, `turns` or several of them",
            ));
        }
        Ok(match per {
            None | Some(PerEntry::Day) => Purse { day: bounds, ..Purse::default() },
            Some(PerEntry::Ever) => Purse { ever: bounds, ..Purse::default() },
        })
    }
}

impl LimitEntries {
    /// Returns the session limits that are set, by name.
    pub(crate) fn set(&self) -> Result<BTreeMap<String, u64>, ConfigComplaint> {
        let time = |time: &Option<Located<TimeText>>| {
            let length = |time: &Located<TimeText>| length(time.value.clone(), time.at);
            time.as_ref().map(length).transpose()
        };
        let given = [
            ("iterations", self.iterations.map(u64::from)),
            ("duration", time(&self.duration)?),
            ("turn", time(&self.turn)?),
            ("errors", self.errors.map(u64::from)),
            ("hook_retries", self.hook_retries.map(u64::from)),
            ("no_progress", self.no_progress.map(u64::from)),
            ("remediations", self.remediations.map(u64::from)),
            ("continuations", self.continuations.map(u64::from)),
            ("tokens", self.tokens),
            ("cost", self.cost.map(|cost| cost.0.0)),
            ("unpriced_turns", self.unpriced_turns.map(u64::from)),
        ];
        let given = given.into_iter();
        Ok(given.filter_map(|(name, limit)| Some((name.to_owned(), limit?))).collect())
    }

    /// Returns these limits, with those of `others` where none is set.
    pub(crate) fn over(self, others: LimitSettings) -> Result<LimitSettings, ConfigComplaint> {
        let time = |time: Option<Located<TimeText>>, other: u64| match time {
            Some(Located { value, at }) => length(value, at),
            None => Ok(other),
        };
        let session = others.session;
        let session = SessionLimits {
            iterations: self.iterations.unwrap_or(session.iterations),
            duration_ms: time(self.duration, session.duration_ms)?,
            turn_ms: time(self.turn, session.turn_ms)?,
            errors: self.errors.unwrap_or(session.errors),
            hook_retries: self.hook_retries.unwrap_or(session.hook_retries),
            no_progress: self.no_progress.unwrap_or(session.no_progress),
            remediations: self.remediations.unwrap_or(session.remediations),
            continuations: self.continuations.unwrap_or(session.continuations),
            tokens: self.tokens.unwrap_or(session.tokens),
            cost_micros: self.cost.map_or(session.cost_micros, |cost| cost.0.0),
            unpriced_turns: match (self.unpriced_turns, self.cost) {
                (Some(turns), _) => turns,
                (None, Some(_)) => session.unpriced_turns.min(UNPRICED_TURNS),
                (None, None) => session.unpriced_turns,
            },
        };
        let purse = self.purse.map_or(Ok(Purse::default()), |entry| entry.value.read(entry.at))?;
        // A reservation of zero would not limit anything.
        let turn = BudgetBounds {
            cost_micros: match self.turn_cost {
                Some(Located { value: DollarAmount(Dollars(0)), at }) => {
                    return Err(ConfigComplaint::new(at, "`turn_cost` is more than nothing"));
                }
                cost => cost.map(|cost| cost.value.0.0),
            },
            tokens: match self.turn_tokens {
                Some(Located { value: 0, at }) => {
                    return Err(ConfigComplaint::new(at, "`turn_tokens` is more than nothing"));
                }
                tokens => tokens.map(|tokens| tokens.value),
            },
            turns: None,
        };
        let purse = Purse { turn, ..purse }.over(others.purse);
        let cascade = CascadeLimits {
            depth: self.cascade.depth.unwrap_or(others.cascade.depth),
            fan_out: self.cascade.fan_out.unwrap_or(others.cascade.fan_out),
            total: self.cascade.total.unwrap_or(others.cascade.total),
        };
        Ok(LimitSettings { cascade, session, purse })
    }
}

/// How far hooks may set off hooks.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cascade")]
pub(crate) struct CascadeEntry {
    /// Hooks that follow hooks.
    pub(crate) depth: Option<u32>,
    /// Actions that one run of a hook may ask for.
    pub(crate) fan_out: Option<u32>,
    /// Actions that one event may lead to.
    pub(crate) total: Option<u32>,
}
