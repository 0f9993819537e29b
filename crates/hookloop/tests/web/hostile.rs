//! Text with markup and scripts in every field of a page: the page shows it as text.

use std::fs;
use std::process::Command;

use hookloop_testkit::TestProject;
use rusqlite::params;
use serde_json::json;

use crate::support::empty_project;
use crate::web::browser::Browser;
use crate::web::server::Server;
use crate::web::stage::{DashboardProject, Words};

/// Prefixes of known attacks that break out of an attribute, a tag or a script.
const BREAKS: [&str; 16] = [
    "",
    "\"",
    "'",
    "`",
    ">",
    "\">",
    "'>",
    "-->",
    "]]>",
    "</title>",
    "</textarea>",
    "</script>",
    "</style>",
    "</pre>",
    "</svg>",
    "{{",
];

/// Attacks that would run, or create an element, if unescaped. Elements have the class `injected`
/// if possible.
const PAYLOADS: [&str; 44] = [
    "<script class=injected>alert(1)</script>",
    "<SCRIPT class=injected>alert(1)</SCRIPT>",
    "<script class=injected src=//127.0.0.1/x.js></script>",
    "<scr<script>ipt class=injected>alert(1)</scr</script>ipt>",
    "<img class=injected src=x onerror=alert(1)>",
    "<img/class=injected/src=x/onerror=alert(1)>",
    "<image class=injected src=x onerror=alert(1)>",
    "<svg class=injected onload=alert(1)>",
    "<svg><script class=injected>alert(1)</script></svg>",
    "<svg><animate class=injected onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a class=injected xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math class=injected><mtext><script>alert(1)</script></mtext></math>",
    "<iframe class=injected src='javascript:alert(1)'></iframe>",
    "<iframe class=injected srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<object class=injected data='javascript:alert(1)'></object>",
    "<embed class=injected src='javascript:alert(1)'>",
    "<a class=injected href='javascript:alert(1)'>x</a>",
    "<a class=injected href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<form class=injected action='javascript:alert(1)'><button>x</button></form>",
    "<button class=injected formaction='javascript:alert(1)'>x</button>",
    "<input class=injected autofocus onfocus=alert(1)>",
    "<details class=injected open ontoggle=alert(1)>",
    "<video class=injected><source onerror=alert(1)></video>",
    "<audio class=injected src=x onerror=alert(1)>",
    "<body class=injected onload=alert(1)>",
    "<base class=injected href='//127.0.0.1/'>",
    "<link class=injected rel=stylesheet href='//127.0.0.1/x.css'>",
    "<meta class=injected http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<style class=injected>*{background:url('//127.0.0.1/x')}</style>",
    "<div class=injected style='background:url(//127.0.0.1/x)'>x</div>",
    "<b class=injected>bold</b>",
    "<template class=injected><script>alert(1)</script></template>",
    "<noscript class=injected><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<xss class=injected onpointerenter=alert(1) style='display:block'>x</xss>",
    " onmouseover=alert(1) class=injected x=",
    " autofocus onfocus=alert(1) class=injected ",
    "javascript:alert(1)//",
    "&lt;script class=injected&gt;alert(1)&lt;/script&gt;",
    "&#60;img class=injected src=x onerror=alert(1)&#62;",
    "\\u003cimg class=injected src=x onerror=alert(1)\\u003e",
    "%3Cimg class=injected src=x onerror=alert(1)%3E",
    "{{ 7 * 7 }}{% for a in b %}{{ self }}${alert(1)}",
    "data: x\n\nevent: changed\ndata: problems\n\n",
    "\u{202e}\u{2066}<b class=injected>\u{200b}\u{feff}\u{7f}\u{1b}[31m</b>",
];

fn hostile() -> Vec<String> {
    let all: Vec<String> = BREAKS
        .iter()
        .flat_map(|start| PAYLOADS.iter().map(move |payload| format!("{start}{payload}")))
        .collect();
    assert!(all.len() >= 500, "{}", all.len());
    all
}

/// All attacks in every text.
struct Hostile(String);

