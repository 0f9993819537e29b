//! `notify:` of the user's file: the channels for notifications.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use hookloop_core::inbox::ProblemKind;
use lettre::message::Mailbox;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::values::{GivenEntry, Located, TimeText, given, length};
use crate::channels::{ChannelKind, MailSecurity, MailSettings, NotificationChannel, SendMode};
use crate::secret_text::SecretSource;
use crate::yaml::{ConfigComplaint, check_name, read_word};

pub(crate) type ChannelEntries = Vec<Spanned<ChannelEntry>>;

const CHANNELS_MAX: usize = 32;
/// The most projects or addresses of one channel.
const LIST_MAX: usize = 64;
/// The default interval of a digest.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// The port on which mail is encrypted from the first byte.
const SUBMISSIONS_PORT: u16 = 465;

/// Channel for notifications: exactly one of `webhook`, `slack`, `desktop` and `email`, and options
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelEntry {
    /// Name of the channel
    name: Located<String>,
    /// URL that hookloop posts JSON to: a text, `{env: NAME}` or `{file: PATH}`
    webhook: Option<Located<GivenEntry>>,
    /// URL of an incoming webhook of Slack or of a compatible service: a text, `{env: NAME}` or `{file: PATH}`
    slack: Option<Located<GivenEntry>>,
    /// `true` for notifications on this machine's desktop, with `notify-send`
    desktop: Option<Located<bool>>,
    /// Settings of mail over SMTP
    email: Option<Located<MailEntry>>,
    /// Messages: one for each problem (`each`), or one for all problems of an interval (`digest`) [default: `each`]
    mode: Option<Located<ModeEntry>>,
    /// Interval of a digest, in seconds or with a unit such as `30m` [default: 1h]
    every: Option<Located<TimeText>>,
    /// Names or directories of the projects of the channel [default: all]
    #[serde(default)]
    projects: Vec<String>,
    /// Types of the problems that the channel reports [default: all]
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    types: Vec<Spanned<String>>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ModeEntry {
    Each,
    Digest,
}

/// Settings of mail over SMTP
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MailEntry {
    /// Mail server: `host:port`
    smtp: Located<String>,
    /// Encryption: `tls`, `starttls`, or `none` for a server on this machine [default: `tls` for port 465, else
    /// `starttls`]
    tls: Option<Located<TlsEntry>>,
    /// User name of the login [default: no login]
    user: Option<String>,
    /// Password of the login: `{env: NAME}` or `{file: PATH}` [default: no login]
    password: Option<Located<GivenEntry>>,
    /// Address of the sender
    from: Located<String>,
    /// Addresses of the receivers
    to: Vec<Located<String>>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TlsEntry {
    Starttls,
    Tls,
    None,
}

/// Reads the channels of the user's file, whose directory is `base`.
pub(crate) fn read(
    entries: ChannelEntries,
    base: &Path,
) -> Result<Vec<NotificationChannel>, ConfigComplaint> {
    let mut names = BTreeSet::new();
    let mut channels = Vec::new();
    for Spanned { value, referenced, .. } in entries {
        let Located { value: name, at } = &value.name;
        check_name(name, *at)?;
        if !names.insert(name.clone()) {
            return Err(ConfigComplaint::new(
                *at,
                format!("there are two channels named `{name}`"),
            ));
        }
        if channels.len() == CHANNELS_MAX {
            let message = format!("there are more than {CHANNELS_MAX} channels");
            return Err(ConfigComplaint::new(referenced, message));
        }
        channels.push(value.read(referenced, base)?);
    }
    Ok(channels)
}

impl ChannelEntry {
    fn read(self, at: Location, base: &Path) -> Result<NotificationChannel, ConfigComplaint> {
        let mode = self.mode()?;
        if self.projects.len() > LIST_MAX {
            return Err(ConfigComplaint::new(at, format!("`projects` names more than {LIST_MAX}")));
        }
        let types = self.types.into_iter().map(read_word::<ProblemKind>);
        let types = types.collect::<Result<Vec<_>, _>>()?;
        let way = match (self.webhook, self.slack, self.desktop, self.email) {
            (Some(url), None, None, None) => ChannelKind::Webhook(address(url, base)?),
            (None, Some(url), None, None) => ChannelKind::Slack(address(url, base)?),
            (None, None, Some(Located { value: true, .. }), None) => ChannelKind::Desktop,
            (None, None, None, Some(mail)) => {
                ChannelKind::Mail(Box::new(mail.value.read(mail.at, base)?))
            }
            _ => {
                let message =
                    "a channel has exactly one of `webhook`, `slack`, `desktop: true` and `email`";
                return Err(ConfigComplaint::new(at, message));
            }
        };
        let (name, projects) = (self.name.value, self.projects);
        Ok(NotificationChannel { name, way, mode, projects, types })
    }

    fn mode(&self) -> Result<SendMode, ConfigComplaint> {
        let is_digest = self.mode.as_ref().is_some_and(|mode| mode.value == ModeEntry::Digest);
        match (&self.every, is_digest) {
            (None, false) => Ok(SendMode::Each),
            (None, true) => Ok(SendMode::Digest { every: EVERY }),
            (Some(Located { value, at }), true) => {
                let ms = length(value.clone(), *at)?;
                match ms < 1_000 {
                    true => {
                        Err(ConfigComplaint::new(*at, "a digest is sent at most once a second"))
                    }
                    false => Ok(SendMode::Digest { every: Duration::from_millis(ms) }),
                }
            }
            (Some(Located { at, .. }), false) => {
                Err(ConfigComplaint::new(*at, "`every` goes with `mode: digest`"))
            }
        }
    }
}

fn address(entry: Located<GivenEntry>, base: &Path) -> Result<SecretSource, ConfigComplaint> {
    let at = entry.at;
    let url = given(entry, base)?;
    match &url {
        // The error does not repeat the URL, which may grant access.
        SecretSource::Text(text) if !text.is_url() => {
            Err(ConfigComplaint::new(at, "this is not a URL: it begins with https:// or http://"))
        }
        _ => Ok(url),
    }
}

impl MailEntry {
    fn read(self, at: Location, base: &Path) -> Result<MailSettings, ConfigComplaint> {
        let (host, port) = server(&self.smtp)?;
        let security = match &self.tls {
            Some(Located { value: TlsEntry::Starttls, .. }) => MailSecurity::StartTls,
            Some(Located { value: TlsEntry::Tls, .. }) => MailSecurity::Tls,
            Some(Located { value: TlsEntry::None, at }) if !is_loopback(&host) => {
                let message = format!("`tls: none` is for this machine alone, and not for {host}");
                return Err(ConfigComplaint::new(*at, message));
            }
            Some(_) => MailSecurity::None,
            None if port == SUBMISSIONS_PORT => MailSecurity::Tls,
            None => MailSecurity::StartTls,
        };
        let login = match (self.user, self.password) {
            (None, None) => None,
            (Some(user), Some(password)) => {
                let at = password.at;
                match given(password, base)? {
                    SecretSource::Text(_) => {
                        let message =
                            "a password is not written here: `{env: NAME}` or `{file: PATH}`";
                        return Err(ConfigComplaint::new(at, message));
                    }
                    password => Some((user, password)),
                }
            }
            _ => return Err(ConfigComplaint::new(at, "`user` and `password` go together")),
        };
        if self.to.is_empty() || self.to.len() > LIST_MAX {
            return Err(ConfigComplaint::new(at, format!("`to` has 1 to {LIST_MAX} addresses")));
        }
        let from = mailbox(&self.from)?;
        let to = self.to.iter().map(mailbox).collect::<Result<_, _>>()?;
        Ok(MailSettings { host, port, security, login, from, to })
    }
}

fn mailbox(entry: &Located<String>) -> Result<Mailbox, ConfigComplaint> {
    let unread = |_| {
        ConfigComplaint::new(
            entry.at,
            format!("`{}` is not an address: name@example.org", entry.value),
        )
    };
    entry.value.parse().map_err(unread)
}

fn server(entry: &Located<String>) -> Result<(String, u16), ConfigComplaint> {
    let parts = entry.value.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_matches(['[', ']']);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        let is_host = !host.is_empty() && host.chars().all(fits);
        is_host.then_some((host.to_owned(), port.parse().ok()?))
    });
    parts.ok_or_else(|| {
        ConfigComplaint::new(entry.at, format!("`{}` is not a server: host:port", entry.value))
    })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::from_yaml;

    #[derive(Deserialize)]
    struct File {
        notify: ChannelEntries,
    }

    fn channels(text: &str) -> Result<Vec<NotificationChannel>, (u64, String)> {
        let file = from_yaml::<File>(text).and_then(|file| read(file.notify, Path::new("/u")));
        file.map_err(|wrong| (wrong.at.map_or(0, |at| at.line()), wrong.message))
    }

    #[test]
    fn notification_channels_are_parsed() {
        let text = "notify:
  - {name: hook, webhook: {env: HOOK}, types: [task_blocked], projects: [a]}
  - {name: chat, slack: {file: chat.url}, mode: digest, every: 10m}
  - {name: here, desktop: true, mode: each}
  - name: mail
    email:
      smtp: mail.example.org:465
      user: me
      password: {file: mail.password}
      from: Loop <loop@example.org>
      to: [me@example.org]
";
        let read = channels(text).unwrap();
        assert_eq!(read[0].way, ChannelKind::Webhook(SecretSource::Variable("HOOK".into())));
        assert_eq!(
            (&read[0].types[..], &read[0].projects[..]),
            (&[ProblemKind::TaskBlocked][..], &["a".to_owned()][..])
        );
        assert_eq!(read[1].way, ChannelKind::Slack(SecretSource::File("/u/chat.url".into())));
        assert_eq!(read[1].mode, SendMode::Digest { every: Duration::from_secs(600) });
        assert_eq!((&read[2].way, read[2].mode), (&ChannelKind::Desktop, SendMode::Each));
        let ChannelKind::Mail(mail) = &read[3].way else { panic!("no mail") };
        assert_eq!(
            (mail.host.as_str(), mail.port, mail.security),
            ("mail.example.org", 465, MailSecurity::Tls)
        );
    }

    #[test]
    fn mistakes_in_channels_are_reported_with_line_and_without_secrets() {
        let check = |text: &str, line: u64, part: &str| {
            let (at, message) = channels(&format!("notify:\n{text}")).unwrap_err();
            assert!(at == line && message.contains(part), "{text}\n-> line {at}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        };
        check("  - {name: a}\n", 2, "exactly one");
        check("  - {name: a, desktop: false}\n", 2, "exactly one");
        check("  - {name: a, desktop: true, slack: {env: A}}\n", 2, "exactly one");
        check("  - {name: a b, desktop: true}\n", 2, "not a name");
        check("  - {name: a, desktop: true}\n  - {name: a, desktop: true}\n", 3, "two channels");
        check("  - {name: a, webhook: hunter2}\n", 2, "not a URL");
        check("  - {name: a, webhook: {env: A, file: b}}\n", 2, "belongs here");
        check("  - {name: a, desktop: true, every: 1h}\n", 2, "mode: digest");
        check("  - {name: a, desktop: true, mode: digest, every: 10ms}\n", 2, "once a second");
        check("  - {name: a, desktop: true, types: [no]}\n", 2, "not a type of problem");
        check("  - {name: a, desktop: true, colour: red}\n", 2, "colour");
        let mail = |rest: &str| format!("  - name: a\n    email:\n      from: a@b.org\n{rest}");
        check(&mail("      smtp: h\n      to: [c@d.org]\n"), 5, "host:port");
        check(&mail("      smtp: h:25\n      to: []\n"), 4, "1 to 64");
        check(
            &mail("      smtp: h:25\n      to: [\"c@d.org\\r\\nBcc: e@f.org\"]\n"),
            6,
            "not an address",
        );
        check(
            &mail("      smtp: h:25\n      tls: none\n      to: [c@d.org]\n"),
            6,
            "this machine alone",
        );
        check(&mail("      smtp: h:25\n      user: u\n      to: [c@d.org]\n"), 4, "go together");
        check(
            &mail(
                "      smtp: h:25\n      user: u\n      password: hunter2\n      to: [c@d.org]\n",
            ),
            7,
            "not written here",
        );
    }
}
