"""Checks the corpus with the real test runners, without hookloop.

A case counts only if its base is red, if its fake is green by hand although the work is not done,
and if the honest work is green and done.
"""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cases import PROBE_TOKEN, Fake, Honest, Project
from processes import Missed, Ran
from toolchains import Copy, Toolchains


@dataclass
class Checked:
    """The result of the check of a project, a fake or an honest change."""

    language: str
    kind: str
    name: str
    layer: str
    # passed | not by hand | failed
    status: str
    evidence: str
    seconds: float


class SelfCheck:
    """Plays cases by hand. Keeps the copies of those that fail."""

    def __init__(self, toolchains: Toolchains, jobs: int, announce):
        self.toolchains = toolchains
        self.jobs = jobs
        self.announce = announce

    def check(self, fakes: list[Fake], honest: list[Honest]) -> list[Checked]:
        """Returns a result for each project, fake and honest change."""
        projects = {(case.project.language, case.project.name): case.project
                    for case in [*fakes, *honest]}
        tasks = [(self.base, project, "project", "") for project in projects.values()]
        tasks += [(self.fake, case, "fake", case.layer) for case in fakes]
        tasks += [(self.honest, case, "honest", "") for case in honest]
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda task: self.attempt(*task), tasks))

    def attempt(self, check, case, kind: str, layer: str) -> Checked:
        began = time.monotonic()
        language = case.language if kind == "project" else case.project.language
        try:
            status, evidence = check(case), ""
        except Missed as missed:
            status, evidence = "failed", str(missed)
        seconds = round(time.monotonic() - began, 1)
        checked = Checked(language, kind, case.name, layer, status, evidence, seconds)
        self.announce(checked)
        return checked

    def base(self, project: Project) -> str:
        """The suite is red for the named tests, and the honest fix makes it green."""
        copy = self.copied(project, f"base of {project.name}")
        ran = self.gate(project, copy)
        output = ran.stdout + ran.stderr
        if ran.code == 0:
            raise Missed(f"the suite is green before the work\n{ran.evidence()}")
        for line in project.red:
            if line not in output:
                raise Missed(f"the output of the red suite lacks {line!r}\n{ran.evidence()}")
        self.must_be_done(project, copy, expected=False)
        shutil.rmtree(copy.work, ignore_errors=True)
        copy = self.copied(project, f"fix of {project.name}")
        for name, content in project.fix.items():
            (copy.root / name).write_text(content)
        self.must_be_green(project, copy)
        self.must_be_done(project, copy, expected=True)
        shutil.rmtree(copy.work, ignore_errors=True)
        return "passed"

    def fake(self, fake: Fake) -> str:
        """The suite is green, and the probe shows that the work is not done."""
        if not fake.by_hand:
            return "not by hand"
        copy = self.copied(fake.project, fake.name)
        copy.play(fake.turn)
        self.must_be_green(fake.project, copy)
        self.must_be_done(fake.project, copy, expected=False)
        shutil.rmtree(copy.work, ignore_errors=True)
        return "passed"

    def honest(self, case: Honest) -> str:
        copy = self.copied(case.project, case.name)
        copy.play(case.turn)
        self.must_be_green(case.project, copy)
        # A task may ask for something else than the usual work of the project.
        if not case.prompt:
            self.must_be_done(case.project, copy, expected=True)
        shutil.rmtree(copy.work, ignore_errors=True)
        return "passed"

    def copied(self, project: Project, name: str) -> Copy:
        copy = self.toolchains.copy(project, "check " + name)
        # Python compares sources with their byte code by the second.
        time.sleep(1.1 if project.language == "python" else 0)
        return copy

    def gate(self, project: Project, copy: Copy) -> Ran:
        return copy.machine.run(["sh", "-c", project.command], copy.root)

    def must_be_green(self, project: Project, copy: Copy) -> None:
        ran = self.gate(project, copy)
        if ran.code != 0:
            raise Missed(f"the suite is red by hand in {copy.root}\n{ran.evidence()}")

    def must_be_done(self, project: Project, copy: Copy, expected: bool) -> None:
        output = self.toolchains.probe(project, copy)
        if (PROBE_TOKEN in output) != expected:
            state = "is not done" if expected else "is done"
            raise Missed(f"the work {state} in {copy.root}\n{output}")
