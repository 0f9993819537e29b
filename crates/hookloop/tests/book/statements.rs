//! Statements of the pages that were false once. Each test compares a statement with the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use hookloop_config::agents::profile::AGENT_PROFILES;
use hookloop_config::project_file::settings_from;
use hookloop_config::variables::{BASE, CI_VARIABLE, LOG_SELECTORS, TRACE_PARENT};
use hookloop_core::hook_status::HookStatus;
use hookloop_core::point::{Point, PointKind};
use serde_json::Value;

use crate::book::structure::pages_under;
use crate::cli::Project;
use crate::documents::{Block, blocks, names, root, rows, table};

const COMMAND_HOOKS: &str = "docs/command-hooks.md";
const ENVIRONMENT: &str = "docs/reference/environment.md";
const EXIT_CODES: &str = "docs/reference/exit-codes.md";
const PROMPT: &str = "docs/reference/prompt.md";
/// A turn that writes `answer` and reports that the work is done.
const WRITES: &str =
    r#"[{"write": {"answer": "42\n"}, "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
/// A gate that needs the file of [`WRITES`].
const GATE: &str = "hooks: {stop: [{name: tests, command: test -e answer}]}\n";

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// Returns a text in one line, so that a sentence can be found in it.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn prose(document: &str) -> String {
    in_one_line(&read(document))
}

/// Returns the words of a text in backticks that are names of variables.
fn variables(text: &str) -> BTreeSet<String> {
    let names = names(text).into_iter().map(|name| name.trim_end_matches("=1").to_owned());
    let is_upper = |c: char| c.is_ascii_uppercase() || c == '_';
    names.filter(|name| !name.is_empty() && name.chars().all(is_upper)).collect()
}

fn owned(names: impl IntoIterator<Item = &'static str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns every hook point by its name, with its kind as the pages write it.
fn hook_points() -> BTreeMap<String, &'static str> {
    let points = Point::names().into_iter().map(|name| name.parse::<Point>().unwrap());
    let kind = |point: &Point| match point.kind() {
        PointKind::Gate => "gate",
        PointKind::Reaction => "reaction",
    };
    points.map(|point| (point.name().to_owned(), kind(&point))).collect()
}

#[test]
fn the_table_of_hook_points_has_every_point_with_its_kind() {
    let listed = rows(COMMAND_HOOKS, "Points", 0);
    let of_row = |row: &Vec<String>| -> Vec<(String, String)> {
        names(&row[0]).into_iter().map(|name| (name, row[1].clone())).collect()
    };
    let listed: BTreeMap<String, String> = listed.iter().flat_map(of_row).collect();
    let mut known = hook_points();
    known.insert("hook.<name>.<type>".to_owned(), "reaction");
    let known: BTreeMap<String, String> =
        known.into_iter().map(|(name, kind)| (name, kind.to_owned())).collect();
    assert_eq!(listed, known);
}

#[test]
fn a_hook_has_exactly_one_of_the_listed_keys() {
    let mistake = |point: &str, hook: &str| {
        let text = format!("version: 1\nhooks: {{{point}: [{{name: a, {hook}}}]}}\n");
        let read = settings_from(Path::new("hookloop.yaml"), text.as_bytes());
        read.err().map(|error| error.message).unwrap_or_default()
    };
    let known = mistake("stop", "timeout: 5");
    assert!(known.contains("exactly one of"), "{known}");
    let known: BTreeSet<String> = names(&known).into_iter().collect();
    assert_eq!(table(COMMAND_HOOKS, "Options", 0), known);
    for two in ["command: x, file: y", "command: x, actions: []", "file: x, changed: y"] {
        let refusal = mistake("stop", two);
        assert!(refusal.contains("exactly one of"), "{two}: {refusal}");
    }
    let refusal = mistake("before_submit", "command: x, use: rebase_on_main");
    assert!(refusal.contains("exactly one of"), "{refusal}");
    assert_eq!(mistake("before_submit", "command: x, use: run_tests"), "");
}

