use super::*;

fn facts() -> EnvironmentFacts {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    EnvironmentFacts {
        python_packages: names(&["cachetools"]),
        python_dependencies: names(&["PyYAML", "freezegun"]),
        python_setup: Some("pip install -e .".to_owned()),
        python_setups: vec![("freezegun".to_owned(), "pip install -e '.[dev]'".to_owned())],
        node_dependencies: names(&["vitest", "@scope/tool", "typescript"]),
        node_setup: Some("npm ci".to_owned()),
    }
}

fn result<'a>(code: i32, stdout: &'a str, stderr: &'a str) -> CommandResult<'a> {
    CommandResult { exit_code: Some(code), stdout, stderr }
}

#[test]
fn a_dependency_of_an_extra_is_installed_with_the_extra() {
    let setup = |module: &str| {
        let line = format!("ModuleNotFoundError: No module named '{module}'\n");
        find_gap(result(1, "", &line), &facts()).and_then(|gap| gap.setup)
    };
    assert_eq!(setup("freezegun").as_deref(), Some("pip install -e '.[dev]'"));
    assert_eq!(setup("yaml").as_deref(), Some("pip install -e ."));
}

#[test]
fn a_command_that_was_not_found_is_named_with_its_setup() {
    let check = |code: i32, stdout: &str, stderr: &str, cause: &str, setup: Option<&str>| {
        let found = cannot_run(result(code, stdout, stderr), &facts());
        let found = found.unwrap_or_else(|| panic!("{stdout}{stderr}"));
        assert!(found.cause.contains(cause), "{cause}: {found:?}");
        assert_eq!(found.setup.as_deref(), setup, "{stderr}");
    };
    let pip = Some("pip install pytest");
    check(127, "", "sh: 1: pytest: not found\n", "`pytest` was not found (exit code 127)", pip);
    check(127, "", "/bin/sh: 1: pytest: not found\n", "`pytest` was not found", pip);
    check(127, "", "bash: line 1: pytest: command not found\n", "`pytest` was not found", pip);
    check(127, "", "sh: pytest: not found\n", "`pytest` was not found", pip);
    check(127, "", "zsh:1: command not found: pytest\n", "`pytest` was not found", pip);
    check(127, "", "/usr/bin/env: ‘ruby3’: No such file or directory\n", "`ruby3`", None);
    check(127, "", "sh: 1: ./gate.sh: not found\n", "`./gate.sh` was not found", None);
    check(126, "", "sh: 1: ./gate.sh: Permission denied\n", "can't be executed", None);
    check(127, "sh: 1: pytest: not found\n", "", "`pytest` was not found", pip);
    check(127, "", "", "exit code 127 and no output", None);
    // Scripts of packages, and recipes, begin or end with lines of their runner.
    let npm = "\n> small@1.0.0 test\n> vitest run\n\n";
    check(127, npm, "sh: 1: vitest: not found\n", "`vitest` was not found", Some("npm ci"));
    check(127, npm, "sh: 1: tsc: not found\nnpm error code 127\n", "`tsc`", Some("npm ci"));
    let yarn = "/bin/sh: 1: vitest: not found\nerror Command failed with exit code 127.\n";
    check(
        127,
        "yarn run v1.22.22\n$ vitest\ninfo Visit https://x\n",
        yarn,
        "vitest",
        Some("npm ci"),
    );
    let make = "make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n";
    check(2, "pytest -q\n", make, "`pytest` was not found", pip);
}

#[test]
fn a_command_that_ran_is_not_taken_for_one_that_was_not_found() {
    let check = |code: i32, stdout: &str, stderr: &str| {
        assert_eq!(cannot_run(result(code, stdout, stderr), &facts()), None, "{stdout}{stderr}");
    };
    check(1, "", "sh: 1: pytest: not found\n");
    check(0, "", "");
    check(2, "", "sh: 1: pytest: not found\n");
    // A suite that ended with this code after it had worked.
    check(127, "3 tests failed\n", "");
    check(127, "", "the answer is wrong: 41\n");
    let pytest = "=========================== short test summary info ============================\n\
                  FAILED tests/test_a.py::test_x - assert 1 == 2\n\
                  ============================== 1 failed in 0.01s ===============================\n";
    check(127, pytest, "sh: 1: pytest: not found\n");
    check(2, "cc -c a.c\n", "make: *** [Makefile:2: test] Error 1\n");
    assert_eq!(cannot_run(CommandResult::default(), &facts()), None);
}

