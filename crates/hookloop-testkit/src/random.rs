//! Random numbers that a seed repeats.

use std::ops::Range;
use std::time::Duration;

/// A generator (splitmix64) that gives the same numbers for the same seed on every machine.
#[derive(Clone, Debug)]
pub struct SeededRandom {
    state: u64,
}

/// An integer type that [`SeededRandom::below`] returns.
pub trait RandomBound: Copy {
    fn to_u64(self) -> u64;
    fn from_u64(value: u64) -> Self;
}

impl RandomBound for u64 {
    fn to_u64(self) -> u64 {
        self
    }

    fn from_u64(value: u64) -> u64 {
        value
    }
}

impl RandomBound for usize {
    fn to_u64(self) -> u64 {
        self as u64
    }

    fn from_u64(value: u64) -> usize {
        value as usize
    }
}

impl RandomBound for i32 {
    fn to_u64(self) -> u64 {
        u64::from(self.unsigned_abs())
    }

    fn from_u64(value: u64) -> i32 {
        value as i32
    }
}

impl SeededRandom {
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: seed }
    }

    /// Creates a generator for one of several purposes that share a seed.
    pub fn named(seed: u64, name: &str) -> SeededRandom {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        SeededRandom { state: name.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, mix) }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below<N: RandomBound>(&mut self, end: N) -> N {
        N::from_u64(self.next_u64() % end.to_u64())
    }

    /// Returns a number in a range that is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// Returns `true` in `percent` of a hundred cases.
    pub fn chance<N: RandomBound>(&mut self, percent: N) -> bool {
        self.below(100_u64) < percent.to_u64()
    }

    /// Returns one of `items`, which are not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Removes and returns one of `items`, or returns `None` if there are none.
    pub fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() { None } else { Some(items.swap_remove(self.below(items.len()))) }
    }

    pub fn moment_before(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.below(end.as_micros() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers_and_named_streams_differ() {
        let numbers =
            |mut random: SeededRandom| [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(numbers(SeededRandom::new(7)), numbers(SeededRandom::new(7)));
        assert_ne!(numbers(SeededRandom::new(7)), numbers(SeededRandom::new(8)));
        assert_ne!(numbers(SeededRandom::named(7, "a")), numbers(SeededRandom::named(7, "b")));
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut random = SeededRandom::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.within(3..6)).collect();
        assert_eq!(drawn.iter().min(), Some(&3));
        assert_eq!(drawn.iter().max(), Some(&5));
        assert_eq!((0..1000).filter(|_| random.chance(0_u64)).count(), 0);
        assert_eq!((0..1000).filter(|_| random.chance(100_u64)).count(), 1000);
    }

    #[test]
    fn every_item_is_taken_once() {
        let mut random = SeededRandom::new(1);
        let mut items = vec![1, 2, 3];
        let mut taken: Vec<i32> = std::iter::from_fn(|| random.take(&mut items)).collect();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3]);
    }
}
