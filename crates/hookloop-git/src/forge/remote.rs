//! Reads the repository on a forge from the address of a remote.
//!
//! The grammar is strict, because its results go into addresses and arguments: a name that could be an option or
//! another path is rejected.

/// The longest names of an owner and of a repository on GitHub.
const OWNER_MAX: usize = 39;
const NAME_MAX: usize = 100;
/// The longest possible name of a host.
const HOST_MAX: usize = 253;
/// Other names of the same host. The second one serves networks that allow only port 443.
const GITHUB: &str = "github.com";
const GITHUB_ALIASES: [&str; 2] = ["www.github.com", "ssh.github.com"];

/// A repository on a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeRepository {
    /// In lower case, with the port if the address is HTTPS and names one.
    pub host: String,
    pub owner: String,
    pub name: String,
}

/// Returns the repository that `url` names: `https://HOST/OWNER/NAME`, `ssh://git@HOST/OWNER/NAME` or
/// `git@HOST:OWNER/NAME`, with or without `.git`. A password in it is ignored.
pub fn repository_of(url: &str) -> Option<ForgeRepository> {
    let (host, path) = if let Some(rest) = url.strip_prefix("https://") {
        let (authority, path) = rest.split_once('/')?;
        (without_user(authority), path)
    } else if let Some(rest) = url.strip_prefix("ssh://") {
        let (authority, path) = rest.split_once('/')?;
        let host = without_user(authority);
        // The port is that of the SSH server, not of the forge.
        (
            host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host),
            path,
        )
    } else {
        let (user, rest) = url.split_once('@')?;
        let (host, path) = rest.split_once(':')?;
        (Some(host).filter(|_| is_name(user, NAME_MAX))?, path)
    };
    let host = host.to_ascii_lowercase();
    let host = if GITHUB_ALIASES.contains(&host.as_str()) { GITHUB.to_owned() } else { host };
    let path = path.strip_suffix('/').unwrap_or(path);
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
    let is_sound = is_host(&host) && is_owner(owner) && is_repository(name);
    is_sound.then(|| ForgeRepository { host, owner: owner.to_owned(), name: name.to_owned() })
}

/// Returns whether a user or an organisation can have this name.
pub(super) fn is_owner(name: &str) -> bool {
    is_name(name, OWNER_MAX) && !name.contains('.')
}

/// Returns whether a repository can have this name.
pub(super) fn is_repository(name: &str) -> bool {
    is_name(name, NAME_MAX) && !name.bytes().all(|byte| byte == b'.')
}

/// Returns whether this is the name of a host, with or without a port.
pub(super) fn is_host(text: &str) -> bool {
    let (host, is_port_sound) = match text.rsplit_once(':') {
        Some((host, port)) => (host, is_port(port)),
        None => (text, true),
    };
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_plain) && !label.starts_with('-')
    };
    is_port_sound && host.len() <= HOST_MAX && host.split('.').all(is_label)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Returns whether a name is never an option, and never more than one part of a path.
fn is_name(name: &str, max: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=max).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('-')
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_urls_are_parsed() {
        for (url, host, owner, name) in [
            ("https://github.com/o/r", "github.com", "o", "r"),
            ("https://github.com/o/r.git", "github.com", "o", "r"),
            ("https://github.com/o/r/", "github.com", "o", "r"),
            ("https://GitHub.com/Some-Org/r.rs.git", "github.com", "Some-Org", "r.rs"),
            ("https://x-access-token:s3cr3t@github.com/o/r.git", "github.com", "o", "r"),
            ("https://forge.example:8443/o/.github", "forge.example:8443", "o", ".github"),
            ("git@github.com:o/r.git", "github.com", "o", "r"),
            ("org-1234@github.com:o/r", "github.com", "o", "r"),
            ("ssh://git@github.com/o/r", "github.com", "o", "r"),
            ("ssh://git@ssh.github.com:443/o/r.git", "github.com", "o", "r"),
            ("ssh://forge.example/o/r_1", "forge.example", "o", "r_1"),
        ] {
            let found = repository_of(url).unwrap_or_else(|| panic!("{url} is none"));
            assert_eq!((&*found.host, &*found.owner, &*found.name), (host, owner, name), "{url}");
        }
    }

    #[test]
    fn invalid_repository_urls_are_rejected() {
        let long = format!("https://github.com/{}/r", "o".repeat(OWNER_MAX + 1));
        for url in [
            "",
            "/srv/r.git",
            "../r",
            "file:///srv/r.git",
            "http://github.com/o/r",
            "git://github.com/o/r",
            "github.com/o/r",
            "github.com:o/r",
            "https://github.com/o",
            "https://github.com/o/",
            "https://github.com//r",
            "https://github.com/o/.git",
            "https://github.com/o/..",
            "https://github.com/o/r/s",
            "https://github.com/../r",
            "https://github.com/o/r?x",
            "https://github.com/o/r#x",
            "https://github.com/o/%2e%2e",
            "https://github.com/-o/r",
            "https://github.com/o/--upload-pack=x",
            "https://-github.com/o/r",
            "https://git hub.com/o/r",
            "https://github.com:0/o/r",
            "https://github.com:x/o/r",
            "https://[::1]/o/r",
            "https:///o/r",
            "https://github.com/o/r\n",
            "git@-oProxyCommand=x:o/r",
            "-x@github.com:o/r",
            "git@github.com:/o/r",
            "git@github.com:o/r/s.git",
            "ext::sh -c x% o/r",
            "https://github.com/ö/r",
            long.as_str(),
        ] {
            assert_eq!(repository_of(url), None, "{url}");
        }
    }
}
