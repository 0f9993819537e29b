//! Directives and the budget of a fleet.
//!
//! A fleet consists of all workers that share a store. Its own log holds directives, its budget, and the usage
//! of its sessions.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::excerpt::first_chars;
use crate::id::TaskId;
use crate::shared_budget::SharedBudget;
use crate::time::Timestamp;

/// The longest reason of a directive.
pub const REASON_MAX: usize = 2_000;

/// The characters of a wrong scope that an error shows.
const SCOPE_SHOWN_MAX: usize = 128;

/// The name of a worker: one word, like a task's id.
pub type WorkerName = TaskId;

/// The workers and projects that a directive applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub enum FleetScope {
    All,
    Project(String),
    Worker(String),
}

impl fmt::Display for FleetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetScope::All => f.write_str("all"),
            FleetScope::Project(name) => write!(f, "project:{name}"),
            FleetScope::Worker(name) => write!(f, "worker:{name}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither `all`, `project:NAME` nor `worker:NAME`")]
pub struct NoSuchScope(String);

impl FromStr for FleetScope {
    type Err = NoSuchScope;

    fn from_str(text: &str) -> Result<FleetScope, NoSuchScope> {
        let wrong = || NoSuchScope(first_chars(text, SCOPE_SHOWN_MAX));
        match text.split_once(':') {
            None if text == "all" => Ok(FleetScope::All),
            Some((_, name)) if !TaskId::is_valid(name) => Err(wrong()),
            Some(("project", name)) => Ok(FleetScope::Project(name.to_owned())),
            Some(("worker", name)) => Ok(FleetScope::Worker(name.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for FleetScope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FleetScope {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A directive that holds until it is cleared. Of two, the later variant counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FleetDirective {
    /// A worker claims nothing more, finishes its tasks, and ends.
    Drain,
    /// No task, turn or hook begins. Running ones continue.
    Pause,
    /// Running turns and hooks are ended, tasks are released, and nothing new begins.
    Stop,
}

impl FleetDirective {
    pub fn name(self) -> &'static str {
        match self {
            FleetDirective::Drain => "drain",
            FleetDirective::Pause => "pause",
            FleetDirective::Stop => "stop",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDirectiveSet {
    /// `all`, `project:NAME` or `worker:NAME`.
    pub scope: FleetScope,
    #[serde(alias = "order")]
    pub directive: FleetDirective,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The directive of a scope was cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDirectiveCleared {
    /// `all`, `project:NAME` or `worker:NAME`.
    pub scope: FleetScope,
}

/// The budget of the sessions of all workers from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetSet {
    #[serde(alias = "purse")]
    pub budget: SharedBudget,
}

/// A rate limit of a provider or forge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimitReported {
    /// The rate-limited service: `agent:claude`, `forge:github.com`.
    #[serde(alias = "what")]
    pub source: String,
    pub until: Timestamp,
}

/// A directive that holds, with its author and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingDirective {
    pub set: FleetDirectiveSet,
    pub by: String,
    pub at: Timestamp,
}

/// All directives that hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetDirectives(pub Vec<StandingDirective>);

impl FleetDirectives {
    /// Returns the directive for a worker, regardless of projects.
    pub fn of_worker(&self, worker: &str) -> Option<&StandingDirective> {
        self.strongest(|scope| match scope {
            FleetScope::All => true,
            FleetScope::Worker(name) => name == worker,
            FleetScope::Project(_) => false,
        })
    }

    /// Returns the directive for a worker in a project.
    pub fn of(&self, worker: &str, project: &str) -> Option<&StandingDirective> {
        self.strongest(|scope| match scope {
            FleetScope::All => true,
            FleetScope::Worker(name) => name == worker,
            FleetScope::Project(name) => name == project,
        })
    }

    fn strongest(&self, is_meant: impl Fn(&FleetScope) -> bool) -> Option<&StandingDirective> {
        let meant = self.0.iter().filter(|standing| is_meant(&standing.set.scope));
        meant.max_by_key(|standing| standing.set.directive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(scope: &str, directive: FleetDirective) -> StandingDirective {
        let set = FleetDirectiveSet { scope: scope.parse().unwrap(), directive, reason: None };
        StandingDirective { set, by: "o".to_owned(), at: Timestamp(0) }
    }

    #[test]
    fn fleet_scopes_are_parsed() {
        for good in ["all", "project:shop", "worker:w-1"] {
            assert_eq!(good.parse::<FleetScope>().unwrap().to_string(), good);
        }
        for bad in ["", "every", "project:", "worker:-x", "project:a b", "all:x", "session:x"] {
            assert!(bad.parse::<FleetScope>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_strongest_fleet_directive_applies() {
        let directives = FleetDirectives(vec![
            standing("worker:w", FleetDirective::Drain),
            standing("project:p", FleetDirective::Stop),
            standing("project:q", FleetDirective::Pause),
        ]);
        let of = |worker, project| directives.of(worker, project).map(|found| found.set.directive);
        assert_eq!(of("w", "p"), Some(FleetDirective::Stop));
        assert_eq!(of("w", "q"), Some(FleetDirective::Pause));
        assert_eq!(of("w", "r"), Some(FleetDirective::Drain));
        assert_eq!(of("v", "r"), None);
        let directive = |worker| directives.of_worker(worker).map(|found| found.set.directive);
        assert_eq!((directive("w"), directive("v")), (Some(FleetDirective::Drain), None));
        let all = FleetDirectives(vec![
            standing("all", FleetDirective::Pause),
            standing("worker:w", FleetDirective::Drain),
        ]);
        assert_eq!(all.of_worker("w").unwrap().set.directive, FleetDirective::Pause);
    }
}
