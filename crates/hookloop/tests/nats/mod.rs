//! Machines that share a server: each has its own home and its own copy of a project.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use hookloop_testbed::Server;
use hookloop_testkit::TestProject;

use crate::support::builder;

/// Returns a machine without a configuration.
pub(crate) fn bare_machine() -> TestProject {
    builder().without_user_config().build()
}

/// Returns a machine with a copy of a project whose store is `server`, which may be a list.
pub(crate) fn machine_on(server: &Server, project: &str) -> TestProject {
    let (url, monitor) = (server.url(), server.monitor_url());
    builder()
        .config(format!("version: 1\nproject: {project}\nstore: {url}\n"))
        .user_config(format!(
            "version: 1\nstores:\n  {url}: {{monitoring_urls: [\"{monitor}\"]}}\n"
        ))
        .build()
}
