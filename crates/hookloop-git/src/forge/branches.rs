//! No forge: only pushed branches, which people or the delivery itself merge.

use super::{
    CommitChecks, Forge, ForgeError, ForgeMerge, MergeOptions, MergeRequest, MergeRequestDraft,
    RequestState,
};

/// Branches without requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct BranchesOnly;

impl BranchesOnly {
    fn pushed(draft: &MergeRequestDraft) -> MergeRequest {
        MergeRequest {
            number: None,
            url: None,
            head: draft.head.clone(),
            base: draft.base.clone(),
            state: RequestState::Open,
            is_draft: draft.is_draft,
        }
    }
}

impl Forge for BranchesOnly {
    fn name(&self) -> &'static str {
        "none"
    }

    fn find(&self, _branch: &str, _base: &str) -> Result<Option<MergeRequest>, ForgeError> {
        Ok(None)
    }

    fn get(&self, number: u64) -> Result<MergeRequest, ForgeError> {
        Err(no_request(number))
    }

    fn open(&self, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError> {
        Ok(BranchesOnly::pushed(draft))
    }

    fn update(&self, _number: u64, draft: &MergeRequestDraft) -> Result<MergeRequest, ForgeError> {
        Ok(BranchesOnly::pushed(draft))
    }

    fn checks(&self, _commit: &str) -> Result<CommitChecks, ForgeError> {
        Ok(CommitChecks::None)
    }

    fn merge(&self, number: u64, _how: &MergeOptions) -> Result<ForgeMerge, ForgeError> {
        Err(no_request(number))
    }

    fn comment(&self, number: u64, _text: &str) -> Result<(), ForgeError> {
        Err(no_request(number))
    }

    fn close(&self, number: u64) -> Result<(), ForgeError> {
        Err(no_request(number))
    }
}

fn no_request(number: u64) -> ForgeError {
    let why = format!("there is no request {number}: this project's forge is `none`");
    ForgeError::Permanent { why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_an_open_request_without_number_and_url() {
        let draft = MergeRequestDraft {
            branch: "b".into(),
            base: "main".into(),
            head: "a1".into(),
            title: "t".into(),
            body: String::new(),
            is_draft: true,
            labels: Vec::new(),
            reviewers: Vec::new(),
        };
        let request = BranchesOnly.open(&draft).unwrap();
        assert_eq!((request.number, &request.url), (None, &None));
        assert_eq!((request.head.as_str(), request.state.clone()), ("a1", RequestState::Open));
        assert_eq!(BranchesOnly.update(1, &draft), Ok(request));
        assert_eq!(BranchesOnly.find("b", "main"), Ok(None));
        assert_eq!(BranchesOnly.checks("a1"), Ok(CommitChecks::None));
        assert!(matches!(BranchesOnly.get(1), Err(ForgeError::Permanent { .. })));
    }
}
