//! Runs a command with a timeout, and ends every process that it started.
//!
//! usage: run SECONDS PROGRAM [ARGUMENT]...

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use hookloop_process::{ExitReason, Job, JobResult, KEEPER_ARGUMENT, Keeper, keeper_main};

fn main() -> ExitCode {
    // First of all: the keeper is this executable, started with this argument.
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|argument| argument == KEEPER_ARGUMENT) {
        return keeper_main();
    }
    let timeout = first.and_then(|text| text.to_str()?.parse().ok()).map(Duration::from_secs);
    let argv: Vec<OsString> = arguments.collect();
    let Some(timeout) = timeout.filter(|_| !argv.is_empty()) else {
        return fail("usage: run SECONDS PROGRAM [ARGUMENT]...");
    };
    match run(argv, timeout) {
        Ok(code) => code,
        Err(error) => fail(&error.to_string()),
    }
}

fn run(argv: Vec<OsString>, timeout: Duration) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut job = Job::new(argv, std::env::current_dir()?, timeout);
    job.env = std::env::vars_os().collect();
    let result = Keeper::of_this_program().run(job)?;
    report(&result)?;
    Ok(match result.exit {
        ExitReason::Exited(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        _ => ExitCode::FAILURE,
    })
}

fn report(result: &JobResult) -> io::Result<()> {
    let output = &result.output.both;
    let mut stdout = io::stdout();
    stdout.write_all(output.head())?;
    stdout.write_all(output.tail())?;
    let exit = match result.exit {
        ExitReason::Exited(code) => format!("exited with {code}"),
        ExitReason::Signalled(signal) => format!("ended by signal {signal}"),
        ExitReason::TimedOut => "timed out".to_owned(),
        ExitReason::Cancelled => "cancelled".to_owned(),
        ExitReason::OverLimit(limit) => format!("killed: {limit}"),
    };
    let seconds = result.duration.as_secs_f64();
    let killed = result.leftovers_killed;
    writeln!(io::stderr(), "{exit} after {seconds:.1}s; processes killed after it: {killed}")
}

fn fail(why: &str) -> ExitCode {
    // Without stderr there is no other place for the message.
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::from(2)
}
