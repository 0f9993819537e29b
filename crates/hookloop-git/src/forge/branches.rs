//! No forge: only pushed branches, which people or the delivery itself merge.

use super::{Checks, Forge, ForgeError, MergeWish, Merged, Request, RequestState, Wish};

/// Branches without requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branches;

impl Branches {
    fn pushed(wish: &Wish) -> Request {
        Request {
            number: None,
            url: None,
            head: wish.head.clone(),
            base: wish.base.clone(),
            state: RequestState::Open,
            is_draft: wish.is_draft,
        }
    }
}

impl Forge for Branches {
    fn name(&self) -> &'static str {
        "none"
    }

    fn find(&self, _branch: &str, _base: &str) -> Result<Option<Request>, ForgeError> {
        Ok(None)
    }

    fn get(&self, number: u64) -> Result<Request, ForgeError> {
        Err(no_request(number))
    }

    fn open(&self, wish: &Wish) -> Result<Request, ForgeError> {
        Ok(Branches::pushed(wish))
    }

    fn update(&self, _number: u64, wish: &Wish) -> Result<Request, ForgeError> {
        Ok(Branches::pushed(wish))
    }

    fn checks(&self, _commit: &str) -> Result<Checks, ForgeError> {
        Ok(Checks::None)
    }

    fn merge(&self, number: u64, _how: &MergeWish) -> Result<Merged, ForgeError> {
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
    fn a_branch_is_open_and_has_no_request() {
        let wish = Wish {
            branch: "b".into(),
            base: "main".into(),
            head: "a1".into(),
            title: "t".into(),
            body: String::new(),
            is_draft: true,
            labels: Vec::new(),
            reviewers: Vec::new(),
        };
        let request = Branches.open(&wish).unwrap();
        assert_eq!((request.number, &request.url), (None, &None));
        assert_eq!((request.head.as_str(), request.state.clone()), ("a1", RequestState::Open));
        assert_eq!(Branches.update(1, &wish), Ok(request));
        assert_eq!(Branches.find("b", "main"), Ok(None));
        assert_eq!(Branches.checks("a1"), Ok(Checks::None));
        assert!(matches!(Branches.get(1), Err(ForgeError::Permanent { .. })));
    }
}
