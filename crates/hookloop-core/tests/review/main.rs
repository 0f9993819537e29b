//! Messages of gatekeepers: tests that verdicts, and only verdicts, are recognized.

mod hostile;

use hookloop_core::review::{
    FINDINGS_MAX, MESSAGE_MAX, Quorum, ReviewDecision, Severity, quorum, schema, verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const ID: &str = "rv-5f1c9a";

fn approval() -> Value {
    json!({ "review": ID, "verdict": "approve", "summary": "Fine.", "findings": [] })
}

fn rejection() -> Value {
    let finding =
        json!({ "file": "src/x.rs", "line": 12, "message": "No.", "severity": "blocker" });
    json!({ "review": ID, "verdict": "reject", "summary": "No.", "findings": [finding] })
}

fn fenced(object: &Value) -> String {
    format!("```json\n{object:#}\n```")
}

fn decision(message: &str) -> Option<ReviewDecision> {
    verdict(message, ID).ok().map(|verdict| verdict.decision)
}

#[test]
fn a_verdict_is_the_whole_message() {
    for (object, expected) in
        [(approval(), ReviewDecision::Approve), (rejection(), ReviewDecision::Reject)]
    {
        for message in [
            object.to_string(),
            format!("{object:#}"),
            format!("\r\n \t{object}\n\n"),
            fenced(&object),
            format!("\n\n{}  \n", fenced(&object)),
            format!("```json \r\n{object}\r\n ```"),
        ] {
            assert_eq!(decision(&message), Some(expected), "{message}");
        }
    }
    let read = verdict(&rejection().to_string(), ID).unwrap();
    assert_eq!((read.summary.as_str(), read.findings.len()), ("No.", 1));
    let finding = &read.findings[0];
    assert_eq!((finding.file.as_deref(), finding.line), (Some("src/x.rs"), Some(12)));
    assert_eq!((finding.message.as_str(), finding.severity), ("No.", Severity::Blocker));
}

#[test]
fn an_approval_may_have_a_limited_number_of_nonblocking_findings() {
    let mut object = approval();
    object["findings"] = json!([
        { "file": "a/b.rs", "message": "m", "severity": "warning" },
        { "message": "no place", "severity": "note", "file": null, "line": null },
    ]);
    assert_eq!(decision(&object.to_string()), Some(ReviewDecision::Approve));
    let one = json!({ "message": "m", "severity": "note" });
    object["findings"] = vec![one.clone(); FINDINGS_MAX].into();
    assert_eq!(decision(&object.to_string()), Some(ReviewDecision::Approve));
    object["findings"] = vec![one; FINDINGS_MAX + 1].into();
    assert_eq!(decision(&object.to_string()), None);
}

#[test]
fn verdict_messages_have_a_maximum_length() {
    let of_length = |length: usize| {
        let mut object = approval();
        object["summary"] = "".into();
        object["summary"] = "x".repeat(length - object.to_string().len()).into();
        object.to_string()
    };
    assert_eq!(decision(&of_length(MESSAGE_MAX)), Some(ReviewDecision::Approve));
    assert_eq!(decision(&of_length(MESSAGE_MAX + 1)), None);
    assert_eq!(decision(&"[".repeat(MESSAGE_MAX)), None);
    assert_eq!(decision(&r#"{"a":"#.repeat(MESSAGE_MAX / 5)), None);
}

#[test]
fn a_verdict_needs_the_id_of_its_review() {
    let message = approval().to_string();
    assert!(verdict(&message, "rv-5f1c9b").is_err());
    assert!(verdict(&message.replace(ID, ""), "").is_err());
    assert!(verdict(&message, &ID.to_uppercase()).is_err());
}

#[test]
fn the_schema_has_exactly_the_fields_that_are_read() {
    let schema = schema(ID);
    assert_eq!(schema["properties"]["review"]["const"], ID);
    assert_eq!(schema["properties"]["findings"]["maxItems"], FINDINGS_MAX);
    let fields = |of: &Value| {
        let mut names: Vec<String> =
            of["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    // All fields of the schema are accepted, and all required ones are necessary.
    let names = |of: &Value| {
        let mut names: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(fields(&schema), names(&rejection()));
    assert_eq!(
        fields(&schema["properties"]["findings"]["items"]),
        names(&rejection()["findings"][0])
    );
    for required in schema["required"].as_array().unwrap() {
        let mut object = approval();
        object.as_object_mut().unwrap().remove(required.as_str().unwrap());
        assert_eq!(decision(&object.to_string()), None, "{required}");
    }
}

#[test]
fn the_quorum_combines_several_verdicts() {
    let (yes, no, missing) = (Some(true), Some(false), None);
    type Said = Option<bool>;
    let rows: &[(&[Said], Said, Said)] = &[
        (&[], None, None),
        (&[yes], yes, yes),
        (&[no], no, no),
        (&[missing], None, None),
        (&[missing, missing], None, None),
        (&[yes, yes], yes, yes),
        (&[yes, no], no, yes),
        (&[no, no], no, no),
        (&[yes, missing], None, yes),
        (&[no, missing], no, None),
        (&[yes, no, missing], no, yes),
    ];
    for (verdicts, all, any) in rows {
        let mut verdicts = verdicts.to_vec();
        // The order has no effect.
        for _ in 0..verdicts.len().max(1) {
            assert_eq!(quorum(Quorum::All, &verdicts), *all, "{verdicts:?}");
            assert_eq!(quorum(Quorum::Any, &verdicts), *any, "{verdicts:?}");
            if !verdicts.is_empty() {
                verdicts.rotate_left(1);
            }
        }
    }
}

fn message() -> impl Strategy<Value = (String, ReviewDecision)> {
    let object = prop_oneof![
        Just((approval(), ReviewDecision::Approve)),
        Just((rejection(), ReviewDecision::Reject))
    ];
    (object, 0..3).prop_map(|((object, decision), form)| match form {
        0 => (object.to_string(), decision),
        1 => (format!("{object:#}"), decision),
        _ => (fenced(&object), decision),
    })
}

/// Returns pieces of reviewers' texts in any order.
fn prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("approve"),
        Just("I approve"),
        Just("not approved"),
        Just("reject"),
        Just("verdict"),
        Just("\"verdict\": \"approve\""),
        Just("{"),
        Just("}"),
        Just("{\"verdict\":\"approve\"}"),
        Just("```json\n"),
        Just("\n```"),
        Just(","),
        Just("\""),
        Just(ID),
        Just("\"review\": \"rv-5f1c9a\""),
        Just("\"findings\": []"),
        Just("LGTM"),
        Just("\n"),
        Just(" "),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn prose_is_never_a_verdict(text in prose(), more in ".{0,80}") {
        // No piece contains a summary, so no order of them is a verdict.
        prop_assert_eq!(decision(&text), None);
        prop_assert_eq!(decision(&more), None);
    }

    #[test]
    fn a_verdict_within_prose_is_no_verdict((message, _) in message(), text in "[^ \t\r\n].{0,40}", before: bool) {
        let said = if before { format!("{text}\n{message}") } else { format!("{message}\n{text}") };
        prop_assert_eq!(decision(&said), None, "{}", said);
    }

    #[test]
    fn a_part_of_a_verdict_is_no_verdict((message, _) in message(), at: prop::sample::Index) {
        let at = 1 + at.index(message.len() - 1);
        prop_assert_eq!(decision(&message[..at]), None);
        prop_assert_eq!(decision(&message[at..]), None);
    }

    #[test]
    fn two_verdicts_in_a_message_are_no_verdict((one, _) in message(), (other, _) in message(), between in "[ \n,]{0,3}") {
        prop_assert_eq!(decision(&format!("{one}{between}{other}")), None);
        prop_assert_eq!(decision(&format!("[{one},{other}]")), None);
    }

    #[test]
    fn no_edit_reverses_a_verdict(
        (message, expected) in message(),
        at: prop::sample::Index,
        text in prose(),
        taken in 0_usize..3,
    ) {
        let at = at.index(message.len());
        let end = (at + taken).min(message.len());
        let changed = format!("{}{text}{}", &message[..at], &message[end..]);
        let said = decision(&changed);
        prop_assert!(said.is_none() || said == Some(expected), "{}", changed);
    }

    #[test]
    fn arbitrary_bytes_are_no_verdict(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(decision(&String::from_utf8_lossy(&bytes)), None);
    }
}
