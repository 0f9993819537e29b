//! The probe for mounts that this system supports.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use hookloop_process::{MountSupport, SandboxSupport};
use rustix::process::geteuid;

use super::users::for_each_user;
use crate::executable;

/// Far above the usual, for busy machines.
const PROBE_MAX: Duration = Duration::from_secs(2);

#[test]
fn the_probe_finds_mounts_and_leaves_no_files() {
    for_each_user(|| {
        let program = executable();
        let start = Instant::now();
        let found = MountSupport::of_program(&program);
        let took = start.elapsed();
        writeln!(std::io::stderr(), "a probe takes {took:?}").unwrap();
        assert_eq!(found, MountSupport { mounts: true, overlays: true });
        assert!(took < PROBE_MAX, "{took:?}");
        // Root shares this directory with other tests.
        if !geteuid().is_root() {
            assert_eq!(fs::read_dir(std::env::temp_dir()).unwrap().count(), 0);
        }
    });
}

#[test]
fn a_program_that_cannot_be_probed_has_no_mounts() {
    for program in ["/no/such/program", "/bin/true", "/bin/false", "/"] {
        assert_eq!(MountSupport::of_program(Path::new(program)), MountSupport::default());
    }
    // The program of this test is no keeper.
    assert_eq!(SandboxSupport::mounts_of_this_system(), MountSupport::default());
}
