//! Puts the test settings of the base into the manifests of the work.
//!
//! The base decides about runners, targets and the versions of its development dependencies. Dependencies that only
//! the work has stay, because its new sources may need them.

mod cargo;
mod package;
mod pyproject;
mod requirement_lists;
mod setup_cfg;
mod toml_document;

use crate::error::EvidenceError;
use crate::role::ManifestKind;

/// Maximum bytes of a manifest.
pub const MANIFEST_BYTES_MAX: usize = 1024 * 1024;

/// Returns the work's manifest with the test settings of the base, or nothing if they are the same.
pub fn graft_manifest(
    kind: ManifestKind,
    base: &str,
    work: &str,
) -> Result<Option<String>, EvidenceError> {
    if base.len().max(work.len()) > MANIFEST_BYTES_MAX {
        let (part, things) = ("the manifest", "bytes");
        return Err(EvidenceError::TooMany { part, things, limit: MANIFEST_BYTES_MAX });
    }
    let grafted = graft(kind, base, work)?;
    // A document can have a form that does not take a setting: the result must have all of them.
    if let Some(text) = &grafted
        && graft(kind, base, text)?.is_some()
    {
        return Err(EvidenceError::not_insertable("a setting has no place in the manifest"));
    }
    Ok(grafted)
}

fn graft(kind: ManifestKind, base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    match kind {
        ManifestKind::Cargo => cargo::graft(base, work),
        ManifestKind::CargoConfig => Ok((base != work).then(|| base.to_owned())),
        ManifestKind::Package => package::graft(base, work),
        ManifestKind::PyProject => pyproject::graft(base, work),
        ManifestKind::SetupCfg => setup_cfg::graft(base, work),
    }
}
