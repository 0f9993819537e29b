//! `bench [--quick] [in-process|processes|hooks|loops|tools|size]…`: prints the tables of
//! docs/benchmarks.md.
//!
//! Requires `hookloop` and `floor` in its own directory, built with the same profile.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measuring tool")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hookloop_bench::bare::Bare;
use hookloop_bench::figures::{Sample, ms, table, times};
use hookloop_bench::processes::{Runner, beside, round_robin};
use hookloop_bench::{hooks, loops, mcp};
use hookloop_config::effective::EffectiveConfig;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::task::{TaskOutcome, TaskSpec};
use hookloop_core::urgency::PriorityAging;
use hookloop_engine::bulk;
use hookloop_engine::project::Project;
use hookloop_store::memory::MemoryLog;
use hookloop_store::store::Store;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    let named: Vec<&str> =
        args.iter().map(String::as_str).filter(|arg| *arg != "--quick").collect();
    let wanted = |name: &str| named.is_empty() || named.contains(&name);
    if wanted("in-process") {
        in_process(if quick { 200 } else { 2_000 });
        group_commit(if quick { 50 } else { 400 });
    }
    if wanted("processes") {
        let sizes: &[i64] = if quick { &[100, 10_000] } else { &[100, 10_000, 100_000, 1_000_000] };
        processes(sizes, if quick { 15 } else { 60 });
    }
    if wanted("hooks") {
        let hookloop = beside("hookloop");
        let rounds = if quick { 3 } else { 25 };
        hooks::dispatch(&hookloop, if quick { &[10] } else { &[1, 10, 100] }, rounds);
        hooks::fixed(&hookloop, rounds);
        hooks::conditions(rounds);
    }
    if wanted("loops") {
        loops::overhead(&beside("hookloop"), if quick { 2 } else { 15 });
    }
    if wanted("tools") {
        let sizes: &[i64] = if quick { &[100] } else { &[100, 10_000, 100_000, 1_000_000] };
        let tasks = |size| lines(size, "", |_| vec![]);
        let rounds = if quick { 20 } else { 200 };
        mcp::tools(&beside("hookloop"), &beside("floor"), sizes, rounds, tasks);
    }
    if wanted("size") {
        size(if quick { 20_000 } else { 1_000_000 });
        shapes(if quick { 5_000 } else { 100_000 });
    }
}

/// Creates a project on `store` that contains `tasks`, given as JSON lines.
fn project(store: Store, tasks: &str) -> Project {
    let project = Project::new(store, EffectiveConfig::default(), "bench");
    let input = std::io::Cursor::new(tasks.as_bytes());
    bulk::import(&project, input, &mut |_, _| ()).unwrap();
    project
}

/// Returns `n` tasks named t1, t2, … as JSON lines; `needs` names the dependencies of each task.
fn lines(n: i64, labels: &str, needs: impl Fn(i64) -> Vec<i64>) -> String {
    let mut text = String::new();
    for id in 1..=n {
        let needs: Vec<String> = needs(id).iter().map(|need| format!("\"t{need}\"")).collect();
        let needs = needs.join(",");
        let priority = id % 5;
        writeln!(
            text,
            r#"{{"id":"t{id}","goal":"task number {id}","labels":[{labels}],"priority":{priority},"depends_on":[{needs}]}}"#
        )
        .unwrap();
    }
    text
}

/// Returns the numbers of the tasks on which a task depends.
type Needs = fn(i64) -> Vec<i64>;

fn pairs(id: i64) -> Vec<i64> {
    if id % 2 == 0 { vec![id - 1] } else { vec![] }
}

/// Groups of four: three tasks that depend on the first.
fn fans(id: i64) -> Vec<i64> {
    if id % 4 == 1 { vec![] } else { vec![(id - 1) / 4 * 4 + 1] }
}

fn complete(project: &Project, id: i64) {
    let id = format!("t{id}").parse().unwrap();
    let outcome = TaskOutcome { result: Some("ok".into()), ..TaskOutcome::default() };
    project.execute(&Command::CompleteTask { id, outcome, fence: Fence::None }).unwrap();
}

