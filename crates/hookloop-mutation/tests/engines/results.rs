//! The results of engines, from files as they write them, also cut and malformed.

use std::fs;

use hookloop_core::hook::CommandText;
use hookloop_mutation::{
    EngineEnd, EnginePlan, EngineRequest, MutantOutcome, MutationEngine, MutationTarget,
    TestedMutant, plan_for, reported, result_of, stryker_report,
};

use super::{function, target};

const META: &str = r#"{"exit_code_by_key": {"cart.x_total__mutmut_1": 1, "cart.x_total__mutmut_2": 0,
  "cart.x_total__mutmut_3": -24, "cart.x_total__mutmut_4": null, "cart.x_total__mutmut_5": 33,
  "cart.x_total__mutmut_99": 0, "cart.x_other__mutmut_1": 0}, "durations_by_key": {}}"#;
const COPY: &str = "import a\n\ndef x_total__mutmut_orig(prices):\n    if prices > 1:\n        return 2\n\ndef \
                    x_total__mutmut_2(prices):\n    if prices >= 1:\n        return 2\n";
const SPANS: &str =
    r#"{"version": 1, "spans": {"x_total__mutmut_orig": [3, 5], "x_total__mutmut_2": [6, 9]}}"#;
const OUTCOMES: &str = r#"{"outcomes": [{"scenario": "Baseline", "summary": "Success"},
  {"scenario": {"Mutant": {"name": "src/lib.rs:4:5: replace clamp -> i32 with 0", "file": "src/lib.rs",
    "span": {"start": {"line": 4, "column": 5}}}}, "summary": "CaughtMutant"},
  {"scenario": {"Mutant": {"name": "src/lib.rs:5:9: replace < with ==", "file": "src/lib.rs",
    "span": {"start": {"line": 5, "column": 9}}}}, "summary": "MissedMutant"}]}"#;
const ALL: &str = r#"[{"name": "src/lib.rs:4:5: a", "file": "src/lib.rs", "span": {"start": {"line": 4}}},
  {"name": "src/lib.rs:5:9: b", "file": "src/lib.rs", "span": {"start": {"line": 5}}},
  {"name": "src/lib.rs:6:9: replace + with -", "file": "src/lib.rs", "span": {"start": {"line": 6}}}]"#;
