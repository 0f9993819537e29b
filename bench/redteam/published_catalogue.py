"""The packages whose published changes are played, and the commands of their suites.

A suite needs no packages inside of the project: Python gets a virtual environment, JavaScript a
`node_modules` above the project, Rust the downloads in its home. The suites of a package are short,
and give the same result twice.
"""

from dataclasses import dataclass

PYTEST = "PYTHONPATH=src:. pytest -q -p no:cacheprovider"
CARGO_TEST = "cargo test --lib --tests"
GO_TEST = "go test ./..."


@dataclass(frozen=True)
class PublishedPackage:
    """A package, with the places where its versions come from."""

    language: str
    name: str
    command: str
    # The repository on GitHub: "owner/name"; empty if only releases are played.
    repository: str = ""
    # The registry that has releases with their suites: "pypi", "crates", "npm", or none.
    registry: str = ""

    @property
    def key(self) -> str:
        return f"{self.language}/{self.name}"


def python(name: str, repository: str = "", command: str = PYTEST, registry: str = "pypi"):
    return PublishedPackage("python", name, command, repository, registry)


def rust(name: str, repository: str = "", command: str = CARGO_TEST, registry: str = "crates"):
    return PublishedPackage("rust", name, command, repository, registry)


def javascript(name: str, command: str, repository: str = "", registry: str = ""):
    return PublishedPackage("javascript", name, command, repository, registry)


def go(name: str, repository: str):
    return PublishedPackage("go", name, GO_TEST, repository)


PACKAGES = [
    go("go-version", "hashicorp/go-version"),
    python("cachetools", "tkem/cachetools"),
    javascript("fastq", "tape test/*.js", "mcollina/fastq", "npm"),
    rust("strsim", "rapidfuzz/strsim-rs"),
    go("pflag", "spf13/pflag"),
    python("itsdangerous", "pallets/itsdangerous"),
    javascript("minimist", "tape 'test/**/*.js'", "minimistjs/minimist", "npm"),
    rust("either", "rayon-rs/either"),
    go("mux", "gorilla/mux"),
    python("xmltodict", "martinblech/xmltodict"),
    javascript("secure-json-parse", "tape test/*.test.js", "fastify/secure-json-parse", "npm"),
    rust("slab", "tokio-rs/slab"),
    go("semver", "Masterminds/semver"),
    python("parse", "r1chardj0n3s/parse"),
    go("uuid", "google/uuid"),
    python("python-slugify", "un33k/python-slugify",
           "PYTHONPATH=. pytest -q -p no:cacheprovider test.py"),
    go("schema", "gorilla/schema"),
    python("semver", "python-semver/python-semver"),
    go("chi", "go-chi/chi"),
    python("schedule", "dbader/schedule", "PYTHONPATH=. pytest -q -p no:cacheprovider"),
    javascript("ufo", "vitest run", "unjs/ufo"),
    rust("heck", "withoutboats/heck"),
    go("toml", "BurntSushi/toml"),
    python("funcy", "Suor/funcy"),
    javascript("qs", "tape 'test/**/*.js'", "ljharb/qs", "npm"),
    rust("shlex", "comex/rust-shlex"),
    javascript("reusify", "tape test.js", "mcollina/reusify", "npm"),
    javascript("process-warning", "node --test", "fastify/process-warning", "npm"),
    go("go-humanize", "dustin/go-humanize"),
    go("xstrings", "huandu/xstrings"),
    go("golang-lru", "hashicorp/golang-lru"),
    go("httprouter", "julienschmidt/httprouter"),
    # Criterion and its packages take longer to build than any suite takes to run.
    rust("httparse", "seanmonstar/httparse"),
    python("tabulate"),
    rust("semver"),
    rust("arrayvec"),
    rust("smallvec"),
    rust("humantime"),
    rust("textwrap"),
    rust("itoa"),
    rust("fastrand"),
]

# Packages of the virtual environment of all Python suites.
PYTHON_TOOLS = (
    "pytest==8.4.2", "pytest-cov", "freezegun", "hypothesis", "text-unidecode", "setuptools",
    "wcwidth", "pytz", "whatever",
)
# Packages of the `node_modules` of all JavaScript suites.
JAVASCRIPT_TOOLS = (
    "tape@5", "vitest@3", "async@3", "neo-async@2", "reusify@1", "es-define-property@1",
    "es-value-fixtures@1", "for-each@0.3", "has-bigints@1", "has-override-mistake@1",
    "has-property-descriptors@1", "has-proto@1", "has-symbols@1", "iconv-lite@0.5",
    "mock-property@1", "object-inspect@1", "safer-buffer@2", "side-channel@1",
)
