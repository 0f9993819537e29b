//! Checks of names and addresses before they are passed to git.

use super::error::RepoError;

/// The longest name that fits in a file name everywhere.
const BRANCH_MAX: usize = 200;

/// Returns whether `name` is valid for a branch, by the rules of `git check-ref-format --branch`.
pub(crate) fn is_branch(name: &str) -> bool {
    let is_bad = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    name.len() <= BRANCH_MAX
        && !name.starts_with('-')
        && name != "HEAD"
        && !name.contains(is_bad)
        && !name.contains("..")
        && !name.contains("@{")
        && name != "@"
        && name.split('/').all(is_part)
}

pub(super) fn check_branch(name: &str) -> Result<(), RepoError> {
    match is_branch(name) {
        true => Ok(()),
        false => Err(RepoError::permanent(format!("`{name}` can't be the name of a branch"))),
    }
}

/// Checks the name of a remote, which is part of a setting's name and of a ref.
pub(super) fn check_remote(name: &str) -> Result<(), RepoError> {
    match is_branch(name) {
        true => Ok(()),
        false => Err(RepoError::permanent(format!("`{name}` can't be the name of a remote"))),
    }
}

/// Returns an address without its user, which may include a password.
pub fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// Checks that an address names a remote, and is neither an option nor a command.
pub(super) fn check_url(url: &str) -> Result<(), RepoError> {
    let helper = url.split_once("::").is_some_and(|(word, _)| {
        word.chars().all(|c| c.is_ascii_alphanumeric() || "+.-_".contains(c))
    });
    match url.is_empty() || url.starts_with('-') || helper || url.contains(char::is_control) {
        true => Err(RepoError::NeedsHuman {
            why: format!("hookloop does not use a remote at `{}`", url.escape_debug()),
            hint: "use an address that begins with https://, ssh:// or file://".to_owned(),
        }),
        false => Ok(()),
    }
}

/// Returns whether an address is a path on this machine.
pub(super) fn is_path(url: &str) -> bool {
    let before_slash = url.split('/').next().unwrap_or_default();
    !url.contains("://") && !before_slash.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_removed_from_urls() {
        for (url, expected) in [
            ("https://x:ghp_secret@github.com/o/r", "https://github.com/o/r"),
            ("https://github.com/o/r@x", "https://github.com/o/r@x"),
            ("ssh://git@host:22/o/r", "ssh://host:22/o/r"),
            ("git@host:o/r", "git@host:o/r"),
            ("/a/b", "/a/b"),
        ] {
            assert_eq!(without_user(url), expected);
        }
    }

    #[test]
    fn branch_names_follow_the_rules_of_git() {
        for name in ["main", "hookloop/t1", "a.b", "feature/x-1", "ü", "a@b", "a-"] {
            assert!(is_branch(name), "{name}");
        }
        let long = "x".repeat(BRANCH_MAX + 1);
        for name in [
            "", "-x", "--force", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b",
            "a.", "a b", "a~1", "a^", "a:b", "a?", "a*", "[a", "a\\b", "a\nb", "a\0", "@", "@{-1}",
            "a@{1}", "HEAD", &long,
        ] {
            assert!(!is_branch(name), "{name}");
        }
    }

    #[test]
    fn remote_urls_that_are_options_or_commands_are_refused() {
        for url in [
            "https://example.org/a.git",
            "ssh://git@[::1]:22/a",
            "git@example.org:a/b.git",
            "/srv/a.git",
            "../a.git",
            "file:///srv/a",
        ] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in ["", "-u", "--upload-pack=x", "ext::sh -c x", "fd::3", "foo::bar", "a\nb", "::x"]
        {
            assert!(check_url(url).is_err(), "{url}");
        }
        assert!(is_path("/srv/a:b.git") && is_path("../a") && is_path("./a:b"));
        assert!(!is_path("host:path") && !is_path("file:///srv/a"));
    }
}
