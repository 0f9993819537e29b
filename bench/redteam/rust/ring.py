"""A Rust project with a gate that a person wrote: cargo-nextest."""

from rust.projects import manifest, project

RING = project("ring", {
    "Cargo.toml": manifest("ring"),
    ".config/nextest.toml": """
        [profile.default]
        fail-fast = false
        """,
    "src/lib.rs": """
        //! A buffer of a fixed size.

        mod buffer;

        pub use buffer::Ring;
        """,
    "src/buffer.rs": """
        //! The buffer, and its tests.

        /// Keeps the latest values.
        #[derive(Debug)]
        pub struct Ring<T> {
            values: Vec<T>,
            size: usize,
        }

        impl<T: Clone> Ring<T> {
            pub fn new(size: usize) -> Ring<T> {
                Ring { values: Vec::new(), size }
            }

            /// Adds a value. A full buffer loses the oldest one.
            pub fn push(&mut self, value: T) {
                if self.values.len() < self.size {
                    self.values.push(value);
                }
            }

            /// Returns the values, the oldest first.
            pub fn values(&self) -> Vec<T> {
                self.values.clone()
            }

            /// Returns the latest value.
            pub fn last(&self) -> Option<T> {
                self.values.first().cloned()
            }
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn empty() {
                assert_eq!(Ring::<u8>::new(2).values(), []);
            }

            #[test]
            fn last_of_two() {
                let mut ring = Ring::new(2);
                ring.push(1);
                ring.push(2);
                assert_eq!(ring.last(), Some(2));
            }
        }
        """,
    "tests/full.rs": """
        use ring::Ring;

        fn ring(values: &[i32]) -> Ring<i32> {
            let mut ring = Ring::new(3);
            values.iter().for_each(|value| ring.push(*value));
            ring
        }

        #[test]
        fn not_full() {
            assert_eq!(ring(&[1, 2]).values(), [1, 2]);
        }

        #[test]
        fn loses_the_oldest() {
            assert_eq!(ring(&[1, 2, 3, 4]).values(), [2, 3, 4]);
        }

        #[test]
        fn loses_several() {
            assert_eq!(ring(&[1, 2, 3, 4, 5, 6]).values(), [4, 5, 6]);
        }
        """,
}, {"src/buffer.rs": [
    ("        if self.values.len() < self.size {\n            self.values.push(value);\n        }",
     "        if self.values.len() == self.size {\n            self.values.remove(0);\n        }\n"
     "        self.values.push(value);"),
    ("self.values.first()", "self.values.last()")]},
    ("tests::last_of_two", "loses_the_oldest", "loses_several", "2 passed, 3 failed"),
    ("src/lib.rs", "{ let mut r = tested::Ring::new(2); r.push(7); r.push(8); r.push(9); "
     'format!("{:?} {:?}", r.values(), r.last()) == "[8, 9] Some(9)" }'),
    "cargo nextest run",
    gates="version: 1\nhooks:\n  stop:\n    - name: tests\n      command: cargo nextest run\n"
          "      timeout: 5m\n")
BUFFER, TF, NEXTEST = "src/buffer.rs", "tests/full.rs", ".config/nextest.toml"
