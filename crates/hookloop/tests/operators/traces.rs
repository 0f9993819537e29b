//! A session at a collector: one complete trace, which is the same from every sender.

use std::collections::{BTreeMap, BTreeSet};

use hookloop_testkit::eventually;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::Value;

use crate::cli::{DEADLINE, Project};
use crate::documents;
use crate::operators::collector::{Collector, Mood, attributes, hex};
use crate::operators::{RUN, project, to};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The spans of one trace, by their ids.
struct Trace(BTreeMap<String, Span>);

impl Trace {
    /// Checks that a trace has one root, that all parents exist, and that times are within their
    /// parents'.
    fn of(spans: Vec<Span>) -> Trace {
        let traces: BTreeSet<&Vec<u8>> = spans.iter().map(|span| &span.trace_id).collect();
        assert_eq!(traces.len(), 1, "{traces:?}");
        let trace = Trace(spans.into_iter().map(|span| (hex(&span.span_id), span)).collect());
        let roots: Vec<&Span> = trace.0.values().filter(|span| span.name == "session").collect();
        assert_eq!(roots.len(), 1);
        for span in trace.0.values() {
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
            let Some(parent) = trace.parent(span) else {
                assert_eq!(span.name, "session");
                continue;
            };
            assert!(parent.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
            assert!(span.end_time_unix_nano <= parent.end_time_unix_nano, "{span:?} {parent:?}");
            assert!(
                span.events.iter().all(|event| event.time_unix_nano >= span.start_time_unix_nano
                    && event.time_unix_nano <= span.end_time_unix_nano)
            );
        }
        trace
    }

    fn parent(&self, span: &Span) -> Option<&Span> {
        self.0.get(&hex(&span.parent_span_id))
    }

    fn root(&self) -> &Span {
        self.0.values().find(|span| span.name == "session").unwrap()
    }

    /// Returns the children of a span, sorted by start and then by end.
    fn below(&self, id: &[u8]) -> Vec<&Span> {
        let mut below: Vec<&Span> =
            self.0.values().filter(|span| span.parent_span_id == id).collect();
        below.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
        below
    }

    /// Returns the names of all spans, each level indented.
    fn outline(&self) -> Vec<String> {
        let mut lines = vec![self.root().name.clone()];
        for part in self.below(&self.root().span_id) {
            let number = attributes(&part.attributes).get("hookloop.iteration").cloned();
            let number = number.map_or(String::new(), |number| format!(" {number}"));
            lines.push(format!("  {}{number}", part.name));
            let mut steps: Vec<String> =
                self.below(&part.span_id).iter().map(|step| format!("    {}", step.name)).collect();
            // Two spans of zero duration may be in either order.
            steps.sort();
            lines.extend(steps);
        }
        lines
    }

    fn named(&self, name: &str) -> Vec<&Span> {
        let mut found: Vec<&Span> = self.0.values().filter(|span| span.name == name).collect();
        found.sort_by_key(|span| span.start_time_unix_nano);
        found
    }
}

fn events(span: &Span, name: &str) -> Vec<BTreeMap<String, String>> {
    let found = span.events.iter().filter(|event| event.name == name);
    found.map(|event| attributes(&event.attributes)).collect()
}

fn session_id(project: &Project) -> String {
    project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_session_is_a_trace_with_spans_for_its_turns_and_hooks() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let ran = to(&project, &collector.url(), &RUN).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let trace = Trace::of(collector.spans());
    let turn = "    invoke_agent scripted:turns.json";
    assert_eq!(
        trace.outline(),
        [
            "session",
            "  start",
            "    hook hello",
            "  iteration 1",
            "    hook answer",
            "    hook note",
            turn,
            "  iteration 2",
            "    hook answer",
            "    hook note",
            turn,
            "  end",
            "    hook bye",
        ]
    );
    let root = attributes(&trace.root().attributes);
    let id = session_id(&project);
    for (key, value) in [
        ("hookloop.session", id.as_str()),
        ("hookloop.project", "project"),
        ("hookloop.work", "prompt"),
        ("hookloop.outcome", "complete"),
        ("hookloop.iterations", "2"),
        ("hookloop.turns", "2"),
        ("gen_ai.agent.name", "scripted:turns.json"),
        ("gen_ai.usage.input_tokens", "2100"),
        ("gen_ai.usage.output_tokens", "120"),
        ("hookloop.cost_usd", "0.0063"),
    ] {
        assert_eq!(root.get(key).map(String::as_str), Some(value), "{key}: {root:?}");
    }
    assert_eq!(trace.root().status.as_ref().unwrap().code(), StatusCode::Ok);
    let turns = trace.named("invoke_agent scripted:turns.json");
    let turn = attributes(&turns[0].attributes);
    assert_eq!(turns[0].kind(), SpanKind::Client);
    assert_eq!(turn["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(turn["gen_ai.usage.cache_read.input_tokens"], "1000");
    assert_eq!((turn["hookloop.turn"].as_str(), turn["hookloop.attempt"].as_str()), ("work", "1"));
    let last = attributes(&turns[1].attributes);
    assert_ne!(turn["hookloop.tree"], last["hookloop.tree"]);
    let parts = trace.named("iteration");
    let verdict = |part: &Span| events(part, "gates_evaluated")[0]["hookloop.verdict"].clone();
    assert_eq!([verdict(parts[0]), verdict(parts[1])], ["block", "pass"]);
    let receipts = events(parts[1], "receipt_recorded");
    assert_eq!(receipts[0]["hookloop.gate"], "answer");
    assert_eq!(receipts[0]["hookloop.tree"], last["hookloop.tree"]);
    let gate = attributes(&trace.named("hook answer")[0].attributes);
    assert_eq!(
        (gate["hookloop.hook.point"].as_str(), gate["hookloop.hook.status"].as_str()),
        ("stop", "failed")
    );
    assert_eq!(collector.resource()["service.name"], "hookloop");
    // Texts of people and agents are not sent.
    let all = format!("{:?}", collector.spans());
    for word in ["make it 42", "Fixed."] {
        assert!(!all.contains(word), "{word}");
    }
}

/// The ids of spans derive from the log, so sending them again adds nothing.
#[test]
fn spans_that_are_sent_again_are_identical() {
    let (project, first) = (project(), Collector::start(Mood::Well));
    assert!(to(&project, &first.url(), &RUN).status().unwrap().success());
    let second = Collector::start(Mood::Well);
    let args = ["sessions", "trace", &session_id(&project), "--json"];
    let again = to(&project, &second.url(), &args).output().unwrap();
    let told: Value = serde_json::from_slice(&again.stdout).unwrap();
    let (one, other) = (Trace::of(first.spans()), Trace::of(second.spans()));
    assert_eq!(one.0, other.0);
    assert_eq!(told["sent"], one.0.len());
    assert_eq!(told["trace_id"], hex(&one.root().trace_id));
}

#[test]
fn a_resumed_session_sends_the_spans_of_its_killed_process() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let agent = "command:cat > /dev/null; echo 42 > answer.txt; touch started; \
        while [ ! -f go ]; do sleep 0.02; done; echo '<promise>COMPLETE</promise>'";
    let run = ["run", "make it 42", "--agent", agent];
    let mut child =
        to(&project, &collector.url(), &run).stdout(std::process::Stdio::null()).spawn().unwrap();
    eventually("the agent", DEADLINE, || project.root().join("started").exists().then_some(()));
    // The spans of the start and of its hook have ended.
    eventually("spans", DEADLINE, || (collector.spans().len() >= 2).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = collector.spans();
    project.write("go", "");
    let resumed = to(&project, &collector.url(), &["resume"]).output().unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    let all = collector.spans();
    let again = &all[before.len()..];
    for span in &before {
        assert!(again.contains(span), "{span:?} has changed");
    }
    let trace = Trace::of(again.to_vec());
    let turns = trace.named(&format!("invoke_agent {agent}"));
    let attempts: Vec<BTreeMap<String, String>> =
        turns.iter().map(|turn| attributes(&turn.attributes)).collect();
    assert_eq!(attempts[0]["error.type"], "program_died");
    assert_eq!(turns[0].status.as_ref().unwrap().code(), StatusCode::Error);
    assert_eq!(
        (attempts[1]["hookloop.attempt"].as_str(), attempts[1].get("error.type")),
        ("2", None)
    );
    let part = trace.named("iteration")[0];
    assert_eq!(events(part, "session_resumed").len(), 1);
}

#[test]
fn traceparent_is_continued_by_a_session_and_passed_to_agents_and_hooks() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let agent = "command:cat > /dev/null; echo $TRACEPARENT > agent; echo 42 > answer.txt; \
        echo '<promise>COMPLETE</promise>'";
    let run = ["run", "make it 42", "--agent", agent];
    let ran = to(&project, &collector.url(), &run).env("TRACEPARENT", PARENT).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let trace = Trace::of(collector.spans());
    assert_eq!(hex(&trace.root().trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&trace.root().parent_span_id), "b7ad6b7169203331");
    let read = |name: &str| std::fs::read_to_string(project.root().join(name)).unwrap();
    let told = |span: &Span| format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
    let turn = trace.named(&format!("invoke_agent {agent}"))[0];
    assert_eq!(read("agent").trim(), told(turn));
    let parts = [trace.named("iteration")[0], trace.named("end")[0]];
    assert_eq!(read("parents").lines().collect::<Vec<_>>(), parts.map(told));
}

#[test]
fn no_spans_are_sent_for_an_unsampled_traceparent() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let unsampled = PARENT.replace("-01", "-00");
    let ran = to(&project, &collector.url(), &RUN).env("TRACEPARENT", unsampled).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(collector.spans(), []);
}

/// Without a collector nothing is sent, and the environment of hooks is unchanged.
#[test]
fn without_a_collector_no_spans_are_sent_and_no_traceparent_is_passed() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let mut run = project.hookloop(&RUN);
    let ran = run.env("TRACEPARENT", PARENT).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let ran = to(&project, &collector.url(), &RUN).env("OTEL_SDK_DISABLED", "true").output();
    assert!(ran.unwrap().status.success());
    let parents = std::fs::read_to_string(project.root().join("parents")).unwrap();
    assert_eq!(parents.trim(), "");
    assert_eq!(collector.heads().len() + collector.refused(), 0);
}

