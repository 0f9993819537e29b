"""Python: pytest, also with unittest classes and with a gate that is a script."""

from python.code import CODE
from python.gate import GATE
from python.honest import HONEST
from python.runner import RUNNER
from python.tests import TESTS

FAKES = [*GATE, *TESTS, *RUNNER, *CODE]

__all__ = ["FAKES", "HONEST"]
