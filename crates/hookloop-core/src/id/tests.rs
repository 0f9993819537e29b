//! Tests of ids and subjects.

use super::task_id::GENERATED_LEN;
use super::*;

#[test]
fn task_ids_have_no_separators_and_never_look_like_an_option() {
    for good in ["a", "task_42", "7", "A-b_C", &"x".repeat(64)] {
        assert!(good.parse::<TaskId>().is_ok(), "{good}");
    }
    for bad in ["", "-a", "_graph", "a.b", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
        assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
    }
}

#[test]
fn derived_ids_depend_on_every_argument_and_nothing_else() {
    let id = EventId([7; 16]);
    assert_eq!(id.derive("hook", 1), id.derive("hook", 1));
    assert_ne!(id.derive("hook", 1), id.derive("hook", 2));
    assert_ne!(id.derive("hook", 1), id.derive("hooks", 1));
    assert_ne!(id.derive("hook", 1), EventId([8; 16]).derive("hook", 1));
    assert_eq!(id.derive("hook", 1).0[..6], id.0[..6], "sorts with its cause");
}

#[test]
fn a_new_project_is_named_after_its_directory() {
    for (directory, start) in [("shop", "shop-"), ("my shop!", "myshop-"), ("-x-", "x-")] {
        let name = ProjectName::generate(directory, EventId([7; 16])).to_string();
        assert!(name.starts_with(start) && name.parse::<ProjectName>().is_ok(), "{name}");
    }
    let nameless = ProjectName::generate("∑", EventId([7; 16]));
    assert_eq!(nameless.as_str(), TaskId::generate(EventId([7; 16])).as_str());
    let named = ProjectName::generate("my-shop", EventId([7; 16]));
    assert_eq!(ProjectName::readable(named.as_str()), "my-shop");
    for name in [nameless.as_str(), "shop", "my-shop", "a-0123456789abc", "-0123456789ab"] {
        assert_eq!(ProjectName::readable(name), name);
    }
}

#[test]
fn a_notification_id_depends_on_each_part_and_its_boundaries() {
    assert_eq!(NoticeId::of(&["a", "b"]), NoticeId::of(&["a", "b"]));
    for other in [&["ab"][..], &["b", "a"], &["a", "b", ""], &["a"]] {
        assert_ne!(NoticeId::of(other), NoticeId::of(&["a", "b"]), "{other:?}");
    }
}

#[test]
fn subjects_of_a_newer_version_are_accepted_and_malformed_subjects_refused() {
    for name in ["_xyz", "_q-abc", "_s-", "_w-_v-1", "_w-_n-", "_"] {
        let newer = name.parse().map(Subject::Newer).unwrap();
        assert_eq!(name.parse::<Subject>().unwrap(), newer, "{name}");
    }
    for bad in ["", "-a", "_a.b", "_a b", "_ä", &format!("_{}", "x".repeat(128))] {
        assert!(bad.parse::<Subject>().is_err(), "{bad:?}");
    }
}

#[test]
fn event_ids_and_subjects_read_back() {
    let id = EventId([0xa5; 16]).derive("x", 0);
    assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
    for bad in ["", "00", &format!("{id}0"), &"g".repeat(32)] {
        assert!(bad.parse::<EventId>().is_err(), "{bad}");
    }
    let task = TaskId::generate(id);
    assert_eq!(task.as_str().len(), GENERATED_LEN);
    for subject in [
        Subject::Task(task),
        Subject::Graph,
        Subject::Cursor,
        Subject::Project,
        Subject::Workflow(RunId::generate(id)),
        Subject::Session(SessionId::generate(id)),
        Subject::Budget,
        Subject::Notice(NoticeId::of(&["a", "b"])),
        Subject::Slots,
        Subject::Schedule("nightly".parse().unwrap()),
        Subject::Newer("_q-abc".parse().unwrap()),
    ] {
        assert_eq!(subject.to_string().parse::<Subject>().unwrap(), subject);
    }
}
