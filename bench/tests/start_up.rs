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
    const READY_KIB_MAX: u64 = 46 * 1024;
    const VERSION_KIB_MAX: u64 = 18 * 1024;

    /// Returns the costs of the floor's `ready`, hookloop's `ready` and `hookloop --version`.
    fn costs() -> [Cost; 3] {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path();
        // The kernel counts the mapped pages of a program as memory, in the sizes in which its file was cached. A
        // copy is cached in the same way each time, a file that a linker wrote is not.
        let copied = |name: &str| {
            let copy = work.join(name);
            std::fs::copy(beside(name), &copy).unwrap();
            copy
        };
        let (floor, hookloop) = (copied("floor"), copied("hookloop"));
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
    fn short_commands_stay_within_their_cpu_and_memory_limits() {
        let [floor, ready, version] = costs();
        let against_floor = |cost: &Cost| cost.cpu.median() / floor.cpu.median();
        let (of_ready, of_version) = (against_floor(&ready), against_floor(&version));
        let figures = format!(
            "processor time against the floor's: `ready` {of_ready:.2}, `--version` {of_version:.2}; \
             memory: {} KiB, {} KiB",
            ready.rss_kib, version.rss_kib
        );
        assert!(of_ready <= READY_CPU_MAX, "{figures}");
        assert!(of_version <= VERSION_CPU_MAX, "{figures}");
        assert!(ready.rss_kib <= READY_KIB_MAX, "{figures}");
        assert!(version.rss_kib <= VERSION_KIB_MAX, "{figures}");
    }
}