impl Words for Hostile {
    fn word(&self, plain: &str) -> String {
        // As much as fits: a goal has 4 KiB, a label 1.
        let max = if plain.contains(' ') { 4_000 } else { 900 };
        let start = plain.bytes().map(usize::from).sum::<usize>() * 31 % (self.0.len() / 2);
        let start = (start..).find(|at| self.0.is_char_boundary(*at)).unwrap();
        let text: String = self.0[start..].chars().take(max / 4).collect();
        // No text begins like an option, because the command line would refuse it.
        format!("x{text}")
    }
}

/// Elements that only injected data could create, and scripts that are not part of the dashboard.
const ELEMENTS: &str = "[...document.querySelectorAll('.injected, iframe, object, embed, base, style, img, math, video, audio, template')]
    .map((element) => element.outerHTML).concat(
    [...document.scripts].filter((script) => !/^[/]assets[/]page-[0-9a-f]+[.]js$/.test(script.getAttribute('src'))).map((script) => script.outerHTML),
    [...document.querySelectorAll('*')].flatMap((element) => [...element.attributes])
        .filter(({ name, value }) => name.startsWith('on') || name == 'style' || /^\\s*javascript:/i.test(value) && ['href', 'action', 'formaction', 'src'].includes(name))
        .map(({ name, value }) => `${name}=${value}`))";

fn look(browser: &mut Browser, url: &str) {
    browser.go(url);
    browser.eval("document.querySelectorAll('details').forEach((details) => details.open = true)");
    assert_eq!(browser.eval(&format!("JSON.stringify({ELEMENTS})")), "[]", "{url}");
    browser.assert_calm(url);
}

#[test]
fn hostile_text_in_any_field_is_shown_as_text() {
    let all = hostile();
    let stage = DashboardProject::new(&Hostile(all.join(" ")));
    let test_project = &stage.project;
    // Each attack alone, in fields that are shown alone.
    let lines: Vec<_> = all.iter().enumerate().map(|(n, text)| {
        let text = text.trim();
        json!({ "id": format!("h{n}"), "goal": text, "description": text, "labels": [text], "deliverables": [text], "type": text })
    }).collect();
    test_project.import_tasks(&lines);
    test_project.json(&[
        "fleet",
        "pause",
        "--reason",
        &all.join(" ")[..1_000].chars().filter(|c| !c.is_control()).collect::<String>(),
    ]);
    test_project.json(&["task", "add", &all[4], "--id", "by-whom"]);
    plant(test_project, &all);
    let server = Server::start(test_project);
    let (mut browser, project) = server.visited();
    let sessions = test_project.json(&["sessions", "list"]);
    let sessions = sessions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("sessions/{}", row["id"].as_str().unwrap()))
        .flat_map(|path| [path.clone(), format!("{path}/undo")]);
    let tasks = ["grammar", "lexer", "parser", "errors", "unicode", "by-whom"]
        .map(|id| format!("tasks/{id}"));
    let some = (0..all.len()).step_by(61).map(|n| format!("tasks/h{n}"));
    let lists = [
        "",
        "sessions",
        "tasks",
        "graph",
        "usage",
        "hooks",
        "fleet",
        "log",
        "graph?task=h7",
        "log?type=hook_ran",
    ];
    let lists = lists.map(str::to_owned).into_iter();
    for path in lists.chain(sessions).chain(tasks).chain(some) {
        look(&mut browser, &format!("{project}{path}"));
    }
    // All tasks, a hundred per page.
    let mut url = format!("{project}tasks?state=ready");
    let mut seen = 0;
    loop {
        look(&mut browser, &url);
        seen += browser.eval("document.querySelectorAll('tbody tr').length").as_u64().unwrap();
        let older = browser.text("document.querySelector('a[rel=next]')?.href ?? ''");
        if older.is_empty() {
            break;
        }
        url = older;
    }
    assert!(seen >= all.len() as u64, "{seen}");
    // Text from the address of the page.
    for text in all.iter().step_by(101) {
        let text: String = form_urlencoded(text);
        for path in [
            "tasks?q=",
            "tasks?label=",
            "tasks?type=",
            "tasks?state=",
            "sessions?q=",
            "log?type=",
            "graph?task=",
            "usage?days=",
            "tasks/",
            "nothing/",
        ] {
            browser.complaints.clear();
            browser.go(&format!("{project}{path}{text}"));
            browser.complaints.retain(|said| !said.contains("404"));
            assert_eq!(browser.eval(&format!("JSON.stringify({ELEMENTS})")), "[]", "{path}{text}");
            browser.assert_calm(path);
        }
    }
    follow(test_project, &mut browser, &project, &all);
}

