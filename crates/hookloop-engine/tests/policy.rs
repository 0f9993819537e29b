//! Tests that no user or project configuration loosens a policy.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookloop_agents::repo_consent::{AgentChoices, AgentRefusal, fit};
use hookloop_config::agents::AgentPermissions;
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::policy::{PolicyFile, PolicySet};
use hookloop_config::project_file;
use hookloop_config::user::UserConfig;
use hookloop_core::hook::{Hook, HookRegistry, HookSource};
use hookloop_engine::log_location::LaunchContext;
use hookloop_hooks::trust::{AgentGround, Trust};
use serde_json::{Map, Value, json};

const POLICY: &str = "version: 1
repository_hooks: none
gates:
  stop: [{name: required, command: ['true'], any_of: one}]
  before_submit: [{name: scan, command: ['true'], needs: [licences]}, {name: licences, file: LICENSE, priority: 1}]
  before_merge: [{use: run_tests, command: make check}]
limits:
  cascade: {depth: 3, total: 50}
  max_iterations: 20
  max_duration: 1h
  turn_timeout: 10m
  gate_retries: 2
  max_tokens: 1000
  max_cost: 2
  budget: {cost: 5, period: day}
agents: [claude, command]
permissions: edit
accept_at_retry_limit: false
";

/// A directory with a policy, a user configuration and a project.
struct Bed {
    directory: tempfile::TempDir,
    policies: Vec<PolicyFile>,
    /// Whether agents were already checked without any settings.
    has_looked: Cell<bool>,
}

impl Bed {
    fn new(policy: Option<&str>) -> Bed {
        let directory = tempfile::tempdir().unwrap();
        let bed = Bed { directory, policies: Vec::new(), has_looked: Cell::new(false) };
        for name in ["claude", "codex", "gemini", "opencode", "true"] {
            let program = bed.write(&format!("bin/{name}"), "#!/bin/sh\n");
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bed.write("project/hookloop.yaml", "version: 1\n");
        bed.write("config.yaml", "version: 1\n");
        let policies = policy.map(|text| PolicyFile::System(bed.policy("policy", text)));
        Bed { policies: policies.into_iter().collect(), ..bed }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a policy file that only its owner can change.
    fn policy(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(&format!("{name}/policy.yaml"), text);
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&path, 0o644);
        mode(path.parent().unwrap(), 0o755);
        path
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn around(&self) -> LaunchContext {
        let user_file = Some(self.directory.path().join("config.yaml"));
        LaunchContext { user_file, policies: self.policies.clone(), ..LaunchContext::default() }
    }

    /// Returns the effective configuration of the project; `None` if a file is refused.
    fn rules(&self) -> Option<EffectiveConfig> {
        self.rules_of(&self.around().user().ok()?)
    }

    fn rules_of(&self, user: &UserConfig) -> Option<EffectiveConfig> {
        let settings = project_file::settings(&self.root().join("hookloop.yaml"), user);
        settings.ok().map(|settings| settings.rules)
    }

    /// Returns the names of the rules that are looser than the policy allows.
    fn looseness(&self, rules: &EffectiveConfig, policy: &PolicySet) -> BTreeSet<&'static str> {
        let mut loose = BTreeSet::new();
        let mut check = |is_kept: bool, what| {
            if !is_kept {
                loose.insert(what);
            }
        };
        check(rules.limits.within(policy.limits()) == rules.limits, "limits");
        check(has_gates(rules, policy), "gates");
        check(rules.session.prompt_template.is_none(), "prompt");
        check(rules.agents.iter().all(|agent| agent.source != HookSource::Project), "settings");
        let hooks = rules.hooks.list();
        check(hooks.iter().all(|hook| hook.source != HookSource::Project), "hooks");
        let of_product = |hooks: &HookRegistry| {
            let builtin =
                |hook: &&Hook| hook.source == HookSource::Builtin && !hook.points.is_empty();
            hooks.list().iter().filter(builtin).take(3).cloned().collect::<Vec<Hook>>()
        };
        check(of_product(&rules.hooks) == of_product(&HookRegistry::builtin()), "built-ins");
        let configured = rules.agents.iter().map(|agent| agent.name.as_str());
        let named = ["claude", "codex", "gemini", "opencode", "command:true", "acp:true"];
        let trust = Trust::default();
        let path = self.directory.path().join("bin");
        let ground = AgentGround { root: &self.root(), trust: &trust, path: path.as_os_str() };
        // Without agent settings the result is the same as in the first check.
        let is_known = self.has_looked.replace(true) && rules.agents.is_empty();
        for name in configured.chain(named).filter(|_| !is_known) {
            let Ok(fit) = fit(rules, name, &AgentChoices::default(), ground) else { continue };
            let settings = fit.settings;
            let is_admitted = settings.base.is_none_or(|base| base == "claude");
            check(is_admitted && name != "acp:true", "agents");
            check(settings.permissions <= AgentPermissions::Edit, "permissions");
            check(settings.args.is_empty() && settings.allowed_tools.is_empty(), "powers");
            check(!settings.takes_repository, "takes repository");
        }
        let full = AgentChoices { model: None, permissions: Some("full".to_owned()) };
        let asked = fit(rules, "claude", &full, ground);
        check(matches!(asked, Err(AgentRefusal::Forbidden(_))), "asked for");
        loose
    }
}

/// Returns whether all gates of the policy come first and unchanged, for every task type and agent.
fn has_gates(rules: &EffectiveConfig, policy: &PolicySet) -> bool {
    let switches: Vec<(String, bool)> =
        rules.hooks.list().iter().map(|hook| (hook.name.clone(), false)).collect();
    let hooks = rules.switched(&switches);
    let types = rules.types.keys().map(|name| Some(name.as_str())).chain([None, Some("mine")]);
    let agents = [None, Some("claude"), Some("mine"), Some("policy")];
    let found = |point: &str, task_type: Option<&str>, agent: Option<&str>| -> Vec<Hook> {
        hooks.resolve_for(point, task_type, agent).into_iter().cloned().collect()
    };
    let points = ["stop", "before_submit", "before_merge"];
    types.into_iter().all(|task_type| {
        agents.iter().all(|agent| {
            points.iter().all(|point| {
                let mut required: Vec<Hook> = policy
                    .gates()
                    .map(|gate| gate.value.clone())
                    .filter(|gate| gate.points.iter().any(|at| at.name() == *point))
                    .collect();
                required.sort_by_key(|gate| gate.priority);
                let found = found(point, task_type, *agent);
                let group = |hook: &Hook| hook.options.any_of.clone();
                let is_in_group = |hook: &Hook| {
                    required
                        .iter()
                        .any(|gate| gate.options.any_of.is_some() && group(gate) == group(hook))
                };
                found.starts_with(&required)
                    && !required.is_empty()
                    && !found[required.len()..].iter().any(is_in_group)
            })
        })
    })
}

/// Values that conform to a schema, including some that try to exceed a policy.
struct Samples<'s> {
    definitions: &'s Value,
}

