//! Settings of git that would run a program or ask a question, with harmless values.

use std::ffi::OsString;

pub type GitVariable = (OsString, OsString);

/// Values that override every configuration: git runs nothing, asks nothing, and overlooks no change of a file.
pub const HARMLESS: [(&str, &str); 11] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("protocol.file.allow", "user"),
    ("safe.bareRepository", "explicit"),
    ("submodule.recurse", "false"),
    ("core.untrackedCache", "false"),
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
];

/// Returns settings as environment variables. As an argument, a `=` in a name would end the name.
pub fn variables<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<GitVariable> {
    let mut variables: Vec<GitVariable> = Vec::new();
    let mut count = 0;
    for (name, value) in settings {
        variables.push((format!("GIT_CONFIG_KEY_{count}").into(), name.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    variables.push(("GIT_CONFIG_COUNT".into(), count.to_string().into()));
    variables
}
