//! The engine of a gate, and its call.

use hookloop_core::hook::CommandText;
use hookloop_evidence::SourceLanguage;
use hookloop_mutation::{
    EnginePlan, EngineRequest, MutationEngine, MutationTarget, engine_for, plan_for,
};

use super::{function, target};

fn shell(line: &str) -> CommandText {
    CommandText::Shell(line.to_owned())
}

#[test]
fn the_runner_of_a_gate_decides_about_its_engine() {
    let check = |line: &str, script: Option<&str>, expected: Result<MutationEngine, &str>| {
        let languages = [SourceLanguage::Python];
        let found = engine_for(&shell(line), script, &languages);
        match expected {
            Ok(engine) => assert_eq!(found, Ok(engine), "{line}"),
            Err(part) => assert!(found.unwrap_err().contains(part), "{line}"),
        }
    };
    check("pytest -q", None, Ok(MutationEngine::Mutmut));
    check("cd api && .venv/bin/python -m pytest", None, Ok(MutationEngine::Mutmut));
    check("cargo nextest run", None, Ok(MutationEngine::CargoMutants));
    check("npm test", Some("vitest run"), Ok(MutationEngine::Stryker));
    check("node --test", None, Ok(MutationEngine::Stryker));
    check("go test ./...", None, Err("no mutation engine for Go"));
    // The languages of the work decide if the command does not.
    check("make test", None, Ok(MutationEngine::Mutmut));
    let several = [SourceLanguage::Python, SourceLanguage::Rust];
    assert!(engine_for(&shell("make test"), None, &several).unwrap_err().contains("several"));
    assert!(engine_for(&shell("make test"), None, &[SourceLanguage::Go]).is_err());
}

type Files<'f> = &'f [(&'f str, &'f str)];

fn planned_from(
    line: &str,
    targets: &[MutationTarget],
    (base, work): (Files<'_>, Files<'_>),
) -> Result<EnginePlan, String> {
    let entries = ["cart.py", "src", "tests", "conftest.py", ".git", "pyproject.toml"];
    let entries: Vec<String> = entries.map(str::to_owned).to_vec();
    let languages: Vec<SourceLanguage> = targets.iter().map(|target| target.language).collect();
    let of = |files: Files<'_>, path: &str| {
        files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned())
    };
    let (command, script) = (shell(line), Some("vitest run"));
    let engine = engine_for(&command, None, &languages).unwrap();
    let request = EngineRequest {
        command: &command,
        script: script.filter(|_| line.starts_with("npm")),
        targets,
        most: 3,
        jobs: 2,
        entries: &entries,
        file: &|path| of(work, path),
        base_file: &|path| of(base, path),
        token: "t0ken",
    };
    plan_for(engine, &request)
}

fn planned(line: &str, targets: &[MutationTarget]) -> EnginePlan {
    planned_from(line, targets, (&[], &[])).unwrap()
}

#[test]
fn mutmut_runs_beside_pytest_on_the_first_mutants_of_each_function() {
    let functions = vec![function(&[], "total", (1, 4)), function(&["Cart"], "add", (6, 9))];
    let targets = [
        target("src/pkg/cart.py", functions),
        target("src/pkg/__init__.py", vec![function(&[], "main", (1, 2))]),
    ];
    let plan = planned("PYTHONPATH=src uv run .venv/bin/pytest -q tests/unit", &targets);
    let script = ["sh", "-c", "rm -rf mutants && exec \"$@\"", "mutmut"];
    assert_eq!(plan.argv[..4], script);
    let program = ["uv", "run", ".venv/bin/python", "-m", "mutmut", "run", "--max-children", "2"];
    assert_eq!(plan.argv[4..12], program);
    let mut names = plan.argv[12..].to_vec();
    names.sort();
    let expected = [
        "pkg.cart.x_total__mutmut_1",
        "pkg.cart.x\u{1c1}Cart\u{1c1}add__mutmut_1",
        "pkg.x_main__mutmut_1",
    ];
    assert_eq!(names, expected);
    assert!(plan.env.contains(&("PYTHONPATH".to_owned(), "src".to_owned())));
    let [(path, text)] = &plan.files[..] else { panic!("{plan:?}") };
    assert_eq!(path, "setup.cfg");
    assert!(text.contains("[mutmut]\nsource_paths =\n    src\n"), "{text}");
    let mutated = "only_mutate =\n    src/pkg/__init__.py\n    src/pkg/cart.py\n";
    assert!(text.contains(mutated), "{text}");
    assert!(text.contains("also_copy =\n    cart.py\n    tests\n    conftest.py\n"), "{text}");
    assert!(text.contains("test_selection =\n    tests/unit\n"), "{text}");
}

