//! Where there are no cgroups.

use std::fs::File;
use std::path::PathBuf;

/// There is none.
#[derive(Debug)]
pub(super) enum Cgroup {}

impl Cgroup {
    pub(super) fn make() -> Option<Cgroup> {
        None
    }

    pub(super) fn door(&self) -> Option<File> {
        match *self {}
    }

    pub(super) fn kill(&self) {
        match *self {}
    }
}

pub(super) fn enter() {}

/// No cgroup is this program's own.
pub fn home() -> Option<PathBuf> {
    None
}
