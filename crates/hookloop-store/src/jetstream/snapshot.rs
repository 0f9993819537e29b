//! Snapshots of the view of a long log, so that a new machine need not read all of it.
//!
//! A snapshot is the file of a view, compressed and split into pieces. The manifest is written last
//! and names them. A snapshot can be deleted without loss: `rebuild` reads the log itself.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use hookloop_core::digest::sha256_hex;
use serde::{Deserialize, Serialize};
use tracing::{debug, warn};

use super::client::JetStreamLog;
use super::error::JetStreamError;
use crate::log::{LogError, Seq};
use crate::snapshot::{SnapshotStore, ViewSnapshot};

/// Size of a piece, well below the limit of a server for one message.
const CHUNK: usize = 512 * 1024;
/// Number of pieces that are sent concurrently.
const IN_FLIGHT: usize = 8;
/// Largest size of a snapshot that is read.
const MAX_BYTES: usize = 2 << 30;

#[derive(Serialize, Deserialize)]
struct SnapshotManifest {
    name: String,
    head: Seq,
    schema: i64,
    chunks: usize,
    bytes: usize,
    sha256: String,
}

impl SnapshotStore for JetStreamLog {
    fn latest(&self, schema: i64) -> Result<Option<ViewSnapshot>, LogError> {
        self.run(async {
            let stream = self.0.layout.snapshot_stream();
            let Some(manifest) = self.manifest().await? else { return Ok(None) };
            let has_all_chunks = manifest.chunks == manifest.bytes.div_ceil(CHUNK);
            if manifest.schema != schema || manifest.bytes > MAX_BYTES || !has_all_chunks {
                return Ok(None);
            }
            let chunks = (0..manifest.chunks).map(|n| {
                let subject = self.0.layout.snapshot_chunk(&manifest.name, n);
                async move { self.0.last_on(stream, &subject).await }
            });
            let chunks: Vec<_> = stream::iter(chunks).buffered(IN_FLIGHT).try_collect().await?;
            let mut packed = Vec::with_capacity(manifest.bytes);
            for chunk in chunks.into_iter().flatten() {
                packed.extend_from_slice(&chunk.payload);
            }
            // Pieces are missing if a newer snapshot is being written.
            if packed.len() != manifest.bytes || sha256_hex(&packed) != manifest.sha256 {
                return Ok(None);
            }
            // The claimed size is allocated before any byte is unpacked, so it is checked first.
            let size = packed.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize);
            if size.is_none_or(|size| size > MAX_BYTES) {
                return Ok(None);
            }
            let view = lz4_flex::decompress_size_prepended(&packed);
            // The whole log is read instead of a snapshot that can't be unpacked.
            let view = view.inspect_err(|error| warn!(%error, "a snapshot can't be unpacked"));
            Ok(view.ok().map(|view| ViewSnapshot { head: manifest.head, schema, view }))
        })
    }

    fn latest_head(&self, schema: i64) -> Result<Seq, LogError> {
        let manifest = self.run(self.manifest())?;
        let of_these_tables = manifest.filter(|manifest| manifest.schema == schema);
        Ok(of_these_tables.map_or(0, |manifest| manifest.head))
    }

    fn save(&self, snapshot: &ViewSnapshot) -> Result<(), LogError> {
        let packed = Bytes::from(lz4_flex::compress_prepend_size(&snapshot.view));
        let sha256 = sha256_hex(&packed);
        // Two machines may save the same head with different bytes.
        let name = format!("{}-{}", snapshot.head, &sha256[..16]);
        let manifest = SnapshotManifest {
            name: name.clone(),
            head: snapshot.head,
            schema: snapshot.schema,
            chunks: packed.len().div_ceil(CHUNK),
            bytes: packed.len(),
            sha256,
        };
        let payload = serde_json::to_vec(&manifest).map_err(|e| LogError::Engine(Box::new(e)))?;
        self.run(async {
            let before = self.manifest().await?;
            let chunks = (0..manifest.chunks).map(|n| {
                let subject = self.0.layout.snapshot_chunk(&name, n);
                let piece = packed.slice(n * CHUNK..packed.len().min((n + 1) * CHUNK));
                async move { self.0.put(&subject, &piece).await }
            });
            let mut sending = stream::iter(chunks).buffer_unordered(IN_FLIGHT);
            while sending.try_next().await?.is_some() {}
            let subject = self.0.layout.snapshot_manifest();
            self.0.put(&subject, &Bytes::from(payload)).await?;
            if let Some(before) = before.filter(|before| before.name != name) {
                self.forget(&before.name).await?;
            }
            Ok(())
        })
    }
}

impl JetStreamLog {
    async fn manifest(&self) -> Result<Option<SnapshotManifest>, JetStreamError> {
        let (stream, subject) =
            (self.0.layout.snapshot_stream(), self.0.layout.snapshot_manifest());
        let found = self.0.last_on(stream, &subject).await?;
        // A manifest of another version counts as none: the log itself is read.
        let unread = |error: &serde_json::Error| debug!(%error, "a snapshot is of another version");
        let read = |payload: &[u8]| serde_json::from_slice(payload).inspect_err(unread).ok();
        Ok(found.and_then(|found| read(&found.payload)))
    }

    /// Deletes the pieces of a snapshot that a newer one replaces.
    async fn forget(&self, name: &str) -> Result<(), JetStreamError> {
        let purge = format!("$JS.API.STREAM.PURGE.{}", self.0.layout.snapshot_stream());
        let filter = serde_json::json!({ "filter": self.0.layout.snapshot_chunks(name) });
        self.0.ask_patiently(&purge, &Bytes::from(filter.to_string())).await.map(drop)
    }
}
