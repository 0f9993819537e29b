//! Runs the commands of each page as written, in the order of the page.

use std::collections::BTreeSet;
use std::path::Path;

use crate::book::structure::pages_under;
use crate::documents::{Block, blocks, check_commands, check_commands_with, free_port};

macro_rules! pages {
    ($($test:ident => $page:literal,)*) => {
        const RUN: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            check_commands(concat!("docs/", $page));
        })*
    };
}

pages! {
    demo => "start/demo.md",
    first_gated_run => "start/gated-run.md",
    tasks => "start/tasks.md",
    overnight => "start/overnight.md",
    from_other_tools => "from/README.md",
    from_agent_hooks => "from/agent-hooks.md",
    from_git_hooks => "from/git-hooks.md",
    from_a_ralph_loop => "from/ralph.md",
    from_beads => "from/beads.md",
    how_to_add_an_agent => "how-to/add-agent.md",
    how_to_allow_agent_commands => "how-to/agent-commands.md",
    how_to_see_the_results_of_checks => "how-to/checks.md",
    how_to_limit_cost => "how-to/limit-cost.md",
    how_to_install_native_hooks => "how-to/native-hooks.md",
    how_to_get_notifications => "how-to/notifications.md",
    how_to_open_pull_requests => "how-to/pull-requests.md",
    how_to_add_recurring_tasks => "how-to/recurring-tasks.md",
    how_to_review_work => "how-to/review.md",
    how_to_run_gates_in_a_room => "how-to/rooms.md",
    how_to_sandbox_hooks => "how-to/sandbox.md",
    how_to_see_the_files_of_each_turn => "how-to/snapshots.md",
    how_to_run_tests_as_a_gate => "how-to/tests-as-a-gate.md",
    how_to_write_a_hook => "how-to/write-a-hook.md",
    configuration_files => "reference/configuration-files.md",
    mcp_tools => "reference/mcp-tools.md",
    metrics => "reference/metrics.md",
    prompt_template => "reference/prompt.md",
    protocol => "reference/protocol.md",
    tdd => "recipes/tdd.md",
    nightly => "recipes/nightly-fleet.md",
    security => "recipes/security.md",
    review_bot => "recipes/review-bot.md",
    flaky_tests => "recipes/flaky-tests.md",
    docs_keeper => "recipes/docs-keeper.md",
}

const MANY_MACHINES: &str = "start/many-machines.md";

/// The directories whose pages are listed above if they have commands.
const DIRECTORIES: [&str; 8] =
    ["start", "how-to", "concepts", "agents", "from", "recipes", "reference", "help"];

#[test]
fn many_machines() {
    let port = free_port().to_string();
    // Stops all processes of the block, even if the block fails.
    let trap = format!(
        "trap '(kill $(jobs -p); hookloop nats down --port {port}) 2>/dev/null || true' EXIT"
    );
    let page = format!("docs/{MANY_MACHINES}");
    check_commands_with(&page, |text| format!("{trap}\n{}", text.replace("4241", &port)));
}

/// Checks that every page with commands is tested. The pages of hook points run in `points`, older
/// pages in tests/docs.rs.
#[test]
fn no_page_is_left_out() {
    let has_commands = |page: &String| {
        blocks(&format!("docs/{page}")).iter().any(|block| block.language == "sh" && block.run)
    };
    let found = DIRECTORIES.into_iter().flat_map(pages_under);
    let found: BTreeSet<String> = found.filter(has_commands).collect();
    let run: BTreeSet<String> =
        RUN.iter().chain([&MANY_MACHINES]).map(|page| (*page).to_owned()).collect();
    assert_eq!(found, run);
}

/// A complete configuration on a page is a project's file, unless the block has a name.
#[test]
fn every_configuration_is_read() {
    let mut count = 0;
    for page in DIRECTORIES.into_iter().chain(["points"]).flat_map(pages_under) {
        let is_of_a_project = |block: &Block| block.language == "yaml" && block.name.is_empty();
        for block in blocks(&format!("docs/{page}")).into_iter().filter(is_of_a_project) {
            let path = Path::new("hookloop.yaml");
            let read = hookloop_config::project_file::settings_from(path, block.text.as_bytes());
            assert!(read.is_ok(), "{page}: {:?}\n{}", read.err(), block.text);
            count += 1;
        }
    }
    assert!(count > 0);
}

/// A configuration with the name `user` or `config.yaml` is the user's own file.
#[test]
fn every_user_configuration_is_read() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.yaml");
    let mut count = 0;
    for page in pages_under("") {
        let is_of_a_user = |block: &Block| {
            block.language == "yaml" && ["user", "config.yaml"].contains(&block.name.as_str())
        };
        for block in blocks(&format!("docs/{page}")).into_iter().filter(is_of_a_user) {
            std::fs::write(&path, &block.text).unwrap();
            let read = hookloop_config::user_file::load(&path);
            assert!(read.is_ok(), "{page}: {:?}\n{}", read.err(), block.text);
            count += 1;
        }
    }
    assert!(count > 0);
}
