//! Commands as processes, in round-robin order, so that the load of the machine affects all of them
//! equally.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::figures::Sample;

/// A command to measure. `{i}` in an argument is the round, `{odd}` is twice the round plus one.
#[derive(Clone, Debug)]
pub struct Runner {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub directory: PathBuf,
    pub home: PathBuf,
}

#[derive(Clone, Debug, Default)]
pub struct Cost {
    pub wall: Sample,
    pub cpu: Sample,
    pub rss_kib: u64,
}

impl Runner {
    pub fn new(program: &Path, args: &str, directory: &Path, home: &Path) -> Runner {
        Runner {
            program: program.to_owned(),
            args: args.split(' ').map(str::to_owned).collect(),
            directory: directory.to_owned(),
            home: home.to_owned(),
        }
    }

    /// Runs the command once; returns wall time, processor time and peak memory in KiB.
    pub fn run(&self, round: usize) -> (Duration, Duration, u64) {
        let place = |arg: &String| {
            arg.replace("{i}", &round.to_string()).replace("{odd}", &(2 * round + 1).to_string())
        };
        let args: Vec<String> = self.args.iter().map(place).collect();
        let output = Command::new(beside("meter"))
            .arg(&self.program)
            .args(&args)
            .current_dir(&self.directory)
            .env("HOME", &self.home)
            .env_remove("XDG_STATE_HOME")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{:?} {args:?} failed", self.program);
        let figures: Vec<u64> = String::from_utf8(output.stdout)
            .unwrap()
            .split_whitespace()
            .map(|figure| figure.parse().unwrap())
            .collect();
        (Duration::from_nanos(figures[0]), Duration::from_nanos(figures[1]), figures[2])
    }
}

/// Returns the path of a program from the same build as this one.
pub fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    // Cargo places tests one directory below the programs.
    let directory = own.ancestors().skip(1).find(|above| !above.ends_with("deps")).unwrap();
    let program = directory.join(name);
    assert!(program.is_file(), "{} is missing: build the workspace", program.display());
    program
}

/// Runs each of `runners` once per round, after `warm_ups` rounds that are not counted.
pub fn round_robin(runners: &[Runner], first: usize, warm_ups: usize, rounds: usize) -> Vec<Cost> {
    let mut costs = vec![Cost::default(); runners.len()];
    for round in first..first + warm_ups + rounds {
        for (runner, cost) in runners.iter().zip(&mut costs) {
            let (wall, cpu, rss_kib) = runner.run(round);
            if round >= first + warm_ups {
                cost.wall.add(wall);
                cost.cpu.add(cpu);
                cost.rss_kib = cost.rss_kib.max(rss_kib);
            }
        }
    }
    costs
}
