"""Rust: `cargo test` with inline and integration tests and a workspace, and nextest."""

from rust.code import CODE
from rust.gate import GATE
from rust.honest import HONEST
from rust.runner import RUNNER
from rust.tests import TESTS

FAKES = [*GATE, *TESTS, *RUNNER, *CODE]

__all__ = ["FAKES", "HONEST"]
