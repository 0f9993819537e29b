//! The size of a text as models count it.

/// The tokens of a text.
pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base().unwrap().encode_ordinary(text).len()
}
