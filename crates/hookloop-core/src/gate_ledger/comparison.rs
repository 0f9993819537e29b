//! Compares trusted gates with the present ones.

use std::collections::BTreeSet;

use serde_json::Value;

use super::record::{GateChange, GateChangeKind, GateLedger, GateRecord, GateScope, quoted};
use crate::hook::AGENT_LIST;
use crate::options::Length;
use crate::point::{Point, PointKind};

/// Returns every difference between the trusted gates and the present ones.
pub fn compare(agreed: &GateLedger, now: &GateLedger) -> Vec<GateChange> {
    let mut found = FoundChanges::default();
    for scope in scopes(agreed, now) {
        let comparison = GateComparison { agreed, now, scope: &scope };
        for point in gate_points() {
            comparison.point(point.name(), &mut found);
        }
        comparison.merged_work(&mut found);
    }
    compare_settings(agreed, now, &mut found);
    found.list
}

impl GateLedger {
    /// Returns the gates at a point, as they are resolved for the tasks and agents of `scope`.
    fn at(&self, point: &str, scope: &GateScope) -> Vec<&GateRecord> {
        let agents = scope.agent.as_ref().map(|agent| format!("{AGENT_LIST}{agent}"));
        let has_list = |owner: &&String| {
            self.lists.iter().any(|list| list.owner == **owner && list.point == point)
        };
        let list = agents.as_ref().filter(has_list);
        let list = list.or_else(|| scope.task_type.as_ref().filter(has_list));
        let is_at = |gate: &&GateRecord| {
            (gate.is_users || gate.list.as_ref() == list)
                && gate.points.iter().any(|known| known == point)
        };
        self.gates.iter().filter(is_at).collect()
    }
}

impl GateRecord {
    /// Returns whether the gate judges files, rather than a branch.
    fn judges_files(&self) -> bool {
        let is_of_branch =
            self.handler.get("gatekeeper").is_some() || self.handler.get("http").is_some();
        self.enabled && !is_of_branch
    }
}

/// The differences so far. A difference for all tasks is not repeated for each type and agent.
#[derive(Default)]
struct FoundChanges {
    list: Vec<GateChange>,
}

impl FoundChanges {
    fn add(&mut self, gate: &str, scope: &GateScope, kind: GateChangeKind) {
        let is_known = |change: &GateChange| {
            let covers =
                |known: &Option<String>, other: &Option<String>| known.is_none() || known == other;
            change.gate == gate
                && change.kind == kind
                && covers(&change.scope.task_type, &scope.task_type)
                && covers(&change.scope.agent, &scope.agent)
        };
        if !self.list.iter().any(is_known) {
            self.list.push(GateChange { gate: gate.to_owned(), scope: scope.clone(), kind });
        }
    }
}

/// Two sets of gates for the same tasks and agents.
struct GateComparison<'a> {
    agreed: &'a GateLedger,
    now: &'a GateLedger,
    scope: &'a GateScope,
}

