//! Changes of the files that define a session's hooks or its work.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hookloop_core::hook::HookRegistry;
use hookloop_hooks::frozen_hooks::FrozenHooks;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::trust;

/// The files that define hooks, as they were when a session began.
#[derive(Debug, Default)]
pub(crate) struct HookDrift {
    known: BTreeMap<PathBuf, Option<DriftStamp>>,
}

/// The inode, size and change time of a file.
type DriftStamp = (u64, u64, i64, i64);

/// A stamp that no file has.
const OTHER: DriftStamp = (0, 0, 0, 0);

impl HookDrift {
    pub(crate) fn new(
        runner: &HookRunner,
        config: &Path,
        hooks: &HookRegistry,
        frozen: Option<&FrozenHooks>,
    ) -> HookDrift {
        let scripts = hooks.list().iter().flat_map(|hook| trust::scripts(runner.root(), hook));
        let paths = scripts.chain([config.to_owned()]);
        let mut known: BTreeMap<PathBuf, Option<DriftStamp>> = paths
            .map(|path| {
                let stamp = stamp(&path);
                (path, stamp)
            })
            .collect();
        known.extend(HookDrift::of_scripts(runner, frozen).known);
        HookDrift { known }
    }

    /// Watches the scripts that a session froze. The first [`HookDrift::look`] reports those that
    /// already differ.
    pub(crate) fn of_scripts(runner: &HookRunner, frozen: Option<&FrozenHooks>) -> HookDrift {
        let compared = frozen.map(|frozen| frozen.compare(runner.home())).unwrap_or_default();
        let known = compared.into_iter().map(|(path, is_same)| {
            let stamp = if is_same { stamp(&path) } else { Some(OTHER) };
            (path, stamp)
        });
        HookDrift { known: known.collect() }
    }

    /// Watches a further file, as it is now.
    pub(crate) fn watch(&mut self, path: PathBuf) {
        let stamp = stamp(&path);
        self.known.insert(path, stamp);
    }

    /// Returns the files that changed since the last call.
    pub(crate) fn look(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, known) in &mut self.known {
            let now = stamp(path);
            if *known != now {
                *known = now;
                changed.push(path.display().to_string());
            }
        }
        changed
    }
}

fn stamp(path: &Path) -> Option<DriftStamp> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}
