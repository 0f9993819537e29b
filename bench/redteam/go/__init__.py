"""Go: `go test ./...` with internal and external tests, golden files and a local module."""

from go.code import CODE
from go.gate import GATE
from go.honest import HONEST
from go.runner import RUNNER
from go.tests import TESTS

FAKES = [*GATE, *TESTS, *RUNNER, *CODE]

__all__ = ["FAKES", "HONEST"]
