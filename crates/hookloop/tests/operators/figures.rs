//! Metrics for Prometheus, of `serve` and of workers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use hookloop_testkit::eventually;
use serde_json::Value;

use crate::cli::{DEADLINE, Project};
use crate::documents;
use crate::operators::collector::{Collector, Mood};
use crate::operators::{RUN, project, to};

/// A long-running program, which is killed at the end of the test.
struct Staying(Child);

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program whose first line of JSON contains its address and token file.
fn start(mut command: Command) -> (Staying, String, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let staying = Staying(child);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    // Later output has to be read, or the program would block.
    std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let told: Value = serde_json::from_str(&line).unwrap();
    let url = told["url"].as_str().unwrap().to_owned();
    let token = std::fs::read_to_string(told["token_file"].as_str().unwrap()).unwrap();
    (staying, url, token.trim().to_owned())
}

/// Returns the status and the body of an answer.
fn ask(url: &str, head: &str) -> (u16, String) {
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n{head}Connection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    if status == 200 {
        let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
        assert!(head.to_lowercase().contains(kind), "{head}");
    }
    (status, body.to_owned())
}

fn scrape(url: &str, token: &str) -> String {
    let (status, page) = ask(url, &format!("Authorization: Bearer {token}\r\n"));
    assert_eq!(status, 200, "{page}");
    page
}

/// Returns the samples and the types of a page, which has to be valid in Prometheus' text format.
fn read(page: &str) -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| name.strip_suffix(part).filter(|name| types.contains_key(*name)))
                .unwrap_or(name);
            let kind = types.get(family).unwrap_or_else(|| panic!("{line} has no type"));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(sample.to_owned(), value).is_none(), "{sample} twice");
        }
    }
    check_by_promtool(page);
    (samples, types)
}

/// Checks a page with Prometheus' own tool, if it is installed.
fn check_by_promtool(page: &str) {
    if !has_promtool() {
        return;
    }
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
}

/// Returns whether Prometheus' tool is on the PATH.
fn has_promtool() -> bool {
    Command::new("promtool").arg("--version").stdout(Stdio::null()).status().is_ok()
}

fn serve(project: &Project) -> (Staying, String, String) {
    start(project.hookloop(&["serve", "--port", "0", "--json"]))
}

#[test]
fn serve_exports_the_documented_metrics_of_a_project() {
    let project = project();
    project.configure(&format!(
        "{}limits: {{budget: {{cost: 1, period: day}}, reserve_per_turn: {{cost: 0.5}}}}\n",
        crate::operators::HOOKS
    ));
    project.trust();
    assert_eq!(project.run(&RUN).code, 0);
    project.add("First", &["--id", "a"]);
    project.add("Second", &["--id", "b", "--depends-on", "a"]);
    project.add("Third", &["--id", "c"]);
    project.ok(&["task", "block", "c", "--reason", "why"]);
    let (_serving, url, token) = serve(&project);
    for head in ["", "Authorization: Bearer 00\r\n"] {
        assert_eq!(ask(&url, head).0, 401);
    }
    let (samples, types) = read(&scrape(&url, &token));
    let of = |sample: &str| *samples.get(sample).unwrap_or_else(|| panic!("{sample}: {samples:?}"));
    let p = "project=\"project\"";
    let agent = "agent=\"scripted:turns.json\"";
    for (sample, value) in [
        (format!("hookloop_tasks{{{p},state=\"ready\"}}"), 1.0),
        (format!("hookloop_tasks{{{p},state=\"created\"}}"), 1.0),
        (format!("hookloop_tasks{{{p},state=\"blocked\"}}"), 1.0),
        (format!("hookloop_sessions_ended_total{{{p},outcome=\"complete\"}}"), 1.0),
        (format!("hookloop_turns_total{{{p},{agent}}}"), 2.0),
        (format!("hookloop_tokens_total{{{p},{agent},type=\"input\"}}"), 2100.0),
        (format!("hookloop_tokens_total{{{p},{agent},type=\"output\"}}"), 120.0),
        (format!("hookloop_cached_tokens_total{{{p},{agent}}}"), 1000.0),
        (format!("hookloop_cost_dollars_total{{{p},{agent}}}"), 0.0063),
        (format!("hookloop_hook_runs_total{{{p},hook=\"answer\",status=\"failed\"}}"), 1.0),
        (format!("hookloop_hook_runs_total{{{p},hook=\"answer\",status=\"passed\"}}"), 1.0),
        (format!("hookloop_hook_duration_seconds_count{{{p},hook=\"answer\"}}"), 2.0),
        (format!("hookloop_problems_open{{{p},type=\"task_blocked\"}}"), 1.0),
        (format!("hookloop_budget_left_dollars{{{p},period=\"day\"}}"), 1.0 - 0.0063),
        (format!("hookloop_reactions_due{{{p}}}"), 0.0),
    ] {
        assert!((of(&sample) - value).abs() < 1e-9, "{sample}: {}", of(&sample));
    }
    assert!(of(&format!("hookloop_task_oldest_ready_seconds{{{p}}}")) > 0.0);
    assert_eq!(of(&format!("hookloop_log_head{{{p}}}")), of(&format!("hookloop_view_head{{{p}}}")));
    let ids =
        samples.keys().filter(|sample| sample.contains("session=") || sample.contains("task="));
    assert_eq!(ids.count(), 0);
    documented(&types);
}

