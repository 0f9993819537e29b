//! The checks of gates on the page of a session.

use hookloop_testkit::SCRIPTED_AGENT;
use serde_json::json;

use crate::support::builder;
use crate::web::server::Server;

/// A gate whose report has a name that would be markup if a page did not escape it.
const CONFIG: &str = r#"version: 1
hooks:
  stop:
    - name: tests
      command: |
        printf '<testsuite name="suite"><testcase name="fast" time="0.01"/>' > "$HOOKLOOP_REPORT"
        printf '<testcase name="slow &lt;i class=injected&gt;" time="2.5"/>' >> "$HOOKLOOP_REPORT"
        printf '<testcase name="later"><skipped/></testcase></testsuite>' >> "$HOOKLOOP_REPORT"
"#;

#[test]
fn the_page_of_a_session_has_the_checks_of_its_gates() {
    let project = builder().config(CONFIG).initialized().repository().trusted().build();
    project.write_turns(json!([
        { "write": { "answer": "42\n" }, "say": "Done.\n<promise>COMPLETE</promise>" },
    ]));
    let args = ["run", "Answer", "--agent", SCRIPTED_AGENT, "--name", "try"];
    let ran = project.json_command(&args).output().unwrap();
    let session = project.json(&["sessions", "list"])[0].clone();
    assert_eq!(session["state"], "complete", "{}", String::from_utf8_lossy(&ran.stderr));
    let server = Server::start(&project);
    let path = format!("{}sessions/{}", server.project(), session["id"].as_str().unwrap());
    let (status, page) = server.ask("GET", &path, "");
    assert_eq!(status, 200, "{page}");
    let counts = r#"<td class="number">2</td><td class="number">0</td><td class="number">1</td>"#;
    assert!(page.contains(counts), "{page}");
    assert!(page.contains("clean room") || page.contains("in the working directory"), "{page}");
    let slow = page.find("slow &lt;i class=injected&gt;</code> 2.5 s");
    let fast = page.find("<code>fast</code> 10 ms");
    assert!(slow.is_some() && slow < fast, "the slowest check is first: {page}");
    assert!(!page.contains("<i class"), "{page}");
}
