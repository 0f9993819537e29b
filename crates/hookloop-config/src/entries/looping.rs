//! The settings of sessions: stop conditions, agents, conversations.

use hookloop_core::session::{AtRetryLimit, StopWhen};
use schemars::JsonSchema;
use serde::Deserialize;

use super::agents::{ConversationEntry, agent, fallback};
use super::values::{Located, OneOrMany, inside};
use crate::effective::SessionRules;
use crate::yaml::ConfigComplaint;

/// Settings of the project's sessions
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoopEntry {
    /// Stop conditions, one or a list: `default`, `validation`, `promise`, `turn`, `tasks`, or names of hooks at
    /// `stop_when` [default: the hooks at `stop_when`, else `default`]
    stop_when: Option<Located<OneOrMany>>,
    /// Action when the gate retries are used up: `needs_human` [default: that of your own configuration]. Only your
    /// own configuration can have `accept`.
    at_retry_limit: Option<Located<AtLimitEntry>>,
    /// Path of the template file for prompts, from the project's root [default: the built-in template]
    prompt_template: Option<Located<String>>,
    /// Agent of sessions without `--agent`: a known agent, or a name of `agents` [default: `agent` of your own
    /// configuration]
    agent: Option<Located<String>>,
    /// Agents that replace a failing agent, one or a list [default: none]
    fallback: Option<Located<OneOrMany>>,
    /// Failed turns in a row before the next agent of `fallback` is used [default: 3]
    fallback_after: Option<u32>,
    /// Turns that continue the agent's last conversation: none (`fresh`), turns after failing gates (`feedback`), or
    /// all (`continue`) [default: `feedback`]
    conversation: Option<ConversationEntry>,
}

/// Settings of your sessions in every project
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnLoopEntry")]
pub(crate) struct OwnLoop {
    /// Action when the gate retries are used up: `needs_human` or `accept` [default: `needs_human`]
    at_retry_limit: Option<AtLimitEntry>,
}

impl OwnLoop {
    pub(crate) fn at_retry_limit(&self) -> AtRetryLimit {
        self.at_retry_limit.map_or(AtRetryLimit::default(), Into::into)
    }
}

impl From<AtLimitEntry> for AtRetryLimit {
    fn from(entry: AtLimitEntry) -> AtRetryLimit {
        match entry {
            AtLimitEntry::NeedsHuman => AtRetryLimit::NeedsHuman,
            AtLimitEntry::Accept => AtRetryLimit::Accept,
        }
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AtLimitEntry {
    NeedsHuman,
    Accept,
}

impl LoopEntry {
    /// Reads the entry. `users` is the retry-limit action of the user's own file.
    pub(crate) fn read(
        self,
        hooks_at_stop_when: &[String],
        users: AtRetryLimit,
    ) -> Result<SessionRules, ConfigComplaint> {
        let stop_when = match self.stop_when {
            Some(Located { value, at }) => {
                let read = |name: String| match name.parse() {
                    Ok(way) => Ok(way),
                    Err(_) if hooks_at_stop_when.contains(&name) => Ok(StopWhen::Hook(name)),
                    Err(error) => {
                        let message = format!("{error}, or a hook at `stop_when`");
                        Err(ConfigComplaint::new(at, message))
                    }
                };
                let names = value.into_list();
                if names.is_empty() {
                    let message =
                        "`stop_when` needs a stop condition; leave it out for the default";
                    return Err(ConfigComplaint::new(at, message));
                }
                names.into_iter().map(read).collect::<Result<_, _>>()?
            }
            None if hooks_at_stop_when.is_empty() => vec![StopWhen::Default],
            None => hooks_at_stop_when.iter().cloned().map(StopWhen::Hook).collect(),
        };
        let at_retry_limit = match self.at_retry_limit {
            None => users,
            Some(Located { value: AtLimitEntry::NeedsHuman, .. }) => AtRetryLimit::NeedsHuman,
            Some(Located { value: AtLimitEntry::Accept, at }) => {
                let message = "a repository does not accept work that its gates refuse: write \
                    `loop: {at_retry_limit: accept}` into ~/.config/hookloop/config.yaml, or run with \
                    `--at-retry-limit accept`";
                return Err(ConfigComplaint::new(at, message));
            }
        };
        let agent = self.agent.map(agent).transpose()?;
        let fallback =
            self.fallback.map(|named| fallback(named, self.fallback_after)).transpose()?;
        let prompt_template = self.prompt_template.map(inside).transpose()?;
        Ok(SessionRules {
            stop_when,
            at_retry_limit,
            prompt_template,
            agent,
            fallback,
            conversation: self.conversation.map(Into::into).unwrap_or_default(),
        })
    }
}
