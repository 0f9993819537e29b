//! The first five minutes of a new user: `init`, `import` and `doctor`.

mod doctor;
mod import;
mod import_runs;
mod init;
mod init_rooms;
mod monorepo;
mod trackers;

use std::path::PathBuf;

use crate::cli::Project;

impl Project {
    /// Writes files of the project, with their directories; scripts are executable.
    fn files(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.root().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            if text.starts_with("#!") {
                executable(&path);
            }
        }
    }

    /// Writes a program that has precedence over all others in `PATH`.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let bin = self.home().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        executable(&path);
        path
    }
}

fn executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
