//! The network findings of `hookloop doctor`: each failure with its cause and the next step.

use std::net::TcpListener;

use serde_json::Value;

use super::servers::{AUTHORITY, Company, FORGE};

/// Returns the finding about one part of the network.
fn finding(company: &Company, about: &str) -> Value {
    let told = company.project.json_command(&["doctor"]).output().unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&told.stdout).unwrap();
    let is_meant = |finding: &&Value| finding["group"] == "network" && finding["about"] == about;
    let found = findings.iter().find(is_meant).cloned();
    found.unwrap_or_else(|| panic!("nothing about {about}: {findings:?}"))
}

fn check(found: &Value, status: &str, words: &[&str]) {
    assert_eq!(found["status"], status, "{found}");
    let text = format!("{} {}", found["message"], found["hint"]);
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_doctor_tries_the_forge_through_the_proxy() {
    let mut company = Company::new("");
    let (url, ca_file) = (company.proxy.url(), company.ca_file());
    company.project.set_variable("HTTPS_PROXY", &url);
    company.project.set_variable("NO_PROXY", "own.example");

    // The certificate is checked first: its authority is unknown.
    let found = finding(&company, "forge");
    check(
        &found,
        "error",
        &["certificate of forge.example", AUTHORITY, "SSL_CERT_FILE", "ca_file"],
    );

    company.project.set_variable("SSL_CERT_FILE", &ca_file);
    check(&finding(&company, "proxy"), "ok", &[&url, "HTTPS_PROXY", "own.example"]);
    check(&finding(&company, "certificates"), "ok", &["1 from", &ca_file]);
    check(&finding(&company, "forge"), "ok", &[FORGE, &url, "HTTP status 401"]);
    let requests = company.forge.requests();
    assert!(requests.iter().all(|request| request.status == Some(401)), "a token was sent");

    company.proxy.refuse(403);
    check(&finding(&company, "forge"), "error", &["refused to connect", "403", "HTTPS_PROXY"]);
    company.proxy.want_login("Basic x");
    check(&finding(&company, "forge"), "error", &["407", "USER:PASSWORD"]);
}

#[test]
fn doctor_reports_an_unreachable_or_invalid_proxy() {
    let mut company = Company::new("");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    company.project.set_variable("HTTPS_PROXY", format!("http://127.0.0.1:{port}"));
    let expected = format!("the proxy http://127.0.0.1:{port} is not reached");
    check(&finding(&company, "forge"), "error", &[&expected, "check HTTPS_PROXY"]);

    company.project.set_variable("HTTPS_PROXY", "http://proxy.invalid:3128");
    check(&finding(&company, "forge"), "error", &["proxy.invalid", "is not known"]);

    company.project.set_variable("HTTPS_PROXY", "what is this");
    check(&finding(&company, "proxy"), "error", &["HTTPS_PROXY", "http://proxy.example:3128"]);

    company.project.set_variable("HTTPS_PROXY", "");
    company.project.set_variable("SSL_CERT_FILE", "/nowhere/ca.pem");
    check(&finding(&company, "certificates"), "error", &["SSL_CERT_FILE", "/nowhere/ca.pem"]);
}
