//! Every request passes the proxy, unless the user excepts its host; a repository has no part in it.

use std::fs;

use hookloop_testbed::Server;
use hookloop_testbed::http_proxy::RecordingProxy;

use super::servers::{Company, agreeable};
use crate::nats::Machine;
use crate::yard::Yard;

const GATE: &str = "  stop:\n    - {name: reviewer, http: 'http://gate.example/judge'}\n";
const OWN: &str = "notify:\n  - {name: chat, webhook: 'https://chat.example/hooks/x'}\n\
                   telemetry: {endpoint: 'http://collector.example:4318'}\n";

/// A company with a server for each kind of request.
fn company() -> Company {
    let mut company = Company::new(GATE);
    company.encrypted("chat.example", agreeable());
    company.proxy.host("gate.example:80", agreeable());
    company.proxy.host("collector.example:4318", agreeable());
    company.yard.configure_user(OWN);
    company
}

/// Delivers a task and tries the channel.
fn work(company: &Company) {
    let yard = &company.yard;
    yard.add("t1", &[]);
    yard.does("t1", 1, "echo work > work.txt");
    let ran = yard.tasks();
    assert_eq!(ran.code, 0, "{} {:?}", ran.stderr, company.proxy.passed());
    assert_eq!(yard.merge()["t1"].0, "merged");
    yard.ok(&["inbox", "test", "chat"]);
}

fn assert_all_passed(proxy: &RecordingProxy) {
    let passed = proxy.passed();
    for expected in [
        "CONNECT forge.example:443",
        "CONNECT chat.example:443",
        "POST http://gate.example/judge",
        "POST http://collector.example:4318/v1/traces",
    ] {
        assert!(passed.iter().any(|line| line == expected), "{expected}: {passed:?}");
    }
}

#[test]
fn every_request_passes_the_proxy_of_the_environment() {
    let mut company = company();
    let (url, ca_file) = (company.proxy.url(), company.ca_file());
    company.yard.set("HTTPS_PROXY", &url);
    company.yard.set("http_proxy", &url);
    company.yard.set("SSL_CERT_FILE", &ca_file);
    work(&company);
    assert_all_passed(&company.proxy);
}

#[test]
fn every_request_passes_the_proxy_of_the_users_file_and_its_password_is_stored_nowhere() {
    const PASSWORD: &str = "pass-through-1234";
    let company = company();
    // Base64 of `me:pass-through-1234`.
    company.proxy.want_login("Basic bWU6cGFzcy10aHJvdWdoLTEyMzQ=");
    let url = company.proxy.url_with_login(&format!("me:{PASSWORD}"));
    company
        .yard
        .configure_user(&format!("network: {{proxy: '{url}', ca_file: ../../../ca.pem}}\n"));
    // An agent that prints what it has.
    company.yard.does("t1", 2, "env");
    work(&company);
    assert_all_passed(&company.proxy);
    let kept = company.yard.kept();
    let is_kept = kept.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
    assert!(!is_kept, "the password of the proxy is stored");
}

#[test]
fn a_host_of_no_proxy_is_reached_directly() {
    let mut company = company();
    let (url, ca_file) = (company.proxy.url(), company.ca_file());
    company.yard.set("ALL_PROXY", &url);
    company.yard.set("SSL_CERT_FILE", &ca_file);
    // Nobody knows the name but the proxy, so a direct request fails.
    for (exceptions, passes) in [
        ("other.example", true),
        ("chat.example", false),
        (".example", false),
        ("chat.example:443", false),
        ("chat.example:8443", true),
        ("10.0.0.0/8,127.0.0.1", true),
    ] {
        company.yard.set("NO_PROXY", exceptions);
        company.proxy.forget();
        let told = company.yard.command(&["inbox", "test", "chat"]).output().unwrap();
        assert_eq!(told.status.success(), passes, "{exceptions}: {told:?}");
        assert_eq!(company.proxy.passed().is_empty(), !passes, "{exceptions}");
    }
}

