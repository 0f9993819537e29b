#!/usr/bin/env node
// Makes the packages for npm from the archives of a release: one for each platform with the program in it, and `hookloop`, which
// names them as optional dependencies. npm installs the one that fits; nothing is fetched by a script when it is installed.
// DIRECTORY/packages.txt lists them in the order in which they are to be published.
// usage: npm/pack.mjs ARCHIVES DIRECTORY [--some]   (--some: those platforms alone whose archives are there)
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PLATFORMS = [
  { target: "x86_64-unknown-linux-musl", os: "linux", cpu: "x64" },
  { target: "aarch64-unknown-linux-musl", os: "linux", cpu: "arm64" },
  { target: "x86_64-apple-darwin", os: "darwin", cpu: "x64" },
  { target: "aarch64-apple-darwin", os: "darwin", cpu: "arm64" },
];

const home = dirname(fileURLToPath(import.meta.url));
const [archives, directory, ...options] = process.argv.slice(2);
if (!directory || options.some((option) => option !== "--some")) {
  console.error("usage: npm/pack.mjs ARCHIVES DIRECTORY [--some]");
  process.exit(2);
}

const root = join(home, "..");
const version = /^version = "(.+)"$/m.exec(readFileSync(join(root, "Cargo.toml"), "utf8"))[1];
const main = JSON.parse(readFileSync(join(home, "hookloop/package.json"), "utf8"));
// Where npm's provenance says that the packages were made; the release's workflow knows.
const repository = process.env.HOOKLOOP_REPOSITORY ? { repository: { type: "git", url: process.env.HOOKLOOP_REPOSITORY } } : {};
const archiveOf = (platform) => join(archives, `hookloop-${platform.target}.tar.gz`);
const missing = PLATFORMS.filter((platform) => !existsSync(archiveOf(platform)));
if (missing.length === PLATFORMS.length || (missing.length > 0 && options.length === 0)) {
  console.error(`error: there is no ${archiveOf(missing[0])}\n  packaging/archive PROGRAM ${missing[0].target} ${archives}`);
  process.exit(1);
}
const stage = mkdtempSync(join(tmpdir(), "hookloop-npm-"));
const run = (command, args) => execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

/** Packs what is in `place`; answers the file. */
function pack(place, manifest) {
  writeFileSync(join(place, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE"]) cpSync(join(root, file), join(place, file));
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", directory, place]);
  return join(directory, `${manifest.name.replace("@", "").replace("/", "-")}-${version}.tgz`);
}

function packPlatform({ target, os, cpu }) {
  const place = join(stage, `${os}-${cpu}`);
  mkdirSync(join(place, "bin"), { recursive: true });
  run("tar", ["-xzf", archiveOf({ target }), "-C", stage]);
  renameSync(join(stage, `hookloop-${target}/hookloop`), join(place, "bin/hookloop"));
  renameSync(join(stage, `hookloop-${target}/LICENSES-OF-DEPENDENCIES.txt`), join(place, "LICENSES-OF-DEPENDENCIES.txt"));
  const name = `@hookloop/${os}-${cpu}`;
  const { license } = main;
  const description = `The program of the package hookloop, for ${os} on ${cpu}`;
  // Not for a shell: the package hookloop has the command.
  return pack(place, { name, version, description, license, ...repository, os: [os], cpu: [cpu], preferUnplugged: true });
}

try {
  mkdirSync(directory, { recursive: true });
  const made = PLATFORMS.filter((platform) => !missing.includes(platform)).map(packPlatform);
  const place = join(stage, "hookloop");
  cpSync(join(home, "hookloop"), place, { recursive: true });
  cpSync(join(root, "README.md"), join(place, "README.md"));
  const optionalDependencies = Object.fromEntries(PLATFORMS.map(({ os, cpu }) => [`@hookloop/${os}-${cpu}`, version]));
  made.push(pack(place, { ...main, version, ...repository, optionalDependencies }));
  writeFileSync(join(directory, "packages.txt"), made.map((file) => `${basename(file)}\n`).join(""));
  for (const file of made) console.log(file);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