/// Compares completing a task in this process with the bare transaction, alternately and with the
/// same fsync.
fn in_process(rounds: usize) {
    println!("### In one process\n");
    let dir = tempfile::tempdir().unwrap();
    let n = 2 * rounds as i64 + 10;
    let mut bare = Bare::open(&dir.path().join("bare.db"));
    bare.seed(n, pairs);
    let open = |name: &str| Store::open(&dir.path().join(name)).unwrap();
    let plain = project(open("plain.db"), &lines(n, "", pairs));
    let agent = project(open("agent.db"), &lines(n, "\"agent\"", pairs));
    let memory = Store::over(Arc::new(MemoryLog::default())).unwrap();
    let memory = project(memory, &lines(n, "\"agent\"", pairs));
    let idle = Store::over(Arc::new(MemoryLog::default())).unwrap();
    let idle = project(idle, &lines(n, "\"agent\"", pairs));
    for hook in idle.hooks().unwrap().list() {
        let name = hook.name.clone();
        idle.execute(&Command::SwitchHook { name, enabled: false }).unwrap();
    }
    let mut samples: [Sample; 5] = Default::default();
    for round in 0..rounds as i64 {
        let id = 2 * round + 1;
        samples[0].time(|| bare.close(id));
        samples[1].time(|| complete(&plain, id));
        samples[2].time(|| complete(&agent, id));
        samples[3].time(|| complete(&memory, id));
        samples[4].time(|| complete(&idle, id));
    }
    let names = [
        "bare: close and unblock, 2 events",
        "`complete`, three hooks on, dependent released",
        "`complete` of an agent's task: also a review task and metrics",
        "the same without a disk: decide, hooks, actions, view (applied twice)",
        "the same without a disk and without hooks",
    ];
    let base = samples[0].median();
    let row = |(name, sample): (&&str, &Sample)| {
        let (p50, p99) = (sample.median(), sample.percentile(0.99));
        vec![name.to_string(), ms(p50), ms(p99), times(p50 / base)]
    };
    let rows: Vec<_> = names.iter().zip(&samples).map(row).collect();
    table(&["transaction", "p50", "p99", "against bare"], &rows);
}

/// Measures many threads that add tasks and share commits.
fn group_commit(per_thread: usize) {
    println!("### Writers in one process\n");
    let mut rows = Vec::new();
    let mut alone = 0.0;
    for threads in [1, 4, 16] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("log.db")).unwrap();
        let project = Project::new(store, EffectiveConfig::default(), "bench");
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (project, next) = (project.clone(), next.clone());
                scope.spawn(move || {
                    for _ in 0..per_thread {
                        add(&project, next.fetch_add(1, Ordering::SeqCst));
                    }
                });
            }
        });
        let rate = (threads * per_thread) as f64 / start.elapsed().as_secs_f64();
        alone = if threads == 1 { rate } else { alone };
        rows.push(vec![threads.to_string(), format!("{rate:.0}"), times(rate / alone)]);
    }
    table(&["threads", "durable adds a second", "against one"], &rows);
}

fn add(project: &Project, n: usize) {
    let id = format!("n{n}").parse().unwrap();
    let spec = TaskSpec { goal: format!("task {n}"), ..TaskSpec::default() };
    project.execute(&Command::AddTask { id, spec, depends_on: vec![] }).unwrap();
}

/// Compares operations as processes with the floor program, at several sizes.
fn processes(sizes: &[i64], rounds: usize) {
    println!("### As processes\n");
    let dir = tempfile::tempdir().unwrap();
    let (hookloop, floor) = (beside("hookloop"), beside("floor"));
    let mut rows = Vec::new();
    for &n in sizes {
        let work = dir.path().join(n.to_string());
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(work.join("in.jsonl"), lines(n, "", pairs)).unwrap();
        let run = |program: &Path, args: &str| Runner::new(program, args, &work, &work);
        run(&hookloop, "init --yes").run(0);
        run(&hookloop, "task import in.jsonl").run(0);
        run(&floor, &format!("t.db seed {n}")).run(0);
        let operations = [
            ("ready", "t.db ready", "task ready --limit 10"),
            ("create", "t.db create new-{i}", "task add new-{i}"),
            ("complete", "t.db close {odd}", "task complete t{odd}"),
        ];
        for (name, bare, ours) in operations {
            let rounds = rounds.min(n as usize / 2 - 5);
            let costs = round_robin(&[run(&floor, bare), run(&hookloop, ours)], 0, 3, rounds);
            let [base, cost] = costs.as_slice() else { continue };
            rows.push(vec![
                n.to_string(),
                name.to_owned(),
                ms(base.wall.median()),
                ms(cost.wall.median()),
                times(cost.wall.median() / base.wall.median()),
                times(cost.cpu.median() / base.cpu.median()),
                format!("{:.1} MiB", cost.rss_kib as f64 / 1024.0),
            ]);
        }
    }
    table(&["tasks", "operation", "floor", "hookloop", "wall", "cpu", "memory"], &rows);
    let version = Runner::new(&hookloop, "--version", dir.path(), dir.path());
    let cost = &round_robin(&[version], 0, 3, 60)[0];
    println!("`hookloop --version`: {} of processor time.\n", ms(cost.cpu.median()));
}

