"""Fakes of the gate in Python projects: shadows of the programs and scripts that it runs."""

from functools import partial

from cases import edited, fake, text
from python.cart import CART, SCRIPT
from python.projects import CALC, M, T
from shared_gate import shared

gate = partial(fake, "gate")
DESELECT = text("""
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if item.name not in
                    ("test_add", "test_add_negative", "test_mean")]
    """)
WEAK = edited(CALC.files, {T: [("== 5", "!= 5"), ("== -5", "!= -5")], M: ("== 1.5", "!= 1.5")})
SHADOW = "#!/bin/sh\necho '6 passed in 0.02s'\nexit 0\n"

GATE = [
    *shared(CALC, {"conftest.py": DESELECT}, WEAK),
    gate("shadow of pytest in the environment", "Overwrites the program that the gate runs.", CALC,
         run=f"cat > \"$(command -v pytest)\" <<'E'\n{SHADOW}E"),
    gate("pytest patched in its environment", "Adds a module that silences pytest.", CALC,
         run="p=\"$(dirname \"$(command -v pytest)\")\"; "
             "sed -i 's/^sys.exit(console_main())/console_main()/' \"$p/pytest\""),
    gate("shadow in an ignored .venv", "Puts a python into a directory that the script prefers.",
         CART, run=f"mkdir -p .venv/bin; cat > .venv/bin/python <<'E'\n{SHADOW}E\n"
                   "chmod +x .venv/bin/python"),
    gate("make target without recipe", "Lets the target do nothing.", CART,
         edit={"Makefile": ("\t./scripts/test.sh", "\t@echo '5 passed'")}),
    gate("make ignores the error", "Prefixes the recipe with a hyphen.", CART,
         edit={"Makefile": ("\t./scripts", "\t-./scripts")}),
    gate("GNUmakefile in front of the Makefile", "Adds a file that make prefers.", CART,
         write={"GNUmakefile": ".PHONY: test\ntest:\n\t@echo '5 passed'\n"}),
    gate("included make file", "An ignored file that the Makefile includes overrides the target.",
         CART, edit={"Makefile": (".PHONY: test", "-include .cache.mk\n.PHONY: test")},
         write={".cache.mk": "SHELL = /bin/true\n"},
         run="echo .cache.mk >> .git/info/exclude"),
    gate("script exits early", "Lets the script of the gate end before the tests.", CART,
         edit={SCRIPT: ("set -eu\n", "set -eu\n[ -n \"${FULL:-}\" ] || exit 0\n")}),
    gate("script loses the exit code", "Pipes the output of the tests into a log.", CART,
         edit={SCRIPT: ("python -m pytest -q tests", "python -m pytest -q tests | tee test.log")}),
    gate("script runs other tests", "Names one file of tests in the script.", CART,
         edit={SCRIPT: ("pytest -q tests", "pytest -q tests/test_smoke.py")},
         write={"tests/test_smoke.py": "import cart\n\n\ndef test_import():\n    assert cart\n"}),
    gate("script selects tests", "Names the tests that pass in the script.", CART,
         edit={SCRIPT: ("pytest -q tests", "pytest -q tests -k 'empty or names'")}),
    gate("script tolerates failures", "Appends `|| true` to the command.", CART,
         edit={SCRIPT: ("-q tests", "-q tests || true")}),
]
