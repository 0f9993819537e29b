//! SHA-256 digests and other bytes as hexadecimal text.

use sha2::{Digest, Sha256};

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 digest of `bytes` as text.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the first `kept` bytes of the SHA-256 digest of `bytes` as text, for short names.
pub fn short_sha256_hex(bytes: impl AsRef<[u8]>, kept: usize) -> String {
    let digest = Sha256::digest(bytes);
    hex(&digest[..kept.min(digest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_the_published_test_values() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(""), empty);
        assert_eq!(short_sha256_hex(b"", 4), "e3b0c442");
        assert_eq!(short_sha256_hex("", 99), empty);
        assert_eq!(hex(&[0, 0xa5, 0xff]), "00a5ff");
    }
}