/// Checks that the tables of the page have exactly these metrics.
fn documented(types: &BTreeMap<String, String>) {
    let page = documents::root().join("docs/reference/metrics.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `hookloop_"));
    let known: BTreeMap<String, String> = rows
        .map(|row| {
            let mut cells = row.split('|').skip(1).map(str::trim);
            let name = cells.next().unwrap().trim_matches('`').to_owned();
            (name, cells.next().unwrap().to_owned())
        })
        .collect();
    assert_eq!(&known, types);
}

#[test]
fn a_worker_exports_metrics_and_traces_of_its_tasks() {
    let project = Project::with_config("hooks: {stop: [{name: worked, file: work}]}\n");
    let collector = Collector::start(Mood::Well);
    let agent = "command:cat > work; [ ! -f slow ] || while [ ! -f go ]; do sleep 0.02; done; \
        echo '<promise>COMPLETE</promise>'";
    for id in ["a", "b"] {
        project.add("Goal", &["--id", id]);
    }
    let args = ["worker", "--agent", agent, "--name", "w", "--metrics", "127.0.0.1:0", "--json"];
    let (_working, url, token) = start(to(&project, &collector.url(), &args));
    assert_eq!(ask(&url, "").0, 401);
    // The name of the project in the fleet.
    let name = project.state().file_name().unwrap().to_string_lossy().into_owned();
    let p = format!("project=\"{name}\"");
    let ended = format!("hookloop_worker_sessions_ended_total{{{p},outcome=\"complete\"}}");
    let samples = eventually("both tasks", DEADLINE, || {
        let (samples, _) = read(&scrape(&url, &token));
        (samples.get(&ended) == Some(&2.0)).then_some(samples)
    });
    for (sample, value) in [
        ("hookloop_worker_slots".to_owned(), 1.0),
        ("hookloop_worker_busy".to_owned(), 0.0),
        ("hookloop_worker_state{state=\"working\"}".to_owned(), 1.0),
        ("hookloop_worker_state{state=\"draining\"}".to_owned(), 0.0),
        (format!("hookloop_worker_tasks_claimed_total{{{p}}}"), 2.0),
        (format!("hookloop_worker_claims_expired_total{{{p}}}"), 0.0),
        (format!("hookloop_tasks{{{p},state=\"completed\"}}"), 2.0),
    ] {
        assert_eq!(samples.get(&sample), Some(&value), "{sample}: {samples:?}");
    }
    project.write("slow", "");
    project.add("Goal", &["--id", "c"]);
    eventually("a busy worker", DEADLINE, || {
        let (samples, _) = read(&scrape(&url, &token));
        (samples["hookloop_worker_busy"] == 1.0).then_some(())
    });
    project.write("go", "");
    // Each session is a trace of its own, below its task.
    eventually("three traces", DEADLINE, || {
        let (samples, _) = read(&scrape(&url, &token));
        let roots = collector.spans().iter().filter(|span| span.name == "session").count();
        let sent = collector.spans().len() as f64;
        (roots == 3 && samples["hookloop_telemetry_spans_sent_total"] == sent).then_some(())
    });
}

#[test]
fn metrics_for_other_machines_need_metrics_public() {
    let project = Project::new();
    let worker = ["worker", "--agent", "command:true", "--metrics", "0.0.0.0:0"];
    let said = project.fails(2, &worker);
    assert!(said.contains("in the clear") && said.contains("--metrics-public"), "{said}");
}

#[test]
fn alert_rules_and_dashboard_use_existing_metrics() {
    let project = Project::new();
    let (_serving, url, token) = serve(&project);
    let (_, types) = read(&scrape(&url, &token));
    let rules = documents::block("docs/operators.md", "hookloop.rules.yml");
    let dashboard = std::fs::read_to_string(documents::root().join("docs/grafana.json")).unwrap();
    let _: Value = serde_json::from_str(&dashboard).unwrap();
    for (what, text) in [("rules", rules.as_str()), ("dashboard", dashboard.as_str())] {
        let names: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("hookloop_"))
            .collect();
        assert!(names.len() > 4, "{what}: {names:?}");
        for name in names {
            let family = name.trim_end_matches("_bucket").trim_end_matches("_sum");
            assert!(types.contains_key(family), "{what}: there is no {name}");
        }
    }
    if has_promtool() {
        let path = project.write("hookloop.rules.yml", &rules);
        let checked = Command::new("promtool").args(["check", "rules"]).arg(path).output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
    }
}
