//! Ids of events.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A 128-bit event id whose first 48 bits are milliseconds, as in UUID version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub [u8; 16]);

impl EventId {
    /// Returns the id of the `index`th result of this event under `label`. Equal arguments always give the same
    /// id, so a repeated reaction names its effects the same way.
    pub fn derive(self, label: &str, index: usize) -> EventId {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update((index as u64).to_le_bytes());
        let digest = hash.finalize();
        let mut id = self.0;
        id[6..].copy_from_slice(&digest[..10]);
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        EventId(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an event id")]
pub struct BadEventId(String);

impl FromStr for EventId {
    type Err = BadEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadEventId(text.to_owned());
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter(|b| *b != b'-');
        for byte in &mut bytes {
            let mut digit = || {
                let d = digits.next().ok_or_else(bad)?;
                char::from(d).to_digit(16).ok_or_else(bad)
            };
            *byte = (digit()? << 4 | digit()?) as u8;
        }
        match digits.next() {
            None => Ok(EventId(bytes)),
            Some(_) => Err(bad()),
        }
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
