//! Resource limits of all processes of a hook together.

use std::fmt;
use std::str::FromStr;

/// A lower limit would end ordinary commands.
pub const PROCESSES_MIN: u64 = 4;
pub(crate) const SIZE_MIN: u64 = 1024 * 1024;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The limits that a hook sets. The others have defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent processes.
    pub processes: Option<u64>,
    /// Private memory of all processes together.
    pub memory_bytes: Option<u64>,
    /// Bytes written to disk, which also bounds the size of one file.
    pub disk_bytes: Option<u64>,
}

/// A limit that was exceeded, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Processes(u64),
    Memory { bytes: u64 },
    Disk { bytes: u64 },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Processes(count) => write!(f, "more than {count} processes (limits: processes)"),
            Limit::Memory { bytes } => {
                write!(f, "more than {} of memory (limits: memory)", Size { bytes })
            }
            Limit::Disk { bytes } => {
                write!(f, "more than {} written to disk (limits: disk)", Size { bytes })
            }
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size =
            |bytes: Option<u64>, of: &str| bytes.map(|bytes| format!("{} {of}", Size { bytes }));
        let parts = [
            self.processes.map(|count| format!("{count} processes")),
            size(self.memory_bytes, "of memory"),
            size(self.disk_bytes, "written to disk"),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// A number of bytes as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size of at least 1MB: write a number with a unit: `512MB`, `2GB`")]
pub struct BadSize(String);

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Size, BadSize> {
        let bad = || BadSize(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, unit) = text.split_at(digits);
        let unit = match unit.trim().to_ascii_uppercase().as_str() {
            "K" | "KB" | "KIB" => KIB,
            "M" | "MB" | "MIB" => MIB,
            "G" | "GB" | "GIB" => GIB,
            _ => return Err(bad()),
        };
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let bytes = bytes.filter(|bytes| *bytes >= SIZE_MIN).ok_or_else(bad)?;
        Ok(Size { bytes })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            bytes if bytes % GIB == 0 || bytes >= 10 * GIB => write!(f, "{}GB", bytes / GIB),
            bytes if bytes >= MIB => write!(f, "{}MB", bytes / MIB),
            bytes => write!(f, "{}KB", bytes / KIB),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        let check = |text: &str, bytes: u64, shown: &str| {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.bytes, size.to_string().as_str()), (bytes, shown), "{text}");
        };
        check("512MB", 512 * MIB, "512MB");
        check("2GB", 2 * GIB, "2GB");
        check("2 GiB", 2 * GIB, "2GB");
        check("1500m", 1500 * MIB, "1500MB");
        check("2048k", 2 * MIB, "2MB");
        for bad in ["", "512", "MB", "1TB", "-1GB", "1.5GB", "1KB", "0GB", "99999999999999GB"] {
            assert_eq!(bad.parse::<Size>(), Err(BadSize(bad.to_owned())));
        }
    }

    #[test]
    fn limits_are_displayed_with_units() {
        let limits =
            Limits { processes: Some(64), memory_bytes: Some(512 * MIB), disk_bytes: Some(GIB) };
        assert_eq!(limits.to_string(), "64 processes, 512MB of memory, 1GB written to disk");
        assert_eq!(Limits::default().to_string(), "");
        let over = Limit::Memory { bytes: 512 * MIB };
        assert_eq!(over.to_string(), "more than 512MB of memory (limits: memory)");
    }
}
