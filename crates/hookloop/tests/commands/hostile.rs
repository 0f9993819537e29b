//! Texts with control characters, shell syntax and line breaks.

use crate::cli::Project;

/// Goals that try to control the terminal, run a shell command or start a new line.
const HOSTILE: [&str; 9] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}red \u{1b}[31malert",
    "one\nerror: two\n  try: rm -rf /",
    "over\rwritten\u{8}\u{8}",
    "user\u{202e}txt.exe\u{202c} \u{2066}x\u{2069}",
    "zero\u{200b}width\u{feff}\u{2060}",
    "arabic mark \u{61c} line \u{2028} paragraph \u{2029}",
    "c1 \u{9b}31m del \u{7f}",
    "$(touch x) `touch x` ; touch x | x && \"'",
    "tab\tseparated",
];

/// Returns whether a terminal would act on the character, or whether it hides text.
fn is_harmful(c: char) -> bool {
    let hidden = ['\u{61c}', '\u{2028}', '\u{2029}', '\u{feff}'];
    (c.is_control() && c != '\n' && c != '\t')
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{2069}').contains(&c)
        || hidden.contains(&c)
}

fn assert_harmless(printed: &str) {
    assert!(!printed.contains(is_harmful), "{printed:?}");
}

#[test]
fn hostile_goals_are_kept_and_printed_harmless() {
    let project = Project::new();
    for (n, goal) in HOSTILE.iter().enumerate() {
        let id = format!("t{n}");
        let printed = project.ok(&["task", "add", goal, "--id", &id]);
        assert_harmless(&printed);
        assert_eq!(printed.lines().count(), 1, "{printed:?}");
        assert_eq!(project.task(&id)["goal"], *goal, "the goal is stored unchanged");
        assert_harmless(&project.ok(&["task", "show", &id]));
    }
    let commands: [&[&str]; 6] = [
        &["task", "list"],
        &["task", "ready"],
        &["task", "graph"],
        &["task", "graph", "--format", "dot"],
        &["task", "graph", "--format", "mermaid"],
        &["log"],
    ];
    for args in commands {
        assert_harmless(&project.ok(args));
    }
    assert!(!project.root().join("x").exists());
}

#[test]
fn each_task_is_printed_on_one_line_for_any_goal_and_label() {
    let project = Project::new();
    for goal in HOSTILE {
        project.add(goal, &["--label", goal]);
    }
    for args in [["task", "list"], ["task", "ready"]] {
        let printed = project.ok(&args);
        assert_eq!(printed.lines().count(), HOSTILE.len(), "{printed}");
        for line in printed.lines() {
            assert_eq!(line.split('\t').count(), 6, "{line:?}");
        }
    }
    assert_eq!(project.ok(&["log"]).lines().count(), HOSTILE.len());
    let drawn = project.ok(&["task", "graph"]);
    assert_eq!(drawn.lines().filter(|line| line.contains('○')).count(), drawn.lines().count());
}

#[test]
fn other_texts_of_a_task_are_printed_harmless() {
    let project = Project::new();
    for (n, text) in HOSTILE.iter().enumerate() {
        let id = format!("t{n}");
        project.add("Goal", &["--id", &id, "-d", text, "--label", text, "--deliverable", text]);
        project.ok(&["task", "block", &id, "--reason", text, "--needs", text]);
        assert_harmless(&project.ok(&["task", "show", &id]));
        project.ok(&["task", "unblock", &id]);
        project.ok(&["task", "start", &id, "--context", text]);
        project.ok(&["task", "complete", &id, "--result", text, "--artifact", text]);
        assert_harmless(&project.ok(&["task", "show", &id]));
    }
    assert_harmless(&project.ok(&["log"]));
}

#[test]
fn the_name_of_the_user_is_printed_harmless() {
    let project = Project::new();
    let mut add = project.hookloop(&["task", "add", "Goal"]);
    assert!(add.env("USER", "eve\u{1b}[31m\nroot").status().unwrap().success());
    let printed = project.ok(&["log"]);
    assert_harmless(&printed);
    assert_eq!(printed.lines().count(), 1, "{printed:?}");
}

#[test]
fn errors_are_printed_harmless() {
    let project = Project::new();
    for text in HOSTILE {
        let error = project.fails(2, &["task", "show", text]);
        assert_harmless(&error);
        assert_harmless(&project.fails(1, &["hooks", "show", text]));
    }
}

#[test]
fn the_length_of_a_goal_is_limited() {
    let project = Project::new();
    let longest = "x".repeat(4 * 1024);
    let id = project.add(&longest, &[]);
    assert_eq!(project.task(&id)["goal"], longest);
    let error = project.fails(1, &["task", "add", &format!("{longest}x")]);
    assert!(error.contains("4097 bytes, at most 4096"), "{error}");
    for empty in ["", " ", "\n\t"] {
        let error = project.fails(1, &["task", "add", empty]);
        assert!(error.contains("a task needs a goal"), "{error}");
    }
    assert_eq!(project.goals().len(), 1);
}

#[test]
fn a_goal_like_an_option_is_a_goal_behind_two_dashes() {
    let project = Project::new();
    project.ok(&["task", "add", "--", "--help"]);
    assert_eq!(project.goals(), ["--help"]);
}
