//! Overhead of the loop around an agent that returns at once: the slope between a short and a long
//! session, compared with a shell loop that starts the same agent and the same hooks.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use hookloop_core::time::Timestamp;
use serde_json::Value;

use crate::figures::{ms, table, times};
use crate::processes::{Cost, Runner, round_robin};

const SHORT: u32 = 1;
const LONG: u32 = 21;
/// Number of lines that a verbose agent prints.
const LINES: u32 = 2_000;
const RIVALS: usize = 50;

/// Contents of an iteration.
struct Case {
    name: &'static str,
    agent: &'static str,
    hooks: u32,
    has_budget: bool,
}

const CASES: [Case; 4] = [
    Case { name: "an agent that says `ok`", agent: "quiet.sh", hooks: 0, has_budget: false },
    Case { name: "the same with a budget", agent: "quiet.sh", hooks: 0, has_budget: true },
    Case {
        name: "an agent that prints 2,000 lines",
        agent: "loud.sh",
        hooks: 0,
        has_budget: false,
    },
    Case {
        name: "10 hooks (`true`) before each turn",
        agent: "quiet.sh",
        hooks: 10,
        has_budget: false,
    },
];

/// Measures all cases in `rounds` rounds.
pub fn overhead(hookloop: &Path, rounds: usize) {
    println!("### One iteration\n");
    let mut rows = Vec::new();
    for case in CASES {
        let (dir, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        prepare(hookloop, dir.path(), home.path(), &case);
        let run = |script: &str, count: u32| {
            Runner::new(Path::new("sh"), &format!("{script} {count}"), dir.path(), home.path())
        };
        let runners = [
            run("bare.sh", SHORT),
            run("bare.sh", LONG),
            run("ours.sh", SHORT),
            run("ours.sh", LONG),
        ];
        let costs = round_robin(&runners, 0, 1, rounds);
        let (bare, ours) = (slope(&costs[..2]), slope(&costs[2..]));
        rows.push(vec![
            case.name.to_owned(),
            format!("{} ({})", ms(bare.0), ms(bare.1)),
            format!("{} ({})", ms(ours.0), ms(ours.1)),
            format!("{} ({})", ms(ours.0 - bare.0), ms(ours.1 - bare.1)),
            times(ours.0 / bare.0),
        ]);
    }
    table(&["wall (cpu) of an iteration", "sh loop", "hookloop", "more", "/ sh loop"], &rows);
    rivals(hookloop);
}

/// Measures an iteration while many sessions of one project run at once: from the start of one turn
/// to the start of the next, with an agent that takes no time.
fn rivals(hookloop: &Path) {
    println!("\n### {RIVALS} sessions at once\n");
    let row = |has_budget: bool| {
        let (dir, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let case = Case { name: "", agent: "quiet.sh", hooks: 0, has_budget };
        prepare(hookloop, dir.path(), home.path(), &case);
        std::fs::write(dir.path().join("turns.json"), r#"[{"say": "ok"}]"#).unwrap();
        let start = |args: &[&str]| {
            let mut command = Command::new(hookloop);
            command.args(args).current_dir(dir.path()).env("HOME", home.path());
            command.env_remove("XDG_STATE_HOME").stdout(Stdio::piped());
            command.spawn().unwrap()
        };
        let (most, stalled) = (LONG.to_string(), "1000");
        let args = ["run", "x", "--agent", "scripted:turns.json", "--max-iterations", &most];
        let args =
            [&args[..], &["--max-no-progress", stalled, "--share-checkout", "--json"]].concat();
        let sessions: Vec<_> = (0..RIVALS).map(|_| start(&args)).collect();
        let mut lengths: Vec<f64> = Vec::new();
        for session in sessions {
            let printed = session.wait_with_output().unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            let events = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let began: Vec<Timestamp> = events
                .filter(|event| event["type"] == "iteration_started")
                .map(|event| event["timestamp"].as_str().unwrap().parse().unwrap())
                .collect();
            assert_eq!(began.len(), LONG as usize);
            let apart = |pair: &[Timestamp]| pair[1].millis_since(pair[0]) as f64;
            lengths.extend(began.windows(2).map(apart));
        }
        lengths.sort_by(f64::total_cmp);
        let at = |part: f64| format!("{} ms", lengths[(lengths.len() as f64 * part) as usize]);
        let name = if has_budget { "with a budget" } else { "without" };
        vec![name.to_owned(), at(0.5), at(0.99)]
    };
    table(&["an iteration", "p50", "p99"], &[row(false), row(true)]);
}

/// Returns the wall and processor time of one iteration.
fn slope(costs: &[Cost]) -> (f64, f64) {
    let each = f64::from(LONG - SHORT);
    let wall = (costs[1].wall.median() - costs[0].wall.median()) / each;
    let cpu = (costs[1].cpu.median() - costs[0].cpu.median()) / each;
    (wall, cpu)
}

fn prepare(hookloop: &Path, work: &Path, home: &Path, case: &Case) {
    let write = |name: &str, text: &str| std::fs::write(work.join(name), text).unwrap();
    write("quiet.sh", "cat >/dev/null\necho ok\n");
    write(
        "loud.sh",
        &format!("cat >/dev/null\nyes 'a line of what an agent says' | head -n {LINES}\n"),
    );
    let agent = case.agent;
    let hooks = "sh -c true; ".repeat(case.hooks as usize);
    write(
        "bare.sh",
        &format!(
            "i=0; while [ $i -lt $1 ]; do {hooks}echo prompt | sh {agent} >/dev/null; i=$((i+1)); done\n"
        ),
    );
    write(
        "ours.sh",
        &format!(
            "{} run hello --agent 'command:sh {agent}' --max-iterations $1 --max-no-progress 1000 >/dev/null\n[ $? = 4 ]\n",
            hookloop.display()
        ),
    );
    let mut config = "version: 1\n".to_owned();
    if case.has_budget {
        config.push_str("limits: {budget: {cost: 1000}}\n");
    }
    if case.hooks > 0 {
        config.push_str("hooks:\n  pre_iteration:\n");
    }
    for number in 0..case.hooks {
        let _ = writeln!(config, "    - {{name: h{number}, command: \"true\"}}");
    }
    write("hookloop.yaml", &config);
    let done = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(work).env("HOME", home).env_remove("XDG_STATE_HOME");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    done(Path::new("git"), &["init", "-q"]);
    done(hookloop, &["hooks", "trust", "--yes"]);
}
