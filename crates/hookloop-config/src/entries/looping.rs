//! The settings of sessions: stop conditions, agents, conversations.

use hookloop_core::session::{AtRetryLimit, StopWhen};
use schemars::JsonSchema;
use serde::Deserialize;

use super::agents::{ConversationEntry, agent, fallback};
use super::values::{Located, OneOrMany, inside};
use crate::effective::SessionRules;
use crate::yaml::ConfigComplaint;

/// How sessions go in this project.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoopEntry {
    /// What decides that an iteration is the last one: `default`, `validation`, `promise`, `turn`, `tasks`,
    /// names of hooks at `stop_when`, or a list of them.
    stop_when: Option<Located<OneOrMany>>,
    /// When gates have said no too often: `needs_human`. `accept` belongs in your own configuration.
    at_retry_limit: Option<Located<AtLimitEntry>>,
    /// A file with the template for prompts.
    prompt: Option<Located<String>>,
    /// Who does the work where nobody is named: an agent that hookloop knows, or one of `agents`.
    agent: Option<Located<String>>,
    /// Who does it when that agent only fails: a name, or a list of them.
    fallback: Option<Located<OneOrMany>>,
    /// Failed turns in a row until the next agent is asked; 3 if it is not given.
    fallback_after: Option<u32>,
    /// Which turns go on in the agent's last conversation: none (`fresh`), those that answer a gate's feedback
    /// (`feedback`, the default), or all (`continue`).
    conversation: Option<ConversationEntry>,
}

/// How your sessions go, in every project.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnLoopEntry")]
pub(crate) struct OwnLoop {
    /// When gates have said no too often: `needs_human` (if it is not given) or `accept`.
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
                value.into_list().into_iter().map(read).collect::<Result<_, _>>()?
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
        let prompt = self.prompt.map(inside).transpose()?;
        Ok(SessionRules {
            stop_when,
            at_retry_limit,
            prompt,
            agent,
            fallback,
            conversation: self.conversation.map(Into::into).unwrap_or_default(),
        })
    }
}
