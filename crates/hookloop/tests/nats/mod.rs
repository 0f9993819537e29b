//! Machines as servers see them: each has a home and a copy of a project.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use hookloop_testbed::Server;
use hookloop_testkit::TestProject;

use crate::support::builder;

/// A machine without a configuration.
pub(crate) fn bare_machine() -> TestProject {
    builder().without_user_config().build()
}

/// A machine with a copy of a project that is kept on `server`, which may be listed.
pub(crate) fn machine_on(server: &Server, project: &str) -> TestProject {
    let (url, monitor) = (server.url(), server.monitor_url());
    builder()
        .config(format!("version: 1\nproject: {project}\nstore: {url}\n"))
        .user_config(format!("version: 1\nstores:\n  {url}: {{monitors: [\"{monitor}\"]}}\n"))
        .build()
}
