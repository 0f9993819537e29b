//! Tries the private mounts that this system lets this process make.

use std::path::Path;
use std::{fs, io};

use super::confinement::PrivateMount;
use super::mounts;
use super::support::MountSupport;

/// Tries a bind and an overlay in an empty directory. This process has one thread and ends after that.
///
/// The mounts end with this process. The files stay.
pub(crate) fn try_mounts(directory: &Path) -> MountSupport {
    let mounts = has_bind(directory).unwrap_or(false);
    MountSupport { mounts, overlays: mounts && has_overlay(directory).unwrap_or(false) }
}

/// Returns whether files of a directory can be visible at another, read-only.
fn has_bind(directory: &Path) -> io::Result<bool> {
    let [source, target] = ["source", "target"].map(|name| directory.join(name));
    [&source, &target].into_iter().try_for_each(fs::create_dir)?;
    fs::write(source.join("file"), "")?;
    let bind = PrivateMount::Bind { source, target: target.clone(), read_only: true };
    let is_made = mounts::enter(&[bind]).is_ok();
    Ok(is_made && target.join("file").exists() && fs::write(target.join("new"), "").is_err())
}

/// Returns whether a new file and a removed file can be changes to a directory that stays unchanged.
fn has_overlay(directory: &Path) -> io::Result<bool> {
    let [target, changes, work] = ["lower", "changes", "work"].map(|name| directory.join(name));
    [&target, &changes, &work].into_iter().try_for_each(fs::create_dir)?;
    fs::write(target.join("old"), "")?;
    let overlay = PrivateMount::Overlay { target: target.clone(), changes: changes.clone(), work };
    if mounts::enter(&[overlay]).is_err() {
        return Ok(false);
    }
    fs::write(target.join("new"), "")?;
    fs::remove_file(target.join("old"))?;
    Ok(changes.join("new").exists() && !target.join("old").exists())
}
