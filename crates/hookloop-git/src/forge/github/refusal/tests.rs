use super::*;

const LIMITS_PAGE: &str = r#"{"documentation_url": "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"}"#;

type Headers<'a> = &'a [(&'static str, &'a str)];

fn told(status: u16, headers: Headers<'_>, body: &str) -> ForgeError {
    let headers =
        headers.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
    let headers: HeaderMap = headers.collect();
    GithubRefusal::of_answer(status, &headers, body.as_bytes(), str::to_owned).error
}

#[test]
fn status_and_headers_determine_the_error_class() {
    let retry = |error: &ForgeError| matches!(error, ForgeError::Retry { .. });
    let human = |error: &ForgeError| matches!(error, ForgeError::NeedsHuman { .. });
    let stale = |error: &ForgeError| matches!(error, ForgeError::Stale { .. });
    let permanent = |error: &ForgeError| matches!(error, ForgeError::Permanent { .. });
    type Is = fn(&ForgeError) -> bool;
    let rows: [(u16, Headers<'_>, &str, Is); 17] = [
        (500, &[], "", retry),
        (502, &[], "<html>", retry),
        (503, &[], "{}", retry),
        (408, &[], "", retry),
        (429, &[], "", retry),
        (403, &[("retry-after", "60")], "{}", retry),
        (403, &[("x-ratelimit-remaining", "0")], "{}", retry),
        (403, &[], LIMITS_PAGE, retry),
        (403, &[("x-ratelimit-remaining", "4999")], "{}", human),
        // Words decide nothing.
        (403, &[], r#"{"message": "rate limit, retry, 500"}"#, human),
        (401, &[], "{}", human),
        (409, &[], "{}", stale),
        (404, &[], "{}", permanent),
        (422, &[], r#"{"message": "Validation Failed", "errors": ["x"]}"#, permanent),
        (400, &[], "null", permanent),
        (301, &[("location", "https://evil.example/")], "", permanent),
        (451, &[], "[]", permanent),
    ];
    for (status, headers, body, is) in rows {
        let error = told(status, headers, body);
        assert!(is(&error), "{status} {headers:?} {body}: {error:?}");
    }
}

#[test]
fn error_details_of_any_shape_are_in_the_message() {
    for (errors, expected) in [
        (r#"[{"field": "head", "code": "invalid"}]"#, "GitHub answered 422: no: head is invalid"),
        (r#"[{"code": "custom", "message": "x"}, "y"]"#, "GitHub answered 422: no: x: y"),
        (r#""x""#, "GitHub answered 422: no: x"),
        (r#"{"a": 1}"#, "GitHub answered 422: no"),
    ] {
        let body = format!(r#"{{"message": "no", "errors": {errors}}}"#);
        assert_eq!(told(422, &[], &body).to_string(), expected);
    }
}

#[test]
fn retry_delay_follows_the_headers_up_to_a_maximum() {
    let after = |headers: Headers<'_>| match told(429, headers, "") {
        ForgeError::Retry { after, .. } => after,
        error => panic!("{error:?}"),
    };
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 100;
    let soon = soon.to_string();
    let spent = ("x-ratelimit-remaining", "0");
    assert_eq!(after(&[]), None);
    assert_eq!(after(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
    assert_eq!(after(&[("retry-after", "soon")]), None);
    assert_eq!(after(&[("retry-after", "99999999999")]), Some(WAIT_MAX));
    assert_eq!(after(&[spent, ("x-ratelimit-reset", "18446744073709551615")]), Some(WAIT_MAX));
    assert_eq!(after(&[spent, ("x-ratelimit-reset", "1")]), Some(Duration::ZERO));
    let within = after(&[spent, ("x-ratelimit-reset", &soon)]).unwrap();
    assert!((90..=100).contains(&within.as_secs()), "{within:?}");
    // There is a reset in every answer.
    assert_eq!(after(&[("x-ratelimit-reset", &soon)]), None);
}

#[test]
fn graphql_error_types_determine_the_error_class() {
    let of = |kind: &str| {
        let error = serde_json::json!({ "type": kind, "message": "m" });
        GithubRefusal::of_graphql(&error, str::to_owned).error
    };
    assert!(matches!(of("RATE_LIMITED"), ForgeError::Retry { .. }));
    assert!(matches!(of("FORBIDDEN"), ForgeError::NeedsHuman { .. }));
    assert!(matches!(of("NOT_FOUND"), ForgeError::Permanent { .. }));
}
