//! Certificates of a private authority: accepted if the user configures the authority, else
//! refused.

use super::servers::{Company, agreeable};

const OWN: &str = "notify:\n  - {name: chat, webhook: 'https://chat.example/hooks/x'}\n";

fn company() -> Company {
    let mut company = Company::new("");
    company.encrypted("chat.example", agreeable());
    let url = company.proxy.url();
    company.project.set_variable("HTTPS_PROXY", &url);
    company
}

fn send(company: &Company) -> (bool, String) {
    let told = company.project.json_command(&["inbox", "test", "chat"]).output().unwrap();
    (told.status.success(), String::from_utf8_lossy(&told.stderr).into_owned())
}

#[test]
fn a_private_authority_is_refused_until_the_user_names_its_certificate() {
    let mut company = company();
    company.project.append_user_config(OWN);
    let (is_sent, error) = send(&company);
    assert!(!is_sent && error.contains("the certificate of chat.example"), "{error}");
    assert!(error.contains("SSL_CERT_FILE"), "{error}");

    let ca_file = company.ca_file();
    company.project.set_variable("SSL_CERT_FILE", &ca_file);
    assert!(send(&company).0, "{:?}", send(&company));
}

#[test]
fn the_users_file_names_certificates_beside_those_of_the_system() {
    let company = company();
    company.project.append_user_config(OWN);
    company.project.append_user_config(&format!("network: {{ca_file: '{}'}}\n", company.ca_file()));
    assert!(send(&company).0, "{:?}", send(&company));
}

#[test]
fn a_directory_of_certificates_is_read() {
    let mut company = company();
    company.project.append_user_config(OWN);
    let directory = company.project.beside("certificates");
    std::fs::create_dir(&directory).unwrap();
    std::fs::copy(company.ca_file(), directory.join("company.pem")).unwrap();
    company.project.set_variable("SSL_CERT_DIR", directory.display().to_string());
    assert!(send(&company).0, "{:?}", send(&company));
}

#[test]
fn certificate_files_are_read_only_for_requests() {
    let mut company = company();
    company.project.append_user_config(OWN);
    company.project.set_variable("SSL_CERT_FILE", "/nowhere/ca.pem");
    company.project.json_values(&["status"]);
    let mut version = company.project.json_command(&["--version"]);
    let version = version.env("SSL_CERT_FILE", "/nowhere/ca.pem").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    let (is_sent, error) = send(&company);
    assert!(!is_sent && error.contains("SSL_CERT_FILE: /nowhere/ca.pem"), "{error}");
}
