//! Merges a pull request, or finds the reason why GitHub did not.

use hookloop_core::excerpt::clipped_chars;
use serde_json::json;

use super::super::{ForgeError, ForgeMerge, MergeMethod, MergeOptions, RequestState};
use super::answers::{MergeAnswer, PullAnswer, RepoAnswer};
use super::{BODY_MAX, GitHub, TITLE_MAX};

impl GitHub {
    pub(super) fn merged(&self, number: u64, how: &MergeOptions) -> Result<ForgeMerge, ForgeError> {
        let mut body = json!({ "sha": how.head, "merge_method": how.method.name() });
        // A rebase keeps the existing messages.
        if how.method != MergeMethod::Rebase {
            body["commit_title"] = clipped_chars(&how.title, TITLE_MAX).into();
            body["commit_message"] = clipped_chars(&how.message, BODY_MAX).into();
        }
        let route = self.pull_route(number, &["merge"]);
        match self.client.put::<MergeAnswer>(&route, &body) {
            Ok(MergeAnswer { sha, merged: true }) => Ok(ForgeMerge { commit: sha }),
            Ok(MergeAnswer { merged: false, .. }) => {
                Err(ForgeError::Stale { why: format!("#{number} was not merged") })
            }
            Err(refusal) => match refusal.status {
                // The obstacle is looked up, because the same status may mean that the request was merged before.
                Some(405 | 409 | 422) => self.in_the_way(number, how, &refusal.error),
                _ => Err(refusal.error),
            },
        }
    }

    fn in_the_way(
        &self,
        number: u64,
        how: &MergeOptions,
        said: &ForgeError,
    ) -> Result<ForgeMerge, ForgeError> {
        let pull = self.pull(number)?;
        let is_same = pull.head.sha == how.head;
        let stale = |why: &str| ForgeError::Stale { why: format!("#{number} {why}: {said}") };
        let human = |why: &str, hint: &str| ForgeError::NeedsHuman {
            why: format!("#{number} {why}: {said}"),
            hint: format!("{hint}: {}", pull.html_url),
        };
        match pull.state()? {
            // The answer to an earlier merge was lost.
            RequestState::Merged { commit } if is_same => return Ok(ForgeMerge { commit }),
            RequestState::Merged { .. } => return Err(stale("was merged with other commits")),
            RequestState::Closed => {
                return Err(human("was closed", "open it again if it is wanted"));
            }
            RequestState::Open => {}
        }
        if !is_same {
            return Err(stale("has another head by now"));
        }
        if pull.draft {
            return Err(human("is a draft", "mark it as ready for review"));
        }
        match obstacle(&pull) {
            MergeObstacle::Rules => Err(self.unmet(&pull, said)),
            MergeObstacle::Moved(why) => Err(stale(why)),
            MergeObstacle::Behind(why) => {
                Err(ForgeError::Behind { why: format!("#{number} {why}: {said}") })
            }
            MergeObstacle::None if self.forbids(how.method)? => Err(human(
                &format!(
                    "can't be merged by `{}`, which the repository does not allow",
                    how.method
                ),
                "allow it there, or choose another method",
            )),
            // For example, the base moved during the merge.
            MergeObstacle::None => Err(stale("was not merged this time")),
        }
    }

    /// Returns whether the repository's settings forbid a method. GitHub reports them only to accounts that may
    /// merge.
    fn forbids(&self, method: MergeMethod) -> Result<bool, ForgeError> {
        let repo: RepoAnswer = self.client.get(&self.route(&[]))?;
        let allowed = match method {
            MergeMethod::Squash => repo.allow_squash_merge,
            MergeMethod::Rebase => repo.allow_rebase_merge,
            MergeMethod::Merge => repo.allow_merge_commit,
        };
        Ok(allowed == Some(false))
    }
}

enum MergeObstacle {
    /// Head and base do not match, or GitHub does not know yet.
    Moved(&'static str),
    /// The branch has to be changed first.
    Behind(&'static str),
    /// Branch protection.
    Rules,
    None,
}

fn obstacle(pull: &PullAnswer) -> MergeObstacle {
    match (pull.mergeable, pull.mergeable_state.as_deref()) {
        (_, Some("blocked")) => MergeObstacle::Rules,
        (_, Some("behind")) => MergeObstacle::Behind("is behind its base"),
        (Some(false), _) | (_, Some("dirty")) => MergeObstacle::Behind("conflicts with its base"),
        (None, _) | (_, Some("unknown") | None) => {
            MergeObstacle::Moved("is being looked at by GitHub")
        }
        (Some(true), Some(_)) => MergeObstacle::None,
    }
}
