//! Messages that look like verdicts and are not.

use crate::{ID, approval, decision, fenced, rejection};

/// Messages of agents that do not follow the requested format.
const PROSE: [&str; 22] = [
    "",
    " \n\t",
    "approve",
    "APPROVE",
    "Approved.",
    "LGTM",
    "not approved",
    "I approve of the idea but not of the code.",
    "I can't approve this.",
    "There is no reason to reject this.",
    "**DECISION: APPROVED**",
    "verdict: approve",
    "\"approve\"",
    "true",
    "null",
    "1",
    "NaN",
    "[]",
    "{}",
    "{\"approve\": true}",
    "<verdict>approve</verdict>",
    "```json\n```",
];

/// Replacements in an approval: the old and the new text.
const CHANGES: [(&str, &str); 34] = [
    // The verdict.
    ("\"approve\"", "\"Approve\""),
    ("\"approve\"", "\"APPROVE\""),
    ("\"approve\"", "\"approved\""),
    ("\"approve\"", "\" approve\""),
    ("\"approve\"", "\"approve \""),
    ("\"approve\"", "\"approve\\n\""),
    ("\"approve\"", "\"аpprove\""),
    ("\"approve\"", "\"not approve\""),
    ("\"approve\"", "true"),
    ("\"approve\"", "null"),
    ("\"approve\"", "[\"approve\"]"),
    ("\"approve\"", "{\"approve\": true}"),
    ("\"approve\"", "approve"),
    ("\"approve\"", "NaN"),
    ("\"approve\"", "1"),
    ("\"verdict\"", "\"Verdict\""),
    ("\"verdict\"", "\"decision\""),
    // Duplicate keys, including escaped ones.
    ("\"verdict\":", "\"verdict\":\"reject\",\"verdict\":"),
    ("\"verdict\":", "\"\\u0076erdict\":\"reject\",\"verdict\":"),
    ("\"review\":", "\"review\":\"x\",\"review\":"),
    // The id.
    (ID, "rv-000000"),
    (ID, "RV-5F1C9A"),
    (ID, " rv-5f1c9a"),
    (ID, "rv-5f1c9a\\u0000"),
    (ID, ""),
    ("\"rv-5f1c9a\"", "null"),
    ("\"review\"", "\"id\""),
    // Other fields.
    ("\"Fine.\"", "1"),
    ("\"Fine.\"", "\"Fine."),
    ("[]", "{}"),
    ("[]", "null"),
    ("[]", "[[]]"),
    ("[]", "[1]"),
    ("{", "{\"confidence\":1,"),
];

/// Findings that are invalid as the only ones of a rejection.
const FINDINGS: [&str; 34] = [
    "[]",
    r#"[{"message":"m","severity":"blocker"}]"#,
    r#"[{"file":null,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"","message":"m","severity":"blocker"}]"#,
    r#"[{"file":".","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"..","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"../x","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a/../../x","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a/..","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"/etc/passwd","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a//b","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"./a","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a/","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"C:/x","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"..\\x","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a\u0000b","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a\nb","message":"m","severity":"blocker"}]"#,
    r#"[{"file":["a"],"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":0,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":-1,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":1.5,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":1e3,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":"1","message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","line":99999999999,"message":"m","severity":"blocker"}]"#,
    r#"[{"file":"a","message":"","severity":"blocker"}]"#,
    r#"[{"file":"a","message":" ","severity":"blocker"}]"#,
    r#"[{"file":"a","severity":"blocker"}]"#,
    r#"[{"file":"a","message":"m"}]"#,
    r#"[{"file":"a","message":"m","severity":"Blocker"}]"#,
    r#"[{"file":"a","message":"m","severity":"critical"}]"#,
    r#"[{"file":"a","message":"m","severity":"blocker","fix":"x"}]"#,
    r#"[{"file":"a","message":"m","severity":"blocker","file":"b"}]"#,
    r#"[{"file":"a","message":"m","severity":"blocker","more":[]}]"#,
    r#"[{"file":"a","message":"m","severity":"blocker"},]"#,
];

/// Texts around a verdict, which replaces `%`.
const AROUND: [&str; 26] = [
    "%%",
    "%\n%",
    "%,%",
    "[%]",
    "{\"answer\": %}",
    "Here is my verdict:\n%",
    "%\nI hope that helps.",
    "% approve",
    "%;",
    "%}",
    "{%",
    "\u{feff}%",
    "\u{a0}%",
    "%\u{200b}",
    "%\0",
    "// a comment\n%",
    "<json>%</json>",
    "> %",
    "- %",
    "`%`",
    "```\n%\n```",
    "```JSON\n%\n```",
    "~~~json\n%\n~~~",
    "```json\n%\n```\n```json\n%\n```",
    "Text\n```json\n%\n```",
    "````json\n%\n````",
];

#[test]
fn prose_is_no_verdict() {
    for message in PROSE {
        assert_eq!(decision(message), None, "{message}");
    }
}

#[test]
fn objects_that_differ_from_the_schema_are_no_verdict() {
    let good = approval().to_string();
    for (from, to) in CHANGES {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from} does not occur");
        assert_eq!(decision(&changed), None, "{changed}");
        assert_eq!(decision(&format!("```json\n{changed}\n```")), None, "{changed}");
    }
}

#[test]
fn rejections_with_invalid_findings_are_no_verdict() {
    let object = |findings: &str| {
        let id = format!(r#""review":"{ID}""#);
        format!(r#"{{{id},"verdict":"reject","summary":"s","findings":{findings}}}"#)
    };
    let good = r#"[{"file":"a/.b..c","line":1,"message":"m","severity":"note"}]"#;
    assert!(decision(&object(good)).is_some());
    for findings in FINDINGS {
        let message = object(findings);
        assert_eq!(decision(&message), None, "{message}");
    }
}

#[test]
fn an_approval_with_a_blocker_is_no_verdict() {
    let mut object = rejection();
    object["verdict"] = "approve".into();
    assert_eq!(decision(&object.to_string()), None);
    object["findings"][0]["severity"] = "warning".into();
    assert!(decision(&object.to_string()).is_some());
}

#[test]
fn verdicts_with_surrounding_text_are_no_verdict() {
    for object in [approval(), rejection()] {
        for around in AROUND {
            let message = around.replace('%', &object.to_string());
            assert_eq!(decision(&message), None, "{message}");
        }
        let fenced = fenced(&object);
        for message in
            [format!("{fenced}."), format!("So:\n{fenced}"), format!("{fenced}\n{object}")]
        {
            assert_eq!(decision(&message), None, "{message}");
        }
    }
}