const DEPTH_MAX: usize = 8;
const WORDS: [&str; 11] = [
    "none",
    "policy/one",
    "full",
    "24h",
    "9GB",
    "required",
    "policy/required",
    "x",
    "claude",
    "sqlite",
    "safe",
];

impl Samples<'_> {
    fn of(&self, schema: &Value, depth: usize) -> Vec<Value> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            return self.of(&self.definitions[name], depth);
        }
        for key in ["enum", "oneOf", "anyOf"] {
            let Some(list) = schema[key].as_array() else { continue };
            return match key {
                "enum" => list.clone(),
                _ => list.iter().flat_map(|one| self.of(one, depth)).collect(),
            };
        }
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            // The target of an action.
            _ => return vec![json!({ "goal": "x" }), json!({ "type": "x" }), json!("x")],
        };
        kinds.into_iter().flat_map(|kind| self.of_kind(kind, schema, depth)).collect()
    }

    fn of_kind(&self, kind: &str, schema: &Value, depth: usize) -> Vec<Value> {
        match kind {
            "integer" => vec![json!(0), json!(1), json!(1_000_000), json!(u32::MAX), json!(86400)],
            "number" => vec![json!(0.0), json!(1e9), json!(0.5)],
            "boolean" => vec![json!(true), json!(false)],
            "string" if depth > 2 => WORDS[..3].iter().map(|word| json!(word)).collect(),
            "string" => WORDS.iter().map(|word| json!(word)).collect(),
            "array" => {
                let items = self.of(&schema["items"], depth + 1);
                let one = items.into_iter().map(|item| json!([item]));
                one.chain([json!([])]).collect()
            }
            "object" => self.objects(schema, depth),
            _ => Vec::new(),
        }
    }

    fn objects(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let base: Map<String, Value> = required
            .iter()
            .filter_map(|name| {
                let first = self.of(&properties[*name], depth + 1).into_iter().next_back()?;
                Some(((*name).to_owned(), first))
            })
            .collect();
        let mut objects = Vec::new();
        let points = ["stop", "before_submit", "task_created"];
        let is_of_points = points.iter().all(|point| properties.contains_key(*point));
        // Types and agents repeat the hook points at a deeper level; one of those points represents
        // all.
        let tried = if depth > 1 { &points[1..2] } else { &points[..] };
        let is_tried = |name: &str| !is_of_points || tried.contains(&name);
        for (name, property) in properties.iter().filter(|(name, _)| is_tried(name)) {
            for sample in self.of(property, depth + 1) {
                let mut object = base.clone();
                object.insert(name.clone(), sample);
                objects.push(json!(object));
                // Options are valid only beside a command.
                if properties.contains_key("command") && name != "command" {
                    object.insert("command".to_owned(), json!(["true"]));
                    objects.push(json!(object));
                }
            }
        }
        if let Some(more @ Value::Object(_)) = schema.get("additionalProperties") {
            // Other names get only some of the samples: all combinations would take minutes.
            let others = ["mine", "policy", "nats://h:1"].iter().cycle();
            for (sample, other) in self.of(more, depth + 1).into_iter().zip(others) {
                objects.push(json!({ "claude": sample }));
                if depth == 0 {
                    objects.push(json!({ *other: sample }));
                }
            }
        }
        objects
    }
}

