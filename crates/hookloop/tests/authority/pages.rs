//! The actions of the dashboard: a person's token may run all of them, an agent's token none.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::authority::stage::AuthorityProject;
use crate::support::serving::Serving;

struct Server {
    _serving: Serving,
    address: String,
    /// The path to which the project's actions are posted.
    path: String,
    people: String,
    agents: String,
}

impl Server {
    fn of(stage: &AuthorityProject) -> Server {
        let serving = Serving::spawn(stage.command(&["serve", "--port", "0"]));
        let state = stage.project.database_path().parent().unwrap().to_owned();
        let token = |name: &str| {
            let text = std::fs::read_to_string(state.join(name)).unwrap();
            text.trim().to_owned()
        };
        let url = serving.said["url"].as_str().unwrap().to_owned();
        let address = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
        let (people, agents) = (token("dashboard.token"), token("serve.token"));
        let mut server = Server { _serving: serving, address, path: String::new(), people, agents };
        let (_, page) = server.ask(&server.people, "GET", "/", "");
        let link = page.split_once("href=\"/p/").unwrap().1.split_once('"').unwrap().0;
        server.path = format!("/p/{}/do", link.split('/').next().unwrap());
        server
    }

    /// Posts an action; returns the status and the response.
    fn act(&self, token: &str, body: &Value) -> (u16, String) {
        self.ask(token, "POST", &self.path, &body.to_string())
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {1}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    /// Returns the names of all actions, as the error for an unknown action lists them.
    fn actions(&self) -> Vec<String> {
        let (status, told) = self.act(&self.people, &json!({ "do": "nothing_like_it" }));
        assert_eq!(status, 400, "{told}");
        let (_, list) = told.split_once("expected one of").unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
}

#[test]
fn dashboard_actions_are_refused_to_an_agents_token() {
    let stage = AuthorityProject::new();
    let server = Server::of(&stage);
    let actions = server.actions();
    assert!(actions.len() >= 8, "{actions:?}");
    for action in actions {
        let arguments = json!({ "do": action, "key": "task:blocked@1", "session": "abcdefgh2345", "text": "x" });
        let (status, told) = server.act(&server.agents, &arguments);
        assert_eq!(status, 401, "{action}: {told}");
        let (status, told) = server.act(&server.people, &arguments);
        assert!(status != 401 && status != 403, "{action}: {told}");
    }
}
