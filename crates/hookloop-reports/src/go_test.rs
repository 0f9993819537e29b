//! Reads the JSON lines of `go test -json`.

use std::collections::{HashMap, HashSet};

use hookloop_core::checks::CheckOutcome;
use serde::Deserialize;

use crate::error::ReportError;
use crate::json::{self, LooseNumber, LossyText, text_or_empty};
use crate::sink::{ReportSink, append, whole_ms};

/// Lines that frame the output of each test.
const FRAMES: [&str; 8] = [
    "=== RUN",
    "=== PAUSE",
    "=== CONT",
    "=== NAME",
    "--- PASS",
    "--- FAIL",
    "--- SKIP",
    "--- BENCH",
];
/// Beginnings of output after which no further test of a package runs.
const CRASHES: [&str; 2] = ["panic: ", "fatal error: "];
/// The end of a line with the result of a benchmark, which has no event of its own.
const BENCH_RESULT: &str = " ns/op";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: Option<LossyText>,
    package: Option<LossyText>,
    test: Option<LossyText>,
    output: Option<LossyText>,
    #[serde(default)]
    elapsed: LooseNumber,
    import_path: Option<LossyText>,
    failed_build: Option<LossyText>,
}

/// One run of a test.
#[derive(Debug)]
struct GoTest {
    id: String,
    package: usize,
    /// `None` until the test ends.
    outcome: Option<CheckOutcome>,
    ms: Option<u64>,
    output: String,
    has_crashed: bool,
    is_measured: bool,
}

/// One package.
#[derive(Debug, Default)]
struct ReportedPackage {
    name: String,
    /// `None` until the package ends.
    outcome: Option<CheckOutcome>,
    output: String,
    failed_tests: u64,
    failed_build: String,
}

/// One build of a package.
#[derive(Debug, Default)]
struct GoBuild {
    path: String,
    output: String,
    has_failed: bool,
}

/// The events of all packages.
#[derive(Debug, Default)]
struct GoTestEvents {
    tests: Vec<GoTest>,
    /// The place of the latest run of each test.
    latest: HashMap<String, usize>,
    packages: Vec<ReportedPackage>,
    package_places: HashMap<String, usize>,
    builds: Vec<GoBuild>,
    build_places: HashMap<String, usize>,
}

pub(crate) fn read(text: &str, sink: &mut ReportSink) -> Result<(), ReportError> {
    let mut run = GoTestEvents::default();
    for line in text.lines() {
        if let Some(event) = json::event_line::<GoEvent>(text, line)? {
            run.take(&event);
        }
    }
    run.add_tests(sink);
    run.add_packages(sink);
    run.add_builds(sink);
    Ok(())
}

/// Returns the output of all events in order. Lines that are no events stay as they are.
pub(crate) fn printed(text: &str) -> String {
    let mut printed = String::new();
    for line in text.lines() {
        match serde_json::from_str::<GoEvent>(line) {
            Ok(event) => printed.push_str(text_or_empty(&event.output)),
            Err(_) => {
                printed.push_str(line);
                printed.push('\n');
            }
        }
    }
    printed
}

impl GoTestEvents {
    fn take(&mut self, event: &GoEvent) {
        let action = text_or_empty(&event.action);
        if let Some(LossyText(path)) = &event.import_path {
            return self.take_build(path, action, text_or_empty(&event.output));
        }
        let Some(LossyText(package)) = &event.package else { return };
        let package = self.package(package);
        match &event.test {
            Some(LossyText(test)) => self.take_test(package, test, action, event),
            None => self.take_package(package, action, event),
        }
    }

    fn take_build(&mut self, path: &str, action: &str, output: &str) {
        let next = self.builds.len();
        let place = *self.build_places.entry(path.to_owned()).or_insert(next);
        if place == next {
            self.builds.push(GoBuild { path: path.to_owned(), ..GoBuild::default() });
        }
        let build = &mut self.builds[place];
        build.has_failed |= action == "build-fail";
        append(&mut build.output, output);
    }

    /// Returns the place of a package.
    fn package(&mut self, name: &str) -> usize {
        if let Some(place) = self.package_places.get(name) {
            return *place;
        }
        self.package_places.insert(name.to_owned(), self.packages.len());
        self.packages.push(ReportedPackage { name: name.to_owned(), ..ReportedPackage::default() });
        self.packages.len() - 1
    }

    fn take_package(&mut self, place: usize, action: &str, event: &GoEvent) {
        let package = &mut self.packages[place];
        match action {
            "output" => append(&mut package.output, text_or_empty(&event.output)),
            "pass" => package.outcome = Some(CheckOutcome::Passed),
            "skip" => package.outcome = Some(CheckOutcome::Skipped),
            "fail" => {
                package.outcome = Some(CheckOutcome::Failed);
                package.failed_build = text_or_empty(&event.failed_build).to_owned();
            }
            _ => {}
        }
    }

