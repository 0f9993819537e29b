//! Runs every command and reads every configuration of the documents as written.

use std::path::Path;

use hookloop_config::policy::PolicyFile;

use crate::documents::{self, blocks, check_commands, check_commands_with, free_port};
use crate::install::release;
use crate::support::builder;

#[test]
fn readme() {
    check_commands("README.md");
}

#[test]
fn install() {
    let host = tempfile::tempdir().unwrap();
    let files = host.path().join("files");
    std::fs::create_dir(&files).unwrap();
    for name in [release::archive_name(), "SHA256SUMS".to_owned()] {
        std::fs::copy(release::made().join(&name), files.join(&name)).unwrap();
    }
    release::lay_out(&files, host.path());
    let server = release::Server::start(host.path());
    let stamped = release::script("packaging/stamp", &[server.address(), release::VERSION]);
    std::fs::write(files.join("install.sh"), stamped).unwrap();
    let address = format!("export HOOKLOOP_DOWNLOADS={}", server.address());
    check_commands_with("docs/install.md", |text| {
        format!("{address}\n{}", text.replace("0.1.0", release::VERSION))
    });
}

#[test]
fn setup() {
    check_commands("docs/setup.md");
}

#[test]
fn screens() {
    check_commands("docs/screens.md");
}

#[test]
fn tasks() {
    check_commands("docs/tasks.md");
}

#[test]
fn hooks() {
    check_commands("docs/hooks.md");
}

#[test]
fn command_hooks() {
    check_commands("docs/command-hooks.md");
}

#[test]
fn sessions() {
    check_commands("docs/sessions.md");
}

#[test]
fn delivery() {
    check_commands("docs/delivery.md");
}

#[test]
fn the_configuration_in_delivery_md_is_read() {
    let yaml =
        blocks("docs/delivery.md").into_iter().find(|block| block.language == "yaml").unwrap();
    let path = Path::new("hookloop.yaml");
    let rules =
        hookloop_config::project_file::settings_from(path, yaml.text.as_bytes()).unwrap().rules;
    assert_eq!(rules.delivery.unwrap().copy, [".env"]);
    assert_eq!(rules.types["product"].agents["implementer"], ["claude", "codex"]);
}

#[test]
fn inbox() {
    check_commands("docs/inbox.md");
}

/// Checks that all channels of the example are read. tests/inbox sends to those that it can reach.
#[test]
fn the_configuration_in_inbox_md_is_read() {
    let yaml = blocks("docs/inbox.md").into_iter().find(|block| block.language == "yaml").unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.yaml");
    std::fs::write(&path, yaml.text).unwrap();
    let channels = hookloop_config::user_file::load(&path).unwrap().channels;
    let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["phone", "team", "desk", "mail"]);
}

#[test]
fn the_network_in_setup_md_is_read() {
    let yaml = documents::block("docs/setup.md", "user");
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.yaml");
    std::fs::write(&path, yaml).unwrap();
    let network = hookloop_config::user_file::load(&path).unwrap().network;
    assert_eq!(network.proxy_address.as_deref(), Some("http://proxy.example:3128"));
    assert_eq!(network.no_proxy.len(), 4);
    assert_eq!(network.ca_file, Some(home.path().join("company-ca.pem")));
}

#[test]
fn usage() {
    check_commands("docs/usage.md");
}

#[test]
fn dashboard() {
    check_commands("docs/dashboard.md");
}

#[test]
fn policy() {
    check_commands("docs/policy.md");
}

#[test]
fn the_policy_in_policy_md_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.yaml");
    std::fs::write(&path, documents::block("docs/policy.md", "policy.yaml")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let policy = hookloop_config::policy_file::load(&[PolicyFile::Named(path)]).unwrap();
    let gates: Vec<&str> = policy.gates().map(|gate| gate.value.name.as_str()).collect();
    assert_eq!(gates, ["policy/tests", "policy/licences"]);
    assert_eq!(policy.limits().session.max_iterations, 30);
    assert_eq!(policy.lines().len(), 14);
}

#[test]
fn fleet() {
    check_commands("docs/fleet.md");
}

#[test]
fn the_policy_in_fleet_md_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.yaml");
    std::fs::write(&path, documents::block("docs/fleet.md", "policy.yaml")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let policy = hookloop_config::policy_file::load(&[PolicyFile::Named(path)]).unwrap();
    assert_eq!(policy.limits().session.max_iterations, 30);
}

#[test]
fn scheduling() {
    check_commands("docs/scheduling.md");
}

/// tests/operators reads the configurations of this page and compares its tables with the sent
/// data.
#[test]
fn operators() {
    check_commands("docs/operators.md");
}

#[test]
fn native_hooks() {
    check_commands("docs/native-hooks.md");
}

#[test]
fn agents() {
    check_commands("docs/agents.md");
}

#[test]
fn mcp() {
    check_commands("docs/mcp.md");
}

/// The first block is a project's file, the second a user's. hookloop lists the agents of both.
#[test]
fn the_configuration_in_agents_md_is_read() {
    let yaml: Vec<_> =
        blocks("docs/agents.md").into_iter().filter(|b| b.language == "yaml").collect();
    let project = builder().config(&yaml[0].text).user_config(&yaml[1].text).build();
    let said = project.ok(&["agents", "list"]);
    for name in ["careful", "local", "qwen"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn log() {
    check_commands("docs/log.md");
}

#[test]
fn nats() {
    let port = free_port().to_string();
    // Stops all processes of a block, even if the block fails.
    let trap = format!(
        "trap '(kill $(jobs -p); hookloop nats down --port {port}) 2>/dev/null || true' EXIT"
    );
    check_commands_with("docs/nats.md", |text| format!("{trap}\n{}", text.replace("4222", &port)));
}

#[test]
fn the_configuration_in_hooks_md_does_what_the_text_says() {
    let yaml = blocks("docs/hooks.md").into_iter().find(|b| b.language == "yaml").unwrap();
    let project = builder().config(yaml.text).build();
    let run = |args: &[&str]| project.ok(args);
    run(&["task", "add", "Parser", "--id", "parser"]);
    run(&["task", "block", "parser", "--reason", "which encoding?"]);
    run(&["task", "unblock", "parser"]);
    run(&["task", "complete", "parser"]);
    let tasks = run(&["task", "list"]);
    assert!(tasks.contains("Unblock: Parser (which encoding?)"), "{tasks}");
    assert!(tasks.contains("Write release notes for Parser"), "{tasks}");
    let log = run(&["log"]);
    for event in ["hook.announce.finished", "hook.announce.released", "workflow_completed"] {
        assert!(log.contains(event), "{event} is not in\n{log}");
    }
}

#[test]
fn the_json_in_hooks_md_is_taken_over() {
    let json = blocks("docs/hooks.md").into_iter().find(|b| b.language == "json").unwrap();
    let project = builder().file("hooks.json", json.text).build();
    project.ok(&["import", "automation-hooks", "hooks.json"]);
    let written = project.read("hookloop.yaml");
    assert!(written.contains("use: auto-create-review-task"), "{written}");
}
