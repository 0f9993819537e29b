//! Checks the cost of short commands against the floor program of the same build.
//!
//! The limits apply to unoptimised builds, which CI makes. `bench/run` measures optimised ones for
//! docs/benchmarks.md.
#![expect(clippy::unwrap_used, reason = "a test")]

mod cost {
    use std::path::Path;

    use hookloop_bench::processes::{Cost, Runner, beside, round_robin};

    const TASKS: usize = 100;
    const WARM_UPS: usize = 3;
    const ROUNDS: usize = 41;
    /// Limits of processor time, as multiples of the floor's.
    const READY_CPU_MAX: f64 = 4.2;
    const VERSION_CPU_MAX: f64 = 1.3;
    /// Limit of the memory that a command allocates, beside its mapped code.
    const DATA_KIB_MAX: u64 = 8 * 1024;
    /// Too little for any command.
    const DATA_KIB_TOO_FEW: u64 = 1024;

    /// Returns the costs of the floor's `ready`, hookloop's `ready` and `hookloop --version`.
    fn costs() -> [Cost; 3] {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        let (floor, hookloop) = (beside("floor"), beside("hookloop"));
        let run = |program: &Path, args: &str| Runner::new(program, args, work, work);
        // Each second task depends on the one before it, as in the floor program.
        let pair = |first: usize| {
            let second = first + 1;
            format!(
                "{{\"id\":\"t{first}\",\"goal\":\"task {first}\"}}\n\
                 {{\"id\":\"t{second}\",\"goal\":\"task {second}\",\"depends_on\":[\"t{first}\"]}}\n"
            )
        };
        let tasks: String = (1..=TASKS).step_by(2).map(pair).collect();
        std::fs::write(work.join("in.jsonl"), tasks).unwrap();
        std::fs::write(work.join("hookloop.yaml"), "version: 1\n").unwrap();
        run(&hookloop, "task import in.jsonl").run(0);
        run(&floor, &format!("t.db seed {TASKS}")).run(0);
        let measured = [
            run(&floor, "t.db ready"),
            run(&hookloop, "task ready --limit 10"),
            run(&hookloop, "--version"),
        ];
        round_robin(&measured, 0, WARM_UPS, ROUNDS).try_into().unwrap()
    }

    #[test]
    fn short_commands_stay_within_their_processor_time() {
        let [floor, ready, version] = costs();
        let against_floor = |cost: &Cost| cost.cpu.median() / floor.cpu.median();
        let (of_ready, of_version) = (against_floor(&ready), against_floor(&version));
        let figures = format!(
            "processor time against the floor's: `ready` {of_ready:.2}, `--version` {of_version:.2}"
        );
        assert!(of_ready <= READY_CPU_MAX, "{figures}");
        assert!(of_version <= VERSION_CPU_MAX, "{figures}");
    }

    /// The resident size would count the pages of code that the kernel maps, which grow with the program.
    #[test]
    fn short_commands_allocate_little_memory() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        std::fs::write(work.join("hookloop.yaml"), "version: 1\n").unwrap();
        let program = beside("hookloop");
        let succeeds = |args: &str, kib: u64| {
            let line = format!("ulimit -d {kib} && exec {} {args}", program.display());
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &line]).current_dir(work).env("HOME", work);
            command.env("XDG_STATE_HOME", work.join("state"));
            command.output().unwrap().status.success()
        };
        for args in ["task add x", "task ready --limit 10", "task list", "--version"] {
            assert!(succeeds(args, DATA_KIB_MAX), "{args}: more than {DATA_KIB_MAX} KiB");
            assert!(!succeeds(args, DATA_KIB_TOO_FEW), "{args}: the limit has no effect");
        }
    }
}