#[test]
fn the_users_file_sets_the_collector_and_the_sent_content() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let directory = project.home().join(".config/hookloop");
    std::fs::create_dir_all(&directory).unwrap();
    let config = documents::block("docs/operators.md", "config.yaml");
    assert!(config.contains("http://127.0.0.1:4318") && config.contains("content: true"));
    let config = config.replace("http://127.0.0.1:4318", &collector.url());
    std::fs::write(directory.join("config.yaml"), config).unwrap();
    let mut run = project.hookloop(&RUN);
    let ran = run.env("COLLECTOR_TOKEN", "Bearer a-long-secret").output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let spans = collector.spans();
    let heads = collector.heads();
    assert!(heads[0].starts_with("post /v1/traces "), "{heads:?}");
    assert!(heads[0].contains("authorization: bearer a-long-secret"), "{heads:?}");
    let all = format!("{spans:?}");
    for word in ["make it 42", "Fixed."] {
        assert!(all.contains(word), "{word}");
    }
    assert!(!all.contains("a-long-secret"));
    // A repository can't configure a collector.
    project.configure(&format!("telemetry: {{endpoint: '{}'}}\n", collector.url()));
    assert!(project.fails(2, &["status"]).contains("telemetry"));
}

#[test]
fn a_policy_sets_the_collector_and_can_disable_telemetry() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    let elsewhere = Collector::start(Mood::Well);
    let policy = project.home().join("policy.yaml");
    let ran = |said: &str| {
        std::fs::write(&policy, format!("version: 1\ntelemetry: {said}\n")).unwrap();
        let mut run = to(&project, &elsewhere.url(), &RUN);
        let ran = run.env("HOOKLOOP_POLICY", &policy).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    ran("{enabled: false}");
    assert_eq!(elsewhere.heads().len(), 0);
    ran(&format!("{{endpoint: '{}', content: false}}", collector.url()));
    assert_eq!((elsewhere.heads().len(), Trace::of(collector.spans()).0.len()), (0, 13));
}

