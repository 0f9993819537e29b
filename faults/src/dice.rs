//! Chances that a seed decides, so that a schedule can be had again.

use std::ops::Range;

/// A small generator (xorshift64*): good enough to choose with.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64, name: &str) -> Dice {
        let mixed = name.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Dice(mixed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.within(0..end as u64) as usize
    }

    /// Takes one of them out.
    pub(crate) fn take<T>(&mut self, from: &mut Vec<T>) -> Option<T> {
        match from.len() {
            0 => None,
            len => Some(from.swap_remove(self.below(len))),
        }
    }
}
