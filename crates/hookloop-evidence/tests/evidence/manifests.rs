//! Test settings of manifests.

use hookloop_evidence::{EvidenceError, MANIFEST_BYTES_MAX, ManifestKind, graft_manifest};

use ManifestKind::{Cargo, CargoConfig, Package, PyProject, SetupCfg};

/// Checks the manifest that the settings of the base make of the work's, or that they are the same.
#[track_caller]
fn check(kind: ManifestKind, base: &str, work: &str, expected: Option<&str>) {
    let found = graft_manifest(kind, base, work).unwrap();
    assert_eq!(found.as_deref(), expected);
}

#[track_caller]
fn check_same(kind: ManifestKind, base: &str, work: &str) {
    check(kind, base, work, None);
}

#[test]
fn a_cargo_manifest_gets_the_targets_and_development_dependencies_of_the_base() {
    let base = r#"[package]
name = "a"
autotests = false

[lib]
doctest = false

[dependencies]
x = "1"

[dev-dependencies]
proptest = "1"
both = "1"

[target.'cfg(unix)'.dev-dependencies]
u = "1"

[[test]]
name = "one"
path = "tests/one.rs"

[profile.test]
opt-level = 1
"#;
    let work = r#"[package]
name = "a"
version = "2.0.0"

[lib]
test = false

[dependencies]
x = "2"
y = "1"

[dev-dependencies]
both = "2"
more = "1"
"#;
    let expected = r#"[package]
name = "a"
version = "2.0.0"
autotests = false

[lib]
doctest = false

[dependencies]
x = "2"
y = "1"

[dev-dependencies]
both = "1"
more = "1"
proptest = "1"

[[test]]
name = "one"
path = "tests/one.rs"

[profile.test]
opt-level = 1

[target."cfg(unix)".dev-dependencies]
u = "1"
"#;
    let found = graft_manifest(Cargo, base, work).unwrap().unwrap();
    let sorted = |text: &str| {
        let mut blocks: Vec<String> =
            text.split("\n\n").map(|part| part.trim().to_owned()).collect();
        blocks.sort();
        blocks
    };
    assert_eq!(sorted(&found), sorted(expected), "{found}");
    check_same(Cargo, base, &found);
}

#[test]
fn other_settings_and_formats_of_a_cargo_manifest_are_no_difference() {
    let base = "dev-dependencies = { a = '1', b.path = 'x' }\n[lib]\nname = 'x'\n";
    let work = "[package]\nname = 'y'\n[dev-dependencies]\na = \"1\"\nnew = '2'\n[dev-dependencies.b]\npath = 'x'\n[features]\nf = []\n";
    check_same(Cargo, base, work);
}

#[test]
fn targets_of_cargo_get_the_test_keys_of_the_base() {
    let base = "[[bin]]\nname = 'a'\ntest = true\n[[example]]\nname = 'e'\ntest = true\n";
    let work =
        "[[bin]]\nname = 'a'\ntest = false\npath = 'x.rs'\n[[bin]]\nname = 'b'\nharness = false\n";
    let found = graft_manifest(Cargo, base, work).unwrap().unwrap();
    for part in ["path = 'x.rs'", "name = 'b'", "[[example]]"] {
        assert!(found.contains(part), "{found}");
    }
    assert!(found.contains("test = true") && !found.contains("false"), "{found}");
    check(Cargo, "", "[[test]]\nname = 'x'\nharness = false\n", Some(""));
}

#[test]
fn workspaces_get_the_dependencies_that_the_base_refers_to() {
    let base = "[workspace.dependencies]\na = '1'\nb = '1'\n";
    let work = "[workspace.dependencies]\nb = '2'\n";
    let found = graft_manifest(Cargo, base, work).unwrap().unwrap();
    assert_eq!(found, "[workspace.dependencies]\nb = '2'\na = '1'\n");
}

#[test]
fn settings_of_cargo_are_those_of_the_base() {
    let base = "[target.x86_64-unknown-linux-gnu]\nrunner = 'a'\n";
    check(CargoConfig, base, "", Some(base));
    check_same(CargoConfig, base, base);
}