impl GateComparison<'_> {
    fn point(&self, point: &str, found: &mut FoundChanges) {
        let agreed = self.agreed.at(point, self.scope);
        let now = self.now.at(point, self.scope);
        for known in &agreed {
            let same = now.iter().find(|gate| gate.name == known.name);
            match same {
                Some(gate) => {
                    let before = alternatives(known, &agreed);
                    let after = alternatives(gate, &now);
                    self.gate(known, gate, found);
                    self.replacements(known, &before, &after, found);
                }
                // A user may change the user's own configuration without consent.
                None if known.is_users || !known.enabled => {}
                None => found.add(&known.name, self.scope, self.loss(known, point)),
            }
        }
        for gate in now.iter().filter(|gate| gate.enabled && !gate.is_users) {
            if !agreed.iter().any(|known| known.name == gate.name) {
                found.add(&gate.name, self.scope, GateChangeKind::Added);
            }
        }
    }

    /// Returns the change for a trusted gate that is missing at a point.
    fn loss(&self, known: &GateRecord, point: &str) -> GateChangeKind {
        let is_elsewhere =
            known.points.iter().filter(|other| *other != point).any(|other| {
                self.now.at(other, self.scope).iter().any(|gate| gate.name == known.name)
            });
        if is_elsewhere {
            GateChangeKind::Weakened(format!("no longer runs at `{point}`"))
        } else {
            GateChangeKind::Removed
        }
    }

    fn gate(&self, known: &GateRecord, gate: &GateRecord, found: &mut FoundChanges) {
        if known.is_users || gate.is_users {
            return;
        }
        if !known.enabled {
            if gate.enabled {
                let words = "is switched on".to_owned();
                found.add(&known.name, self.scope, GateChangeKind::Strengthened(words));
            }
            return;
        }
        if !gate.enabled {
            found.add(&known.name, self.scope, GateChangeKind::Disabled);
            return;
        }
        let mut add = |kind| found.add(&known.name, self.scope, kind);
        ordered_differences(known, gate).into_iter().for_each(&mut add);
        changes_without_order(known, gate).into_iter().for_each(&mut add);
    }

    /// Reports gates that may pass instead of a gate (`any_of`) and could not before.
    fn replacements(
        &self,
        known: &GateRecord,
        before: &BTreeSet<&str>,
        after: &BTreeSet<&str>,
        found: &mut FoundChanges,
    ) {
        if !known.enabled {
            return;
        }
        let users: Vec<&str> = if known.is_users {
            let own = self.now.gates.iter().filter(|gate| gate.is_users);
            own.map(|gate| gate.name.as_str()).collect()
        } else {
            Vec::new()
        };
        for name in after.difference(before).filter(|name| !users.contains(name)) {
            let words = format!("may now be replaced by `{}`", quoted(name));
            found.add(&known.name, self.scope, GateChangeKind::Weakened(words));
        }
        for name in before.difference(after).filter(|_| !known.is_users) {
            let words = format!("may no longer be replaced by `{}`", quoted(name));
            found.add(&known.name, self.scope, GateChangeKind::Strengthened(words));
        }
    }

    /// Compares the gates that judge merged files.
    ///
    /// They are the gates at `before_merge`, or the gates of a session if there are none. The first
    /// gate at `before_merge` replaces all the others.
    fn merged_work(&self, found: &mut FoundChanges) {
        let judges = |ledger: &GateLedger, point: Point| -> Vec<GateRecord> {
            let gates = ledger.at(point.name(), self.scope);
            gates.into_iter().filter(|gate| gate.judges_files()).cloned().collect()
        };
        let now = judges(self.now, Point::BeforeMerge);
        let Some(first) = now.first() else { return };
        if first.is_users || !judges(self.agreed, Point::BeforeMerge).is_empty() {
            return;
        }
        let session = [Point::Stop, Point::Validation, Point::BeforeSubmit];
        for known in session.into_iter().flat_map(|point| judges(self.agreed, point)) {
            if !now.iter().any(|gate| gate.handler == known.handler) {
                let first = quoted(&first.name);
                let words = format!("no longer judges merged work: `{first}` does instead");
                found.add(&known.name, self.scope, GateChangeKind::Weakened(words));
            }
        }
    }
}

/// Returns the other gates of the same `any_of` group, of which one may pass instead of this gate.
fn alternatives<'a>(gate: &GateRecord, all: &[&'a GateRecord]) -> BTreeSet<&'a str> {
    let is_other = |other: &&&GateRecord| {
        other.enabled
            && other.name != gate.name
            && gate.any_of.is_some()
            && other.any_of == gate.any_of
    };
    all.iter().filter(is_other).map(|other| other.name.as_str()).collect()
}

fn ordered_differences(known: &GateRecord, gate: &GateRecord) -> Vec<GateChangeKind> {
    use GateChangeKind::{Strengthened, Weakened};
    let mut kinds = Vec::new();
    match (known.blocks_on_failure, gate.blocks_on_failure) {
        (true, false) => {
            kinds.push(Weakened("no longer blocks when it crashes or times out".to_owned()));
        }
        (false, true) => kinds.push(Strengthened("blocks when it crashes or times out".to_owned())),
        _ => {}
    }
    match (&known.when, &gate.when) {
        (None, Some(when)) => {
            kinds.push(Weakened(format!("now runs only when `{}`", quoted(when))))
        }
        (Some(_), None) => kinds.push(Strengthened("now runs always".to_owned())),
        _ => {}
    }
    for need in gate.needs.iter().filter(|need| !known.needs.contains(need)) {
        kinds.push(Weakened(format!("now runs only after `{}` passed", quoted(need))));
    }
    for need in known.needs.iter().filter(|need| !gate.needs.contains(need)) {
        kinds.push(Strengthened(format!("no longer waits for `{}`", quoted(need))));
    }
    if known.timeout_ms != gate.timeout_ms {
        let (before, after) = (Length { ms: known.timeout_ms }, Length { ms: gate.timeout_ms });
        let words = format!("has {after} instead of {before}");
        let is_shorter = gate.timeout_ms < known.timeout_ms;
        kinds.push(if is_shorter { Weakened(words) } else { Strengthened(words) });
    }
    if known.attempts != gate.attempts {
        let words = format!("is run up to {} instead of {} times", gate.attempts, known.attempts);
        let is_more = gate.attempts > known.attempts;
        kinds.push(if is_more { Weakened(words) } else { Strengthened(words) });
    }
    kinds
}

