//! Places in a log.

/// A place in the log, from 1 on. Also a subject's version, where 0 means "no event yet".
pub type Seq = u64;
