//! `skip` and `only` of lefthook: when it runs something.

use serde_json::Value;

use crate::cli::import::fields::SourceFields;

/// States of git that a condition can name.
const STATES: [&str; 3] = ["merge", "rebase", "merge-commit"];

/// A condition that a gate can't have. The gate runs more often than in lefthook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HookCondition {
    /// `skip` or `only`.
    pub(super) key: &'static str,
    pub(super) place: String,
    pub(super) why: String,
}

/// When lefthook runs something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GitOccasion {
    Never,
    /// Only in these states of git, which no session is in when its gates run.
    GitStates(String),
    /// The conditions that must all hold; empty means always.
    If(Vec<HookCondition>),
}

/// Whether a value of `skip` or `only` matches.
#[derive(PartialEq, Eq)]
enum OccasionMatch {
    Always,
    Never,
    Sometimes,
}

impl GitOccasion {
    /// Reads `skip` and `only`. As in lefthook, `skip` goes before `only`.
    pub(super) fn of(fields: &mut SourceFields) -> GitOccasion {
        let skip = fields.take("skip");
        let only = fields.take("only");
        let is_skipped = skip.as_ref().is_some_and(|skip| matched(skip) == OccasionMatch::Always);
        if is_skipped || only.as_ref().is_some_and(|only| matched(only) == OccasionMatch::Never) {
            return GitOccasion::Never;
        }
        if let Some(states) = only.as_ref().and_then(states_alone) {
            return GitOccasion::GitStates(states);
        }
        let mut conditions = Vec::new();
        for (key, value) in [("skip", skip), ("only", only)] {
            let Some(value) = value.filter(|value| matched(value) == OccasionMatch::Sometimes)
            else {
                continue;
            };
            let place = fields.place_of(key);
            let why = lost(&value);
            conditions.push(HookCondition { key, place, why });
        }
        GitOccasion::If(conditions)
    }
}

fn matched(value: &Value) -> OccasionMatch {
    match value {
        Value::Bool(true) => OccasionMatch::Always,
        Value::Bool(false) => OccasionMatch::Never,
        Value::Array(list) if list.is_empty() => OccasionMatch::Never,
        _ => OccasionMatch::Sometimes,
    }
}

/// The states of git that a condition names, if it names nothing else.
fn states_alone(value: &Value) -> Option<String> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let states: Option<Vec<&str>> = items.iter().map(state).collect();
    states.filter(|states| !states.is_empty()).map(|states| states.join(" or "))
}

fn state(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| STATES.contains(text))
}

/// Describes the gate without the condition, and the text to write instead. Commands are left out: they may hold secrets.
fn lost(value: &Value) -> String {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut parts: Vec<String> = Vec::new();
    for item in items {
        let part = match (state(item), item) {
            (Some(state), _) => format!("the gate runs also during a {state}"),
            (None, Value::Object(fields)) if fields.contains_key("ref") => {
                "the gate runs on every branch".to_owned()
            }
            (None, Value::Object(fields)) if fields.contains_key("run") => {
                "the gate runs each time: write the condition into its command".to_owned()
            }
            _ => "this condition is not known here: the gate runs each time".to_owned(),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn occasion(value: Value) -> GitOccasion {
        GitOccasion::of(&mut SourceFields::of("job", value).unwrap())
    }

    #[test]
    fn conditions_decide_whether_a_gate_is_written() {
        let always = || GitOccasion::If(Vec::new());
        for (value, expected) in [
            (json!({}), always()),
            (json!({"skip": false}), always()),
            (json!({"skip": []}), always()),
            (json!({"skip": null, "only": true}), always()),
            (json!({"skip": true}), GitOccasion::Never),
            (json!({"skip": true, "only": true}), GitOccasion::Never),
            (json!({"only": false}), GitOccasion::Never),
            (json!({"only": []}), GitOccasion::Never),
            (json!({"only": "rebase"}), GitOccasion::GitStates("rebase".to_owned())),
            (
                json!({"only": ["merge", "rebase"], "skip": [{"ref": "main"}]}),
                GitOccasion::GitStates("merge or rebase".to_owned()),
            ),
        ] {
            assert_eq!(occasion(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn lefthook_conditions_without_an_equivalent_are_reported() {
        for (value, key, part) in [
            (json!({"skip": "merge"}), "skip", "during a merge"),
            (json!({"skip": ["merge", {"ref": "dev/*"}]}), "skip", "every branch"),
            (json!({"skip": [{"run": "test -n \"$NO\""}]}), "skip", "into its command"),
            (json!({"only": [{"ref": "main"}, "merge"]}), "only", "every branch"),
            (json!({"only": {"ref": "main"}}), "only", "every branch"),
            (json!({"skip": "novel"}), "skip", "not known"),
            (json!({"only": [7]}), "only", "not known"),
        ] {
            let GitOccasion::If(conditions) = occasion(value.clone()) else { panic!("{value}") };
            assert_eq!(conditions.len(), 1, "{value}");
            assert_eq!((conditions[0].key, &*conditions[0].place), (key, &*format!("job.{key}")));
            assert!(conditions[0].why.contains(part), "{value}: {conditions:?}");
            assert!(!conditions[0].why.contains("NO"), "{conditions:?}");
        }
    }
}