fn changes_without_order(known: &GateRecord, gate: &GateRecord) -> Vec<GateChangeKind> {
    let mut kinds = Vec::new();
    if known.handler != gate.handler {
        let (before, after) = (handler_words(&known.handler), handler_words(&gate.handler));
        kinds.push(GateChangeKind::Changed(format!("is now `{after}` instead of `{before}`")));
    }
    if known.scripts != gate.scripts {
        let is_changed = |name: &&String| known.scripts.get(*name) != gate.scripts.get(*name);
        let names: BTreeSet<&String> = known.scripts.keys().chain(gate.scripts.keys()).collect();
        let names: Vec<String> =
            names.into_iter().filter(is_changed).map(|name| quoted(name)).collect();
        kinds.push(GateChangeKind::Changed(format!("runs changed files: {}", names.join(", "))));
    }
    if let (Some(before), Some(after)) = (&known.when, &gate.when)
        && before != after
    {
        let (before, after) = (quoted(before), quoted(after));
        kinds.push(GateChangeKind::Changed(format!(
            "now runs when `{after}` instead of when `{before}`"
        )));
    }
    if known.surroundings != gate.surroundings {
        let words = "has another environment, directory, sandbox or resource limit";
        kinds.push(GateChangeKind::Changed(words.to_owned()));
    }
    kinds
}

fn compare_settings(agreed: &GateLedger, now: &GateLedger, found: &mut FoundChanges) {
    // Without gates, a person has trusted neither stop conditions nor limits.
    if agreed.gates.is_empty() {
        return;
    }
    let everywhere = GateScope::default();
    if agreed.stop_when != now.stop_when {
        let (before, after) = (agreed.stop_when.join(", "), now.stop_when.join(", "));
        let words = format!("is `{}` instead of `{}`", quoted(&after), quoted(&before));
        found.add("loop.stop_when", &everywhere, GateChangeKind::Changed(words));
    }
    for (name, before) in &agreed.limits {
        let kind = match now.limits.get(name) {
            None => GateChangeKind::Weakened(format!(
                "is no longer set by the project; it was {before}"
            )),
            Some(after) if after > before => {
                GateChangeKind::Weakened(format!("is {after} instead of {before}"))
            }
            Some(after) if after < before => {
                GateChangeKind::Strengthened(format!("is {after} instead of {before}"))
            }
            Some(_) => continue,
        };
        found.add(&format!("limits.{name}"), &everywhere, kind);
    }
    for name in now.no_changes_ok.difference(&agreed.no_changes_ok) {
        let words = "lets work be complete without a change of files".to_owned();
        found.add(&format!("task_types.{name}"), &everywhere, GateChangeKind::Weakened(words));
    }
    let nothing = BTreeSet::new();
    for (name, patterns) in &now.may_change {
        let before = agreed.may_change.get(name).unwrap_or(&nothing);
        let new: Vec<&str> = patterns.difference(before).map(String::as_str).collect();
        if !new.is_empty() {
            let words = format!("lets work change the tests in {}", new.join(", "));
            found.add(&format!("task_types.{name}"), &everywhere, GateChangeKind::Weakened(words));
        }
    }
}

/// Returns all scopes with gates of their own in either ledger, all tasks first.
fn scopes(agreed: &GateLedger, now: &GateLedger) -> Vec<GateScope> {
    let owners: BTreeSet<&String> =
        agreed.lists.iter().chain(&now.lists).map(|list| &list.owner).collect();
    let agents = owners.iter().filter_map(|owner| owner.strip_prefix(AGENT_LIST));
    let types = owners.iter().filter(|owner| !owner.starts_with(AGENT_LIST));
    let agents: Vec<Option<String>> =
        std::iter::once(None).chain(agents.map(|agent| Some(agent.to_owned()))).collect();
    let types = std::iter::once(None).chain(types.map(|owner| Some((*owner).clone())));
    let of_type = |task_type: Option<String>| {
        let scope = move |agent: &Option<String>| GateScope {
            task_type: task_type.clone(),
            agent: agent.clone(),
        };
        agents.iter().map(scope).collect::<Vec<_>>()
    };
    types.flat_map(of_type).collect()
}

/// Returns the hook points that can block.
fn gate_points() -> impl Iterator<Item = Point> {
    let points = Point::names().into_iter().filter_map(|name| name.parse::<Point>().ok());
    points.filter(|point| point.kind() == PointKind::Gate)
}

/// Describes a handler in a few words.
fn handler_words(handler: &Value) -> String {
    let text = |name: &str| handler.get(name).and_then(Value::as_str).map(str::to_owned);
    let words = |name: &str| {
        let list = handler.get(name)?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    };
    let named = |name: &str| text(name).map(|value| format!("{name}: {value}"));
    let known = text("shell").or_else(|| words("exec")).or_else(|| text("rule"));
    let known = known.or_else(|| named("use")).or_else(|| named("http"));
    let known = known.or_else(|| words("gatekeeper").map(|who| format!("gatekeeper: {who}")));
    quoted(&known.unwrap_or_else(|| handler.to_string()))
}
