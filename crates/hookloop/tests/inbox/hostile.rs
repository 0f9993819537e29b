//! Untrusted text has no effect on the receivers of notifications, and secrets are not disclosed.

use std::path::Path;

use crate::cli::{ProgramOutput, Project};
use crate::inbox::receivers::{Hook, Post};
use crate::inbox::telling::{PASSWORD, three};
use crate::inbox::{blocked, channels, keys};

const HOSTILE: &str = "Fix\r\nBcc: evil@example.org\r\n\r\n<html><img src=http://e/> <!channel> <@U1> @here \
    [a](http://e) ![](http://e) \u{1b}[31m\u{202e}\u{0}";
/// The secret part of a URL.
const TOKEN: &str = "T0KENT0KEN/abcdef0123456789";

fn notify(project: &Project, hook: &Hook, password: &str) -> ProgramOutput {
    let mut command = project.hookloop(&["inbox", "notify"]);
    command.env("CHAT_URL", hook.url(TOKEN)).env("MAIL_PASSWORD", password);
    command.output().unwrap().into()
}

#[test]
fn a_hostile_goal_is_text_and_nothing_else() {
    let project = Project::new();
    let (hook, post) = (Hook::start(), Post::start(&format!("\0me\0{PASSWORD}")));
    channels(&project, &three(&hook, &post));
    let hostile = HOSTILE.replace('\0', "");
    blocked(&project, "a", &hostile, &format!("{hostile}\n.\r\nMAIL FROM:<x@y>\r\n"));
    let run = notify(&project, &hook, PASSWORD);
    assert_eq!(run.code, 0, "{run:?}");
    let letters = post.letters();
    assert_eq!(letters.len(), 1, "{letters:?}");
    let letter = &letters[0];
    assert_eq!(letter.to.len(), 2, "{letter:?}");
    assert!(letter.to.iter().all(|to| !to.contains("evil")), "{letter:?}");
    let names: Vec<&str> = letter.headers.iter().map(|(name, _)| name.as_str()).collect();
    for name in &names {
        let known = [
            "From",
            "To",
            "Subject",
            "Message-ID",
            "Auto-Submitted",
            "Content-Type",
            "Date",
            "Content-Transfer-Encoding",
            "MIME-Version",
        ];
        assert!(known.contains(name), "{name}: {letter:?}");
    }
    assert_eq!(letter.all("Subject").len(), 1);
    assert!(letter.all("Content-Type")[0].starts_with("text/plain"), "{letter:?}");
    assert!(letter.all("Message-ID")[0].ends_with("@hookloop.invalid>"), "{letter:?}");
    assert!(!letter.body.contains('\u{1b}') && !letter.body.contains('\u{202e}'), "{letter:?}");
    let posted = hook.posted();
    let chat = posted.iter().find(|one| one.path != "/hook").unwrap().body.to_string();
    for part in ["<", "@here", "](", "\\u001b", "\u{202e}"] {
        assert!(!chat.contains(part), "{part}: {chat}");
    }
    let hooked = &posted.iter().find(|one| one.path == "/hook").unwrap().body;
    let title = hooked["problems"][0]["title"].as_str().unwrap();
    assert!(!title.contains(|c: char| c.is_control() || c == '\u{202e}'), "{title}");
}

#[test]
fn channel_secrets_are_neither_printed_nor_stored() {
    let project = Project::new();
    let (hook, post) = (Hook::start(), Post::start("\0me\0another"));
    channels(&project, &three(&hook, &post));
    blocked(&project, "a", "Goal", "why");
    // A server that refuses a request may repeat its content.
    hook.answers(404);
    let mut said = Vec::new();
    said.push(notify(&project, &hook, PASSWORD));
    said.push(notify(&project, &hook, PASSWORD));
    for name in ["chat", "mail"] {
        let mut command = project.hookloop(&["inbox", "test", name]);
        command.env("CHAT_URL", hook.url(TOKEN)).env("MAIL_PASSWORD", PASSWORD);
        said.push(command.output().unwrap().into());
    }
    // No server at the address, an invalid URL, an unsupported scheme, and no URL.
    for url in [
        format!("http://127.0.0.1:1/{TOKEN}"),
        format!("https://[{TOKEN}"),
        format!("ftp://{TOKEN}"),
    ] {
        let mut command = project.hookloop(&["inbox", "test", "chat"]);
        said.push(command.env("CHAT_URL", url).output().unwrap().into());
    }
    said.push(project.run(&["inbox", "test", "chat"]));
    assert!(said[0].code == 1 && said[0].stdout.contains("535"), "{:?}", said[0]);
    assert!(said.iter().skip(2).all(|run| run.code == 1), "{said:?}");
    assert!(said.last().unwrap().stderr.contains("CHAT_URL is not set"), "{said:?}");
    said.push(project.run(&["log", "--json", "--all"]));
    said.push(project.run(&["inbox", "list", "--json"]));
    let login = data_encoding::BASE64.encode(format!("\0me\0{PASSWORD}").as_bytes());
    let secrets = [PASSWORD, "T0KENT0KEN", "abcdef0123456789", &login];
    let kept = all_bytes(&project.home().join(".local"));
    for secret in secrets {
        for run in &said {
            assert!(
                !run.stdout.contains(secret) && !run.stderr.contains(secret),
                "{secret}: {run:?}"
            );
        }
        let is_kept = kept.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        assert!(!is_kept, "{secret} is in the state directory");
    }
    assert_eq!(keys(&project).len(), 1);
}

/// Returns all bytes that are stored below a directory.
fn all_bytes(directory: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(all_bytes(&path)),
            false => found.extend(std::fs::read(&path).unwrap()),
        }
    }
    found
}

#[test]
fn a_repository_cannot_configure_notification_channels() {
    let project = Project::with_config("notify:\n  - {name: a, webhook: 'http://127.0.0.1:1/'}\n");
    let why = project.fails(2, &["status"]);
    assert!(
        why.contains("hookloop.yaml:2:") && why.contains("~/.config/hookloop/config.yaml"),
        "{why}"
    );
    let project = Project::new();
    channels(&project, "  - {name: a, webhook: 'http://127.0.0.1:1/', colour: red}\n");
    let why = project.fails(2, &["inbox", "notify"]);
    assert!(why.contains("config.yaml:3:") && why.contains("colour"), "{why}");
    channels(&project, "  - {name: a, desktop: true}\n");
    let why = project.fails(2, &["inbox", "test", "b"]);
    assert!(why.contains("you have no channel `b`") && why.contains("there are a"), "{why}");
}
