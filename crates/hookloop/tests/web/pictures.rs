//! Visits every page in light, dark and narrow. `docs/record-pages` keeps the screenshots.

use std::path::PathBuf;

use crate::web::browser::Browser;
use crate::web::server::Server;
use crate::web::stage::{DashboardProject, Words};

/// An ordinary project, slow enough to be watched.
struct Seen;

impl Words for Seen {
    fn word(&self, plain: &str) -> String {
        plain.to_owned()
    }

    fn is_slow(&self) -> bool {
        true
    }
}

/// The number of days with usage.
const DAYS: i64 = 24;

/// Writes a screenshot to the directory `HOOKLOOP_PAGES`, if that is set.
fn record(name: &str, browser: &mut Browser) {
    let picture = browser.picture();
    if let Some(directory) = std::env::var_os("HOOKLOOP_PAGES") {
        std::fs::write(PathBuf::from(directory).join(format!("{name}.png")), picture).unwrap();
    }
}

#[test]
fn pages_fit_wide_and_narrow_windows_in_both_color_schemes() {
    let mut stage = DashboardProject::new(&Seen);
    let long = stage.start_session("Bring the dependencies up to date, one at a time");
    stage.start_worker("build-1");
    stage.project.json(&["fleet", "budget", "--cost", "40"]);
    spread_usage(&stage);
    let sessions = stage.project.json(&["sessions", "list"]);
    let named = |name: &str| {
        sessions.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let fixed = named("fix-the-parser");
    let server = Server::start(&stage.project);
    let (mut browser, project) = server.visited();
    let pages = [
        ("projects", server.url("/")),
        ("overview", project.clone()),
        ("sessions", format!("{project}sessions")),
        ("session", format!("{project}sessions/{fixed}")),
        ("running", format!("{project}sessions/{long}")),
        ("tasks", format!("{project}tasks")),
        ("task", format!("{project}tasks/errors")),
        ("graph", format!("{project}graph")),
        ("usage", format!("{project}usage")),
        ("hooks", format!("{project}hooks")),
        ("fleet", format!("{project}fleet")),
        ("log", format!("{project}log")),
    ];
    for (scheme, width, height) in [("light", 1280, 800), ("dark", 1280, 800), ("light", 390, 844)]
    {
        browser.size(width, height);
        browser.colours(scheme);
        for (name, url) in &pages {
            browser.go(url);
            if *name != "projects" {
                browser.until("document.querySelector('#live').textContent == 'live'");
            }
            // Nothing is wider than the page, except for elements that scroll.
            let wide = browser.eval("document.documentElement.scrollWidth - innerWidth");
            assert!(wide.as_i64().unwrap() <= 0, "{name} at {width}: {wide} too wide");
            record(&format!("{name}-{scheme}-{width}"), &mut browser);
            browser.assert_calm(name);
        }
    }
    browser.size(1280, 800);
    for scheme in ["light", "dark"] {
        browser.colours(scheme);
        browser.go(&server.url("/login"));
        record(&format!("login-{scheme}-1280"), &mut browser);
    }
}

/// Inserts usage of earlier days into the view. A changed clock would affect all other dates, too.
fn spread_usage(stage: &DashboardProject) {
    let connection = rusqlite::Connection::open(stage.project.database_path()).unwrap();
    let today =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
            / 86_400;
    for back in 1..=DAYS {
        for (i, agent) in ["claude", "codex", "gemini"].iter().enumerate() {
            let cost = (back * 7 + i as i64 * 5) % 11 * 310_000 / (i as i64 + 1);
            let values = rusqlite::params![
                today as i64 - back,
                format!("s{back}"),
                "parser",
                agent,
                4,
                cost / 4,
                cost / 9,
                cost / 30,
                cost
            ];
            connection
                .execute(
                    "INSERT INTO usage(day, session, task, agent, turns, input_tokens, \
                     cached_tokens, output_tokens, cost_micros, unpriced_turns) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)",
                    values,
                )
                .unwrap();
        }
    }
}