#[test]
fn the_base_variables_of_a_hook_are_listed() {
    let page = read(ENVIRONMENT);
    let (_, listed) = page.split_once("A hook gets:").unwrap();
    let (listed, _) = listed.split_once("\n| variable").unwrap();
    let always = owned(BASE.into_iter().chain([CI_VARIABLE, TRACE_PARENT]));
    let selectors = owned(LOG_SELECTORS);
    assert_eq!(variables(listed), always.union(&selectors).cloned().collect());
    let page = read(COMMAND_HOOKS);
    let (_, listed) = page.split_once("A hook gets these").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let own = table(ENVIRONMENT, "Variables of a hook", 0);
    let missing: Vec<String> =
        always.union(&own).filter(|name| !variables(listed).contains(*name)).cloned().collect();
    assert!(missing.is_empty(), "{COMMAND_HOOKS} lacks {missing:?}");
}

/// Returns the whole numbers of a text.
fn numbers(text: &str) -> BTreeSet<i32> {
    let words = text.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the numbers in the first column of a table.
fn codes(document: &str, section: &str) -> BTreeSet<i32> {
    rows(document, section, 0).iter().map(|row| row[0].parse().unwrap()).collect()
}

#[test]
fn every_table_of_exit_codes_agrees_with_the_reference() {
    let all = codes(EXIT_CODES, "");
    assert_eq!(codes("docs/log.md", "Command output"), all);
    let by_command = rows(EXIT_CODES, "Codes by command", 0);
    let of_run = by_command.iter().find(|row| names(&row[0]).contains(&"run".to_owned())).unwrap();
    let of_run = numbers(&of_run[1]);
    assert!(of_run.is_subset(&all), "{of_run:?}");
    let first = codes("docs/start/gated-run.md", "Before you leave it alone");
    assert!(first.is_subset(&of_run), "{first:?}");
    let help = Project::bare().ok(&["run", "--help"]);
    let (_, listed) = help.split_once("Exit code:").unwrap();
    let (listed, _) = listed.split_once("Ctrl-C").unwrap();
    assert_eq!(numbers(listed), of_run);
}

#[test]
fn every_status_of_a_hook_run_is_listed() {
    let known = owned(HookStatus::ALL.map(HookStatus::name));
    let listed = |row: &str| -> BTreeSet<String> { names(row).into_iter().skip(1).collect() };
    let events = read("docs/reference/events.md");
    let (_, event) = events.split_once("\n### hook_ran\n").unwrap();
    let row = event.lines().find(|line| line.starts_with("| `status` |")).unwrap();
    assert_eq!(listed(row), known, "hook_ran in events.md");
    let prompt = read(PROMPT);
    let row = prompt.lines().find(|line| line.starts_with("| `status` |")).unwrap();
    assert_eq!(listed(row), known, "{PROMPT}");
}

/// Returns the variables that `{{ debug() }}` printed, each with the fields of its objects.
fn template_variables(printed: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, context) = printed.split_once("    ctx: {\n").unwrap();
    let (context, _) = context.split_once("\n    },").unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut variable = String::new();
    for line in context.lines() {
        if let Some((name, _)) = line.strip_prefix("        \"").and_then(|l| l.split_once("\": "))
        {
            variable = name.to_owned();
            found.insert(variable.clone(), BTreeSet::new());
        } else if let Some((field, _)) =
            line.trim_start().strip_prefix('\'').and_then(|l| l.split_once("': "))
        {
            found.entry(variable.clone()).or_default().insert(field.to_owned());
        }
    }
    found
}

#[test]
fn the_prompt_page_lists_every_template_variable_and_field() {
    let config = "loop: {prompt_template: prompt.jinja, stop_when: turn}
hooks: {stop: [{name: tests, command: 'false'}]}
";
    let project = Project::with_config(config);
    project.write("prompt.jinja", "{{ debug() }}");
    project.trust();
    project.add("Goal", &["--id", "a"]);
    // The second prompt has the result of the gate, which is a pending item.
    let agent = "command:cat > seen; echo Done";
    let run = project.run(&["run", "--task", "a", "--gate-retries", "1", "--agent", agent]);
    assert_eq!(run.code, 3, "{run:?}");
    let known = template_variables(&project.read("seen"));
    assert_eq!(table(PROMPT, "Variables", 0), known.keys().cloned().collect());
    for (place, variable) in [(1, "task"), (2, "gates"), (3, "pending")] {
        assert_eq!(table(PROMPT, "Variables", place), known[variable], "{variable}");
    }
}

