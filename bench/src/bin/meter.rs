//! `meter PROGRAM ARGS…`: runs a program and prints its wall time and processor time in
//! nanoseconds, and its peak memory in KiB.
//!
//! This is a separate, small process because the kernel never reports a child's peak memory as less
//! than the memory of its parent at the time of the fork.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measuring tool")]

use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut command = Command::new(&args[0]);
    command.args(&args[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().unwrap();
    let used = child.wait4().unwrap();
    let wall = start.elapsed();
    assert!(used.status.success(), "{args:?} failed");
    let cpu = used.rusage.utime + used.rusage.stime;
    println!("{} {} {}", wall.as_nanos(), cpu.as_nanos(), used.rusage.maxrss / 1024);
}
