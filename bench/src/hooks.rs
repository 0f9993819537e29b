//! Cost of running hooks that do nothing, compared with a shell loop and with other hook runners if
//! they are installed.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookloop_config::condition::Condition;
use hookloop_core::point::Point;
use serde_json::json;

use crate::figures::{Sample, ms, table, times};
use crate::processes::{Runner, round_robin};

/// Number of evaluations of a condition that are timed together.
const EVALUATIONS: u32 = 1_000;
/// Other hook runners, each with the arguments that make it run the hooks.
const OTHERS: [(&str, &str); 3] = [
    ("lefthook", "run bench --force"),
    ("prek", "run --all-files"),
    ("pre-commit", "run --all-files"),
];

/// Runs `count` hooks for each of `counts`, in `rounds` rounds that alternate with the other
/// programs.
pub fn dispatch(hookloop: &Path, counts: &[usize], rounds: usize) {
    println!("### Hooks as processes\n");
    let mut rows = Vec::new();
    for &count in counts {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path();
        prepare(hookloop, work, count);
        let run = |program: &Path, args: &str| Runner::new(program, args, work, work);
        let mut names = vec!["sh loop".to_owned(), "hookloop".to_owned()];
        let mut runners = vec![run(Path::new("sh"), "loop.sh"), run(hookloop, "task add new-{i}")];
        for (name, args) in OTHERS {
            if let Some(program) = on_path(name) {
                names.push(name.to_owned());
                runners.push(run(&program, args));
            }
        }
        let costs = round_robin(&runners, 0, 2, rounds);
        for (name, cost) in names.iter().zip(&costs) {
            rows.push(vec![
                count.to_string(),
                name.clone(),
                ms(cost.wall.median()),
                times(cost.wall.median() / costs[0].wall.median()),
                ms(cost.cpu.median()),
                format!("{:.1} MiB", cost.rss_kib as f64 / 1024.0),
            ]);
        }
    }
    table(&["hooks", "", "wall", "/ sh loop", "cpu", "memory"], &rows);
}

/// Measures the additional cost of a command's first hook.
pub fn fixed(hookloop: &Path, rounds: usize) {
    let (none, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    prepare(hookloop, none.path(), 0);
    prepare(hookloop, one.path(), 1);
    let run = |dir: &Path| Runner::new(hookloop, "task add new-{i}", dir, dir);
    let costs = round_robin(&[run(none.path()), run(one.path())], 0, 2, rounds);
    let (wall, cpu) = (
        costs[1].wall.median() - costs[0].wall.median(),
        costs[1].cpu.median() - costs[0].cpu.median(),
    );
    println!(
        "A command with one hook (`sh -c true`) takes {} more, {} of it processor time, than with none.\n",
        ms(wall),
        ms(cpu)
    );
}

/// Measures the cost of parsing and of evaluating a condition.
pub fn conditions(rounds: usize) {
    println!("### Conditions\n");
    let point: Point = "task_completed".parse().unwrap();
    let values = json!({
        "point": "task_completed", "event": "task_completed", "project": "p",
        "task": { "id": "a", "type": "fix", "goal": "Fix it", "description": "", "labels": ["agent", "urgent"],
            "priority": 1, "state": "completed", "result": "" },
    });
    let texts = [
        "task.type == 'fix'",
        "task.priority <= 1 && 'agent' in task.labels",
        "task.labels.exists(l, l.startsWith('urg'))",
    ];
    let mut rows = Vec::new();
    for text in texts {
        let (mut reading, mut evaluation) = (Sample::default(), Sample::default());
        for round in 0..rounds {
            // The text differs each time because parsed conditions are cached.
            let text = format!("{text}{}", " ".repeat(round));
            let condition = reading.time(|| Condition::compile(&text, &point)).unwrap();
            evaluation.time(|| {
                for _ in 0..EVALUATIONS {
                    black_box(condition.holds(black_box(&values))).unwrap();
                }
            });
        }
        let each = evaluation.median() / f64::from(EVALUATIONS) * 1e3;
        rows.push(vec![
            format!("`{text}`"),
            format!("{:.0} µs", reading.median() * 1e3),
            format!("{each:.1} µs"),
        ]);
    }
    table(&["", "read, once", "evaluated"], &rows);
}

/// Creates a repository with `count` hooks that do nothing, configured for each of the programs.
fn prepare(hookloop: &Path, work: &Path, count: usize) {
    let names: Vec<String> = (1..=count).map(|number| format!("h{number}")).collect();
    let list = |start: &str, line: &dyn Fn(&str) -> String| {
        names.iter().fold(start.to_owned(), |mut text, name| {
            let _ = writeln!(text, "{}", line(name));
            text
        })
    };
    let write = |name: &str, text: &str| std::fs::write(work.join(name), text).unwrap();
    write(
        "lefthook.yml",
        &list("bench:\n  commands:\n", &|name| format!("    {name}: {{run: \"true\"}}")),
    );
    write(
        ".pre-commit-config.yaml",
        &list("repos:\n- repo: local\n  hooks:\n", &|name| {
            format!(
                "  - {{id: {name}, name: {name}, language: system, entry: sh -c true, always_run: true, pass_filenames: false}}"
            )
        }),
    );
    write("loop.sh", &format!("i=0; while [ $i -lt {count} ]; do sh -c true; i=$((i+1)); done\n"));
    let ours = list("version: 1\nhooks:\n  task_created:\n", &|name| {
        format!("    - {{name: {name}, command: \"true\"}}")
    });
    write("hookloop.yaml", if count == 0 { "version: 1\n" } else { &ours });
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=b", "-c", "user.email=b@example.invalid"];
        let done =
            Command::new("git").args(identity).args(args).current_dir(work).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "."]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "seed"]);
    Runner::new(hookloop, "init --yes", work, work).run(0);
    Runner::new(hookloop, "hooks trust --yes", work, work).run(0);
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
