//! The program that is the keeper in integration tests of git: it has no other function.

use std::process::ExitCode;

use hookloop_git::lfs::{LFS_CLEAN_ARGUMENT, lfs_clean_main};
use hookloop_process::{CONFINED_ARGUMENT, KEEPER_ARGUMENT, confined_exec, keeper_main};

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(argument) if argument == KEEPER_ARGUMENT => keeper_main(),
        Some(argument) if argument == CONFINED_ARGUMENT => confined_exec(),
        Some(argument) if argument == LFS_CLEAN_ARGUMENT => lfs_clean_main(),
        _ => ExitCode::FAILURE,
    }
}
