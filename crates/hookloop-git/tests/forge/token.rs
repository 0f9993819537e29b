//! Sources of the user's token for a forge, with a real process in place of GitHub's `gh`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use hookloop_git::forge::ForgeError;
use hookloop_git::forge::github::{ForgeToken, TokenSearch};
use hookloop_process::KeeperPool;
use tempfile::TempDir;

/// A fake `gh` that checks the requested host and prints $SAYS.
const GH: &str = "#!/bin/sh\n\
    [ \"$*\" = \"auth token --hostname $HOST_EXPECTED\" ] || exit 3\n\
    [ \"$GH_PROMPT_DISABLED\" = 1 ] || exit 4\n\
    printf '%s\\n' \"$SAYS\"\n\
    exit \"${CODE:-0}\"\n";

struct User {
    home: TempDir,
    keepers: KeeperPool,
}

impl User {
    fn new() -> User {
        let home = tempfile::tempdir().unwrap();
        let gh = home.path().join("gh");
        fs::write(&gh, GH).unwrap();
        fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
        User { home, keepers: KeeperPool::new(env!("CARGO_BIN_EXE_hookloop-git-keeper").into()) }
    }

    fn token(&self, host: &str, variables: &[(&str, &str)]) -> Result<ForgeToken, ForgeError> {
        let path = format!("{}:/usr/bin:/bin", self.home.path().display());
        let given = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let usual = [("PATH", path), ("HOST_EXPECTED", host.to_owned())];
        let environment: Vec<(OsString, OsString)> = usual
            .into_iter()
            .chain(given)
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let (environment, cwd) = (environment.as_slice(), self.home.path());
        ForgeToken::of_user(&TokenSearch { environment, cwd, keepers: &self.keepers, host })
    }
}

fn token(text: &str) -> ForgeToken {
    ForgeToken::new(text).unwrap()
}

#[test]
fn hookloop_github_token_precedes_other_variables_and_gh() {
    let user = User::new();
    let all = [
        ("HOOKLOOP_GITHUB_TOKEN", "own-token"),
        ("GH_TOKEN", "gh-token"),
        ("GITHUB_TOKEN", "github-token"),
        ("SAYS", "said-token"),
    ];
    for (from, expected) in
        ["own-token", "gh-token", "github-token", "said-token"].iter().enumerate()
    {
        assert_eq!(user.token("github.com", &all[from..]), Ok(token(expected)));
    }
    let empty = [("GH_TOKEN", ""), ("GITHUB_TOKEN", "github-token")];
    assert_eq!(user.token("github.com", &empty), Ok(token("github-token")));
}

#[test]
fn github_token_variables_are_not_used_for_other_hosts() {
    let user = User::new();
    let usual =
        [("GH_TOKEN", "gh-token"), ("GITHUB_TOKEN", "github-token"), ("SAYS", "its-own-token")];
    assert_eq!(user.token("git.example", &usual), Ok(token("its-own-token")));
    assert!(user.token("git.example", &usual[..2]).is_err());
    let own = [("HOOKLOOP_GITHUB_TOKEN", "own-token")];
    assert_eq!(user.token("git.example", &own), Ok(token("own-token")));
}

#[test]
fn a_missing_or_invalid_token_needs_a_person_with_a_hint() {
    let user = User::new();
    let rows: [&[(&str, &str)]; 4] = [
        &[],
        &[("SAYS", "said-token"), ("CODE", "1")],
        &[("SAYS", "two words")],
        // A variable that is set to an invalid token is not skipped.
        &[("GH_TOKEN", "no token at all"), ("SAYS", "said-token")],
    ];
    for variables in rows {
        let error = user.token("github.com", variables).unwrap_err();
        let ForgeError::NeedsHuman { hint, .. } = &error else { panic!("{error:?}") };
        assert!(hint.contains("_TOKEN"), "{hint}");
        for (_, value) in variables.iter().filter(|(name, _)| *name != "CODE") {
            assert!(!format!("{error} {error:?}").contains(value), "{error:?}");
        }
    }
}