#[test]
fn the_prompt_lists_the_promises_of_the_page_about_the_first_run() {
    let page = prose("docs/start/gated-run.md");
    assert!(page.contains("The prompt lists all three."), "the page no longer says so");
    let project = Project::with_config(GATE);
    project.trust();
    let agent = "command:cat > seen; touch answer; echo '<promise>COMPLETE</promise>'";
    assert_eq!(project.run(&["run", "Do it", "--agent", agent]).code, 0);
    let seen = project.read("seen");
    for promise in ["COMPLETE", "BLOCKED", "ESCALATE"] {
        assert!(page.contains(promise), "{promise}");
        assert!(seen.contains(&format!("<promise>{promise}</promise>")), "{promise}: {seen}");
    }
}

/// `task import` refuses an unknown field with a list of the known ones.
#[test]
fn every_field_of_an_imported_task_is_listed() {
    let project = Project::new();
    project.write("tasks.jsonl", "{\"goal\": \"A\", \"nonsense\": 1}\n");
    let refusal = project.fails(2, &["task", "import", "tasks.jsonl"]);
    let (_, known) = refusal.split_once("expected one of").unwrap();
    let mut known: BTreeSet<String> = names(known).into_iter().collect();
    // The history of a task, which only an export has.
    for name in ["blocked", "outcome", "created_at", "started_at", "completed_at"] {
        assert!(known.remove(name), "`{name}` is no field: {refusal}");
    }
    let help = in_one_line(&project.ok(&["task", "import", "--help"]));
    let (_, listed) = help.split_once("an object with").unwrap();
    let (listed, _) = listed.split_once(", in any order").unwrap();
    assert_eq!(names(listed).into_iter().collect::<BTreeSet<_>>(), known, "the help");
    let page = prose("docs/tasks.md");
    let (_, listed) = page.split_once("`task import` reads them:").unwrap();
    let (listed, _) = listed.split_once(". ").unwrap();
    assert_eq!(names(listed).into_iter().collect::<BTreeSet<_>>(), known, "docs/tasks.md");
}

/// Only a task of an occurrence has an id from the name and the time.
#[test]
fn the_ids_of_a_schedules_tasks_are_as_the_page_and_the_help_say() {
    let project = Project::new();
    project.ok(&["schedule", "add", "nightly", "--cron", "0 3 * * *", "--goal", "G"]);
    let added = project.json(&["schedule", "run", "nightly"]);
    assert!(!added["id"].as_str().unwrap().starts_with("nightly"), "{added}");
    assert!(prose("docs/scheduling.md").contains("The task has a random id."));
    let help = in_one_line(&project.ok(&["schedule", "add", "--help"]));
    let (_, rule) = help.split_once("<NAME> Name of the schedule").unwrap();
    let (rule, _) = rule.split_once(" Options:").unwrap();
    let is_of_due_tasks = rule.contains("due task") || rule.contains("occurrence");
    assert!(is_of_due_tasks, "this is not so for `schedule run`:{rule}");
}

/// Returns the names of the importers, as the reference of commands lists them.
fn importers(project: &Project) -> BTreeSet<String> {
    let reference = project.ok(&["reference", "cli"]);
    let headings = reference.lines().filter_map(|line| line.strip_prefix("### hookloop import "));
    headings.map(str::to_owned).collect()
}

#[test]
fn every_importer_is_on_the_pages_about_other_tools() {
    let known = importers(&Project::bare());
    assert!(known.len() > 5, "{known:?}");
    let listed = rows("docs/setup.md", "import", 0);
    let listed: BTreeSet<String> =
        listed.iter().filter_map(|row| names(&row[0]).into_iter().next()).collect();
    assert_eq!(listed, known);
    let page = read("docs/from/README.md");
    let missing: Vec<&String> =
        known.iter().filter(|name| !page.contains(&format!("`hookloop import {name}"))).collect();
    assert!(missing.is_empty(), "docs/from/README.md lacks {missing:?}");
    // An importer replaces every recipe that converts the files of another tool.
    for page in ["docs/from/README.md", "docs/from/beads.md", "docs/comparison.md"] {
        let converts = read(page).lines().any(|line| line.trim_start().starts_with("jq "));
        assert!(!converts, "{page} converts with jq");
    }
}

/// Returns the sections of a page below its `##` headings: the heading and the text.
fn sections(document: &str) -> Vec<(String, String)> {
    let text = read(document);
    let parts = text.split("\n## ").skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(heading, text)| (heading.to_owned(), text.to_owned())).collect()
}

