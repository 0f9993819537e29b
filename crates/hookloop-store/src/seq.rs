//! Places in a log.

/// A place in the log; the first event has 1. Also a subject's version, where 0 is "never seen".
pub type Seq = u64;
