//! Two sides of one measurement, run alternately: best and median of each, and the cost ratio.

use std::pin::Pin;

use crate::figures::{ms, times};

/// Result of one pass of one measurement.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// The median of a pass in milliseconds: lower is better.
    Milliseconds(f64),
    /// Operations per second: higher is better.
    PerSecond(f64),
}

impl Figure {
    fn value(self) -> f64 {
        match self {
            Figure::Milliseconds(value) | Figure::PerSecond(value) => value,
        }
    }

    /// Returns how many times worse this figure is than `other`.
    fn cost(self, other: Figure) -> f64 {
        match self {
            Figure::Milliseconds(value) => value / other.value(),
            Figure::PerSecond(value) => other.value() / value,
        }
    }

    fn text(self) -> String {
        match self {
            Figure::Milliseconds(value) => ms(value),
            Figure::PerSecond(value) => format!("{value:.0}/s"),
        }
    }
}

/// One pass on a bench of type `B`.
pub type Measure<B> = Box<dyn for<'a> Fn(&'a mut B) -> Pin<Box<dyn Future<Output = Figure> + 'a>>>;

/// The bare engine and the product doing the same work.
pub struct Pair<B> {
    pub name: String,
    pub bare: Measure<B>,
    /// `None` if the product has no counterpart.
    pub ours: Option<Measure<B>>,
}

impl<B> std::fmt::Debug for Pair<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("name", &self.name).finish_non_exhaustive()
    }
}

pub const HEADINGS: [&str; 5] =
    ["", "bare, best (median)", "ours, best (median)", "ours / bare, best", "median"];

/// Runs `passes` passes of every pair, and returns one row of [`HEADINGS`] for each pair. The
/// passes of one pair are far apart, so that a short load on the machine does not affect all of
/// them.
pub async fn run<B>(pairs: &[Pair<B>], bench: &mut B, passes: usize) -> Vec<Vec<String>> {
    let mut bare = vec![Vec::new(); pairs.len()];
    let mut ours = vec![Vec::new(); pairs.len()];
    for _ in 0..passes {
        for (i, pair) in pairs.iter().enumerate() {
            bare[i].push((pair.bare)(bench).await);
            if let Some(measure) = &pair.ours {
                ours[i].push(measure(bench).await);
            }
        }
    }
    pairs
        .iter()
        .zip(bare.iter().zip(&ours))
        .map(|(pair, (bare, ours))| row(pair, bare, ours))
        .collect()
}

fn row<B>(pair: &Pair<B>, bare: &[Figure], ours: &[Figure]) -> Vec<String> {
    let text = |of: Option<(Figure, Figure)>| {
        of.map_or(String::new(), |(best, median)| format!("{} ({})", best.text(), median.text()))
    };
    let (bare, ours) = (best_and_median(bare), best_and_median(ours));
    let ratio = |pick: fn((Figure, Figure)) -> Figure| {
        let sides = bare.zip(ours);
        sides.map_or(String::new(), |(bare, ours)| times(pick(ours).cost(pick(bare))))
    };
    vec![pair.name.clone(), text(bare), text(ours), ratio(|of| of.0), ratio(|of| of.1)]
}

fn best_and_median(passes: &[Figure]) -> Option<(Figure, Figure)> {
    let mut sorted = passes.to_vec();
    sorted.sort_by(|a, b| a.cost(*b).total_cmp(&1.0));
    Some((*sorted.first()?, sorted[sorted.len() / 2]))
}
