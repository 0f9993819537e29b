//! Settings that would run something or ask somebody, as they are while we ask.

use std::ffi::OsString;

pub type Variable = (OsString, OsString);

/// Whatever a configuration says: nothing is run or asked for, and no change of a file is overlooked.
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

/// Settings as variables. Not as arguments: there a `=` in a name would end it.
pub fn variables<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut count = 0;
    for (name, value) in settings {
        variables.push((format!("GIT_CONFIG_KEY_{count}").into(), name.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    variables.push(("GIT_CONFIG_COUNT".into(), count.to_string().into()));
    variables
}
