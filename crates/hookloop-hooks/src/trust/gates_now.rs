//! The gates of a project in its current files.

use std::path::Path;

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::gate_ledger::{GateLedger, GateList, GateRecord};
use hookloop_core::hook::{Hook, HookHandler, HookSource};
use hookloop_core::options::OnFailure;
use hookloop_core::point::{Point, PointKind};
use serde_json::{Map, Value, json};

use crate::trust::{HookDefinition, SeenHook, TrustError, what};

/// Returns the gates of the project at `root`. A gate that a person switched on counts as enabled.
pub fn gates(
    root: &Path,
    rules: &EffectiveConfig,
    switches: &[(String, bool)],
) -> Result<GateLedger, TrustError> {
    let mut ledger = GateLedger {
        stop_when: rules.session.stop_when.iter().map(ToString::to_string).collect(),
        limits: rules.set_limits.clone(),
        no_changes_ok: rules
            .types
            .iter()
            .filter(|(_, rules)| rules.no_changes_ok)
            .map(|(name, _)| name.clone())
            .collect(),
        may_change: rules
            .types
            .iter()
            .filter(|(_, rules)| !rules.may_change.is_empty())
            .map(|(name, rules)| (name.clone(), rules.may_change.iter().cloned().collect()))
            .collect(),
        ..GateLedger::default()
    };
    let is_gate = |point: &Point| point.kind() == PointKind::Gate;
    let lists = rules.hooks.own_lists().iter().filter(|(_, point)| is_gate(point));
    ledger.lists = lists
        .map(|(owner, point)| GateList { owner: owner.clone(), point: point.name().to_owned() })
        .collect();
    for hook in rules.hooks.list().iter().filter(|hook| judges(hook)) {
        let is_switched_on = switches
            .iter()
            .any(|(name, is_on)| hook.task_type.is_none() && *name == hook.name && *is_on);
        let enabled = hook.enabled || is_switched_on;
        let definition = match SeenHook::look(root, hook) {
            Ok(seen) => Some(seen.definition),
            // A disabled gate never runs, so an error in it does not matter.
            Err(_) if !enabled => None,
            Err(error) => return Err(error),
        };
        let gate = GateRecord { enabled, ..record(hook, definition.as_ref()) };
        if !gate.points.is_empty() {
            ledger.gates.push(gate);
        }
    }
    Ok(ledger)
}

/// Whether a hook is a gate that a repository or the user defines.
///
/// Delivery steps check nothing, and the gates of a policy cannot be removed.
fn judges(hook: &Hook) -> bool {
    let is_judge = match hook.handler {
        HookHandler::Builtin(builtin) => builtin == hookloop_core::builtin::Builtin::RunTests,
        HookHandler::Declared(_) => false,
        HookHandler::Command(_)
        | HookHandler::Http { .. }
        | HookHandler::Gatekeepers { .. }
        | HookHandler::Rule(_) => true,
    };
    is_judge && hook.source != HookSource::Operator
}

fn record(hook: &Hook, definition: Option<&HookDefinition>) -> GateRecord {
    let options = &hook.options;
    let points = hook.points.iter().filter(|point| point.kind() == PointKind::Gate);
    GateRecord {
        name: hook.name.clone(),
        list: hook.task_type.clone(),
        points: points.map(|point| point.name().to_owned()).collect(),
        is_users: hook.source == HookSource::User,
        enabled: hook.enabled,
        handler: what(&hook.handler),
        scripts: definition.map(|known| known.scripts.clone()).unwrap_or_default(),
        blocks_on_failure: options.on_failure == OnFailure::Closed,
        any_of: options.any_of.clone(),
        when: options.when.clone(),
        needs: options.needs.clone(),
        timeout_ms: options.timeout_at(PointKind::Gate),
        attempts: options.retry.attempts,
        surroundings: definition.map_or(Value::Null, surroundings),
    }
}

pub fn surroundings(definition: &HookDefinition) -> Value {
    let HookDefinition { env, cwd, sandbox, limits, links, options, .. } = definition;
    let mut found = Map::new();
    if !(env.is_empty()
        && cwd.is_none()
        && sandbox.is_none()
        && limits.is_none()
        && links.is_empty())
    {
        let known =
            json!({ "env": env, "cwd": cwd, "sandbox": sandbox, "limits": limits, "links": links });
        found.extend(known.as_object().cloned().unwrap_or_default());
    }
    // Records of earlier builds do not have these options.
    for name in ["base_tests", "strength"] {
        if let Some(rules) = options.get(name) {
            found.insert(name.to_owned(), json!(rules));
        }
    }
    if found.is_empty() { Value::Null } else { Value::Object(found) }
}
