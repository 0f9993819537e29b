use super::*;

fn sections(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn a_merge_keeps_comments_order_and_indentation() {
    let before = "# ours\nversion: 1\n\nhooks:\n    stop:   # the gates\n    - name: tests\n      command: make test\n      \
                      # a note\n    # below the gates\n    session_start:\n        - command: echo hi\n\n# limits of ours\n\
                      limits:\n  max_iterations: 3 # few\n";
    let import = json!({
        "hooks": {"stop": [{"name": "lint", "command": "make lint"}], "session_end": [{"command": "date"}]},
        "limits": {"max_cost": 5, "max_iterations": 3},
        "loop": {"stop_when": "turn"},
    });
    let after = merge(before, &sections(import)).unwrap();
    let expected = "# ours\nversion: 1\n\nhooks:\n    stop:   # the gates\n    - name: tests\n      command: make test\n      \
                        # a note\n    - name: lint\n      command: make lint\n    # below the gates\n    session_start:\n        \
                        - command: echo hi\n    session_end:\n      - command: date\n\n# limits of ours\nlimits:\n  \
                        max_iterations: 3 # few\n  max_cost: 5\nloop:\n  stop_when: turn\n";
    assert_eq!(after, expected);
}

#[test]
fn existing_hooks_and_settings_are_not_added_again() {
    let before = "version: 1\nhooks:\n  before_submit:\n    - run_tests\nloop: {stop_when: turn}\n";
    let import =
        json!({"hooks": {"before_submit": [{"use": "run_tests"}]}, "loop": {"stop_when": "turn"}});
    assert_eq!(merge(before, &sections(import)).unwrap(), before);
}

/// Two commands of one program are two hooks; other options of one command are a conflict.
#[test]
fn hooks_without_names_get_numbers() {
    let before = "version: 1\nhooks:\n  stop:\n    - command: make test\n";
    let import = sections(json!({"hooks": {"session_end": [{"command": "make clean"}]}}));
    let after = merge(before, &import).unwrap();
    assert!(
        after.ends_with("  session_end:\n    - command: make clean\n      name: make-2\n"),
        "{after}"
    );
    assert_eq!(merge(&after, &import).unwrap(), after);
    let import = json!({"hooks": {"stop": [{"command": "make test", "timeout": "5s"}]}});
    let merged = merge(before, &sections(import));
    assert!(matches!(merged, Err(MergeError::Conflicts(_))), "{merged:?}");
}

#[test]
fn empty_sections_are_filled_and_line_endings_are_kept() {
    let import = sections(json!({"hooks": {"stop": [{"name": "lint", "command": "make lint"}]}}));
    let block = "  stop:\n    - name: lint\n      command: make lint\n";
    for (before, expected) in [
        ("version: 1\nhooks: {}\n", format!("version: 1\nhooks:\n{block}")),
        ("version: 1\nhooks:\n", format!("version: 1\nhooks:\n{block}")),
        ("version: 1\nhooks: ~ # none\n", format!("version: 1\nhooks: # none\n{block}")),
        ("version: 1\nhooks: null", format!("version: 1\nhooks:\n{block}")),
        (
            "version: 1\n\"hooks\" : {}   # none\n",
            format!("version: 1\n\"hooks\" : # none\n{block}"),
        ),
        ("version: 1\nhooks:\n  # later\n", format!("version: 1\nhooks:\n  # later\n{block}")),
        (
            "version: 1\nhooks: {}\n\n# few\nlimits: {max_iterations: 3}\n",
            format!("version: 1\nhooks:\n{block}\n# few\nlimits: {{max_iterations: 3}}\n"),
        ),
        (
            "version: 1\nhooks:\n  stop: [] # none\n",
            format!("version: 1\nhooks:\n  stop: # none\n{}", &block[8..]),
        ),
        ("# ours\n", format!("# ours\nversion: 1\nhooks:\n{block}")),
        ("", format!("version: 1\nhooks:\n{block}")),
    ] {
        assert_eq!(merge(before, &import).unwrap(), expected, "{before}");
        // The same file with other line ends, and with a mark at its beginning.
        let before = before.replace('\n', "\r\n");
        let expected = expected.replace('\n', "\r\n");
        if before.contains('\n') {
            assert_eq!(merge(&before, &import).unwrap(), expected, "{before}");
            let marked = merge(&format!("\u{feff}{before}"), &import).unwrap();
            assert_eq!(marked, format!("\u{feff}{expected}"), "{before}");
            assert_eq!(merge(&marked, &import).unwrap(), marked, "{before}");
        }
    }
}

#[test]
fn a_file_with_a_mistake_is_refused_with_its_line() {
    let import = sections(json!({"hooks": {"stop": [{"name": "lint", "command": "make lint"}]}}));
    for (before, part) in [
        ("version: 1\nhooks: []\n", "line 2: "),
        ("version: 1\nlimits: &a\n  max_iterations: 3\n", "anchors"),
        ("version: 1\nnovel: 1\n", "novel"),
        ("version: 1\nhooks: {}\nhooks: {}\n", ""),
        ("version: 1\n---\nversion: 1\n", ""),
    ] {
        let merged = merge(before, &import);
        let (Err(MergeError::Invalid(why)) | Err(MergeError::Layout(why))) = &merged else {
            panic!("{before}: {merged:?}");
        };
        assert!(why.contains(part), "{before}: {why}");
    }
}

#[test]
fn conflicting_hooks_and_settings_are_named() {
    let before = "version: 1\nhooks:\n  stop:\n    - {name: tests, command: make test}\nlimits:\n  max_cost: 1\n";
    let import = json!({"hooks": {"stop": [{"name": "tests", "command": "npm test"}]}, "limits": {"max_cost": 5}});
    let Err(MergeError::Conflicts(conflicts)) = merge(before, &sections(import)) else {
        panic!("no conflict");
    };
    assert_eq!(conflicts.len(), 2, "{conflicts:?}");
    assert!(conflicts[0].contains("a hook `tests` is there"), "{conflicts:?}");
    assert!(conflicts[1].contains("`limits.max_cost` is 1, and 5"), "{conflicts:?}");
}

#[test]
fn yaml_in_flow_style_that_cannot_be_edited_is_refused() {
    let import = json!({"hooks": {"stop": [{"name": "lint", "command": "make lint"}]}});
    for before in [
        "version: 1\nhooks: {stop: [{name: tests, command: make test}]}\n",
        "version: 1\nhooks:\n  stop: [{name: tests, command: make test}]\n",
        "version: 1\n? hooks\n: stop: []\n",
    ] {
        let merged = merge(before, &sections(import.clone()));
        assert!(matches!(merged, Err(MergeError::Layout(_))), "{before}: {merged:?}");
    }
}
