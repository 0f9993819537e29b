//! The checks of gates in the view of a session.

use std::sync::Arc;

use hookloop_core::checks::CheckCounts;

use super::made_up::{news, shown};
use super::{picture, press, state};
use crate::tui::data::{GateLine, ScreenNews};
use crate::tui::message::ScreenInput;

#[test]
fn the_checks_of_each_gate_are_drawn_with_the_slowest() {
    let slowest = |ids: &[(&str, u64)]| -> Vec<(String, u64)> {
        ids.iter().map(|(id, ms)| ((*id).to_owned(), *ms)).collect()
    };
    let tests = GateLine {
        gate: "tests".to_owned(),
        counts: CheckCounts { passed: 38, failed: 2, skipped: 1 },
        slowest: slowest(&[("latin1", 1_200), ("em\u{1b}[2Jpty", 40)]),
    };
    let lint = GateLine {
        gate: "lint".to_owned(),
        counts: CheckCounts { passed: 7, failed: 0, skipped: 0 },
        slowest: Vec::new(),
    };
    let mut state = state();
    press(&mut state, "2\n");
    let mut content = shown();
    content.gates = Arc::new(vec![lint, tests]);
    state.update(ScreenInput::News(ScreenNews { shown: Some(Arc::new(content)), ..news() }));
    let seen = picture(&mut state, 100, 30);
    assert!(seen.contains("\nlint: 7 passed\n"), "{seen}");
    let line = "\ntests: 38 passed, 2 failed, 1 skipped  slowest: latin1 1.2 s, em";
    assert!(seen.contains(line), "{seen}");
    assert!(seen.contains("40 ms\n── agent output"), "{seen}");
    assert!(!seen.contains('\u{1b}'), "{seen:?}");
    assert!(seen.contains("agent at work"), "the steps are still there: {seen}");
}
