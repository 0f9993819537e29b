//! The parts of the configuration that are about delivery.

use std::collections::BTreeMap;

use hookloop_core::hook::{AGENT_LIST, Hook, HookRegistry, HookSource};
use hookloop_core::point::Point;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::values::{Located, is_inside};
use crate::effective::{DeliveryRules, ForgeName, GatekeeperRules};
use crate::yaml::{ConfigComplaint, check_name, read_word};

/// The most files or patterns that a worktree may be given.
const COPY_MAX: usize = 64;
const LIST_MAX: usize = 64;
/// The longest instructions of a gatekeeper.
const PROMPT_MAX: usize = 16 * 1024;

/// Delivery of the work of tasks
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryEntry {
    /// Base branch of the work [default: the remote's default branch]
    base: Option<Located<String>>,
    /// Remote that branches are pushed to [default: `origin`, if it exists]
    remote: Option<Located<String>>,
    /// Prefix of branch names [default: `hookloop/`]
    branch_prefix: Option<Located<String>>,
    /// Ignored files, such as `.env`, that are copied from your checkout to each worktree [default: none]
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    copy: Vec<Spanned<String>>,
    /// Forge of the repository: `github` or `none` [default: by the remote's URL]
    forge: Option<ForgeEntry>,
    /// Merge method: `squash`, `rebase` or `merge` [default: `squash`]
    #[schemars(with = "Option<String>")]
    merge: Option<Spanned<String>>,
    /// Whether pull requests are opened as drafts [default: false]
    #[serde(default)]
    draft: bool,
    /// Labels of pull requests [default: none]
    #[serde(default)]
    labels: Vec<String>,
    /// Reviewers of pull requests: names of users, or `team:NAME` [default: none]
    #[serde(default)]
    reviewers: Vec<String>,
    /// Whether a merge waits until the forge's checks have passed [default: true]
    wait_for_checks: Option<bool>,
    /// Whether GitHub merges a pull request after its required checks and reviews (auto-merge) [default: false]
    auto_merge: Option<bool>,
    /// Whether a branch is deleted after its merge [default: true]
    delete_branch: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ForgeEntry {
    Github,
    None,
}

impl DeliveryEntry {
    pub(crate) fn read(self) -> Result<DeliveryRules, ConfigComplaint> {
        let usual = DeliveryRules::default();
        let mut copy = Vec::new();
        for path in self.copy {
            if !is_inside(&path.value) {
                let message = format!("`{}` leads out of the project", path.value);
                return Err(ConfigComplaint::new(path.referenced, message));
            }
            copy.push(path.value);
        }
        let too_many = copy.len() > COPY_MAX
            || self.labels.len() > LIST_MAX
            || self.reviewers.len() > LIST_MAX;
        if too_many {
            let message = format!("`delivery` has a list of more than {LIST_MAX} entries");
            return Err(ConfigComplaint { at: None, message });
        }
        Ok(DeliveryRules {
            base: self.base.map(reference).transpose()?,
            remote: self.remote.map(reference).transpose()?,
            branch_prefix: match self.branch_prefix {
                Some(prefix) => reference(prefix)?,
                None => usual.branch_prefix,
            },
            copy,
            forge: match self.forge {
                Some(ForgeEntry::Github) => ForgeName::GitHub,
                Some(ForgeEntry::None) => ForgeName::None,
                None => ForgeName::Auto,
            },
            method: self.merge.map(read_word).transpose()?.unwrap_or_default(),
            draft: self.draft,
            labels: self.labels,
            reviewers: self.reviewers,
            wait_for_checks: self.wait_for_checks.unwrap_or(usual.wait_for_checks),
            auto_merge: self.auto_merge.unwrap_or(usual.auto_merge),
            delete_branch: self.delete_branch.unwrap_or(usual.delete_branch),
        })
    }
}

/// Reads a name for git that is neither an option nor a special reference.
fn reference(Located { value, at }: Located<String>) -> Result<String, ConfigComplaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_plain = !value.is_empty()
        && value.chars().all(fits)
        && !value.starts_with(['-', '.', '/'])
        && !value.contains("..")
        && !value.contains("//");
    match is_plain {
        true => Ok(value),
        false => {
            Err(ConfigComplaint::new(at, format!("`{value}` is no name of a branch or remote")))
        }
    }
}

pub(crate) type GatekeeperEntries = BTreeMap<String, Spanned<GatekeeperEntry>>;

/// Agent that reviews work
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GatekeeperEntry {
    /// Name of the agent [default: the first `gatekeeper` agent of the task's type, else the agent with the
    /// gatekeeper's name]
    agent: Option<Located<String>>,
    /// Instructions for the review [default: none]
    #[serde(default)]
    prompt: String,
    /// Model of the agent [default: that of the agent's settings]
    model: Option<String>,
}

pub(crate) fn gatekeepers(
    entries: GatekeeperEntries,
) -> Result<Vec<GatekeeperRules>, ConfigComplaint> {
    let read = |(name, entry): (String, Spanned<GatekeeperEntry>)| {
        let at = entry.referenced;
        check_name(&name, at)?;
        let GatekeeperEntry { agent, prompt, model } = entry.value;
        if prompt.len() > PROMPT_MAX {
            let message = format!("`prompt` has at most {PROMPT_MAX} bytes");
            return Err(ConfigComplaint::new(at, message));
        }
        let agent = agent.map(super::agents::agent).transpose()?;
        Ok(GatekeeperRules { agent, name, prompt, model })
    };
    entries.into_iter().map(read).collect()
}

/// Checks that the name of a task type is not that of an agent's list of hooks.
pub(crate) fn check_type_name(
    name: &str,
    entry: &Spanned<impl Sized>,
) -> Result<(), ConfigComplaint> {
    match name.starts_with(AGENT_LIST) {
        true => {
            let message = format!("`{name}`: a type's name does not begin with `{AGENT_LIST}`");
            Err(ConfigComplaint::new(entry.referenced, message))
        }
        false => Ok(()),
    }
}

/// Returns whether hooks imply delivery, if no key sets it.
pub(crate) fn has_delivery_hooks(hooks: &HookRegistry) -> bool {
    let is_of_delivery = |point: &Point| {
        matches!(
            point,
            Point::BeforeSubmit | Point::AfterSubmit | Point::BeforeMerge | Point::AfterMerge
        )
    };
    // Gates that a policy requires do not imply delivery.
    let says_so = |hook: &&Hook| hook.source != HookSource::Operator;
    hooks.list().iter().filter(says_so).any(|hook| hook.points.iter().any(is_of_delivery))
}
