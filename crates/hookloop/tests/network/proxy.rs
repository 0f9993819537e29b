//! Checks that every request passes the proxy, unless the user excludes its host. A repository
//! cannot change this.

use std::fs;

use hookloop_testbed::Server;
use hookloop_testbed::http_proxy::RecordingProxy;

use super::servers::{Company, agreeable};
use crate::delivery_project::DeliveryProject;
use crate::nats::machine_on;

const GATE: &str = "  stop:\n    - {name: reviewer, http: 'http://gate.example/judge'}\n";
const OWN: &str = "notify:\n  - {name: chat, webhook: 'https://chat.example/hooks/x'}\n\
                   telemetry: {endpoint: 'http://collector.example:4318'}\n";

/// Returns a company with a server for each kind of request.
fn company() -> Company {
    let mut company = Company::new(GATE);
    company.encrypted("chat.example", agreeable());
    company.proxy.host("gate.example:80", agreeable());
    company.proxy.host("collector.example:4318", agreeable());
    company.project.append_user_config(OWN);
    company
}

/// Delivers a task and sends a test message to the channel.
fn work(company: &Company) {
    let project = &company.project;
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_eq!(ran.code, 0, "{} {:?}", ran.stderr, company.proxy.passed());
    assert_eq!(project.merge()["t1"].0, "merged");
    project.json_values(&["inbox", "test", "chat"]);
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
    company.project.set_variable("HTTPS_PROXY", &url);
    company.project.set_variable("http_proxy", &url);
    company.project.set_variable("SSL_CERT_FILE", &ca_file);
    work(&company);
    assert_all_passed(&company.proxy);
}

#[test]
fn requests_pass_the_proxy_of_the_users_file_without_storing_its_password() {
    const PASSWORD: &str = "pass-through-1234";
    let company = company();
    // Base64 of `me:pass-through-1234`.
    company.proxy.want_login("Basic bWU6cGFzcy10aHJvdWdoLTEyMzQ=");
    let url = company.proxy.url_with_login(&format!("me:{PASSWORD}"));
    company
        .project
        .append_user_config(&format!("network: {{proxy: '{url}', ca_file: ../../../ca.pem}}\n"));
    // The agent prints its environment.
    company.project.does("t1", 2, "env");
    work(&company);
    assert_all_passed(&company.proxy);
    let kept = company.project.kept();
    let is_kept = kept.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
    assert!(!is_kept, "the password of the proxy is stored");
}

#[test]
fn a_host_of_no_proxy_is_reached_directly() {
    let mut company = company();
    let (url, ca_file) = (company.proxy.url(), company.ca_file());
    company.project.set_variable("ALL_PROXY", &url);
    company.project.set_variable("SSL_CERT_FILE", &ca_file);
    // Only the proxy can resolve the name, so a direct request fails.
    for (exceptions, passes) in [
        ("other.example", true),
        ("chat.example", false),
        (".example", false),
        ("chat.example:443", false),
        ("chat.example:8443", true),
        ("10.0.0.0/8,127.0.0.1", true),
    ] {
        company.project.set_variable("NO_PROXY", exceptions);
        company.proxy.forget();
        let told = company.project.json_command(&["inbox", "test", "chat"]).output().unwrap();
        assert_eq!(told.status.success(), passes, "{exceptions}: {told:?}");
        assert_eq!(company.proxy.passed().is_empty(), !passes, "{exceptions}");
    }
}

#[test]
fn a_server_on_this_machine_is_reached_without_the_proxy() {
    let proxy = RecordingProxy::start();
    let mut project = DeliveryProject::without_remote("", &[]);
    let server = agreeable();
    project.append_user_config(&format!(
        "notify:\n  - {{name: here, webhook: 'http://{server}/x'}}\n"
    ));
    project.set_variable("ALL_PROXY", proxy.url());
    project.json_values(&["inbox", "test", "here"]);
    assert_eq!(proxy.passed(), Vec::<String>::new());
}

#[test]
fn a_repository_does_not_choose_a_proxy() {
    let project = DeliveryProject::without_remote("", &[]);
    let text = "version: 1\nnetwork: {proxy: 'http://evil.example:3128'}\n";
    fs::write(project.root().join("hookloop.yaml"), text).unwrap();
    let told = project.json_command(&["status"]).output().unwrap();
    let error = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{error}");
    assert!(error.contains("hookloop.yaml:2:"), "{error}");
    assert!(error.contains("~/.config/hookloop/config.yaml"), "{error}");
}

#[test]
fn an_invalid_proxy_setting_stops_only_requests() {
    let mut company = company();
    company.project.set_variable("HTTPS_PROXY", "gopher://me:hunter2@proxy.example");
    company.project.json_values(&["status"]);
    let told = company.project.json_command(&["inbox", "test", "chat"]).output().unwrap();
    let error = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success(), "{error}");
    assert!(error.contains("HTTPS_PROXY is not the address of a proxy"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn agents_get_the_proxy_variables_and_hooks_only_those_they_name() {
    let config = "room: here\nhooks:\n  stop:\n    - {name: plain, command: 'env > ../plain.env'}\n    \
                  - {name: named, env: [HTTPS_PROXY], command: 'env > ../named.env'}\n";
    let project = DeliveryProject::without_remote(config, &[("a.txt", "a\n")]);
    project.append_user_config(
        "network: {proxy: 'http://proxy.example:3128', no_proxy: [own.example]}\n",
    );
    let agent = "command:cat > ../prompt; env > ../agent.env; echo x > x.txt; echo '<promise>COMPLETE</promise>'";
    let ran = project.json_command(&["run", "--agent", agent, "Do it"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let variables = |name: &str| fs::read_to_string(project.beside(name)).unwrap();
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
    let project = DeliveryProject::without_remote("delivery: {forge: none}\n", &[("a.txt", "a\n")]);
    project.git(&["remote", "add", "origin", "http://git.example/acme/app.git"]);
    project.append_user_config(&format!("network: {{proxy: '{}'}}\n", proxy.url()));
    project.add("t1", &[]);
    project.does("t1", 1, "echo work > work.txt");
    let ran = project.run_tasks();
    assert_ne!(ran.code, 0, "{}", ran.stderr);
    let asked = "GET http://git.example/acme/app.git/info/refs";
    let passed = proxy.passed();
    assert!(passed.iter().any(|line| line.starts_with(asked)), "{passed:?}");
}

#[test]
fn monitoring_urls_of_a_store_are_requested_through_the_proxy() {
    let (server, proxy) = (Server::single(), RecordingProxy::start());
    let machine = machine_on(&server, "demo");
    let monitor = server.monitor_url();
    proxy.host("monitor.example:8222", monitor.trim_start_matches("http://").parse().unwrap());
    machine.replace_in_user_config(&monitor, "http://monitor.example:8222");
    machine.replace_in_user_config(
        "version: 1\n",
        &format!("version: 1\nnetwork: {{proxy: '{}'}}\n", proxy.url()),
    );
    machine.ok(&["task", "add", "Goal"]);
    let passed = proxy.passed();
    assert!(passed.iter().any(|line| line == "GET http://monitor.example:8222/jsz"), "{passed:?}");
}