#[test]
fn every_compared_tool_has_a_version_and_the_same_parts() {
    const PAGE: &str = "docs/comparison.md";
    let sections = sections(PAGE);
    let is_tool = |heading: &str| !["Choose a tool", "Limitations of hookloop"].contains(&heading);
    let tools: Vec<_> = sections.iter().filter(|(heading, _)| is_tool(heading)).collect();
    for (heading, text) in &tools {
        let first = text.trim_start().split("\n\n").next().unwrap();
        let has_version = first.contains("at commit") || first.chars().any(|c| c.is_ascii_digit());
        assert!(has_version && first.contains("https://"), "{heading}: {first}");
        for part in ["**Better there.**", "**Different here.**", "**Together.**"] {
            assert!(text.contains(part), "{heading} has no {part}");
        }
    }
    for name in ["bernstein", "ADLC", "git-ai", "Entire", "failproofai", "ralphex"] {
        assert!(tools.iter().any(|(heading, _)| heading.contains(name)), "{name} is not compared");
    }
    let page = prose(PAGE).to_lowercase();
    for claim in ["none has", "no other tool", "the only tool"] {
        assert!(!page.contains(claim), "nobody can check \"{claim}\"");
    }
    assert_eq!(AGENT_PROFILES.len(), 6);
    assert!(page.contains("six agents are known by name"));
}

/// Problems of different groups, each with a fix. No variable of an editor is set.
#[test]
fn every_command_of_doctor_can_be_typed() {
    let mistake = "hooks: {stop: [{name: a, command: ./no-such-script}, {name: b}]}\n";
    let untrusted = "hooks: {stop: [{name: a, command: ./check.sh}]}\n";
    let mut typed = BTreeSet::new();
    for config in [mistake, untrusted, "delivery: {}\n"] {
        let project = Project::with_config(config);
        project.write("check.sh", "#!/bin/sh\n");
        let run = project.run(&["doctor", "--json"]);
        let findings: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
        for finding in findings.iter().filter(|finding| finding["status"] != "ok") {
            let hint = finding["hint"].as_str().unwrap_or_default();
            assert!(!hint.contains('$'), "a variable may be unset: {finding}");
            let Some(command) = finding["command"].as_str() else { continue };
            let parsed = project.command("sh").args(["-n", "-c", command]).output().unwrap();
            assert!(parsed.status.success(), "{finding}: {parsed:?}");
            typed.insert(command.to_owned());
        }
    }
    for command in ["git init", "hookloop hooks trust"] {
        assert!(typed.contains(command), "{command} is not in {typed:?}");
    }
    let project = Project::bare();
    for command in &typed {
        let program = command.split(' ').next().unwrap();
        let found = project.shell(&format!("command -v {program}"));
        // The first step of a machine without npm is to install it.
        assert!(found.code == 0 || program == "npm", "{command}: {found:?}");
    }
}

#[test]
fn mistakes_in_a_configuration_have_a_line_and_a_column() {
    let path = Path::new("hookloop.yaml");
    for (text, place) in [
        ("version: 2\n", (1, 10)),
        ("version: 1\nhook: {}\n", (2, 1)),
        ("version: 1\nhooks:\n  stop: []\n  stopp: []\n", (4, 3)),
        ("version: 1\ntask_types:\n  bug:\n    hooks:\n      stopp: []\n", (5, 7)),
        ("version: 1\nhooks:\n  stop:\n    - {name: a}\n", (4, 7)),
        ("version: 1\nhooks: [\n", (2, 8)),
        ("version: 1\nlimits:\n  max_cost: -1\n", (3, 13)),
    ] {
        let error = settings_from(path, text.as_bytes()).err().unwrap();
        assert_eq!((error.line, error.column), (Some(place.0), Some(place.1)), "{text}{error}");
    }
}

