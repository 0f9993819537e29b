use hookloop_config::channels::NotificationChannel;
use hookloop_fleet::notify;
use hookloop_fleet::notify::{RoundReport, RoundTime};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::sanitize::plain;

/// The exit code if a message could not be sent.
const FAILED: u8 = 1;

/// Send pending notifications once, for example from cron
///
/// Channels are in your own file, ~/.config/hookloop/config.yaml, under `notify`. Each item is sent once to each
/// channel, also if several machines run this command. `hookloop dispatch --daemon` does the same every few seconds.
/// Exit code: 0, or 1 if a notification could not be sent; the next run tries it again.
#[derive(clap::Args)]
pub(crate) struct InboxNotifyArgs {}

/// Send a test message to one of your channels
#[derive(clap::Args)]
pub(crate) struct NotifyTest {
    /// Name of the channel
    channel: String,
}

impl InboxNotifyArgs {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let channels = context.user()?.channels;
        let project = context.project_to_read()?;
        let report = notify::round(&project, &channels, RoundTime::now())?;
        tell(context, &report)?;
        if !report.failed.is_empty() {
            context.exit = FAILED;
        }
        let is_quiet = report.sent.is_empty() && report.failed.is_empty();
        if is_quiet && !context.out.json && context.out.terminal {
            let text = if channels.is_empty() {
                "You have no channels. Add one under `notify`: docs/inbox.md"
            } else {
                "No pending notifications."
            };
            context.out.line(text)?;
        }
        Ok(())
    }
}

/// Prints the result of a round: a line for each message.
pub(in crate::cli) fn tell(context: &mut CommandContext, report: &RoundReport) -> CliResult {
    let out = &mut context.out;
    for sent in &report.sent {
        let keys: Vec<String> = sent.problems.iter().map(ToString::to_string).collect();
        if out.json {
            out.json(&json!({ "channel": sent.channel, "notification": sent.id.as_str(),
                "sent": true, "problems": keys, "reason": null }))?
        } else {
            out.line(format_args!("Notified {} of {}", sent.channel, keys.join(", ")))?
        }
    }
    for failed in &report.failed {
        let channel = &failed.channel;
        let reason = &failed.reason;
        if out.json {
            out.json(&json!({ "channel": channel, "notification": null, "sent": false,
                "problems": [], "reason": reason }))?
        } else {
            out.line(format_args!("Could not notify {channel}: {}", plain(reason)))?
        }
    }
    Ok(())
}

impl NotifyTest {
    pub(super) fn run(self, context: &mut CommandContext) -> CliResult {
        let user = context.user()?;
        let channel = user.channels.iter().find(|channel| channel.name == self.channel);
        let channel = channel.ok_or_else(|| none(&self.channel, &user.channels, &user.path))?;
        let project = context.project_to_read()?;
        notify::test(&project, channel).map_err(|why| {
            CliError::refused(format!("channel `{}`: {why}", channel.name))
                .advice(format!("edit {}", user.path.display()))
        })?;
        let out = &mut context.out;
        if out.json {
            out.json(&json!({ "channel": channel.name, "sent": true }))
        } else {
            out.line(format_args!("Sent a test message to {}", channel.name))
        }
    }
}

fn none(name: &str, channels: &[NotificationChannel], path: &std::path::Path) -> CliError {
    let known: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).collect();
    let known = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    };
    let message = format!("you have no channel `{name}` under `notify`: {known}");
    CliError::usage(message).advice(format!("edit {}", path.display()))
}
