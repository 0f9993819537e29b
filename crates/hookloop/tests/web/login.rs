//! Login and logout.

use crate::support::project_with;
use crate::web::PLAIN;
use crate::web::browser::Browser;
use crate::web::server::Server;

#[test]
fn the_login_link_works_once_and_logout_ends_the_login() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let mut browser = Browser::start();
    browser.go(&server.url("/"));
    assert_eq!(browser.text("location.pathname"), "/login");
    browser.go(&server.link);
    browser.until("location.href.endsWith('/') && document.title.startsWith('Projects')");
    let cookies = browser.call("Network.getCookies", serde_json::json!({}));
    let cookie = &cookies["cookies"][0];
    assert_eq!(cookie["name"], format!("hookloop-{}", server.port));
    assert_eq!(
        (&cookie["httpOnly"], &cookie["sameSite"], &cookie["path"]),
        (&true.into(), &"Strict".into(), &"/".into())
    );
    assert_eq!(browser.text("document.cookie"), "", "a script sees the cookie");
    browser.assert_calm("the login");

    // Another browser opens the same link.
    let mut other = Browser::start();
    other.go(&server.link);
    assert!(other.text("document.body.innerText").contains("This link was used"));
    other.go(&server.url("/"));
    assert_eq!(other.text("location.pathname"), "/login");

    browser.click("header form[data-post='/logout'] button");
    browser.until("location.pathname == '/login'");
    browser.go(&server.url("/"));
    assert_eq!(browser.text("location.pathname"), "/login");
}

#[test]
fn the_dashboard_token_logs_in_and_the_agent_token_does_not() {
    let project = project_with(PLAIN);
    let server = Server::start(&project);
    let agents =
        std::fs::read_to_string(server.serving.said["token_file"].as_str().unwrap()).unwrap();
    let mut browser = Browser::start();
    browser.go(&server.url("/login"));
    browser.type_into("#token", agents.trim());
    browser.key("Enter");
    browser.until("document.querySelector('#said').innerText.includes('This is not the token')");
    browser.eval("document.querySelector('#token').value = ''");
    browser.type_into("#token", &server.token());
    browser.key("Enter");
    browser.until("location.pathname == '/' && document.title.startsWith('Projects')");
}