/// Writes every key with each of its samples, and calls `see` for each accepted document.
fn check_all(
    schema: &Value,
    file: &str,
    bed: &Bed,
    see: &mut dyn FnMut(&str, &Value, &EffectiveConfig),
) {
    let samples = Samples { definitions: &schema["$defs"] };
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let user = bed.around().user().unwrap();
    let is_users = file == "config.yaml";
    for (key, property) in schema["properties"].as_object().unwrap() {
        for sample in samples.of(property, 0) {
            let mut document = json!({ "version": 1 });
            document[key] = sample;
            bed.write(file, &document.to_string());
            let rules = if is_users { bed.rules() } else { bed.rules_of(&user) };
            if let Some(rules) = rules {
                *taken.entry(key).or_default() += 1;
                see(key, &document, &rules);
            }
        }
        assert!(taken.contains_key(key.as_str()), "no sample of `{key}` is accepted");
    }
    bed.write(file, "version: 1\n");
    assert!(taken.values().sum::<usize>() > 500, "{taken:?}");
}

#[test]
fn no_key_of_a_project_or_a_user_loosens_a_policy() {
    for (schema, file) in [
        (project_file::schema(), "project/hookloop.yaml"),
        (hookloop_config::user_file::schema(), "config.yaml"),
    ] {
        let bed = Bed::new(Some(POLICY));
        let policy = bed.around().policies().unwrap();
        check_all(&schema, file, &bed, &mut |_, document, rules| {
            let loose = bed.looseness(rules, &policy);
            assert!(loose.is_empty(), "{file}: {document}: {loose:?}");
        });
    }
}

/// Rules that can be looser than a policy allows.
const LOOSE: [&str; 10] = [
    "agents",
    "asked for",
    "built-ins",
    "gates",
    "hooks",
    "limits",
    "permissions",
    "powers",
    "prompt",
    "settings",
];

/// Checks that the test above can fail: without the policy, each rule is loosened.
#[test]
fn without_a_policy_the_same_keys_loosen_every_rule() {
    let policy = Bed::new(Some(POLICY)).around().policies().unwrap();
    let mut loose = BTreeSet::new();
    for (schema, file) in [
        (project_file::schema(), "project/hookloop.yaml"),
        (hookloop_config::user_file::schema(), "config.yaml"),
    ] {
        let bed = Bed::new(None);
        let mut last = String::new();
        check_all(&schema, file, &bed, &mut |key, _, rules| {
            // One sample of each key is enough once all rules are found.
            if last != key || loose.len() < LOOSE.len() {
                loose.extend(bed.looseness(rules, &policy));
                key.clone_into(&mut last);
            }
        });
    }
    assert_eq!(loose, LOOSE.into());
}

#[test]
fn several_policies_hold_together_and_each_only_tightens() {
    let mut bed = Bed::new(Some(POLICY));
    let second = "version: 1
repository_hooks: trusted
gates: {stop: [{name: required, command: ['false']}]}
limits: {max_iterations: 50, max_errors: 1}
agents: [claude, codex]
permissions: full
accept_at_retry_limit: true
";
    bed.policies.push(PolicyFile::Named(bed.policy("second", second)));
    let policy = bed.around().policies().unwrap();
    assert_eq!(policy.limits().session.max_iterations, 20);
    assert_eq!(policy.limits().session.max_errors, 1);
    assert_eq!(policy.permissions().unwrap().value, AgentPermissions::Edit);
    assert!(policy.no_repository_hooks().is_some() && policy.no_accepting().is_some());
    let rules = bed.rules().unwrap();
    let stop: Vec<&str> =
        rules.hooks.resolve("stop", None).iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(stop, ["policy/required", "policy-2/required"]);
    let trust = Trust::default();
    let path = bed.directory.path().join("bin");
    let ground = AgentGround { root: &bed.root(), trust: &trust, path: path.as_os_str() };
    let is_fit = |name| fit(&rules, name, &AgentChoices::default(), ground).is_ok();
    assert!(is_fit("claude") && !is_fit("codex") && !is_fit("command:true"));
}