const LINES: &str = r#"{"planned": [{"id": "1", "file": "/p/src/a.js", "line": 3, "replacement": "x > y"}, {"id": "2", "file": "/p/src/a.js", "line": 4, "replacement": ""}, {"id": "3", "file": "/p/src/a.js", "line": 5}]}
{"id": "1", "status": "Survived"}
{"id": "2", "status": "Killed"}
{"id": "3", "sta"#;

fn plan(engine: MutationEngine, targets: &[MutationTarget]) -> EnginePlan {
    let command = CommandText::Shell("run".to_owned());
    let (most, jobs, entries) = (5, 1, Vec::new());
    let file = |_: &str| None;
    let request = EngineRequest {
        command: &command,
        script: None,
        targets,
        most,
        jobs,
        entries: &entries,
        file: &file,
        base_file: &file,
        token: "t0ken",
    };
    plan_for(engine, &request).unwrap()
}

fn read(
    engine: MutationEngine,
    path: &str,
    files: &[(&str, &str)],
    end: EngineEnd,
) -> Result<Vec<TestedMutant>, String> {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = home.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let lines = if path.ends_with(".py") { (11, 13) } else { (3, 6) };
    let targets = [target(path, vec![function(&[], "total", lines)])];
    result_of(&plan(engine, &targets), &targets, home.path(), (end, ""))
}

fn outcomes(mutants: &[TestedMutant]) -> Vec<(u64, MutantOutcome)> {
    mutants.iter().map(|mutant| (mutant.line, mutant.outcome)).collect()
}

#[test]
fn mutants_of_mutmut_have_the_line_and_the_text_of_their_change() {
    let files = [
        ("mutants/cart.py.meta", META),
        ("mutants/cart.py", COPY),
        ("mutants/cart.py.spans", SPANS),
    ];
    for end in [EngineEnd::Exited(0), EngineEnd::OutOfBudget] {
        let mutants = read(MutationEngine::Mutmut, "cart.py", &files, end).unwrap();
        let expected = [
            (11, MutantOutcome::Killed),
            (12, MutantOutcome::Survived),
            (11, MutantOutcome::TimedOut),
            (11, MutantOutcome::NotRun),
            (11, MutantOutcome::Survived),
            // This one was not asked for.
            (11, MutantOutcome::NotRun),
        ];
        assert_eq!(outcomes(&mutants), expected);
        assert_eq!(mutants[1].change, "- if prices > 1:\n+ if prices >= 1:");
        let (counts, survivors) = reported(&mutants);
        assert_eq!(
            (counts.killed, counts.survived, counts.timed_out, counts.not_run),
            (1, 2, 1, 2)
        );
        assert_eq!(survivors.len(), 2);
    }
}

#[test]
fn mutmut_without_results_has_failed() {
    let engine = MutationEngine::Mutmut;
    let nothing_ran =
        META.replace(": 1,", ": null,").replace(": 0,", ": null,").replace("-24", "null");
    let nothing_ran = nothing_ran.replace(": 33,", ": null,");
    let none: &[(&str, &str)] = &[];
    for files in [none, &[("mutants/cart.py.meta", "{")], &[("mutants/cart.py.meta", &nothing_ran)]]
    {
        let failed = read(engine, "cart.py", files, EngineEnd::Exited(1)).unwrap_err();
        assert!(failed.contains("exit code 1"), "{failed}");
    }
    assert!(read(engine, "cart.py", none, EngineEnd::OutOfBudget).is_err());
    assert!(read(engine, "cart.py", &[("mutants/cart.py.meta", META)], EngineEnd::Killed).is_err());
    // No mutant of the changed functions is no failure.
    let targets = [target("cart.py", vec![function(&[], "total", (11, 13))])];
    let home = tempfile::tempdir().unwrap();
    let end = (EngineEnd::Exited(1), "Filtered for specific mutants, but nothing matches");
    assert_eq!(result_of(&plan(engine, &targets), &targets, home.path(), end), Ok(Vec::new()));
    let left =
        read(engine, "cart.py", &[("mutants/cart.py.meta", &nothing_ran)], EngineEnd::OutOfBudget);
    assert!(left.unwrap().iter().all(|mutant| mutant.outcome == MutantOutcome::NotRun));
}

#[test]
fn mutants_of_cargo_mutants_are_tested_or_left() {
    let engine = MutationEngine::CargoMutants;
    let files = [
        (".hookloop-mutants-t0ken/mutants.out/outcomes.json", OUTCOMES),
        (".hookloop-mutants-t0ken/mutants.out/mutants.json", ALL),
    ];
    let mutants = read(engine, "src/lib.rs", &files, EngineEnd::OutOfBudget).unwrap();
    let expected =
        [(4, MutantOutcome::Killed), (5, MutantOutcome::Survived), (6, MutantOutcome::NotRun)];
    assert_eq!(outcomes(&mutants), expected);
    assert_eq!(mutants[1].change, "replace < with ==");
}

#[test]
fn cargo_mutants_without_results_has_failed() {
    let engine = MutationEngine::CargoMutants;
    let check = |outcomes: &str, end: EngineEnd| {
        read(
            engine,
            "src/lib.rs",
            &[(".hookloop-mutants-t0ken/mutants.out/outcomes.json", outcomes)],
            end,
        )
    };
    let red = r#"{"outcomes": [{"scenario": "Baseline", "summary": "Failure"}]}"#;
    assert!(check(red, EngineEnd::Exited(4)).unwrap_err().contains("without a mutant"));
    for cut in (0..OUTCOMES.len()).step_by(7).filter(|cut| OUTCOMES.is_char_boundary(*cut)) {
        assert!(check(&OUTCOMES[..cut], EngineEnd::OutOfBudget).is_err(), "{cut}");
    }
    assert!(check("{\"outcomes\": []}", EngineEnd::Exited(70)).is_err());
    let none: &[(&str, &str)] = &[];
    assert!(read(engine, "src/lib.rs", none, EngineEnd::Exited(70)).is_err());
    assert!(read(engine, "src/lib.rs", none, EngineEnd::Exited(0)).is_err());
    assert!(check(OUTCOMES, EngineEnd::Exited(70)).is_err());
    assert!(check(OUTCOMES, EngineEnd::Killed).is_err());
    let empty = [(".hookloop-mutants-t0ken/mutants.out/mutants.json", "[]")];
    assert_eq!(read(engine, "src/lib.rs", &empty, EngineEnd::Exited(0)), Ok(Vec::new()));
}

#[test]
fn lines_of_the_stryker_reporter_are_read_up_to_a_cut() {
    let engine = MutationEngine::Stryker;
    let files = [(".hookloop-stryker-t0ken.jsonl", LINES)];
    let mutants = read(engine, "src/a.js", &files, EngineEnd::OutOfBudget).unwrap();
    let expected =
        [(3, MutantOutcome::Survived), (4, MutantOutcome::Killed), (5, MutantOutcome::NotRun)];
    assert_eq!(outcomes(&mutants), expected);
    assert_eq!((mutants[0].path.as_str(), mutants[0].change.as_str()), ("src/a.js", "+ x > y"));
    let none: &[(&str, &str)] = &[];
    assert!(read(engine, "src/a.js", none, EngineEnd::Exited(1)).is_err());
    let nothing = [(".hookloop-stryker-t0ken.jsonl", "{\"planned\": []}\n")];
    assert_eq!(read(engine, "src/a.js", &nothing, EngineEnd::Exited(0)), Ok(Vec::new()));
}

#[test]
fn mutants_of_other_files_and_functions_do_not_count() {
    let engine = MutationEngine::CargoMutants;
    let forged = OUTCOMES.replace("src/lib.rs", "/etc/passwd");
    let elsewhere = OUTCOMES.replace("\"line\": 4", "\"line\": 400");
    for (outcomes, count) in [(forged.as_str(), 0), (elsewhere.as_str(), 1)] {
        let files = [(".hookloop-mutants-t0ken/mutants.out/outcomes.json", outcomes)];
        let mutants = read(engine, "src/lib.rs", &files, EngineEnd::Exited(2)).unwrap();
        assert_eq!(mutants.len(), count, "{mutants:?}");
    }
    // A member of a workspace is named from the top of the workspace.
    let member = OUTCOMES.replace("src/lib.rs", "crates/a/src/lib.rs");
    let files = [(".hookloop-mutants-t0ken/mutants.out/outcomes.json", member.as_str())];
    let mutants = read(engine, "src/lib.rs", &files, EngineEnd::Exited(2)).unwrap();
    assert!(mutants.iter().all(|mutant| mutant.path == "src/lib.rs"), "{mutants:?}");
}

#[test]
fn a_report_has_the_schema_of_stryker() {
    let engine = MutationEngine::CargoMutants;
    let files = [(".hookloop-mutants-t0ken/mutants.out/outcomes.json", OUTCOMES)];
    let mutants = read(engine, "src/lib.rs", &files, EngineEnd::OutOfBudget).unwrap();
    let targets = [target("src/lib.rs", Vec::new())];
    let report =
        stryker_report(engine, 80, (&targets, &mutants), |_: &str| Some("source".to_owned()));
    assert_eq!(report["schemaVersion"], "2");
    let file = &report["files"]["src/lib.rs"];
    assert_eq!((&file["language"], &file["source"]), (&"rust".into(), &"source".into()));
    assert_eq!(file["mutants"][1]["status"], "Survived");
    assert_eq!(file["mutants"][1]["location"]["start"]["line"], 5);
}
