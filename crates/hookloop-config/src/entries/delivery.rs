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

/// How the work of tasks is delivered.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryEntry {
    /// The branch that work is for; the remote's default branch if it is not given.
    base: Option<Located<String>>,
    /// Where branches are pushed to; `origin` if there is one and it is not given.
    remote: Option<Located<String>>,
    /// How the names of branches begin; `hookloop/` if it is not given.
    branch_prefix: Option<Located<String>>,
    /// Files that git ignores and a worktree needs, such as `.env`: copied from your checkout.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    copy: Vec<Spanned<String>>,
    /// `github` or `none`; by the remote if it is not given.
    forge: Option<ForgeEntry>,
    /// `squash` (if it is not given), `rebase` or `merge`.
    #[schemars(with = "Option<String>")]
    merge: Option<Spanned<String>>,
    /// Requests are opened as drafts.
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    labels: Vec<String>,
    /// Names of users, or `team:NAME`.
    #[serde(default)]
    reviewers: Vec<String>,
    /// Whether a merge waits until the forge's checks have passed; true if it is not given.
    wait_for_checks: Option<bool>,
    /// Whether GitHub is asked to merge a request by itself once required checks and reviews are there [default: false].
    auto_merge: Option<bool>,
    /// Whether a branch is deleted when it is merged; true if it is not given.
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

/// An agent that reviews.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GatekeeperEntry {
    /// Which agent it is; if it is not given, the first that reviews tasks of the type, else the one of this name.
    agent: Option<Located<String>>,
    /// What it looks for.
    #[serde(default)]
    prompt: String,
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
            let message = format!("a gatekeeper is told at most {PROMPT_MAX} bytes");
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
