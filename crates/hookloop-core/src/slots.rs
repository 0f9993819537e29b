//! Limits of work in progress (WIP).

use std::collections::BTreeMap;
use std::fmt;

/// The WIP limits of a project and of its task types, each optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WipLimits {
    pub all: Option<u32>,
    pub of_type: BTreeMap<String, u32>,
}

/// The number of tasks in progress, in all and by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TasksInProgress {
    pub all: u32,
    pub of_type: BTreeMap<String, u32>,
}

/// The permit that a task needs before it can be claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WipPermit {
    /// No limit applies.
    #[default]
    Unbound,
    Free,
    Full(WipLimitReached),
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WipLimitReached {
    /// The task type of the limit, or `None` for the project's.
    pub kind: Option<String>,
    pub max: u32,
}

impl fmt::Display for WipLimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, verb) = if self.max == 1 { ("task", "is") } else { ("tasks", "are") };
        match &self.kind {
            Some(kind) => write!(
                f,
                "{} {noun} of type `{kind}` {verb} in progress, the limit of `scheduling.wip_by_type`",
                self.max
            ),
            None => {
                write!(f, "{} {noun} {verb} in progress, the limit of `scheduling.wip`", self.max)
            }
        }
    }
}

impl WipLimits {
    pub fn is_none(&self) -> bool {
        self.all.is_none() && self.of_type.is_empty()
    }

    /// Returns the permit for a further task of type `kind`.
    pub fn slot(&self, kind: Option<&str>, held: &TasksInProgress) -> WipPermit {
        if let Some(full) = self.full(held) {
            return WipPermit::Full(full);
        }
        match kind.and_then(|kind| self.of_type.get_key_value(kind)) {
            Some((kind, max)) if held.of_type(kind) >= *max => {
                WipPermit::Full(WipLimitReached { kind: Some(kind.clone()), max: *max })
            }
            None if self.all.is_none() => WipPermit::Unbound,
            _ => WipPermit::Free,
        }
    }

    /// Returns the project's limit, if it is reached.
    pub fn full(&self, held: &TasksInProgress) -> Option<WipLimitReached> {
        self.all.filter(|max| held.all >= *max).map(|max| WipLimitReached { kind: None, max })
    }

    /// Returns the limits by type that are reached.
    pub fn full_types(&self, held: &TasksInProgress) -> Vec<WipLimitReached> {
        let full = self.of_type.iter().filter(|(kind, max)| held.of_type(kind) >= **max);
        full.map(|(kind, max)| WipLimitReached { kind: Some(kind.clone()), max: *max }).collect()
    }
}

impl TasksInProgress {
    fn of_type(&self, kind: &str) -> u32 {
        self.of_type.get(kind).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wip_permit_needs_room_in_the_project_and_type_limits() {
        let bounds = |all: Option<u32>, of: &[(&str, u32)]| WipLimits {
            all,
            of_type: of.iter().map(|(kind, max)| ((*kind).to_owned(), *max)).collect(),
        };
        let check =
            |slots: &WipLimits, kind: Option<&str>, all: u32, bugs: u32, expected: WipPermit| {
                let held = TasksInProgress { all, of_type: [("bug".to_owned(), bugs)].into() };
                assert_eq!(slots.slot(kind, &held), expected, "{slots:?} {kind:?} {held:?}");
            };
        let full = |kind: Option<&str>, max| {
            WipPermit::Full(WipLimitReached { kind: kind.map(str::to_owned), max })
        };
        check(&bounds(None, &[]), Some("bug"), 99, 99, WipPermit::Unbound);
        let both = bounds(Some(3), &[("bug", 2)]);
        check(&both, None, 2, 2, WipPermit::Free);
        check(&both, Some("bug"), 2, 1, WipPermit::Free);
        check(&both, Some("bug"), 2, 2, full(Some("bug"), 2));
        check(&both, Some("bug"), 3, 2, full(None, 3));
        check(&both, None, 4, 0, full(None, 3));
        let of_type = bounds(None, &[("bug", 0)]);
        check(&of_type, Some("bug"), 0, 0, full(Some("bug"), 0));
        check(&of_type, Some("chore"), 9, 0, WipPermit::Unbound);
        check(&of_type, None, 9, 0, WipPermit::Unbound);
        let held = TasksInProgress { all: 2, of_type: [("bug".to_owned(), 2)].into() };
        let types = |slots: &WipLimits| slots.full_types(&held).len();
        assert_eq!((types(&both), types(&bounds(None, &[("bug", 3)]))), (1, 0));
    }
}
