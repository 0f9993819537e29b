//! Lists on pages: filters, paging, and projects with invalid files.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::support::project_with;
use crate::web::PLAIN;
use crate::web::server::Server;
use crate::web::stage::{DashboardProject, Ordinary};

/// Returns the keys of the rows of a page, in their order.
fn keys(page: &str) -> Vec<String> {
    let rows = page.split("<tr data-key=\"").skip(1);
    rows.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Returns the target of the link with that name.
fn link(page: &str, name: &str) -> Option<String> {
    let (before, _) = page.split_once(&format!(">{name}</a>"))?;
    let href = before.rsplit_once("href=\"")?.1.split('"').next()?;
    Some(href.replace("&amp;", "&").replace("&#x2f;", "/"))
}

fn page(server: &Server, path: &str) -> String {
    let (status, page) = server.ask("GET", path, "");
    assert_eq!(status, 200, "{path}: {page}");
    page
}

/// Returns the rows of all pages from `path` on.
fn all(server: &Server, path: &str) -> Vec<String> {
    let base = path.split('?').next().unwrap();
    let (mut found, mut next) = (Vec::new(), path.to_owned());
    loop {
        let page = page(server, &next);
        found.extend(keys(&page));
        assert!(found.len() < 10_000);
        match link(&page, "Older") {
            Some(older) => next = format!("{base}{older}"),
            None => return found,
        }
    }
}

#[test]
fn task_and_session_lists_are_filtered() {
    let stage = DashboardProject::new(&Ordinary);
    let server = Server::start(&stage.project);
    let project = server.project();
    let check = |path: &str, expected: &[&str]| {
        assert_eq!(keys(&page(&server, &format!("{project}{path}"))), expected, "{path}");
    };
    check("tasks?q=TREE", &["printer", "parser"]);
    check("tasks?q=roundtr", &["roundtrip"]);
    check("tasks?q=goal", &[]);
    check("tasks?q=%25", &[]);
    check("tasks?q=_", &[]);
    check("tasks?state=blocked", &["unicode", "errors"]);
    check("tasks?label=tests&q=input", &["fuzz"]);
    check("tasks?type=feature&label=release", &["release"]);
    let sessions = stage.project.json(&["sessions", "list"]);
    let id = |place: usize| sessions[place]["id"].as_str().unwrap();
    check("sessions", &[id(0), id(1)]);
    check("sessions?state=complete", &[id(1)]);
    check("sessions?q=BUILD+is", &[id(0)]);
    check("sessions?page=2", &[]);

    let shown = page(&server, &format!("{project}sessions/{}", id(1)));
    for part in ["class=\"timeline\"", "sent back", "Iteration 3", "tree ", "fix-the-parser"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let output = link(&shown, "stdout").unwrap();
    assert!(page(&server, &output).len() > 3, "{output}");
    for wrong in ["passwd", "../../hookloop.db", "..%2f..%2fserve.token", "stdout%00"] {
        let path = format!("{}/{wrong}", output.rsplit_once('/').unwrap().0);
        let (status, body) = server.ask("GET", &path, "");
        assert_eq!(status, 404, "{path}: {body}");
    }
}

#[test]
fn paging_shows_every_task_and_event_once() {
    let test_project = project_with(PLAIN);
    let lines: Vec<_> =
        (0..250).map(|n| json!({ "id": format!("t{n}"), "goal": "Much" })).collect();
    test_project.import_tasks(&lines);
    let server = Server::start(&test_project);
    let project = server.project();
    let tasks = all(&server, &format!("{project}tasks"));
    let expected: Vec<String> = (0..250).rev().map(|n| format!("t{n}")).collect();
    assert_eq!(tasks, expected);
    assert_eq!(all(&server, &format!("{project}tasks?q=much")).len(), expected.len());
    let events: BTreeSet<String> = all(&server, &format!("{project}log")).into_iter().collect();
    let wanted: Vec<_> = test_project
        .events_from(1)
        .into_iter()
        .filter(|event| event["type"] != "cursor_moved")
        .collect();
    assert_eq!(events.len(), wanted.len());
}

/// A project with an invalid file can be viewed; decisions are refused while its rules can't be
/// parsed.
#[test]
fn a_project_with_an_invalid_configuration_can_be_viewed_but_not_changed() {
    let test_project = project_with(PLAIN);
    test_project.json(&["task", "add", "A", "--id", "a"]);
    test_project.json(&["task", "block", "a", "--reason", "Which one?"]);
    let key = test_project.json(&["inbox", "list"])[0]["key"].clone();
    let server = Server::start(&test_project);
    let project = server.project();
    let act = || {
        server.ask(
            "POST",
            &format!("{project}do"),
            &json!({ "do": "dismiss", "key": key }).to_string(),
        )
    };
    let config = test_project.root().join("hookloop.yaml");
    let path = format!("{project}tasks/a");
    assert!(!page(&server, &path).contains("role=\"alert\""));
    fs::write(&config, "version: 1\nhoks: {}\n").unwrap();
    let shown = page(&server, &path);
    assert!(shown.contains("role=\"alert\"") && shown.contains("hoks"), "{shown}");
    let (status, told) = act();
    assert!(status == 409 && told.contains("hoks"), "{status} {told}");
    fs::write(&config, PLAIN).unwrap();
    assert!(!page(&server, &path).contains("role=\"alert\""));
    assert_eq!(act().0, 200);
}
