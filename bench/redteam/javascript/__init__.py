"""JavaScript and TypeScript: vitest, jest, node:test and tape, run by `npm test`."""

from javascript.code import CODE
from javascript.gate import GATE
from javascript.honest import HONEST
from javascript.runner import RUNNER
from javascript.tests import TESTS

FAKES = [*GATE, *TESTS, *RUNNER, *CODE]

__all__ = ["FAKES", "HONEST"]
