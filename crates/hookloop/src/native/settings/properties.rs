//! For any settings file: installing and removing changes nothing.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::agent::NativeAgent;
use super::super::jsonc::JsoncDocument;
use super::*;

/// Builds settings from bytes, so that a failing case can shrink.
struct Maker<'b> {
    bytes: std::slice::Iter<'b, u8>,
    newline: &'static str,
    /// Whether there are comments and trailing commas.
    is_loose: bool,
}

impl Maker<'_> {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let byte = self.bytes.next().copied().unwrap_or_default();
        choices[usize::from(byte) % choices.len()]
    }

    fn blank(&mut self) -> String {
        let newline = self.newline;
        match self.one_of(&[0, 1, 2, 3, 4, 5, 6, 7]) {
            1 => " ".to_owned(),
            2 => format!("{newline}    "),
            3 => format!("{newline}\t"),
            4 => format!("  {newline}{newline}"),
            5 if self.is_loose => " /* }, */".to_owned(),
            6 if self.is_loose => format!(" // it's \"mine\"  {newline}"),
            7 if self.is_loose => format!("/**/{newline} // ü{newline}  "),
            _ => String::new(),
        }
    }

    fn container(&mut self, open: &str, items: &[String], close: &str) -> String {
        let mut text = format!("{open}{}", self.blank());
        for (at, item) in items.iter().enumerate() {
            let is_last = at + 1 == items.len();
            let comma =
                if !is_last || (self.is_loose && self.one_of(&[false, true])) { "," } else { "" };
            text += &format!("{item}{}{comma}{}", self.blank(), self.blank());
        }
        text + close
    }

    fn member(&mut self, name: &str, value: &str) -> String {
        format!("\"{name}\"{}:{}{value}", self.blank(), self.blank())
    }

    fn group(&mut self) -> String {
        let command =
            self.one_of(&["make", "hookloop doctor", "x \\\"q\\\" // no", "hookloop hook Stop"]);
        let command = self.member("command", &format!("\"{command}\""));
        let kind = self.member("type", "\"command\"");
        let entry = self.container("{", &[kind, command], "}");
        let list = match self.one_of(&[0, 1, 2]) {
            0 => self.container("[", &[], "]"),
            1 => self.container("[", &[entry], "]"),
            _ => self.container("[", &[entry.clone(), entry], "]"),
        };
        let list = self.member("hooks", &list);
        if self.one_of(&[false, true]) {
            let matcher = self.member("matcher", "\"a|b\"");
            self.container("{", &[matcher, list], "}")
        } else {
            self.container("{", &[list], "}")
        }
    }

    fn hooks(&mut self) -> String {
        let mut members = Vec::new();
        for event in ["Stop", "SessionStart", "AfterAgent", "PreToolUse", "SessionEnd", "Stop"] {
            if self.one_of(&[false, true]) {
                let groups: Vec<String> =
                    (0..self.one_of(&[0, 1, 2])).map(|_| self.group()).collect();
                let list = self.container("[", &groups, "]");
                members.push(self.member(event, &list));
            }
        }
        self.container("{", &members, "}")
    }

    fn file(&mut self) -> String {
        let mut members = Vec::new();
        for name in ["model", "hooks", "env", "hooks", "\\u006dine"] {
            if self.one_of(&[false, true]) {
                let value = match name {
                    "hooks" => self.hooks(),
                    "env" => self.container("{", &[], "}"),
                    _ => self.one_of(&["\"x\"", "-1.5e3", "null", "[[],{}]"]).to_owned(),
                };
                members.push(self.member(name, &value));
            }
        }
        let mark = self.one_of(&["", "\u{feff}"]);
        let root = self.container("{", &members, "}");
        format!("{mark}{}{root}{}", self.blank(), self.blank())
    }
}

fn made(bytes: &[u8]) -> String {
    let mut maker = Maker { bytes: bytes.iter(), newline: "\n", is_loose: false };
    maker.newline = maker.one_of(&["\n", "\r\n"]);
    maker.is_loose = maker.one_of(&[false, true]);
    maker.file()
}

fn entries() -> impl Strategy<Value = Vec<SettingsEntry>> {
    let programs = ["hookloop", "/opt/a b/hookloop"];
    (0..3_usize, 0..2_usize)
        .prop_map(move |(agent, program)| NativeAgent::ALL[agent].entries(programs[program]))
}

fn whole(text: &str) -> Value {
    let document = JsoncDocument::read(text).unwrap();
    document.root.as_ref().map(|root| document.value(&root.range)).unwrap_or_default()
}

/// The value without what is ours, and without what is empty then.
fn of_others(mut value: Value, is_top: bool) -> Value {
    if let (true, Some(hooks)) = (is_top, value.get_mut("hooks").and_then(Value::as_object_mut)) {
        for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
            groups.retain(|group| {
                let entries = group["hooks"].as_array().unwrap();
                entries.is_empty() || !entries.iter().all(|entry| our_command(entry).is_some())
            });
        }
        hooks.retain(|_, groups| *groups != json!([]));
        if hooks.is_empty() {
            value.as_object_mut().unwrap().remove("hooks");
        }
    }
    value
}

