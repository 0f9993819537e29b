//! One call of git, below a keeper: its input and its output.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hookloop_process::{
    Cancel, ExitReason, Job, JobResult, KeeperPool, ProcessError, StoredOutput,
};

use super::GitError;
use crate::excerpt;

/// The most of an error text that is reported.
const WHY_MAX: usize = 2_000;

#[derive(Debug)]
pub(crate) struct GitCall {
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub answer: OutputSize,
}

/// How much output a call may have.
#[derive(Debug)]
pub(crate) enum OutputSize {
    /// As much as fits in memory. More is an error.
    Short,
    /// More, through a new directory. Output beyond `max_bytes` is cut off.
    Long { directory: PathBuf, max_bytes: u64 },
}

#[derive(Debug)]
pub(crate) struct GitOutput {
    pub code: i32,
    pub stdout: Vec<u8>,
    /// The number of bytes that are missing in `stdout`.
    pub left_out_bytes: u64,
    pub left_out_lines: u64,
    pub stderr: String,
}

impl GitCall {
    pub(crate) fn run(self, keepers: &KeeperPool, cancel: &Cancel) -> Result<GitOutput, GitError> {
        let command = self.name();
        let began = Instant::now();
        let cwd = self.cwd.clone();
        let argv = std::iter::once("git".into()).chain(self.args).collect();
        let (artifacts, max) = match self.answer {
            OutputSize::Short => (None, u64::MAX),
            OutputSize::Long { directory, max_bytes } => (Some(directory), max_bytes),
        };
        let job = Job {
            env: self.env,
            stdin: self.stdin,
            cancel: Some(cancel),
            artifacts: artifacts.clone(),
            ..Job::new(argv, self.cwd, self.timeout)
        };
        let said = keepers.run(job).map_err(|error| {
            let (command, why) = (command.clone(), error.to_string());
            match error {
                ProcessError::NotStarted { .. } => GitError::Failed { command, why },
                _ => GitError::NotRun { command, why },
            }
        });
        let said = said.and_then(|ran| self::said(&ran, max, &command));
        if let Some(directory) = artifacts {
            // A directory that is left is in nobody's way: the next name is another.
            if let Err(error) = fs::remove_dir_all(&directory)
                && error.kind() != ErrorKind::NotFound
            {
                let path = directory.display();
                tracing::warn!(%path, %error, "an answer of git is not removed");
            }
        }
        let took = began.elapsed();
        let cwd = cwd.display();
        match &said {
            Ok(GitOutput { code, .. }) => tracing::debug!(command, %cwd, code, ?took, "git ended"),
            Err(error) => tracing::debug!(command, %cwd, ?took, %error, "git failed"),
        }
        said
    }

    /// Returns the command without its arguments, which may be long or secret.
    fn name(&self) -> String {
        let words = self.args.iter().map(|word| word.to_string_lossy());
        let word = words.into_iter().find(|word| !word.starts_with('-'));
        word.map(String::from).unwrap_or_default()
    }
}

fn said(ran: &JobResult, max: u64, command: &str) -> Result<GitOutput, GitError> {
    let not_run = |why: &str| GitError::NotRun { command: command.to_owned(), why: why.to_owned() };
    let code = match ran.exit {
        ExitReason::Exited(code) => code,
        ExitReason::Cancelled => return Err(GitError::Cancelled),
        ExitReason::TimedOut => return Err(not_run("it took too long")),
        ExitReason::OverLimit(limit) => return Err(not_run(&format!("it was ended for {limit}"))),
        ExitReason::Signalled(signal) => {
            return Err(not_run(&format!("it was ended by signal {signal}")));
        }
    };
    let output = &ran.output.stdout;
    let mut stdout = match (output.whole(), &output.stored) {
        (Some(whole), _) => whole.into_owned(),
        (None, StoredOutput::Whole(path) | StoredOutput::Cut(path)) => {
            let mut bytes = Vec::new();
            let read = fs::File::open(path).and_then(|file| file.take(max).read_to_end(&mut bytes));
            read.map_err(|error| not_run(&error.to_string()))?;
            bytes
        }
        (None, _) => {
            return Err(GitError::Failed {
                command: command.to_owned(),
                why: "it said too much".to_owned(),
            });
        }
    };
    stdout.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    let left_out_bytes = output.bytes.saturating_sub(stdout.len() as u64);
    let ends = stdout.iter().filter(|byte| **byte == b'\n').count() as u64;
    let left_out_lines = output.lines.saturating_sub(ends);
    let stderr = excerpt::of_output_within(&ran.output.stderr, WHY_MAX);
    Ok(GitOutput { code, stdout, left_out_bytes, left_out_lines, stderr })
}

impl GitOutput {
    /// Returns the output of a successful call.
    pub(crate) fn well(self, command: &str) -> Result<Vec<u8>, GitError> {
        match self.code {
            0 => Ok(self.stdout),
            code => {
                let why = match self.stderr.trim() {
                    "" => format!("it ended with {code}"),
                    why => why.to_owned(),
                };
                Err(GitError::Failed { command: command.to_owned(), why })
            }
        }
    }
}