#[test]
fn a_package_gets_the_scripts_runners_and_development_dependencies_of_the_base() {
    let base = r#"{
  "name": "a",
  "scripts": { "build": "tsc", "test": "npm run unit && run-s check:*", "unit": "vitest", "check:a": "a", "lint": "eslint" },
  "jest": { "testMatch": ["**/*.test.js"] },
  "devDependencies": { "vitest": "3.0.0", "x": "1" }
}"#;
    let work = r#"{
  "name": "a",
  "exports": { "import": "./b.mjs", "default": "./a.js" },
  "scripts": { "build": "new", "pretest": "cheat", "test": "true", "unit": "true", "check:a": "true", "lint": "true", "test:new": "x" },
  "mocha": { "spec": "x" },
  "devDependencies": { "vitest": "file:fake", "y": "2" }
}"#;
    let expected = r#"{
  "name": "a",
  "exports": { "import": "./b.mjs", "default": "./a.js" },
  "scripts": {
  "build": "new",
  "test": "npm run unit && run-s check:*",
  "unit": "vitest",
  "check:a": "a",
  "lint": "true",
  "test:new": "x"
},
  "devDependencies": {
  "vitest": "3.0.0",
  "y": "2",
  "x": "1"
},
  "jest": { "testMatch": ["**/*.test.js"] }
}
"#;
    check(Package, base, work, Some(expected));
    check_same(Package, base, expected);
    check_same(
        Package,
        r#"{"jest":{"a":1,"b":[2]}}"#,
        "{\"jest\": {\"b\": [ 2 ], \"a\": 1}, \"x\": 1}",
    );
}

#[test]
fn a_project_of_python_gets_the_tools_groups_and_plugins_of_the_base() {
    let base = r#"[project]
name = "a"
[project.optional-dependencies]
test = ["pytest>=8", "Freeze_Gun"]
docs = ["sphinx"]
[tool.pytest.ini_options]
addopts = "-ra"
[dependency-groups]
dev = ["pytest", {include-group = "lint"}]
[tool.hatch.envs.default.scripts]
test = "pytest"
[tool.poetry.group.dev.dependencies]
pytest = "8"
"#;
    let work = r#"[project]
name = "a"
dependencies = ["new"]
[project.optional-dependencies]
test = ["pytest>=1", "freeze-gun==0", "more"]
[project.entry-points.pytest11]
cheat = "a.plugin"
[tool.pytest.ini_options]
addopts = "-k nothing"
[tool.ruff]
line-length = 100
"#;
    let found = graft_manifest(PyProject, base, work).unwrap().unwrap();
    for part in [
        "test = [\"pytest>=8\", \"Freeze_Gun\", \"more\"]",
        "addopts = \"-ra\"",
        "dev = [\"pytest\", {include-group = \"lint\"}]",
        "test = \"pytest\"",
        "pytest = \"8\"",
        "dependencies = [\"new\"]",
        "line-length = 100",
    ] {
        assert!(found.contains(part), "{part} is not in\n{found}");
    }
    assert!(!found.contains("cheat") && !found.contains("sphinx"), "{found}");
    check_same(PyProject, base, &found);
    check_same(
        PyProject,
        "tool.coverage.run.branch = true",
        "[tool.coverage]\nrun = {branch = true}",
    );
}

#[test]
fn a_setup_file_gets_the_sections_extras_and_plugins_of_the_base() {
    let base = "[metadata]
name = a
[options.extras_require]
test =
    pytest>=8
docs = sphinx
[tool:pytest]
addopts = -ra
";
    let work = "[metadata]
name = a
version = 2

[options.extras_require]
test =
    pytest
    more

[options.entry_points]
console_scripts =
    a = a:main
pytest11 =
    cheat = a.plugin

[tool:pytest]
# quiet
addopts = -k nothing
";
    let expected = "[metadata]
name = a
version = 2

[options.extras_require]
test =
    pytest>=8
    more
[options.entry_points]
console_scripts =
    a = a:main
[tool:pytest]
addopts = -ra
";
    check(SetupCfg, base, work, Some(expected));
    check_same(SetupCfg, base, expected);
    check_same(
        SetupCfg,
        base,
        "[tool:pytest]\naddopts : -ra\n[options.extras_require]\nTest = pytest>=8\n",
    );
}

#[test]
fn manifests_that_do_not_parse_are_errors() {
    for (kind, work) in [
        (Cargo, "a = "),
        (Package, "[]"),
        (Package, "{\"scripts\": []}"),
        (PyProject, "[a"),
        (SetupCfg, "a = 1"),
    ] {
        let base = "";
        let base = if kind == Package { "{}" } else { base };
        let error = graft_manifest(kind, base, work).unwrap_err();
        assert!(matches!(error, EvidenceError::Manifest { .. }), "{error}");
    }
    let error = graft_manifest(Cargo, "lib.test = true", "lib = 1").unwrap_err();
    assert!(matches!(error, EvidenceError::Manifest { .. }), "{error}");
    let large = " ".repeat(MANIFEST_BYTES_MAX + 1);
    let error = graft_manifest(Cargo, "", &large).unwrap_err();
    assert!(matches!(error, EvidenceError::TooMany { .. }), "{error}");
}