#[test]
fn a_project_is_allowed_only_in_repositories_of_the_policy() {
    let bed = Bed::new(Some(
        "version: 1\nrepositories: ['/srv/work/*', 'https://git.example.com/shop/*']\n",
    ));
    let policy = bed.around().policies().unwrap();
    let check = |root: &str, url: Option<&str>, allowed: bool| {
        assert_eq!(policy.check_project(Path::new(root), url).is_ok(), allowed, "{root} {url:?}");
    };
    check("/srv/work/a", None, true);
    check("/srv/work/a/b", None, false);
    check("/srv/work", None, false);
    check("/home/u/a", None, false);
    check("/var/a", Some("https://git.example.com/shop/till"), true);
    check("/var/a", Some("https://git.example.com/shop/.."), false);
    check("/var/a", Some("https://git.example.com/shop/%2e%2e"), false);
    check("/var/a", Some("https://git.example.com/shop/a?/../../b"), false);
    check("/var/a", Some("https://git.example.com/shop/a/b"), false);
    check("/var/a", Some("https://git.example.com@evil/shop/a"), false);
    check("/var/a", Some("http://git.example.com/shop/a"), false);
    let refusal = policy.check_project(Path::new("/home/u/a"), None).unwrap_err().to_string();
    assert!(refusal.contains("policy.yaml:2"), "{refusal}");
}

#[test]
fn a_missing_system_policy_is_allowed_and_an_unsafe_file_is_an_error() {
    let mut bed = Bed::new(None);
    let missing = bed.directory.path().join("etc/policy.yaml");
    let mut check = |file: PolicyFile, part: &str| {
        bed.policies = vec![file];
        let loaded = bed.around().policies();
        match part {
            "" => assert!(loaded.unwrap().is_none()),
            part => {
                let error = loaded.unwrap_err().to_string();
                assert!(error.contains(part), "{error}");
            }
        }
    };
    check(PolicyFile::System(missing.clone()), "");
    check(PolicyFile::Named(missing.clone()), "No such file");
    fs::create_dir(missing.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", &missing).unwrap();
    check(PolicyFile::System(missing.clone()), "No such file");
    let bed = Bed::new(None);
    let path = bed.policy("etc", "version: 1\n");
    for (place, mode) in [(path.as_path(), 0o664), (&path, 0o646), (path.parent().unwrap(), 0o775)]
    {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        let error = hookloop_config::policy_file::load(&[PolicyFile::System(path.clone())])
            .unwrap_err()
            .to_string();
        assert!(error.contains("others can write"), "{error}");
    }
}

#[test]
fn mistakes_are_named_with_their_line() {
    let check = |text: &str, line: u64, part: &str| {
        let bed = Bed::new(Some(&format!("version: 1\n{text}\n")));
        let error = bed.around().policies().unwrap_err();
        assert_eq!(error.line, Some(line), "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    };
    check("hooks: {}", 2, "hooks");
    check("repository_hooks: some", 2, "");
    check("repositories: []", 2, "leave it out");
    check("repositories:\n  - work/*", 3, "absolute");
    check("agents: [mine]", 2, "`mine`");
    check("trust: [sha256:12]", 2, "hooks trust --show");
    check("gates:\n  stop: []\n  task_completed: [{command: ls}]", 4, "task_completed");
    check("gates:\n  stop:\n    - {command: ls, colour: red}", 4, "colour");
    check("gates:\n  before_merge:\n    - gatekeeper: qa", 4, "gatekeepers");
    check("permissions: all", 2, "");
    check("accept_at_retry_limit: sometimes", 2, "true");
    check("limits: {max_iterations: many}", 2, "whole number");
    check("secrets: {'*': {A_B: {env: X, file: y}}}", 2, "exactly one");
    check("secrets: {'*': {PATH: {env: X}}}", 2, "PATH");
    check("secrets: {'*': {HOOKLOOP_STORE: {env: X}}}", 2, "HOOKLOOP_STORE");
    check("secrets: {'a b': {A_B: {env: X}}}", 2, "a b");
}
