//! The part after the `?` of an address: read once, and written into links to other pages.

use hookloop_core::id::Subject;

/// Names and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageQuery(Vec<(String, String)>);

impl PageQuery {
    pub(super) fn parse(text: &str) -> PageQuery {
        PageQuery(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The value of a name, unless it is empty: a form sends those too.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// The parts of a page that are wanted.
    pub(super) fn parts(&self) -> Vec<String> {
        self.get(PARTS).map_or(Vec::new(), |names| names.split(',').map(str::to_owned).collect())
    }

    pub(super) fn subject(&self) -> Option<Subject> {
        self.get("about")?.parse().ok()
    }

    /// The same with another value for a name, to be put behind an address.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let is_kept = |(known, value): &&(String, String)| {
            known != name && known != PARTS && !value.trim().is_empty()
        };
        let kept =
            self.0.iter().filter(is_kept).map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = kept.chain([(name, value)].into_iter().filter(|(_, value)| !value.is_empty()));
        let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("?{text}")
    }
}

const PARTS: &str = "parts";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_parameter_is_replaced_and_encoded() {
        let query = PageQuery::parse("state=ready&q=a%26b+c&label=&parts=x&page=2");
        assert_eq!((query.get("q"), query.get("label")), (Some("a&b c"), None));
        assert_eq!(query.with("page", "3"), "?state=ready&q=a%26b+c&page=3");
        assert_eq!(query.with("page", ""), "?state=ready&q=a%26b+c");
        assert_eq!(query.with("q", "\"><x>"), "?state=ready&page=2&q=%22%3E%3Cx%3E");
    }
}
