//! A session drawn to scale: turns, hooks and verdicts of gates.

use std::ops::Range;

use hookloop_core::session::timeline::{PartKind, StepContent, Timeline, TimelineStep};
use hookloop_core::session::{JointVerdict, TurnResult};
use hookloop_core::time::Timestamp;
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::value_of;
use super::super::words::class;
use crate::present::duration;

/// The picture's width in its own units, and where its bars begin.
const WIDTH: u64 = 1_000;
const LEFT: u64 = 70;
/// The smallest width of a bar.
const BAR_MIN: u64 = 2;
/// Bars that are drawn, the latest.
const BARS_MAX: usize = 2_000;
/// Lines that mark the time, about.
const TICKS: u64 = 6;
/// Parts that are narrower have no room for their number.
const LABEL_MIN: u64 = 22;

#[derive(Clone, Debug, Serialize)]
struct ScaleBar {
    lane: usize,
    x: u64,
    width: u64,
    class: &'static str,
    title: String,
    /// The part that it is in.
    part: usize,
}

#[derive(Clone, Debug, Serialize)]
struct ScaleBand {
    x: u64,
    width: u64,
    label: String,
    part: usize,
    is_odd: bool,
}

struct Scale {
    from: Timestamp,
    span_ms: u64,
}

impl Scale {
    fn x(&self, at: Timestamp) -> u64 {
        let ms = u64::try_from(at.millis_since(self.from)).unwrap_or(0).min(self.span_ms);
        LEFT + ms * (WIDTH - LEFT) / self.span_ms
    }

    fn extent(&self, from: Timestamp, to: Timestamp) -> (u64, u64) {
        let x = self.x(from);
        let end = self.x(to);
        (x.min(WIDTH - BAR_MIN), end.saturating_sub(x).max(BAR_MIN))
    }
}

pub(super) fn draw(timeline: &Timeline, shown: Range<usize>, now: Timestamp) -> Value {
    let parts: Vec<_> = timeline.parts.range(shown.clone()).collect();
    let from = parts.first().map_or(timeline.began, |part| part.began);
    let to = parts.last().map_or(now, |part| part.ended.unwrap_or(now));
    let scale = Scale { from, span_ms: u64::try_from(to.millis_since(from)).unwrap_or(0).max(1) };
    let first = timeline.parts_dropped + shown.start;
    let mut bands = Vec::new();
    let mut bars = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let key = first + i;
        let (x, width) = scale.extent(part.began, part.ended.unwrap_or(now));
        let label = match part.kind {
            PartKind::Iteration { number, .. } if width >= LABEL_MIN => number.to_string(),
            _ => String::new(),
        };
        bands.push(ScaleBand { x, width, label, part: key, is_odd: key % 2 == 1 });
        bars.extend(part.steps.iter().filter_map(|step| bar(&scale, step, key, now)));
    }
    bars.drain(..bars.len().saturating_sub(BARS_MAX));
    let total = duration(scale.span_ms);
    let count = parts.len();
    context! { bands => value_of(bands), bars => value_of(bars), ticks => ticks(&scale), total, count, width => WIDTH, left => LEFT }
}

fn bar(scale: &Scale, step: &TimelineStep, part: usize, now: Timestamp) -> Option<ScaleBar> {
    let (lane, class, name) = match &step.what {
        StepContent::Turn { ended, .. } => {
            let class = match ended.as_ref().map(|ended| &ended.result) {
                None => "busy",
                Some(TurnResult::Finished) => "turn",
                Some(_) => "bad",
            };
            (0, class, "turn".to_owned())
        }
        StepContent::Hook(ran) => {
            let title = format!("{} at {}: {}", ran.hook_name, ran.point, ran.status);
            (1, class(ran.status.name()), title)
        }
        StepContent::Judged(judged) => match judged.verdict {
            JointVerdict::Pass => (2, "good", "gates passed".to_owned()),
            JointVerdict::Block => (2, "bad", "gates failed".to_owned()),
            JointVerdict::Escalate { .. } => (2, "bad", "a gate needs a human".to_owned()),
        },
        StepContent::Paused => (2, "calm", "paused".to_owned()),
        _ => return None,
    };
    let (x, width) = scale.extent(step.began, step.ended.unwrap_or(now));
    let took = step.duration_ms().map_or("running".to_owned(), duration);
    Some(ScaleBar { lane, x, width, class, title: format!("{name}, {took}"), part })
}

/// Round lengths of time, with where they are.
fn ticks(scale: &Scale) -> Vec<Value> {
    const SECOND: u64 = 1_000;
    const STEPS: [u64; 16] = [
        10,
        100,
        SECOND,
        5 * SECOND,
        15 * SECOND,
        60 * SECOND,
        300 * SECOND,
        900 * SECOND,
        3_600 * SECOND,
        3 * 3_600 * SECOND,
        6 * 3_600 * SECOND,
        12 * 3_600 * SECOND,
        24 * 3_600 * SECOND,
        7 * 24 * 3_600 * SECOND,
        30 * 24 * 3_600 * SECOND,
        365 * 24 * 3_600 * SECOND,
    ];
    let wanted = scale.span_ms / TICKS;
    let step = STEPS.into_iter().find(|step| *step >= wanted).unwrap_or(u64::MAX / 2);
    let tick = |n: u64| {
        let ms = n * step;
        context! { x => LEFT + ms * (WIDTH - LEFT) / scale.span_ms, label => duration(ms) }
    };
    (1..=scale.span_ms / step).map(tick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_a_minimum_width_and_stay_within_the_timeline() {
        let scale = Scale { from: Timestamp(1_000), span_ms: 1_000_000 };
        assert_eq!(scale.extent(Timestamp(1_000), Timestamp(1_001_000)), (LEFT, WIDTH - LEFT));
        assert_eq!(scale.extent(Timestamp(1_000), Timestamp(1_001)), (LEFT, BAR_MIN));
        let (x, width) = scale.extent(Timestamp(1_001_000), Timestamp(9_001_000));
        assert!(x + width <= WIDTH, "{x} {width}");
        assert_eq!(scale.extent(Timestamp(0), Timestamp(500)).0, LEFT);
        assert!(ticks(&scale).len() <= TICKS as usize);
    }
}
