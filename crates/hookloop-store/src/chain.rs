//! The hash that ties each stored event to the one before it.

use sha2::{Digest, Sha256};

use crate::seq::Seq;

pub type ChainHash = [u8; 32];

/// The hash before the first event.
pub(crate) const START: ChainHash = [0; 32];

/// The stored fields of an event, which its hash covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainLink<'a> {
    pub seq: Seq,
    pub prev: Seq,
    pub id: &'a [u8],
    pub at: i64,
    pub format: u32,
    pub kind: &'a str,
    pub subject: &'a str,
    pub actor: &'a str,
    pub cause: Option<&'a str>,
    pub due: bool,
    pub data: &'a str,
}

/// Returns the chain value of a log on servers after the message at `seq`, on top of the value
/// before it.
pub(crate) fn extend(before: &ChainHash, seq: Seq, digest: &ChainHash) -> ChainHash {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(seq.to_le_bytes());
    hash.update(digest);
    hash.finalize().into()
}

impl ChainLink<'_> {
    /// Returns this event's hash, on top of the hash of the event before it.
    ///
    /// Each text is preceded by its length, so that no two events have the same bytes.
    pub(crate) fn hash(&self, before: &[u8]) -> ChainHash {
        let mut hash = Sha256::new();
        hash.update(before);
        let mut fixed = [0; 29];
        fixed[..8].copy_from_slice(&self.seq.to_le_bytes());
        fixed[8..16].copy_from_slice(&self.prev.to_le_bytes());
        fixed[16..24].copy_from_slice(&self.at.to_le_bytes());
        fixed[24..28].copy_from_slice(&self.format.to_le_bytes());
        fixed[28] = u8::from(self.due) | u8::from(self.cause.is_some()) << 1;
        hash.update(fixed);
        let cause = self.cause.unwrap_or("").as_bytes();
        let texts = [self.kind.as_bytes(), self.subject.as_bytes(), self.actor.as_bytes(), cause];
        for text in [self.id, self.data.as_bytes()].into_iter().chain(texts) {
            hash.update((text.len() as u32).to_le_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}
