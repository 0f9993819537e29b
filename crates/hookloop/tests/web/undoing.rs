//! The undo of a session on its page: a preview, and the button that restores the files.

use hookloop_testkit::{SCRIPTED_AGENT, TestProject};
use serde_json::{Value, json};

use crate::support::project_with;
use crate::web::PLAIN;
use crate::web::deciding::await_said;
use crate::web::server::Server;
use crate::web::stage::{DashboardProject, Ordinary};

/// A name that would be markup if a page did not escape it.
const NEW: &str = "new <i class=injected>.txt";

/// A project after a session of two turns, with its server.
struct UndoPage {
    project: TestProject,
    server: Server,
    session: String,
    /// The address of the project's pages.
    pages: String,
}

impl UndoPage {
    /// Runs the session; then a person changes `edited.txt`.
    fn new() -> UndoPage {
        let project = project_with(PLAIN);
        for name in ["changed.txt", "deleted.txt", "edited.txt"] {
            project.write(name, "before\n");
        }
        project.create_repository();
        project.write_turns(json!([
            {
                "write": { "changed.txt": "after\n", "edited.txt": "after\n", NEW: "after\n" },
                "delete": ["deleted.txt"],
                "say": "A start.",
            },
            { "write": { "second.txt": "after\n" }, "say": "Done.\n<promise>COMPLETE</promise>" },
        ]));
        let args = ["run", "Change files", "--agent", SCRIPTED_AGENT, "--name", "try"];
        let ran = project.json_command(&args).output().unwrap();
        let session = project.json(&["sessions", "list"])[0].clone();
        assert_eq!(session["state"], "complete", "{}", String::from_utf8_lossy(&ran.stderr));
        project.write("edited.txt", "of a person\n");
        let server = Server::start(&project);
        let session = session["id"].as_str().unwrap().to_owned();
        let pages = server.project();
        UndoPage { project, server, session, pages }
    }

    /// Returns the page of the preview.
    fn preview(&self, query: &str) -> String {
        let path = format!("{}sessions/{}/undo{query}", self.pages, self.session);
        let (status, page) = self.server.ask("GET", &path, "");
        assert_eq!(status, 200, "{path}: {page}");
        page
    }

    /// Presses the button of a page with this digest, after the choice of a turn.
    fn undo(&self, turn: Option<&str>, digest: &str) -> (u16, String) {
        let mut body = json!({ "do": "undo", "session": self.session, "digest": digest });
        if let Some(turn) = turn {
            body["turn"] = json!(turn);
        }
        self.server.ask("POST", &format!("{}do", self.pages), &body.to_string())
    }

    /// Checks that the files are as the session and the person left them.
    fn assert_unchanged(&self) {
        let files = [("changed.txt", "after\n"), ("edited.txt", "of a person\n")];
        for (name, text) in files.into_iter().chain([(NEW, "after\n"), ("second.txt", "after\n")]) {
            assert_eq!(self.project.read(name), text, "{name}");
        }
        assert!(!self.project.root().join("deleted.txt").exists());
    }
}

/// Returns the digest in the form of a page.
fn digest(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"digest\" value=\"").unwrap();
    rest.split('"').next().unwrap()
}

fn row(class: &str, effect: &str, path: &str) -> String {
    format!("<span class=\"state {class}\">{effect}</span></td><td><code>{path}</code>")
}

#[test]
fn the_undo_page_lists_the_files_and_changes_none() {
    let page = UndoPage::new();
    let (_, session) =
        page.server.ask("GET", &format!("{}sessions/{}", page.pages, page.session), "");
    assert!(session.contains(">Undo…</a>"), "{session}");
    let events = page.project.count_events();
    let preview = page.preview("");
    let escaped = "new &lt;i class=injected&gt;.txt";
    for part in [
        "undo of turns 1 to 2: 4 files change".to_owned(),
        row("calm", "change", "changed.txt"),
        row("good", "create", "deleted.txt"),
        row("bad", "delete", escaped),
        row("bad", "delete", "second.txt"),
        "1 file stays: a person may have changed it".to_owned(),
        "<code>edited.txt</code></td><td>it was changed".to_owned(),
        ">Turn 1 and later</a>".to_owned(),
        ">Turn 2</a>".to_owned(),
        "Undo these changes".to_owned(),
    ] {
        assert!(preview.contains(&part), "{part}: {preview}");
    }
    page.assert_unchanged();
    assert_eq!(page.project.count_events(), events);
    // A part of the page that is not requested is not made.
    assert!(!page.preview("?parts=none").contains("changed.txt"));
}

#[test]
fn the_button_of_the_undo_page_restores_the_files() {
    let page = UndoPage::new();
    let preview = page.preview("");
    let (status, told) = page.undo(None, digest(&preview));
    assert!(status == 200 && told.contains("4 files were restored"), "{status} {told}");
    for (name, text) in
        [("changed.txt", "before\n"), ("deleted.txt", "before\n"), ("edited.txt", "of a person\n")]
    {
        assert_eq!(page.project.read(name), text, "{name}");
    }
    for name in [NEW, "second.txt"] {
        assert!(!page.project.root().join(name).exists(), "{name}");
    }
    let restored = page.project.json_lines(&["log", "--type", "files_restored"]);
    assert_eq!(restored.len(), 1, "{restored:?}");
    let data = &restored[0]["data"];
    assert_eq!((&data["files"], &data["left"]), (&json!(4), &json!(1)));
    // The same button again, and the page after it.
    let (status, told) = page.undo(None, digest(&preview));
    assert!(status == 409 && told.contains("not those that were shown"), "{status} {told}");
    let preview = page.preview("");
    assert!(preview.contains("nothing to undo"), "{preview}");
    assert!(!preview.contains("name=\"digest\""), "{preview}");
}