#[test]
fn a_server_on_this_machine_is_reached_without_the_proxy() {
    let proxy = RecordingProxy::start();
    let mut yard = Yard::without_remote("", &[]);
    let server = agreeable();
    yard.configure_user(&format!("notify:\n  - {{name: here, webhook: 'http://{server}/x'}}\n"));
    yard.set("ALL_PROXY", &proxy.url());
    yard.ok(&["inbox", "test", "here"]);
    assert_eq!(proxy.passed(), Vec::<String>::new());
}

#[test]
fn a_repository_does_not_choose_a_proxy() {
    let yard = Yard::without_remote("", &[]);
    let text = "version: 1\nnetwork: {proxy: 'http://evil.example:3128'}\n";
    fs::write(yard.project().join("hookloop.yaml"), text).unwrap();
    let told = yard.command(&["status"]).output().unwrap();
    let error = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{error}");
    assert!(error.contains("hookloop.yaml:2:"), "{error}");
    assert!(error.contains("~/.config/hookloop/config.yaml"), "{error}");
}

#[test]
fn a_proxy_that_can_not_be_read_stops_requests_and_not_other_work() {
    let mut company = company();
    company.yard.set("HTTPS_PROXY", "gopher://me:hunter2@proxy.example");
    company.yard.ok(&["status"]);
    let told = company.yard.command(&["inbox", "test", "chat"]).output().unwrap();
    let error = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success(), "{error}");
    assert!(error.contains("HTTPS_PROXY is not the address of a proxy"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn agents_have_the_users_proxy_and_hooks_only_what_they_name() {
    let config = "hooks:\n  stop:\n    - {name: plain, command: 'env > ../plain.env'}\n    \
                  - {name: named, env: [HTTPS_PROXY], command: 'env > ../named.env'}\n";
    let yard = Yard::without_remote(config, &[("a.txt", "a\n")]);
    yard.configure_user("network: {proxy: 'http://proxy.example:3128', no_proxy: [own.example]}\n");
    let agent = "command:cat > ../prompt; env > ../agent.env; echo x > x.txt; echo '<promise>COMPLETE</promise>'";
    let ran = yard.command(&["run", "--agent", agent, "Do it"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let variables = |name: &str| fs::read_to_string(yard.beside(name)).unwrap();
    let agent = variables("agent.env");
    for line in ["HTTPS_PROXY=http://proxy.example:3128", "https_proxy=http://proxy.example:3128"] {
        assert!(agent.lines().any(|known| known == line), "{line}: {agent}");
    }
    assert!(agent.lines().any(|line| line == "NO_PROXY=own.example"), "{agent}");
    assert!(!variables("plain.env").contains("proxy.example"));
    assert!(variables("named.env").contains("HTTPS_PROXY=http://proxy.example:3128"));
}

#[test]
fn git_reaches_a_remote_through_the_users_proxy() {
    let proxy = RecordingProxy::start();
    let yard = Yard::without_remote("delivery: {forge: none}\n", &[("a.txt", "a\n")]);
    yard.git(&["remote", "add", "origin", "http://git.example/acme/app.git"]);
    yard.configure_user(&format!("network: {{proxy: '{}'}}\n", proxy.url()));
    yard.add("t1", &[]);
    yard.does("t1", 1, "echo work > work.txt");
    let ran = yard.tasks();
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let asked = "GET http://git.example/acme/app.git/info/refs";
    let passed = proxy.passed();
    assert!(passed.iter().any(|line| line.starts_with(asked)), "{passed:?}");
}

#[test]
fn monitors_of_a_store_are_asked_through_the_proxy() {
    let (server, proxy) = (Server::single(), RecordingProxy::start());
    let machine = Machine::on(&server, "demo");
    let monitor = server.monitor_url();
    proxy.host("monitor.example:8222", monitor.trim_start_matches("http://").parse().unwrap());
    machine.change_own(&monitor, "http://monitor.example:8222");
    machine.change_own(
        "version: 1\n",
        &format!("version: 1\nnetwork: {{proxy: '{}'}}\n", proxy.url()),
    );
    machine.ok(&["task", "add", "Goal"]);
    let passed = proxy.passed();
    assert!(passed.iter().any(|line| line == "GET http://monitor.example:8222/jsz"), "{passed:?}");
}
