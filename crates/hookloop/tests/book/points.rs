//! Checks the page of each hook point: its example runs, and the input of a hook is the input that
//! the page shows.
//!
//! A hook from the user's configuration records its input beside the hooks of the example.
//! `HOOKLOOP_RENEW=1` writes the recorded input to the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hookloop_core::options::HookOptions;
use hookloop_core::point::{Point, PointKind};
use serde_json::Value;

use crate::book::structure::pages_under;
use crate::documents::{check_commands_at, root};

const BEGIN: &str =
    "<!-- The input of a hook at this point, recorded from the example by a test. -->";
const END: &str = "<!-- End of what was recorded. -->";
/// The command that updates the pages.
const RENEW: &str = "HOOKLOOP_RENEW=1 cargo nextest run -E 'test(book::points::)'";
/// Variables that a shell sets, and variables that every hook gets.
const ORDINARY: [&str; 13] = [
    "PATH", "HOME", "LANG", "TZ", "TMPDIR", "TERM", "USER", "SHELL", "CI", "PWD", "OLDPWD",
    "SHLVL", "_",
];

macro_rules! points {
    ($($point:ident,)*) => {
        const POINTS: &[&str] = &[$(stringify!($point)),*];
        $(#[test]
        fn $point() {
            check(stringify!($point));
        })*
    };
}

points! {
    setup,
    session_start,
    pre_iteration,
    post_iteration,
    on_error,
    stop_when,
    validation,
    stop,
    session_end,
    before_submit,
    after_submit,
    before_merge,
    after_merge,
    task_created,
    task_started,
    task_completed,
    task_blocked,
    task_deleted,
    dependency_added,
    dependency_removed,
    dependency_satisfied,
}

#[test]
fn every_point_has_a_page() {
    let known = Point::names().into_iter().filter_map(|name| {
        let point: Point = name.parse().unwrap();
        (point.name() == name).then(|| name.to_owned())
    });
    let known: BTreeSet<String> = known.collect();
    assert_eq!(POINTS.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), known);
    let pages: BTreeSet<String> = pages_under("points").into_iter().collect();
    let expected = known.iter().map(|name| format!("points/{name}.md"));
    assert_eq!(pages, expected.chain(["points/README.md".to_owned()]).collect());
}

fn check(name: &str) {
    let home = tempfile::tempdir().unwrap();
    let point: Point = name.parse().unwrap();
    record_at(home.path(), &point);
    let page = format!("docs/points/{name}.md");
    check_commands_at(home.path(), &page, str::to_owned);
    let recorded = recorded(home.path(), &point);
    let path = root().join(&page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{page} has no {BEGIN}"));
    let (shown, after) = rest.split_once(END).unwrap_or_else(|| panic!("{page} has no {END}"));
    if std::env::var_os("HOOKLOOP_RENEW").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{recorded}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, recorded, "{page} differs from the input of a hook; run: {RENEW}");
}

/// Configures a hook of the user that records its first input.
fn record_at(home: &Path, point: &Point) {
    let directory = home.join(".config/hookloop");
    fs::create_dir_all(&directory).unwrap();
    // A stop condition must be in the project's file, so there the example records its own input.
    if *point == Point::StopWhen {
        return;
    }
    let line = "[ -e ~/input.json ] || { cat > ~/input.json; env > ~/environment; }";
    // In a room, the hook could not write to the home directory.
    let has_room = matches!(
        point,
        Point::Setup | Point::Validation | Point::Stop | Point::BeforeSubmit | Point::BeforeMerge
    );
    let room = if has_room { ", room: here" } else { "" };
    let yaml = format!(
        "version: 1\nhooks:\n  {point}:\n    - {{name: recorder, priority: 0, command: '{line}'{room}}}\n"
    );
    fs::write(directory.join("config.yaml"), yaml).unwrap();
}

/// Returns the recorded input, formatted as on the page.
fn recorded(home: &Path, point: &Point) -> String {
    let read = |name: &str| fs::read_to_string(home.join(name));
    let input = read("input.json").or_else(|_| read("project/input.json"));
    let mut input: Value = serde_json::from_str(&input.unwrap()).unwrap();
    make_lasting(&mut input, home);
    let environment = read("environment").or_else(|_| read("project/environment")).unwrap();
    let names = environment.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let names: BTreeSet<&str> = names.filter(|name| !ORDINARY.contains(name)).collect();
    let code = |names: Vec<String>| -> String {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let kind = match point.kind() {
        PointKind::Gate => "gate: it can block",
        PointKind::Reaction => "reaction: it follows a fact",
    };
    let variables = point.variables().iter().map(|name| format!("{{{{{name}}}}}")).collect();
    let environment = code(names.into_iter().map(str::to_owned).collect());
    let timeout = HookOptions::default().timeout_at(point.kind()) / 1_000;
    format!(
        "\n\n| | |\n|---|---|\n| kind | {kind} |\n| variables in its command | {} |\n\
         | environment, beside the [base set](../reference/environment.md#variables-of-a-hook) | {environment} |\n\
         | timeout | {timeout} s; `timeout` changes it |\n\n\
         Standard input, in this example:\n\n```json\n{input:#}\n```\n\n",
        code(variables)
    )
}

/// Replaces values that differ between runs (ids, times, paths) by fixed ones.
fn make_lasting(value: &mut Value, home: &Path) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| make_lasting(item, home)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                make_lasting(field, home);
                if let ("session_id", Value::String(id)) = (name.as_str(), &mut *field)
                    && !id.is_empty()
                {
                    *id = "0q2v8k1m5x7c".to_owned();
                }
            }
        }
        Value::String(text) => *text = lasting(text, home),
        _ => {}
    }
}

fn lasting(text: &str, home: &Path) -> String {
    let has_form = |form: &str| {
        let is_alike = |(c, f): (char, char)| match f {
            'x' => c.is_ascii_hexdigit(),
            'd' => c.is_ascii_digit(),
            f => c == f,
        };
        text.len() == form.len() && text.chars().zip(form.chars()).all(is_alike)
    };
    if has_form("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return "019a8b3c-7c00-7000-8000-000000000001".to_owned();
    }
    if has_form(&"x".repeat(40)) {
        return "5f0c1e2d3b4a59687786a5b4c3d2e1f001234567".to_owned();
    }
    if has_form("dddd-dd-ddTdd:dd:dd.dddZ") {
        return "2026-11-16T09:00:00.000Z".to_owned();
    }
    if text.starts_with("session:") {
        return "session:0q2v8k1m5x7c".to_owned();
    }
    let text = text.replace(home.to_str().unwrap(), "/home/ada");
    match text.split_once("/.local/state/hookloop/") {
        // The name of the state directory depends on the machine.
        Some((before, rest)) => {
            let name = rest.rsplit('/').next().filter(|name| name.contains('.'));
            format!("{before}/.local/state/hookloop/…/{}", name.unwrap_or("worktree"))
        }
        None => text,
    }
}