#[test]
fn secrets_are_in_no_span() {
    let project = Project::with_config(
        "hooks:\n  stop: [{name: leak, command: 'echo $DEPLOY_TOKEN >&2; exit 2', env: [DEPLOY_TOKEN]}]\n",
    );
    project.trust();
    let collector = Collector::start(Mood::Well);
    let agent = "command:cat > /dev/null; echo hunter2-hunter2; echo '<promise>COMPLETE</promise>'";
    let run = ["run", "say hunter2-hunter2", "--agent", agent, "--gate-retries", "1"];
    let directory = project.home().join(".config/hookloop");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.yaml"), "version: 1\ntelemetry: {content: true}\n")
        .unwrap();
    let mut command = to(&project, &collector.url(), &run);
    let ran = command.env("DEPLOY_TOKEN", "hunter2-hunter2").output().unwrap();
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let all = format!("{:?}", collector.spans());
    assert!(all.contains("[redacted:DEPLOY_TOKEN]"), "{all}");
    assert!(!all.contains("hunter2"), "{all}");
}

/// Checks that the document's tables list every attribute and event that is sent.
#[test]
fn every_sent_attribute_is_documented() {
    let (project, collector) = (project(), Collector::start(Mood::Well));
    project.write(
        "turns.json",
        &crate::operators::TURNS.replacen("\"say\"", "\"fail\": \"no\", \"say\"", 1),
    );
    assert!(to(&project, &collector.url(), &RUN).status().unwrap().success());
    let document = documents::root().join("docs/operators.md");
    let text = std::fs::read_to_string(document).unwrap();
    let known: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect();
    let spans = collector.spans();
    let of_spans = spans.iter().flat_map(|span| &span.attributes);
    let of_events = spans.iter().flat_map(|span| &span.events).flat_map(|event| &event.attributes);
    let sent: BTreeSet<&str> =
        of_spans.chain(of_events).map(|attribute| attribute.key.as_str()).collect();
    let unknown: Vec<&&str> = sent.iter().filter(|key| !known.contains(**key)).collect();
    assert!(unknown.is_empty() && sent.len() > 20, "{unknown:?}");
    let events: BTreeSet<&str> =
        spans.iter().flat_map(|span| &span.events).map(|event| event.name.as_str()).collect();
    assert!(events.iter().all(|event| known.contains(event)), "{events:?}");
}