#[test]
fn an_undo_of_other_files_than_the_page_showed_is_refused() {
    let page = UndoPage::new();
    let preview = page.preview("");
    let events = page.project.count_events();
    let old = digest(&preview);
    for (turn, digest, expected) in [
        (Some("2"), old, 409),
        (Some("9"), old, 409),
        (Some("two"), old, 400),
        (None, "", 409),
        (None, digest(&page.preview("?turn=2")), 409),
    ] {
        let (status, told) = page.undo(turn, digest);
        assert_eq!(status, expected, "{turn:?} {digest}: {told}");
    }
    page.assert_unchanged();
    let no_digest = json!({ "do": "undo", "session": page.session });
    let (status, told) =
        page.server.ask("POST", &format!("{}do", page.pages), &no_digest.to_string());
    assert_eq!(status, 400, "{told}");
    // The person changes one of the files that the page shows.
    page.project.write("changed.txt", "of a person\n");
    let (status, told) = page.undo(None, old);
    assert!(status == 409 && told.contains("nothing was changed"), "{status} {told}");
    assert_eq!(page.project.read("changed.txt"), "of a person\n");
    assert_eq!(page.project.read("second.txt"), "after\n");
    assert_eq!(page.project.count_events(), events);
    let preview = page.preview("");
    assert!(preview.contains("3 files change") && preview.contains("2 files stay"), "{preview}");
    let (status, told) = page.undo(None, digest(&preview));
    assert!(status == 200 && told.contains("3 files were restored"), "{status} {told}");
    assert_eq!(page.project.read("changed.txt"), "of a person\n");
}

#[test]
fn the_turns_to_undo_can_be_chosen() {
    let page = UndoPage::new();
    let preview = page.preview("?turn=2");
    assert!(preview.contains("undo of turn 2: 1 file changes"), "{preview}");
    assert!(preview.contains(" aria-current=\"page\">Turn 2</a>"), "{preview}");
    let (status, told) = page.undo(Some("2"), digest(&preview));
    assert!(status == 200 && told.contains("1 file was restored"), "{status} {told}");
    assert!(!page.project.root().join("second.txt").exists());
    assert_eq!(page.project.read("changed.txt"), "after\n");
    let unknown = page.preview("?turn=9");
    assert!(unknown.contains("has no kept files of turn 9"), "{unknown}");
    let invalid = page.preview("?turn=%3Cb%3E");
    assert!(invalid.contains("`&lt;b&gt;` is not the number of a turn"), "{invalid}");
    let (status, told) = page.server.ask("GET", &format!("{}sessions/none/undo", page.pages), "");
    assert_eq!(status, 404, "{told}");
}

#[test]
fn an_agents_token_opens_no_undo_page_and_undoes_nothing() {
    let page = UndoPage::new();
    let preview = page.preview("");
    let body = json!({ "do": "undo", "session": page.session, "digest": digest(&preview) });
    let agent = page.server.agent_token();
    let undo = format!("{}sessions/{}/undo", page.pages, page.session);
    for (method, path, body) in
        [("GET", undo, Value::Null), ("POST", format!("{}do", page.pages), body)]
    {
        let (status, told) = page.server.ask_with(&agent, method, &path, &body.to_string());
        assert_eq!(status, 401, "{method} {path}: {told}");
    }
    page.assert_unchanged();
}

#[test]
fn a_running_session_is_not_undone() {
    let mut stage = DashboardProject::new(&Ordinary);
    let id = stage.start_session("slow");
    let server = Server::start(&stage.project);
    let pages = server.project();
    let (_, session) = server.ask("GET", &format!("{pages}sessions/{id}"), "");
    assert!(!session.contains(">Undo…</a>"), "{session}");
    let (status, preview) = server.ask("GET", &format!("{pages}sessions/{id}/undo"), "");
    assert!(status == 200 && preview.contains("is running"), "{status} {preview}");
    assert!(!preview.contains("name=\"digest\""), "{preview}");
    let body = json!({ "do": "undo", "session": id, "digest": "" });
    let (status, told) = server.ask("POST", &format!("{pages}do"), &body.to_string());
    assert!(status == 409 && told.contains("is running"), "{status} {told}");
}

#[test]
fn a_session_is_undone_in_the_browser_and_its_page_shows_the_result() {
    let page = UndoPage::new();
    let (mut browser, project) = page.server.visited();
    browser.go(&format!("{project}sessions/{}", page.session));
    browser.click("#part-facts a[href$='/undo']");
    browser.until("location.pathname.endsWith('/undo')");
    browser.click("form:has(input[value=undo]) button");
    browser.until(&format!("location.pathname.endsWith('/sessions/{}')", page.session));
    await_said(&mut browser, "4 files were restored");
    browser.assert_calm("an undo");
    assert_eq!(page.project.read("changed.txt"), "before\n");
    // The result is shown once.
    browser.go(&format!("{project}sessions/{}", page.session));
    assert_eq!(browser.text("document.querySelector('#said').innerText"), "");
}