/// Messages as real tools print them.
#[test]
fn an_unprepared_environment_is_reported_with_its_setup_command() {
    let check = |line: &str, cause: &str, setup: Option<&str>| {
        for (stdout, stderr) in [(line, ""), ("", line)] {
            let found = find_gap(result(1, stdout, stderr), &facts());
            let found = found.unwrap_or_else(|| panic!("{line}"));
            assert!(found.cause.contains(cause), "{line}: {found:?}");
            assert_eq!(found.setup.as_deref(), setup, "{line}");
        }
    };
    let own = "E   ModuleNotFoundError: No module named 'cachetools'\n";
    check(own, "own package `cachetools`", Some("pip install -e ."));
    check(
        "ModuleNotFoundError: No module named 'yaml'",
        "dependency `yaml`",
        Some("pip install -e ."),
    );
    check("/usr/bin/python3: No module named pytest\n", "`pytest`", Some("pip install pytest"));
    check(
        "importlib.metadata.PackageNotFoundError: No package metadata was found for cachetools",
        "`cachetools` is not installed",
        Some("pip install -e ."),
    );
    check("Error: Cannot find module 'vitest'\n", "dependency `vitest`", Some("npm ci"));
    check(
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@scope/tool' imported from /p/a.js",
        "dependency `@scope/tool`",
        Some("npm ci"),
    );
    check(
        "Error: Cannot find module '/p/node_modules/vitest/vitest.mjs'",
        "vitest",
        Some("npm ci"),
    );
    check(
        " WARN   Local package.json exists, but node_modules missing, did you mean to install?",
        "package.json",
        Some("pnpm install"),
    );
    check(
        "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly, and no \
         default is configured.\nhelp: run 'rustup default stable' to download the latest stable release",
        "no default toolchain",
        Some("rustup default stable"),
    );
    check(
        "error: 'cargo-clippy' is not installed for the toolchain 'stable-x86_64-unknown-linux-gnu'.",
        "clippy",
        Some("rustup component add clippy"),
    );
    check("error: linker `cc` not found\n  |\n", "linker", None);
    check(
        "go: example.com/x@v1.0.0: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org: no such host",
        "Go modules",
        Some("go mod download"),
    );
    check("go: go.mod requires go >= 1.24 (running go 1.22.2; GOTOOLCHAIN=local)", "too old", None);
    check(
        "Could not find gem 'rspec' in locally installed gems.\n",
        "gems",
        Some("bundle install"),
    );
    check(
        "ERROR: JAVA_HOME is not set and no 'java' command could be found in your PATH.",
        "JDK",
        None,
    );
    check(
        "PHP Fatal error:  Uncaught Error: Failed opening required 'vendor/autoload.php': No such file or directory",
        "composer.json",
        Some("composer install"),
    );
    check("A compatible .NET SDK was not found.", ".NET SDK", None);
    check(
        "  the dependency is not available, run \"mix deps.get\"",
        "mix.exs",
        Some("mix deps.get"),
    );
}

#[test]
fn a_failure_of_the_projects_own_files_is_no_gap_of_the_environment() {
    let check = |line: &str| {
        assert_eq!(find_gap(result(1, line, ""), &facts()), None, "{line}");
        assert_eq!(find_gap(result(0, line, ""), &facts()), None, "{line}");
    };
    check("AssertionError: assert 41 == 42");
    // A file that the project still lacks.
    check("ModuleNotFoundError: No module named 'cachetools.keys'");
    check("ModuleNotFoundError: No module named 'answer'");
    check("Error: Cannot find module './answer'");
    check("Error: Cannot find module 'not-declared'");
    check("error[E0432]: unresolved import `crate::answer`");
}

#[test]
fn gaps_reported_by_pnpm_tox_and_nox_are_found() {
    let check = |code: i32, output: &str, cause: &str, setup: Option<&str>| {
        let found = find_gap(result(code, output, ""), &facts());
        let found = found.unwrap_or_else(|| panic!("{output}"));
        assert!(found.cause.contains(cause), "{cause}: {found:?}");
        assert_eq!(found.setup.as_deref(), setup, "{output}");
    };
    let pnpm = "packages/a test$ vitest run\npackages/a test: sh: 1: vitest: not found\n[ELIFECYCLE] Test failed.\n\
                Error: ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL\n\n  × \"pnpm recursive run\" failed in /p/packages/a\n";
    check(1, pnpm, "`vitest` was not found", Some("npm ci"));
    let tox =
        "py37: failed with could not find python interpreter matching any of the specs py37\n";
    check(1, tox, "tox's env_list", None);
    let nox = "nox > Session tests failed: Python interpreter 3.7 not found (took 5 seconds).\n";
    check(1, nox, "noxfile", None);
    // An undeclared program may be a file that the project still lacks.
    let other = pnpm.replace("vitest", "our-tool");
    assert_eq!(find_gap(result(1, &other, ""), &facts()), None);
}
