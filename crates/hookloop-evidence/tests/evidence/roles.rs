//! Roles of files by their paths.

use globset::{Glob, GlobSet, GlobSetBuilder};
use hookloop_evidence::{EvidenceRole, ManifestKind, SourceLanguage, role_of};

fn protected(patterns: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).unwrap());
    }
    set.build().unwrap()
}

#[track_caller]
fn check(expected: EvidenceRole, paths: &[&str]) {
    for path in paths {
        assert_eq!(role_of(path, &GlobSet::empty()), expected, "{path}");
    }
}

#[test]
fn files_with_tests_and_files_of_tests_are_tests() {
    check(
        EvidenceRole::Test,
        &[
            "tests/test_a.py",
            "tests/data/a.json",
            "tests/Cargo.toml",
            "test_a.py",
            "pkg/a_test.py",
            "pkg/conftest.py",
            "app/tests.py",
            "a_test.go",
            "pkg/testdata/golden.txt",
            "src/a.test.ts",
            "src/a.spec.tsx",
            "src/a.test-d.ts",
            "src/__tests__/a.js",
            "src/__snapshots__/a.test.js.snap",
            "src/a.txt.snap",
            "test.js",
            "test-a.mjs",
            "a-test.cjs",
            "crates/a/tests/it/main.rs",
            "src/a/tests.rs",
            "src/tests/mod.rs",
            "fixtures/a.txt",
            "src/test/java/ATest.java",
            "scripts/test.sh",
            "scripts/run-tests.js",
            "runtests.py",
            "ci/run-tests.bash",
            "bin/check",
        ],
    );
}

#[test]
fn files_that_configure_only_runners_are_configuration() {
    check(
        EvidenceRole::Configuration,
        &[
            "pytest.ini",
            "tox.ini",
            "noxfile.py",
            "Makefile",
            "lib/GNUmakefile",
            ".npmrc",
            "gulpfile.js",
            "build/common.mk",
            "go.work",
            "pytest.py",
            "_pytest/runner.py",
            "coverage.py",
            "shop/cart.pyc",
            "shop/__pycache__/cart.cpython-311.pyc",
            "node_modules/tape/index.js",
            "web/node_modules/.bin/vitest",
            "sub/.coveragerc",
            "jest.config.ts",
            "packages/a/vitest.config.mts",
            "vitest.workspace.ts",
            "vite.config.js",
            ".mocharc.cjs",
            "karma.conf.js",
            ".config/nextest.toml",
            "sitecustomize.py",
        ],
    );
}

#[test]
fn manifests_are_known_by_their_names() {
    check(EvidenceRole::Manifest(ManifestKind::Cargo), &["Cargo.toml", "crates/a/Cargo.toml"]);
    check(
        EvidenceRole::Manifest(ManifestKind::CargoConfig),
        &[".cargo/config.toml", "a/.cargo/config"],
    );
    check(EvidenceRole::Manifest(ManifestKind::Package), &["package.json", "a/package.json"]);
    check(EvidenceRole::Manifest(ManifestKind::PyProject), &["pyproject.toml"]);
    check(EvidenceRole::Manifest(ManifestKind::SetupCfg), &["setup.cfg"]);
}

#[test]
fn other_files_are_sources_or_nothing() {
    check(EvidenceRole::Source(SourceLanguage::Python), &["a.py", "a/testing.py", "contest.py"]);
    check(EvidenceRole::Source(SourceLanguage::Rust), &["src/lib.rs", "src/test_runner.rs"]);
    check(EvidenceRole::Source(SourceLanguage::JavaScript), &["a.js", "latest.js", "b.jsx"]);
    check(EvidenceRole::Source(SourceLanguage::TypeScript), &["src/protest.ts", "a.mts"]);
    check(EvidenceRole::Source(SourceLanguage::Tsx), &["src/App.tsx"]);
    check(EvidenceRole::Source(SourceLanguage::Go), &["a.go", "testing.go"]);
    check(EvidenceRole::Other, &["README.md", "Cargo.lock", ".py", "a/config.toml", "latest/x"]);
}

#[test]
fn modules_of_a_project_do_not_replace_runners() {
    let set = GlobSet::empty();
    for path in ["shop/coverage.py", "src/unittest.py", "shop/pytest/plugin.py", "shop/tasks.py"] {
        assert_eq!(role_of(path, &set), EvidenceRole::Source(SourceLanguage::Python), "{path}");
    }
}

#[test]
fn protected_paths_are_tests() {
    let set = protected(&["golden/**", "*.golden"]);
    assert_eq!(role_of("golden/a.py", &set), EvidenceRole::Test);
    assert_eq!(role_of("golden/Cargo.toml", &set), EvidenceRole::Test);
    assert_eq!(role_of("src/a.py", &set), EvidenceRole::Source(SourceLanguage::Python));
}

#[test]
fn languages_are_known_by_extension() {
    let of = SourceLanguage::of_path;
    assert_eq!(of("a/b.pyi"), Some(SourceLanguage::Python));
    assert_eq!(of("a.b/c"), None);
    assert_eq!(of("a/.rs"), None);
    assert_eq!(of("a.cts"), Some(SourceLanguage::TypeScript));
}
