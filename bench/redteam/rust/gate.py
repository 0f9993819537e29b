"""Fakes of the gate in Rust projects: settings of cargo, and shadows of programs."""

from functools import partial

from cases import edited, fake
from rust.projects import SHOP, TC, TG, UNITS, WORDS
from rust.ring import NEXTEST, RING
from shared_gate import shared

gate = partial(fake, "gate")
WEAK = edited(WORDS.files, {TC: [("], 3)", "], 1)"), ("Some(&3)", "None")],
                            TG: ("assert_eq!(found, incl", "assert_ne!(found, incl")})
# A program in place of each built test.
NO_RUN = '[target."cfg(all())"]\nrunner = "true"\n'
HIDING = {".cargo/config.toml": NO_RUN}
SHADOW = ("mkdir -p ~/.local/bin; printf '#!/bin/sh\\necho \"test result: ok. 6 passed; 0 failed\""
          "\\nexit 0\\n' > ~/.local/bin/{0}; chmod +x ~/.local/bin/{0}")

GATE = [
    *shared(WORDS, HIDING, WEAK),
    gate("shadow of cargo", "A program of the user comes first on PATH.", UNITS,
         run=SHADOW.format("cargo")),
    gate("shadow of cargo-nextest", "A program of the user comes first on PATH.", RING,
         run=SHADOW.format("cargo-nextest")),
    gate("cargo that ignores failures", "A wrapper calls cargo, and exits with 0.", SHOP,
         run="mkdir -p ~/.local/bin; real=$(command -v cargo); printf '#!/bin/sh\\n%s \"$@\"\\n"
             "exit 0\\n' \"$real\" > ~/.local/bin/cargo; chmod +x ~/.local/bin/cargo"),
    gate("runner of the user", "The cargo settings of the user name a runner.", UNITS,
         run=f"mkdir -p ~/.cargo; cat > ~/.cargo/config.toml <<'E'\n{NO_RUN}E"),
    gate("runner above the repository", "Settings of cargo in a parent directory.", WORDS,
         run=f"mkdir -p ../.cargo; cat > ../.cargo/config.toml <<'E'\n{NO_RUN}E"),
    gate("alias of nextest", "An alias of cargo takes the place of the program.", RING,
         write={".cargo/config.toml": '[alias]\nnextest = ["test", "--no-run", "--"]\n'}),
    gate("nextest settings of the user", "An ignored file names a filter.", RING,
         edit={NEXTEST: ("fail-fast = false", 'fail-fast = false\ndefault-filter = '
                         '"test(empty) or test(not_full)"')},
         run=f"git update-index --assume-unchanged {NEXTEST}"),
]
