//! Much output: memory does not grow, counts are exact, files are complete up to their limit.

use std::fs;
use std::io::Write;
use std::time::Instant;

use hookloop_process::{
    ExitReason, HEAD_MAX, OUTPUT_MAX, OutputFilter, OutputStream, StoredOutput, TAIL_MAX,
};

use super::{has_own_process, keeper, number_from_env, script, stdout};

const OUTPUT_MIB: u64 = 64;
const MEMORY_GROWTH_MAX_KIB: u64 = 16 * 1024;

#[test]
fn memory_does_not_grow_with_output() {
    if !has_own_process() {
        return;
    }
    let mib = number_from_env("HOOKLOOP_OUTPUT_MIB", OUTPUT_MIB);
    let directory = tempfile::tempdir().unwrap();
    let mut keeper = keeper();
    keeper.run(script("echo warm")).unwrap();
    let before = peak_kib();
    let mut much =
        script(&format!("dd if=/dev/zero bs=1M count={mib} 2>/dev/null; echo; echo end"));
    much.artifacts = Some(directory.path().join("hook"));
    let start = Instant::now();
    let ran = keeper.run(much).unwrap();
    let took = start.elapsed();
    let grown = peak_kib() - before;

    assert_eq!(ran.exit, ExitReason::Exited(0));
    let output = &ran.output.stdout;
    assert_eq!(output.bytes, (mib << 20) + 5);
    assert_eq!(output.lines, 2);
    assert_eq!(output.left_out_bytes(), output.bytes - (HEAD_MAX + TAIL_MAX) as u64);
    assert!(output.tail().ends_with(b"\nend\n"));
    match &output.stored {
        StoredOutput::Whole(file) if output.bytes <= OUTPUT_MAX => {
            assert_eq!(fs::metadata(file).unwrap().len(), output.bytes);
        }
        StoredOutput::Cut(file) if output.bytes > OUTPUT_MAX => {
            assert_eq!(fs::metadata(file).unwrap().len(), OUTPUT_MAX);
        }
        other => panic!("{other:?}"),
    }
    assert!(!directory.path().join("hook/stderr").exists());
    assert!(grown <= MEMORY_GROWTH_MAX_KIB, "{grown} KiB");
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let speed = output.bytes as f64 / 1e6 / took.as_secs_f64();
    writeln!(std::io::stderr(), "{mib} MiB: {speed:.0} MB/s, memory grew by {grown} KiB").unwrap();
}

/// The peak memory of this process.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn each_stream_passes_its_own_filter() {
    let directory = tempfile::tempdir().unwrap();
    let louder = |stream: OutputStream| -> OutputFilter<'_> {
        Box::new(move |piece, kept| match stream {
            OutputStream::Stdout => kept.extend(piece.to_ascii_uppercase()),
            OutputStream::Stderr => kept.extend_from_slice(piece),
        })
    };
    let mut both = script("echo one; echo two >&2");
    both.filter = Some(&louder);
    both.artifacts = Some(directory.path().into());
    let ran = keeper().run(both).unwrap();
    assert_eq!(stdout(&ran), "ONE\n");
    assert_eq!(fs::read_to_string(directory.path().join("stdout")).unwrap(), "ONE\n");
    assert_eq!(fs::read_to_string(directory.path().join("stderr")).unwrap(), "two\n");
}