/// Imports `n` tasks with three dependencies each, then measures the cost of operations.
fn size(n: i64) {
    println!("### Size\n");
    let dir = tempfile::tempdir().unwrap();
    let hookloop = beside("hookloop");
    let input = dir.path().join("in.jsonl");
    let spread = |id: i64| -> Vec<i64> {
        let mut needs: Vec<i64> = [1, 7, 1_009].iter().map(|step| id - step).collect();
        needs.retain(|need| *need > 0);
        needs
    };
    std::fs::write(&input, lines(n, "\"agent\"", spread)).unwrap();
    let run = |args: &str| Runner::new(&hookloop, args, dir.path(), dir.path()).run(0);
    run("init --yes");
    let (wall, _, rss) = run("task import in.jsonl");
    let (verify, _, _) = run("verify");
    let (rebuild, _, rebuild_rss) = run("rebuild");
    let mib = |kib: u64| format!("{:.0} MiB", kib as f64 / 1024.0);
    table(
        &["", "time", "memory"],
        &[
            vec![
                format!("import {n} tasks, about {} edges", 3 * n),
                ms(wall.as_secs_f64() * 1e3),
                mib(rss),
            ],
            vec!["verify".into(), ms(verify.as_secs_f64() * 1e3), String::new()],
            vec!["rebuild".into(), ms(rebuild.as_secs_f64() * 1e3), mib(rebuild_rss)],
        ],
    );
    flatness(n, dir.path());
}

/// Measures `complete` with three dependents and `ready`, alternately in a small and a large
/// project.
fn flatness(n: i64, dir: &Path) {
    const ROUNDS: i64 = 300;
    let small_n = 100;
    let open = |name: &str| Store::open(&dir.join(name)).unwrap();
    let large = project(open("large.db"), &lines(n, "", fans));
    let (mut in_small, mut in_large, mut ready) =
        (Sample::default(), Sample::default(), Sample::default());
    let mut small = project(open("small-0.db"), &lines(small_n, "", fans));
    for round in 0..ROUNDS.min(n / 4) {
        let at = round % (small_n / 4);
        if at == 0 && round > 0 {
            small = project(open(&format!("small-{round}.db")), &lines(small_n, "", fans));
        }
        in_small.time(|| complete(&small, 4 * at + 1));
        in_large.time(|| complete(&large, n / 4 * 4 - 4 * round - 3));
        ready.time(|| large.read(|view| view.ready(PriorityAging::default(), 20)).unwrap());
    }
    let ratio = in_large.median() / in_small.median();
    table(
        &["", "p50", "p99", ""],
        &[
            vec![
                "`complete`, 3 dependents, 100 tasks".into(),
                ms(in_small.median()),
                ms(in_small.percentile(0.99)),
                String::new(),
            ],
            vec![
                format!("`complete`, 3 dependents, {n} tasks"),
                ms(in_large.median()),
                ms(in_large.percentile(0.99)),
                times(ratio),
            ],
            vec![
                format!("`ready --limit 20`, {n} tasks"),
                ms(ready.median()),
                ms(ready.percentile(0.99)),
                String::new(),
            ],
        ],
    );
}

/// Measures a chain and a star of `n` tasks, which would overflow the stack if an operation
/// recursed.
fn shapes(n: i64) {
    println!("### Shapes\n");
    let hookloop = beside("hookloop");
    let chain = |id: i64| if id > 1 { vec![id - 1] } else { vec![] };
    let star = |id: i64| if id > 1 { vec![1] } else { vec![] };
    let mut rows = Vec::new();
    for (name, needs) in [("chain", chain as Needs), ("star", star)] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("in.jsonl"), lines(n, "", needs)).unwrap();
        let time = |args: &str| {
            let (wall, _, rss) = Runner::new(&hookloop, args, dir.path(), dir.path()).run(0);
            format!("{}, {:.0} MiB", ms(wall.as_secs_f64() * 1e3), rss as f64 / 1024.0)
        };
        time("init --yes");
        let import = time("task import in.jsonl");
        let first = time("task complete t1");
        let edge = match name {
            "chain" => format!("task dep add t{n} --on t{}", n / 2),
            _ => format!("task dep add t{n} --on t{}", n - 1),
        };
        rows.push(vec![format!("{name} of {n}"), import, first, time(&edge)]);
    }
    table(&["", "import", "complete the first", "add an edge"], &rows);
}
