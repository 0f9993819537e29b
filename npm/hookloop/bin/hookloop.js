#!/usr/bin/env node
// Puts the program that was installed for this platform in the place of this one.
"use strict";

const { spawn } = require("node:child_process");
const { isatty } = require("node:tty");

const platform = `${process.platform}-${process.arch}`;
const name = `@hookloop/${platform}`;

function refuse(message, hint) {
  console.error(`error: ${message}\n  ${hint}`);
  process.exit(1);
}

function find() {
  const known = Object.keys(require("../package.json").optionalDependencies ?? {});
  if (!known.includes(name)) {
    refuse(`there is no hookloop for ${platform}`, `It runs on ${known.map((one) => one.split("/")[1]).join(" and ")}.`);
  }
  try {
    return require.resolve(`${name}/bin/hookloop`);
  } catch {
    refuse(`${name} is not installed`, "npm was told to leave out optional packages: npm install --include=optional hookloop");
  }
}

/** For versions of Node that can't be replaced: stays, and passes on what it is told. */
function stay(program, args) {
  const child = spawn(program, args, { stdio: "inherit" });
  // A terminal tells the whole group, and hookloop takes the second time for impatience.
  const told = isatty(0) ? ["SIGTERM"] : ["SIGTERM", "SIGINT", "SIGHUP"];
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"]) {
    process.on(signal, () => told.includes(signal) && child.kill(signal));
  }
  child.on("error", (error) => refuse(`${program}: ${error.message}`, "npm install hookloop puts it there again"));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const program = find();
const args = process.argv.slice(2);
if (process.execve) {
  process.execve(program, ["hookloop", ...args], process.env);
}
stay(program, args);
