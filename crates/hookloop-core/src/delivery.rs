//! How finished work gets into the branch that it is for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What becomes of a branch's commits when it is merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// They become one.
    #[default]
    Squash,
    /// Each is made anew on top of the base.
    Rebase,
    /// They stay as they are, below a commit with two parents.
    Merge,
}

impl Method {
    pub const ALL: [Method; 3] = [Method::Squash, Method::Rebase, Method::Merge];

    pub fn name(self) -> &'static str {
        match self {
            Method::Squash => "squash",
            Method::Rebase => "rebase",
            Method::Merge => "merge",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to merge: `squash`, `rebase` or `merge`")]
pub struct UnknownMethod(String);

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Method::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_written_as_it_is_read() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
            assert_eq!(serde_json::json!(method), method.name());
        }
        for other in ["", "Squash", "fast-forward", "merge "] {
            assert_eq!(other.parse::<Method>(), Err(UnknownMethod(other.to_owned())));
        }
    }
}