fn check(original: &str, entries: &[SettingsEntry]) {
    let edited = install(Some(original), entries).unwrap();
    assert!(is_current(&edited.text, entries).unwrap(), "{}", edited.text);
    assert_eq!(without(&edited.text, &edited.inserted).as_deref(), Some(original));
    assert_eq!(
        uninstall(&edited.text).unwrap(),
        RemainingText::Text(original.to_owned()),
        "{}",
        edited.text
    );
    let again = install(Some(&edited.text), entries).unwrap();
    assert_eq!((again.text, again.inserted), (edited.text.clone(), Vec::new()));
    let before = of_others(whole(original), true);
    let after = of_others(whole(&edited.text), true);
    if before != Value::Null {
        assert_eq!(before, after, "{original}\n{}", edited.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn uninstall_restores_the_original_settings(bytes in prop::collection::vec(any::<u8>(), 0..300), entries in entries()) {
        check(&made(&bytes), &entries);
    }

    /// The user writes something before, into and behind what we put in; only that stays.
    #[test]
    fn uninstall_keeps_later_edits_of_the_user(bytes in prop::collection::vec(any::<u8>(), 0..300), entries in entries()) {
        let original = made(&bytes);
        let root = JsoncDocument::read(&original).unwrap().root.unwrap();
        prop_assume!(!root.items().is_empty());
        let write = |text: &str| {
            let at = text.find('{').unwrap() + 1;
            format!("{}\n \"theirs\": [1], /* x */{}\n// end", &text[..at], &text[at..])
        };
        let installed = install(Some(&original), &entries).unwrap();
        prop_assert_eq!(uninstall(&write(&installed.text)).unwrap(), RemainingText::Text(write(&original)));
    }

    /// A user's entry in a list or group that hookloop created stays with its container.
    #[test]
    fn uninstall_keeps_entries_of_the_user_in_groups_of_hookloop(bytes in prop::collection::vec(any::<u8>(), 0..300), entries in entries()) {
        let original = made(&bytes);
        let installed = install(Some(&original), &entries).unwrap().text;
        let last = Value::from(entries[2].command.as_str()).to_string();
        let own = format!(r#"{last}, "timeout": {} }}"#, entries[2].timeout);
        let theirs = format!(r#"{own}, {{"type":"command","command":"theirs"}}"#);
        let written = installed.replacen(&own, &theirs, 1);
        prop_assert_ne!(&written, &installed);
        let RemainingText::Text(rest) = uninstall(&written).unwrap() else { panic!("{written}") };
        prop_assert!(rest.contains("theirs") && super::installed(&rest).unwrap().is_empty(), "{}", rest);
    }

    #[test]
    fn installing_into_any_text_writes_valid_json(text in ".{0,80}", entries in entries()) {
        if let Ok(edited) = install(Some(&text), &entries) {
            check(&text, &entries);
            prop_assert!(JsoncDocument::read(&edited.text).is_ok());
        }
    }
}

#[test]
fn install_and_uninstall_restore_files_of_unusual_layout() {
    for entries in NativeAgent::ALL.map(|agent| agent.entries("hookloop")) {
        for original in [
            "",
            "\n",
            " \r\n\r\n",
            "{}",
            "{ }",
            "{\n}\n",
            "{\"hooks\":{}}",
            "{ \"hooks\": { } }",
            "{\"hooks\":{\"Stop\":[]}}",
            "{\"hooks\": {\n  \"Stop\": [ ]}}",
            "{ // only a comment\n}",
            "{\"hooks\": { /* x */ }}",
            "\u{feff}{\r\n\t\"a\": 1,\r\n}",
            "{\"a\":1 // b\n}",
            "{\"a\":1 /* b */ , // c\n}",
            "{\"a\": 1,}",
        ] {
            check(original, &entries);
        }
        let new = install(None, &entries).unwrap();
        assert_eq!(uninstall(&new.text).unwrap(), RemainingText::Nothing);
        let with_comment = new.text.replacen("{\n", "{\n  // mine\n", 1);
        assert_ne!(uninstall(&with_comment).unwrap(), RemainingText::Nothing);
    }
}

#[test]
fn invalid_settings_are_refused_with_line_and_column() {
    let entries = NativeAgent::Claude.entries("hookloop");
    for (text, place) in [
        ("[]", (1, 1)),
        ("// x\n", (1, 1)),
        ("{\n  \"hooks\": 1 }", (2, 12)),
        ("{\"hooks\": {\n\"Stop\": {}}}", (2, 9)),
        ("{\"a\": }", (1, 7)),
    ] {
        let fault = install(Some(text), &entries).unwrap_err();
        assert_eq!((fault.line, fault.column), place, "{text}: {fault}");
    }
}
