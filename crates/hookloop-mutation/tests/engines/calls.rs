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

fn planned(line: &str, targets: &[MutationTarget], files: &[(&str, &str)]) -> EnginePlan {
    let entries: Vec<String> = ["cart.py", "src", "tests", "conftest.py", ".git", "pyproject.toml"]
        .map(str::to_owned)
        .to_vec();
    let languages: Vec<SourceLanguage> = targets.iter().map(|target| target.language).collect();
    let file = |path: &str| {
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
        file: &file,
    };
    plan_for(engine, &request).unwrap()
}

#[test]
fn mutmut_runs_beside_pytest_on_the_first_mutants_of_each_function() {
    let targets = [
        target(
            "src/pkg/cart.py",
            vec![function(&[], "total", (1, 4)), function(&["Cart"], "add", (6, 9))],
        ),
        target("src/pkg/__init__.py", vec![function(&[], "main", (1, 2))]),
    ];
    let plan = planned("PYTHONPATH=src uv run .venv/bin/pytest -q tests/unit", &targets, &[]);
    let expected = [
        "uv",
        "run",
        ".venv/bin/python",
        "-m",
        "mutmut",
        "run",
        "--max-children",
        "2",
        "pkg.cart.x_total__mutmut_1",
        "pkg.cart.x\u{1c1}Cart\u{1c1}add__mutmut_1",
        "pkg.x_main__mutmut_1",
    ];
    assert_eq!(plan.argv, expected);
    assert!(plan.env.contains(&("PYTHONPATH".to_owned(), "src".to_owned())));
    let [(path, text)] = &plan.files[..] else { panic!("{plan:?}") };
    assert_eq!(path, "setup.cfg");
    assert!(text.contains("[mutmut]\nsource_paths =\n    src\n"), "{text}");
    assert!(
        text.contains("only_mutate =\n    src/pkg/__init__.py\n    src/pkg/cart.py\n"),
        "{text}"
    );
    assert!(text.contains("also_copy =\n    cart.py\n    tests\n    conftest.py\n"), "{text}");
    assert!(text.contains("test_selection =\n    tests/unit\n"), "{text}");
}

#[test]
fn settings_of_mutmut_in_the_project_stay() {
    let targets = [target("cart.py", vec![function(&[], "total", (1, 4))])];
    for (line, program) in [
        ("pytest", vec!["mutmut"]),
        ("python3 -m pytest -x", vec!["python3", "-m", "mutmut"]),
        ("cd . && pytest", vec!["mutmut"]),
    ] {
        let plan = planned(line, &targets, &[("pyproject.toml", "[project]\nname = \"a\"\n")]);
        assert_eq!(plan.argv[..program.len()], program, "{line}");
        let [(path, text)] = &plan.files[..] else { panic!("{plan:?}") };
        assert_eq!(path, "pyproject.toml");
        assert!(text.starts_with("[project]\nname = \"a\"\n"), "{text}");
        assert!(text.contains("[tool.mutmut]\nsource_paths = [\"cart.py\"]\n"), "{text}");
    }
    let own = [("pyproject.toml", "[tool.mutmut]\nsource_paths = [\"x\"]\n")];
    assert_eq!(planned("pytest", &targets, &own).files, []);
}

#[test]
fn cargo_mutants_gets_the_lines_of_the_changed_functions() {
    let targets = [target("src/cart.rs", vec![function(&[], "total", (3, 5))])];
    let plan = planned("A=b cargo nextest run --workspace --all-features", &targets, &[]);
    let options = [
        "cargo-mutants",
        "--test-tool=nextest",
        "--test-workspace=true",
        "--all-features",
        "--file",
        "src/cart.rs",
        "--re",
        "(^|/)src/cart\\.rs:(3|4|5):",
    ];
    assert_eq!(plan.argv[..2], ["sh", "-c"]);
    assert_eq!(plan.argv[3..], options);
    assert!(plan.env.contains(&("MOST".to_owned(), "3".to_owned())), "{plan:?}");
}

#[test]
fn stryker_gets_the_ranges_of_the_changed_functions_and_the_runner() {
    let targets = [target("src/cart.ts", vec![function(&[], "total", (3, 5))])];
    for (line, runner) in [("npm test", "vitest"), ("node --test", "command")] {
        let plan = planned(line, &targets, &[]);
        assert_eq!(plan.argv[..4], ["npx", "--no-install", "stryker", "run"]);
        let settings: serde_json::Value = serde_json::from_str(&plan.files[0].1).unwrap();
        assert_eq!(settings["mutate"], serde_json::json!(["src/cart.ts:3-5"]));
        assert_eq!(settings["testRunner"], runner);
        assert_eq!(settings["commandRunner"]["command"].is_string(), runner == "command");
        assert!(plan.files[1].1.contains("strykerPlugins"), "{plan:?}");
    }
}
