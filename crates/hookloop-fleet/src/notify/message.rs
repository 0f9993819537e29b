//! The text of a notification about problems, safe for every program that shows it.

use hookloop_core::id::NoticeId;
use hookloop_core::inbox::{LINE_MAX, TEXT_MAX, one_line};
use serde_json::{Value, json};

/// Largest number of problems that a message describes.
pub(super) const ITEMS_MAX: usize = 20;
/// Longest subject of a mail, or title of a desktop notification, in characters.
const TITLE_MAX: usize = 150;

/// The content of a message, independent of its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotificationMessage {
    /// Repeated attempts have the same id.
    pub id: NoticeId,
    pub project: String,
    pub items: Vec<MessageItem>,
    /// Number of problems that the message does not describe.
    pub omitted: usize,
}

/// One problem in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageItem {
    pub key: String,
    pub kind: &'static str,
    /// The subject of the problem, and the problem.
    pub title: String,
    pub reason: String,
    pub since: String,
}

impl NotificationMessage {
    /// Returns the message without control characters, limited to [`ITEMS_MAX`] problems.
    pub(super) fn cleaned(mut self) -> NotificationMessage {
        self.project = one_line(&self.project, LINE_MAX);
        self.omitted += self.items.len().saturating_sub(ITEMS_MAX);
        self.items.truncate(ITEMS_MAX);
        for item in &mut self.items {
            item.title = one_line(&item.title, LINE_MAX);
            item.reason = one_line(&item.reason, TEXT_MAX);
        }
        self
    }

    pub(super) fn title(&self) -> String {
        let title = match (self.items.as_slice(), self.omitted) {
            ([item], 0) => format!("{}: {}", self.project, item.title),
            (items, more) => format!("{}: {} problems wait", self.project, items.len() + more),
        };
        one_line(&title, TITLE_MAX)
    }

    /// Returns the message as plain text.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![self.title(), String::new()];
        for item in &self.items {
            lines.push(item.title.clone());
            lines.push(format!("  {}", item.reason));
            lines.push(format!("  since {}", item.since));
            lines.push(format!("  hookloop inbox show {}", item.key));
            lines.push(String::new());
        }
        if self.omitted > 0 {
            lines.push(format!("and {} more: hookloop inbox list", self.omitted));
        }
        lines.join("\n").trim_end().to_owned() + "\n"
    }

    /// Returns the message as the JSON body of a webhook.
    pub(super) fn json(&self, channel: &str) -> Value {
        let problems = self.items.iter().map(|item| {
            json!({ "key": item.key, "type": item.kind, "title": item.title, "reason": item.reason,
                "since": item.since })
        });
        json!({
            "id": self.id.as_str(),
            "project": self.project,
            "channel": channel,
            "title": self.title(),
            "problems": problems.collect::<Vec<_>>(),
            "truncated": self.omitted > 0,
            "omitted": self.omitted,
        })
    }

    /// Returns the message as the JSON body for Slack and compatible services.
    pub(super) fn slack(&self) -> Value {
        let blocks = self.text().split("\n\n").map(|part| {
            let text: String = escaped(part).chars().take(SLACK_BLOCK_MAX).collect();
            json!({ "type": "section", "text": { "type": "plain_text", "text": text, "emoji": false } })
        }).collect::<Vec<_>>();
        json!({
            "text": escaped(&self.title()),
            "blocks": blocks,
            "mrkdwn": false,
            "unfurl_links": false,
            "unfurl_media": false,
        })
    }
}

/// Longest text of one Slack block, in characters.
const SLACK_BLOCK_MAX: usize = 3_000;

/// Escapes text so that it contains no mention, link or image.
///
/// This holds for services that interpret `<…>` and for services that interpret Markdown.
fn escaped(text: &str) -> String {
    const NOTHING: char = '\u{200b}';
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' | ']' => out.extend([c, NOTHING]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str, reason: &str, count: usize) -> NotificationMessage {
        let item = MessageItem {
            key: "task:a@1".into(),
            kind: "task_blocked",
            title: title.into(),
            reason: reason.into(),
            since: "now".into(),
        };
        let items = vec![item; count];
        NotificationMessage { id: NoticeId::of(&["x"]), project: "p".into(), items, omitted: 0 }
            .cleaned()
    }

    #[test]
    fn notification_messages_cannot_inject_headers_mentions_or_links() {
        let hostile =
            "a\r\nBcc: x@y.z\n<!channel> <script> @here ![](http://e) [x](http://e) \u{1b}[2J";
        let message = message(hostile, hostile, 1);
        assert!(!message.title().contains(['\r', '\n', '\u{1b}']), "{}", message.title());
        assert_eq!(message.text().lines().count(), 6, "{}", message.text());
        let slack = message.slack().to_string();
        for part in ["<!channel>", "<script>", "@here", "](", "\\r", "\\u001b"] {
            assert!(!slack.contains(part), "{part}: {slack}");
        }
        assert!(slack.contains("&lt;!channel&gt;"), "{slack}");
    }

    #[test]
    fn notification_messages_are_limited_in_items_and_size() {
        let many = message(&"x".repeat(100_000), &"y".repeat(100_000), 500);
        assert_eq!((many.items.len(), many.omitted), (ITEMS_MAX, 480));
        assert!(many.title().contains("500 problems"), "{}", many.title());
        assert!(many.text().len() < 64 * 1024, "{}", many.text().len());
        let blocks = many.slack()["blocks"].as_array().map(Vec::len);
        assert!(blocks.is_some_and(|blocks| blocks <= 50), "{blocks:?}");
    }
}
