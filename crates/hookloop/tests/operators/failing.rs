//! Collectors that are slow, unreachable or failing: the loop is not delayed, and spans can be sent
//! later.

use std::time::{Duration, Instant};

use hookloop_testkit::eventually;
use serde_json::Value;

use crate::cli::{DEADLINE, Project};
use crate::operators::collector::{Collector, Mood};
use crate::operators::{RUN, TURNS, project, to};

/// The time that the program waits for a collector at its end, and the tolerance for a busy
/// machine.
const AT_THE_END: Duration = Duration::from_secs(3);
const BESIDE: Duration = Duration::from_secs(2);

/// Returns the duration of the loop by its own log, the duration of the program, and its standard
/// error. Turns last long enough for spans to be sent meanwhile.
fn times(project: &Project, endpoint: &str) -> (Duration, Duration, String) {
    project.write("turns.json", &TURNS.replace("{\"say\"", "{\"sleep_ms\": 1400, \"say\""));
    let began = Instant::now();
    let ran = to(project, endpoint, &[&RUN[..], &["--json"]].concat()).output().unwrap();
    let whole = began.elapsed();
    assert!(ran.status.success(), "{ran:?}");
    let printed = String::from_utf8(ran.stdout).unwrap();
    let at = |kind: &str| -> i64 {
        let events = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let event = events.into_iter().find(|event| event["type"] == kind).unwrap();
        let at: hookloop_core::time::Timestamp =
            event["timestamp"].as_str().unwrap().parse().unwrap();
        at.0
    };
    let ms = at("session_ended") - at("session_started");
    let loop_time = Duration::from_millis(u64::try_from(ms).unwrap());
    (loop_time, whole, String::from_utf8(ran.stderr).unwrap())
}

fn session_id(project: &Project) -> String {
    project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_failing_collector_does_not_delay_the_session_and_spans_can_be_resent() {
    let working = Collector::start(Mood::Well);
    let baseline = times(&project(), &working.url());
    assert_eq!(baseline.2, "");
    let spans = working.spans().len();
    let silent = Collector::start(Mood::Silent);
    let erring = Collector::start(Mood::Status(503, None));
    let refusing = Collector::start(Mood::Status(400, None));
    // No server listens at this address.
    let gone = "http://127.0.0.1:9".to_owned();
    for (what, endpoint, word) in [
        ("silent", silent.url(), ""),
        ("erring", erring.url(), "503"),
        ("refusing", refusing.url(), "400"),
        ("gone", gone, "onnection refused"),
    ] {
        let project = project();
        let (loop_time, whole, said) = times(&project, &endpoint);
        assert!(loop_time < baseline.0 * 3 / 2 + BESIDE, "{what}: {loop_time:?}");
        assert!(whole < loop_time + AT_THE_END + BESIDE, "{what}: {whole:?}");
        let told: Value = serde_json::from_str(&said).unwrap();
        let message = told["warning"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{what}: {message}");
        assert_eq!(told["warning"]["hint"], "hookloop sessions trace SESSION");
        // The log still has the spans.
        let later = Collector::start(Mood::Well);
        let id = session_id(&project);
        let sent = to(&project, &later.url(), &["sessions", "trace", &id]).output().unwrap();
        assert!(sent.status.success(), "{what}: {sent:?}");
        assert_eq!(later.spans().len(), spans, "{what}");
    }
    assert!(silent.refused() > 0 && erring.refused() > 0 && refusing.refused() > 0);
}

#[test]
fn a_recovered_collector_gets_all_spans() {
    let (project, collector) = (project(), Collector::start(Mood::Status(503, Some(1))));
    let agent = "command:cat > /dev/null; echo 42 > answer.txt; touch started; \
        while [ ! -f go ]; do sleep 0.02; done; echo '<promise>COMPLETE</promise>'";
    let child = to(&project, &collector.url(), &["run", "x", "--agent", agent])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("a refusal", DEADLINE, || (collector.refused() > 0).then_some(()));
    collector.turn(Mood::Well);
    // The spans are sent again during the same turn.
    eventually("spans", DEADLINE, || (!collector.spans().is_empty()).then_some(()));
    project.write("go", "");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    let names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names.len(), 9, "{names:?}");
}

#[test]
fn spans_that_the_collector_does_not_want_are_counted() {
    let (project, collector) = (project(), Collector::start(Mood::Picky(2)));
    let ran = to(&project, &collector.url(), &RUN).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("spans were not sent"), "{said}");
    let id = session_id(&project);
    let sent = to(&project, &collector.url(), &["sessions", "trace", &id, "--json"]).output();
    let told: Value = serde_json::from_slice(&sent.unwrap().stdout).unwrap();
    assert_eq!((told["sent"].as_u64(), told["dropped"].as_u64()), (Some(11), Some(2)));
}

#[test]
fn unusable_telemetry_settings_are_a_warning_and_the_session_runs() {
    let project = project();
    for (name, value, word) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem", "/nowhere/ca.pem"),
    ] {
        let mut run = to(&project, "http://127.0.0.1:9", &RUN);
        let ran = run.env(name, value).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.success() && said.contains(word), "{said}");
        assert!(said.starts_with("warning: no traces are sent"), "{said}");
    }
    let refused = project.fails(2, &["sessions", "trace", &session_id(&project)]);
    assert!(refused.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"), "{refused}");
}
