//! Disks whose power can be cut. Needs root and loop devices.
//!
//! A disk is an image behind a loop device that bypasses the page cache, so the image contains only
//! data that reached the device, and no data that the file system still has in memory. A power cut
//! copies the image while the servers are frozen, and mounts the copy in its place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::lease::{self, Lease};
use crate::process::run;
use crate::server::Server;

const SIZE: &str = "512M";

/// An ext4 file system on its own disk. Unmounted and deleted when dropped.
#[derive(Debug)]
pub struct Disk {
    home: PathBuf,
    mounted: PathBuf,
    /// The loop device below the file system: `loop3`.
    device: Mutex<String>,
    _lease: Lease,
}

impl Disk {
    pub fn new() -> Disk {
        let lease = (0..1_000).find_map(|number| Lease::take("disk", number)).expect("a free disk");
        let home = lease::home().join(format!("disk-{}", lease.number));
        let mounted = home.join("mounted");
        forget(&mounted, &home);
        fs::create_dir_all(&mounted).unwrap();
        let image = home.join("image");
        run(Command::new("truncate").args(["-s", SIZE]).arg(&image));
        // The kernel must have no pending writes of its own.
        let eager = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-E", eager]).arg(&image));
        let device = Mutex::new(mount(&image, &mounted));
        Disk { home, mounted, device, _lease: lease }
    }

    /// Returns the mount point, before and after a power cut: a server's `store_dir`.
    pub fn path(&self) -> &Path {
        &self.mounted
    }

    /// Copies the image at one point in time; repeats the copy if the kernel wrote meanwhile.
    fn copy(&self) {
        let device = self.device.lock().unwrap();
        for _ in 0..20 {
            let before = sectors_written(&device);
            let [image, copy] = [self.home.join("image"), self.home.join("copy")];
            run(Command::new("cp").arg("--sparse=always").args([image, copy]));
            if sectors_written(&device) == before {
                return;
            }
        }
        panic!("{device} is never idle");
    }

    /// Mounts the copy in place of the disk.
    fn replace(&self) {
        run(Command::new("umount").arg(&self.mounted));
        let image = self.home.join("image");
        fs::rename(self.home.join("copy"), &image).unwrap();
        *self.device.lock().unwrap() = mount(&image, &self.mounted);
    }
}

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        forget(&self.mounted, &self.home);
    }
}

/// Cuts the power of all servers and disks at once. Afterwards the servers are down and the disks
/// contain the data that had reached them; `restart` or `start_all` starts the servers again.
pub fn cut_power<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    disks: impl IntoIterator<Item = &'a Disk>,
) {
    let servers: Vec<&Server> = servers.into_iter().collect();
    let disks: Vec<&Disk> = disks.into_iter().collect();
    servers.iter().for_each(|server| server.stop_signal());
    disks.iter().for_each(|disk| disk.copy());
    servers.iter().for_each(|server| server.kill9());
    disks.iter().for_each(|disk| disk.replace());
}

/// Mounts an image and returns the name of its loop device, which is removed when it is unmounted.
fn mount(image: &Path, to: &Path) -> String {
    let device = run(Command::new("losetup").args(["--show", "-f", "--direct-io=on"]).arg(image));
    let device = device.trim();
    run(Command::new("mount").arg(device).arg(to));
    // The device is in use, so it is removed with the mount.
    run(Command::new("losetup").args(["-d", device]));
    device.trim_start_matches("/dev/").to_owned()
}

fn sectors_written(device: &str) -> u64 {
    let stat = fs::read_to_string(format!("/sys/block/{device}/stat")).unwrap();
    stat.split_whitespace().nth(6).and_then(|field| field.parse().ok()).unwrap()
}

/// Unmounts and deletes a disk, which may no longer exist.
fn forget(mounted: &Path, home: &Path) {
    let mut command = Command::new("umount");
    let _ = command.arg(mounted).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let _ = fs::remove_dir_all(home);
}
