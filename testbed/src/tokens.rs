//! The size of a text in tokens.

/// Returns the number of tokens of a text.
pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base().unwrap().encode_ordinary(text).len()
}