#[test]
fn mutmut_gets_settings_that_the_work_did_not_choose() {
    let targets = [target("cart.py", vec![function(&[], "total", (1, 4))])];
    let project = [("pyproject.toml", "[project]\nname = \"a\"\n")];
    let own = [("pyproject.toml", "[tool.mutmut]\nsource_paths = [\"x\"]\n")];
    let weaker = [("pyproject.toml", "[tool.mutmut]\ndo_not_mutate = [\"*\"]\n")];
    for (line, program) in
        [("pytest", vec!["mutmut"]), ("python3 -m pytest -x", vec!["python3", "-m", "mutmut"])]
    {
        let plan = planned_from(line, &targets, (&[], &project)).unwrap();
        assert_eq!(plan.argv[4..4 + program.len()], program, "{line}");
        let [(path, text)] = &plan.files[..] else { panic!("{plan:?}") };
        assert_eq!(path, "pyproject.toml");
        assert!(text.starts_with("[project]\nname = \"a\"\n"), "{text}");
        assert!(text.contains("[tool.mutmut]\nsource_paths = [\"cart.py\"]\n"), "{text}");
    }
    let plan = planned_from("pytest", &targets, (&own, &weaker)).unwrap();
    assert_eq!(plan.files, own.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let added = planned_from("pytest", &targets, (&project, &weaker)).unwrap_err();
    assert!(added.contains("adds settings of mutmut"), "{added}");
}

#[test]
fn a_command_of_several_parts_is_not_understood() {
    let python = [target("cart.py", vec![function(&[], "total", (1, 4))])];
    let rust = [target("cart.rs", vec![function(&[], "total", (1, 4))])];
    for (line, targets) in [("cd a && pytest", &python), ("cargo test && echo 'x'", &rust)] {
        let why = planned_from(line, targets, (&[], &[])).unwrap_err();
        assert!(why.contains("one plain command"), "{why}");
    }
}

#[test]
fn code_that_hides_from_engines_is_recognized() {
    let words = |text: &'static str| hookloop_mutation::engine_words(text).collect::<Vec<_>>();
    assert_eq!(words("x = 1  # pragma: no mutate"), ["pragma: no mutate"]);
    assert_eq!(words("#[mutants::skip]"), ["mutants::skip"]);
    assert_eq!(words("if 'MUTANT_UNDER_TEST' in os.environ:"), ["MUTANT_UNDER_TEST"]);
    assert_eq!(words("mutants are strange"), [""; 0]);
}

#[test]
fn cargo_mutants_gets_the_lines_of_the_changed_functions() {
    let targets = [target("src/cart.rs", vec![function(&[], "total", (3, 5))])];
    let line = "A=b cargo nextest run --workspace --all-features --features one,two";
    let plan = planned(line, &targets);
    let options = [
        "cargo-mutants",
        "3",
        "--workspace",
        "--output",
        ".hookloop-mutants-t0ken",
        "--test-tool=nextest",
        "--test-workspace=true",
        "--all-features",
        "--features=one,two",
        "--file",
        "**/src/cart.rs",
        "--re",
        "(^|/)src/cart\\.rs:(3|4|5):",
    ];
    assert_eq!(plan.argv[..2], ["sh", "-c"]);
    assert_eq!(plan.argv[3..], options);
    let settings = [(".cargo/mutants.toml", "exclude_re = ['.*']\n")];
    let changed = planned_from("cargo test", &targets, (&[], &settings)).unwrap_err();
    assert!(changed.contains("changes .cargo/mutants.toml"), "{changed}");
    assert!(planned_from("cargo test", &targets, (&settings, &settings)).is_ok());
}

#[test]
fn stryker_gets_the_ranges_of_the_changed_functions_and_the_runner() {
    let targets = [target("src/cart.ts", vec![function(&[], "total", (3, 5))])];
    for (line, runner) in [("npm test", "vitest"), ("node --test", "command")] {
        let plan = planned(line, &targets);
        assert_eq!(plan.argv[..4], ["npx", "--no-install", "stryker", "run"]);
        let settings: serde_json::Value = serde_json::from_str(&plan.files[0].1).unwrap();
        assert_eq!(settings["mutate"], serde_json::json!(["src/cart.ts:3-5"]));
        assert_eq!(settings["testRunner"], runner);
        assert_eq!(settings["commandRunner"]["command"].is_string(), runner == "command");
        assert!(plan.files[1].1.contains("strykerPlugins"), "{plan:?}");
    }
}
