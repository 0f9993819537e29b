//! Runs the commands of each page as written, in the order of the page.

use std::collections::BTreeSet;
use std::path::Path;

use crate::book::structure::pages_under;
use crate::documents::{blocks, check_commands, check_commands_with, free_port};

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
    from_agent_hooks => "from/agent-hooks.md",
    from_git_hooks => "from/git-hooks.md",
    from_a_ralph_loop => "from/ralph.md",
    from_beads => "from/beads.md",
    protocol => "reference/protocol.md",
    tdd => "recipes/tdd.md",
    nightly => "recipes/nightly-fleet.md",
    security => "recipes/security.md",
    review_bot => "recipes/review-bot.md",
    flaky_tests => "recipes/flaky-tests.md",
    docs_keeper => "recipes/docs-keeper.md",
}

const MANY_MACHINES: &str = "start/many-machines.md";

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
    let found = ["start", "from", "recipes", "reference"].into_iter().flat_map(pages_under);
    let found: BTreeSet<String> = found.filter(has_commands).collect();
    let run: BTreeSet<String> =
        RUN.iter().chain([&MANY_MACHINES]).map(|page| (*page).to_owned()).collect();
    assert_eq!(found, run);
}

/// A complete configuration on a page is a project's file.
#[test]
fn every_configuration_is_read() {
    let pages =
        ["start", "from", "points", "recipes", "reference"].into_iter().flat_map(pages_under);
    let mut count = 0;
    for page in pages {
        for block in blocks(&format!("docs/{page}")).into_iter().filter(|b| b.language == "yaml") {
            let path = Path::new("hookloop.yaml");
            let read = hookloop_config::project_file::settings_from(path, block.text.as_bytes());
            assert!(read.is_ok(), "{page}: {:?}\n{}", read.err(), block.text);
            count += 1;
        }
    }
    assert!(count > 0);
}