#[test]
fn sessions_run_without_git_and_nats_up_needs_a_server() {
    let page = prose("docs/install.md");
    assert!(page.contains("without git, sessions still run"), "the page no longer says so");
    let project = Project::with_config(GATE);
    project.trust();
    project.write("turns.json", WRITES);
    let without_programs = |args: &[&str]| {
        let mut command = project.hookloop(args);
        command.env("PATH", "/nowhere").output().unwrap()
    };
    let ran = without_programs(&["run", "Do it", "--agent", "scripted:turns.json"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(page.contains("`hookloop nats up` needs nats-server"));
    let refused = without_programs(&["nats", "up", "--json"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nats-server"), "{refused:?}");
}

/// Returns whether a session with these arguments changed the files of the checkout.
fn changes_the_checkout(config: &str, args: &[&str]) -> bool {
    let project = Project::with_config(&format!("{config}{GATE}"));
    project.write("turns.json", WRITES);
    project.create_repository();
    project.trust();
    project.add("Goal", &["--id", "a"]);
    let run = project.run(&[&["run", "--agent", "scripted:turns.json"], args].concat());
    assert_eq!(run.code, 0, "{config}{args:?}: {run:?}");
    project.root().join("answer").exists()
}

#[test]
fn a_session_changes_the_checkout_unless_it_has_a_worktree() {
    let delivers = "delivery: {}\n";
    assert!(changes_the_checkout("", &["Do it"]));
    assert!(changes_the_checkout("", &["--task", "a"]));
    assert!(!changes_the_checkout("", &["Do it", "--worktree"]));
    assert!(!changes_the_checkout(delivers, &["--task", "a"]));
    // Only tasks are delivered.
    assert!(changes_the_checkout(delivers, &["Do it"]));
    let readme = read("README.md");
    let line = readme.lines().find(|line| line.contains("edits your checkout")).unwrap();
    for part in ["`--worktree`", "`delivery:`", "task"] {
        assert!(line.contains(part), "the line lacks {part}: {line}");
    }
}

#[test]
fn the_figures_in_the_readme_are_those_of_the_program() {
    let readme = prose("README.md");
    let points = format!("at {} points", hook_points().len());
    assert!(readme.contains(&points), "{points}");
    let project = Project::with_config(GATE);
    project.trust();
    project.write("turns.json", WRITES);
    let run = project.run(&["run", "Do it", "--agent", "scripted:turns.json"]);
    let limits = run.stdout.lines().find(|line| line.starts_with("limits: ")).unwrap();
    let (_, listed) = readme.split_once("Each session has limits by default: ").unwrap();
    let (listed, _) = listed.split_once(". ").unwrap();
    let spelled = [(" hours", "h"), (" gate retries", " retries")];
    for limit in listed.split(", ") {
        let printed =
            spelled.iter().fold(limit.to_owned(), |text, (long, short)| text.replace(*long, short));
        assert!(limits.contains(&printed), "{limit} is not in {limits}");
    }
}

/// The words by which a block needs an agent, an account, another machine or the network.
const NEEDS: [&str; 12] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "qwen",
    "npm",
    "npx",
    "curl",
    "cargo install",
    "gh ",
    "docker",
    "sudo",
];

#[test]
fn most_blocks_that_ci_skips_need_an_agent_or_a_network() {
    let pages = pages_under("").into_iter().map(|page| format!("docs/{page}"));
    let pages: Vec<String> = pages.chain(["README.md".to_owned()]).collect();
    let all = pages.iter().flat_map(|page| blocks(page)).filter(|block| block.language == "sh");
    let (run, skipped): (Vec<Block>, Vec<Block>) = all.partition(|block| block.run);
    assert!(run.len() > 3 * skipped.len(), "{} run, {} do not", run.len(), skipped.len());
    let needs = |block: &&Block| NEEDS.iter().any(|word| block.text.contains(word));
    let needing = skipped.iter().filter(needs).count();
    assert!(2 * needing > skipped.len(), "{needing} of {} need more", skipped.len());
    for page in ["README.md", "docs/README.md"] {
        let says = prose(page).contains("most of which need a real agent or a network");
        assert!(says, "{page} does not say which blocks CI skips");
    }
}

/// The tests of pages list the pages of some directories, and tests/docs.rs those of `docs/`.
#[test]
fn every_page_at_the_top_of_the_book_that_has_commands_is_run() {
    let tests = include_str!("../docs.rs");
    let is_run = |page: &String| tests.contains(&format!("\"docs/{page}\""));
    let has_commands = |page: &String| {
        blocks(&format!("docs/{page}")).iter().any(|block| block.language == "sh" && block.run)
    };
    let pages = pages_under("").into_iter().filter(|page| !page.contains('/'));
    let pages: Vec<String> = pages.filter(has_commands).collect();
    assert!(pages.len() > 10, "{pages:?}");
    let missing: Vec<&String> = pages.iter().filter(|page| !is_run(page)).collect();
    assert!(missing.is_empty(), "tests/docs.rs lacks {missing:?}");
    let pages = pages_under("adr").into_iter().filter(has_commands);
    assert_eq!(pages.collect::<Vec<_>>(), [""; 0]);
}