/// Checks that live updates of a page are shown as text.
fn follow(test_project: &TestProject, browser: &mut Browser, project: &str, all: &[String]) {
    browser.go(&format!("{project}tasks"));
    browser.until("document.querySelector('#live').textContent == 'live'");
    for (n, text) in all.iter().enumerate().step_by(97) {
        test_project.import_tasks(&[json!({ "id": format!("later{n}"), "goal": text.trim() })]);
        browser.until(&format!("!!document.querySelector('[data-key=later{n}]')"));
        assert_eq!(browser.eval(&format!("JSON.stringify({ELEMENTS})")), "[]", "{text}");
    }
    browser.assert_calm("a page that follows");
}

fn form_urlencoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Writes fields that no command sets: names of machines, agents and workers, actors, addresses of
/// requests.
fn plant(test_project: &TestProject, all: &[String]) {
    let connection = rusqlite::Connection::open(test_project.database_path()).unwrap();
    let sessions: Vec<String> = connection
        .prepare("SELECT id FROM session")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (id, text) in sessions.iter().zip(all.iter().skip(4)) {
        let set = "UPDATE session SET agent = ?2, machine = ?2, work = ?2, reason = ?2, name = ?2 WHERE id = ?1";
        assert_eq!(connection.execute(set, params![id, text]).unwrap(), 1);
    }
    for (day, text) in all.iter().enumerate().take(29) {
        let today =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
                / 86_400;
        let add = "INSERT INTO usage VALUES (?1, ?2, ?2, ?2, 1, 1000, 1, 1, 1000, 0)";
        connection.execute(add, params![today as i64 - day as i64, text]).unwrap();
    }
    let delivery = json!({
        "submission": { "branch": all[4], "base": "main", "head": all[5], "tree": all[6], "url": "javascript:alert(1)" },
        "reviews": [{ "gate": all[7], "head": all[8], "passed": false, "reason": all[9] }],
        "returns": 2, "reason": all[10], "stands": true,
    });
    let put = "INSERT OR REPLACE INTO delivery SELECT num, 1, ?1 FROM task WHERE id = 'errors'";
    assert_eq!(connection.execute(put, [delivery.to_string()]).unwrap(), 1);
    let name = "UPDATE hook_runs SET name = name || ?1";
    connection.execute(name, [&all[4]]).unwrap();
}

/// Any text can be the name of a directory or of a user.
#[test]
fn a_hostile_project_or_user_name_is_shown_as_text() {
    let test_project = empty_project();
    for (n, name) in [
        "<img class=injected src=x onerror=alert(1)>",
        "\"><script class=injected>alert(1)<&>",
        "'onmouseover='alert(1)",
    ]
    .iter()
    .enumerate()
    {
        let root = test_project.root().join(name);
        fs::create_dir(&root).unwrap();
        fs::write(root.join("hookloop.yaml"), "version: 1\n").unwrap();
        let run = |args: &[&str]| -> Command {
            let mut command = test_project.json_command(args);
            command.current_dir(&root).env("USER", name);
            command
        };
        assert!(run(&["task", "add", "A", "--id", "a"]).output().unwrap().status.success());
        assert!(run(&["task", "block", "a", "--reason", name]).output().unwrap().status.success());
        let server = Server::spawn(run(&["serve", "--port", "0"]));
        let (mut browser, project) = server.visited();
        for url in
            [server.url("/"), project.clone(), format!("{project}tasks/a"), format!("{project}log")]
        {
            look(&mut browser, &url);
        }
        let listed = browser.eval(
            "fetch('/').then((page) => page.text()).then((page) => page.split('<tr data-key').length - 1)",
        );
        assert!(listed.as_u64().unwrap() > n as u64, "{listed}");
    }
}
