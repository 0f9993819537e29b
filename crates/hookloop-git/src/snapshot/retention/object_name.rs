//! The name of an object of git, as bytes: a store has up to millions.

use std::fmt;
use std::io::Write;

/// The length of a SHA-1 and of a SHA-256 digest.
pub(super) const SHA1_BYTES: usize = 20;
pub(super) const SHA256_BYTES: usize = 32;

/// The full name of an object. The bytes after a shorter name are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectName {
    bytes: [u8; SHA256_BYTES],
    length: usize,
}

impl ObjectName {
    /// Returns the name with these bytes; `None` if their number is wrong.
    pub(super) fn of_bytes(name: &[u8]) -> Option<ObjectName> {
        let length = name.len();
        if length != SHA1_BYTES && length != SHA256_BYTES {
            return None;
        }
        let mut bytes = [0; SHA256_BYTES];
        bytes[..length].copy_from_slice(name);
        Some(ObjectName { bytes, length })
    }

    /// Returns the name with these hexadecimal digits; `None` for any other text.
    pub(super) fn read(text: &str) -> Option<ObjectName> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if text.len() != 2 * SHA1_BYTES && text.len() != 2 * SHA256_BYTES {
            return None;
        }
        let mut bytes = [0; SHA256_BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = (digit(digits[0])? << 4) | digit(digits[1])?;
        }
        Some(ObjectName { bytes, length: text.len() / 2 })
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes[..self.length].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the names as the input of a git command, one in each line.
pub(super) fn lines<'n>(names: impl IntoIterator<Item = &'n ObjectName>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        // Writing to memory does not fail.
        let _ = writeln!(list, "{name}");
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_lengths_are_read_and_printed() {
        for text in ["0123456789abcdef0123456789abcdef01234567", &"9f".repeat(32)] {
            let name = ObjectName::read(text).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(lines([&name]), format!("{text}\n").into_bytes());
        }
        for text in ["", "01", &"g0".repeat(20), &"AB".repeat(20), &"00".repeat(21)] {
            assert_eq!(ObjectName::read(text), None, "{text}");
        }
        assert_eq!(ObjectName::of_bytes(&[7; 20]), ObjectName::read(&"07".repeat(20)));
        assert_eq!(ObjectName::of_bytes(&[7; 21]), None);
    }
}
