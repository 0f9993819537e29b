//! Bytes in hexadecimal.

/// Returns `bytes` in lower-case hexadecimal.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