    fn take_test(&mut self, package: usize, test: &str, action: &str, event: &GoEvent) {
        let id = format!("{}.{test}", self.packages[package].name);
        let known = self.latest.get(&id).copied().filter(|_| action != "run");
        let place = known.unwrap_or_else(|| self.start(id, package));
        let test = &mut self.tests[place];
        let outcome = match action {
            "output" => return test.print(text_or_empty(&event.output)),
            "pass" | "bench" => CheckOutcome::Passed,
            "skip" => CheckOutcome::Skipped,
            "fail" => CheckOutcome::Failed,
            _ => return,
        };
        if outcome == CheckOutcome::Failed {
            self.packages[package].failed_tests += 1;
        } else {
            test.output = String::new();
        }
        test.outcome = Some(outcome);
        test.ms = event.elapsed.0.and_then(|seconds| whole_ms(seconds * 1000.0));
    }

    /// Records that a test runs, and returns its place.
    fn start(&mut self, id: String, package: usize) -> usize {
        let place = self.tests.len();
        self.latest.insert(id.clone(), place);
        self.tests.push(GoTest {
            id,
            package,
            outcome: None,
            ms: None,
            output: String::new(),
            has_crashed: false,
            is_measured: false,
        });
        place
    }

    fn add_tests(&mut self, sink: &mut ReportSink) {
        for test in &self.tests {
            let package = &mut self.packages[test.package];
            let outcome = test.outcome.unwrap_or_else(|| test.unfinished_outcome(package));
            if test.outcome.is_none() && outcome == CheckOutcome::Failed {
                package.failed_tests += 1;
                sink.set_broken();
            }
            if test.has_crashed && outcome == CheckOutcome::Failed {
                sink.set_broken();
            }
            let cause = match test.outcome {
                None => format!("The test did not finish.\n{}", test.output),
                Some(_) => test.output.clone(),
            };
            sink.add(&test.id, outcome, test.ms, &cause);
        }
    }

    /// Adds a check for each package that failed without a failed test.
    fn add_packages(&self, sink: &mut ReportSink) {
        if self.packages.is_empty() {
            sink.set_broken();
        }
        for package in &self.packages {
            match package.outcome {
                None => sink.set_broken(),
                Some(CheckOutcome::Failed) if package.failed_tests == 0 => {
                    let build = self.build_places.get(&package.failed_build);
                    let build = build.and_then(|place| self.builds.get(*place));
                    let cause = match build {
                        Some(build) if !build.output.is_empty() => build.output.clone(),
                        _ => package.own_output(),
                    };
                    sink.add(&package.name, CheckOutcome::Failed, None, &cause);
                    sink.set_broken();
                }
                Some(_) => {}
            }
        }
    }

    /// Adds a check for each failed build that no package refers to.
    fn add_builds(&self, sink: &mut ReportSink) {
        let referred: HashSet<&str> =
            self.packages.iter().map(|package| package.failed_build.as_str()).collect();
        for build in self.builds.iter().filter(|build| build.has_failed) {
            sink.set_broken();
            if !referred.contains(build.path.as_str()) {
                let name = build.path.split(" [").next().unwrap_or_default();
                sink.add(name, CheckOutcome::Failed, None, &build.output);
            }
        }
    }
}

impl GoTest {
    fn print(&mut self, output: &str) {
        self.has_crashed |= CRASHES.iter().any(|crash| output.starts_with(crash));
        self.is_measured |= output.contains(BENCH_RESULT);
        if !FRAMES.iter().any(|frame| output.trim_start().starts_with(frame)) {
            append(&mut self.output, output);
        }
    }

    /// Returns the outcome of a test without a final event: only a benchmark ends without one.
    fn unfinished_outcome(&self, package: &ReportedPackage) -> CheckOutcome {
        let test = self.id.strip_prefix(&package.name).unwrap_or_default();
        let has_passed = self.is_measured || package.outcome == Some(CheckOutcome::Passed);
        if test.starts_with(".Benchmark") && has_passed {
            CheckOutcome::Passed
        } else {
            CheckOutcome::Failed
        }
    }
}

impl ReportedPackage {
    /// Returns the output without the lines that only repeat the outcome.
    fn own_output(&self) -> String {
        let is_own = |line: &&str| !line.starts_with("FAIL\t") && *line != "FAIL";
        self.output.lines().filter(is_own).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests;
