//! The used routes of the API: all that the fake supports, and all that are checked against
//! GitHub's own description.

/// A route of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Repository,
    List,
    Open,
    Get,
    Change,
    Merge,
    AskForReview,
    AddLabels,
    Events,
    Comment,
    CheckRuns,
    Status,
    GraphQl,
}

impl Route {
    pub const ALL: [Route; 13] = [
        Route::Repository,
        Route::List,
        Route::Open,
        Route::Get,
        Route::Change,
        Route::Merge,
        Route::AskForReview,
        Route::AddLabels,
        Route::Events,
        Route::Comment,
        Route::CheckRuns,
        Route::Status,
        Route::GraphQl,
    ];

    /// Returns the method, and the path template of GitHub's description.
    pub fn template(self) -> (&'static str, &'static str) {
        match self {
            Route::Repository => ("GET", "/repos/{owner}/{repo}"),
            Route::List => ("GET", "/repos/{owner}/{repo}/pulls"),
            Route::Open => ("POST", "/repos/{owner}/{repo}/pulls"),
            Route::Get => ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}"),
            Route::Change => ("PATCH", "/repos/{owner}/{repo}/pulls/{pull_number}"),
            Route::Merge => ("PUT", "/repos/{owner}/{repo}/pulls/{pull_number}/merge"),
            Route::AskForReview => {
                ("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers")
            }
            Route::AddLabels => ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/labels"),
            Route::Events => ("GET", "/repos/{owner}/{repo}/issues/{issue_number}/events"),
            Route::Comment => ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
            Route::CheckRuns => ("GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs"),
            Route::Status => ("GET", "/repos/{owner}/{repo}/commits/{ref}/status"),
            Route::GraphQl => ("POST", "/graphql"),
        }
    }

    /// Returns the route of a request, and the values in its path.
    pub fn of(method: &str, path: &str) -> Option<(Route, Vec<String>)> {
        let path = path.split('?').next().unwrap_or_default();
        Route::ALL.into_iter().find_map(|route| {
            let (of_route, template) = route.template();
            let values = values(template, path).filter(|_| method == of_route)?;
            Some((route, values))
        })
    }
}

fn values(template: &str, path: &str) -> Option<Vec<String>> {
    let (parts, asked): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    let mut values = Vec::new();
    for (part, asked) in parts.iter().zip(&asked) {
        match part.starts_with('{') {
            true => values.push(decode(asked)),
            false if part == asked => {}
            false => return None,
        }
    }
    (parts.len() == asked.len()).then_some(values)
}

/// Returns the query parameters of a path.
pub(super) fn query(path: &str) -> Vec<(String, String)> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (byte, _) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
