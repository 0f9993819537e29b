//! Logs for machines, which replace all other output.

use hookloop_testkit::json_lines;
use serde_json::Value;

use crate::cli::Project;
use crate::operators::collector::{Collector, Mood, hex};
use crate::operators::{RUN, project, to};

const QUICK: &str = "command:cat > work; echo '<promise>COMPLETE</promise>'";

fn time_of(line: &Value) -> hookloop_core::time::Timestamp {
    line["time"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_session_writes_its_events_as_json_log_lines() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let args = [&RUN[..], &["--log-format", "json"]].concat();
    let ran = to(&project, &collector.url(), &args).output().unwrap();
    assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
    let said = json_lines(&String::from_utf8(ran.stderr).unwrap());
    assert!(said.is_sorted_by_key(time_of));
    let id = project.json(&["sessions", "list"])[0]["id"].clone();
    let trace = hex(&collector.spans()[0].trace_id);
    for line in &said {
        assert_eq!((&line["session"], &line["project"]), (&id, &Value::from("project")), "{line}");
        assert_eq!(
            (&line["trace_id"], &line["target"]),
            (&Value::from(trace.as_str()), &Value::from("session"))
        );
    }
    let level_of = |event: &str| -> Vec<&str> {
        let found = said.iter().filter(|line| line["event"] == event);
        found.map(|line| line["level"].as_str().unwrap()).collect()
    };
    assert_eq!(level_of("gates_evaluated"), ["warn", "info"]);
    assert_eq!(level_of("iteration_started"), ["info", "info"]);
    assert_eq!(level_of("session_concluded"), ["info"]);
}

#[test]
fn a_worker_writes_each_json_log_line_once() {
    let project = Project::with_config("hooks: {stop: [{name: worked, file: work}]}\n");
    project.add("Goal", &["--id", "a"]);
    let worker = ["worker", "--agent", QUICK, "--until-idle", "--name", "w"];
    let mut command = project.hookloop(&worker);
    let ran = command.env("HOOKLOOP_LOG_FORMAT", "json").output().unwrap();
    assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
    let said = json_lines(&String::from_utf8(ran.stderr).unwrap());
    let events: Vec<&str> = said.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "claimed", "ended"], "{said:?}");
    for line in &said[1..] {
        assert_eq!((&line["task"], &line["level"]), (&Value::from("a"), &Value::from("info")));
        assert!(line["message"].as_str().unwrap().contains('a') && line["session"].is_string());
    }
    assert_eq!(said[2]["outcome"], "complete");
}

#[test]
fn text_logs_contain_only_lines_of_the_chosen_level() {
    let project = project();
    let args = [&RUN[..], &["--log-format", "text", "--log-level", "warn"]].concat();
    let run = project.run(&args);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    let said: Vec<&str> = run.stderr.lines().collect();
    assert!(
        !said.is_empty() && said.iter().all(|line| line.contains(" warn  session: ")),
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.contains("sent back") && line.contains("project=project")));
}

/// An error is a log line, too, so that the log contains nothing else.
#[test]
fn an_error_is_a_json_log_line() {
    let project = Project::new();
    let run = project.run(&["worker", "--log-format", "json"]);
    let said = json_lines(&run.stderr);
    assert_eq!((run.code, run.stdout.as_str(), said.len()), (2, "", 1), "{run:?}");
    assert_eq!(
        (&said[0]["level"], &said[0]["type"]),
        (&Value::from("error"), &Value::from("usage"))
    );
    assert_eq!(said[0]["hint"], "hookloop worker --agent claude");
}

#[test]
fn the_json_and_log_format_options_exclude_each_other() {
    let project = project();
    let both = [&RUN[..], &["--json", "--log-format", "json"]].concat();
    let run = project.run(&both);
    assert_eq!(run.code, 2, "{run:?}");
    let mut command = project.hookloop(&RUN);
    let bad = command.env("HOOKLOOP_LOG_FORMAT", "xml").output().unwrap();
    let said = String::from_utf8(bad.stderr).unwrap();
    assert!(bad.status.code() == Some(2) && said.contains("text, json"), "{said}");
    // The option `--json` takes precedence over the environment.
    let mut command = project.hookloop(&[&RUN[..], &["--json"]].concat());
    let ran = command.env("HOOKLOOP_LOG_FORMAT", "json").output().unwrap();
    assert!(
        ran.stderr.is_empty() && !json_lines(&String::from_utf8(ran.stdout).unwrap()).is_empty()
    );
}
