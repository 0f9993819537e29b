#!/bin/sh
# Installs or updates hookloop for the current user: downloads the archive for this machine, checks its SHA-256, and installs
# the program in ~/.local/bin, its manual pages and completions in ~/.local/share. It asks for no password, and changes no
# shell configuration.
#
#   curl -fsSL "$HOOKLOOP_DOWNLOADS/latest/download/install.sh" | sh
#   curl -fsSL "$HOOKLOOP_DOWNLOADS/latest/download/install.sh" | sh -s -- --version 0.1.0 --to ~/bin
set -eu

# Address and version of the release, which packaging/stamp sets in the copy of each release. HOOKLOOP_DOWNLOADS overrides the
# address. An empty version means the latest.
downloads=''
version=''

# Timeouts in seconds, and the maximum size of an archive in bytes.
connect_max=20
download_max=900
archive_max=268435456

say() { printf '%s\n' "$*"; }

# fail ERROR [HINT]...: prints the error and the hints, and exits.
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

usage() {
  say 'Installs hookloop for you.

  --version VERSION  this one instead of the latest
  --to DIRECTORY     there instead of ~/.local/bin
  --help             this text

HOOKLOOP_DOWNLOADS is where releases are, for example https://github.com/OWNER/hookloop/releases'
}

# Prints the target name of this machine.
target() {
  system="$(uname -s)" machine="$(uname -m)"
  case "$system $machine" in
    'Linux x86_64' | 'Linux amd64') say x86_64-unknown-linux-musl ;;
    'Linux aarch64' | 'Linux arm64') say aarch64-unknown-linux-musl ;;
    'Darwin arm64') say aarch64-apple-darwin ;;
    'Darwin x86_64') say x86_64-apple-darwin ;;
    *)
      fail "no release of hookloop supports $system on $machine" \
        'It runs on Linux and macOS, on x86_64 and arm64: in a virtual machine or a container it runs elsewhere, too.'
      ;;
  esac
}

# Allows plain HTTP only on loopback, because the downloaded program is run.
check_address() {
  case "$1" in
    https://*) scheme=https ;;
    http://127.0.0.1:* | http://127.0.0.1/* | http://localhost:* | http://localhost/*) scheme=http ;;
    '')
      fail 'the address of the releases is unknown' \
        "Set HOOKLOOP_DOWNLOADS to their address, for example https://github.com/OWNER/hookloop/releases"
      ;;
    *) fail "the download address is not secure: $1" 'The address must begin with https://' ;;
  esac
}

# fetch URL FILE
fetch() {
  if has curl; then
    curl --fail --silent --show-error --location --proto "=$scheme" --tlsv1.2 --retry 3 \
      --connect-timeout "$connect_max" --max-time "$download_max" --max-filesize "$archive_max" --output "$2" "$1"
  elif has wget; then
    wget -q -T "$connect_max" -O "$2" "$1"
  else
    fail 'neither curl nor wget is installed' 'Install one of them, then run this script again.'
  fi || fail "cannot download $1" "Is there such a release? See ${downloads}"
}

digest() {
  if has sha256sum; then
    sha256sum "$1"
  elif has shasum; then
    shasum -a 256 "$1"
  elif has openssl; then
    openssl dgst -sha256 -r "$1"
  fi | cut -d ' ' -f 1
}

# check FILE SUMS: fails unless the file has the checksum that its release lists.
check() {
  name="${1##*/}"
  expected="$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' "$2")"
  [ -n "$expected" ] || fail "SHA256SUMS does not list $name" "Nothing was installed."
  found="$(digest "$1")"
  [ -n "$found" ] || fail 'no program computes SHA-256 checksums' 'Install sha256sum, shasum or openssl, then run this script again.'
  [ "$found" = "$expected" ] || fail "$name does not have the checksum that its release lists" \
    "expected $expected" "found    $found" \
    'Nothing was installed. Try again; if it stays so, tell the maintainers.'
}

# put FILE PLACE MODE: replaces PLACE atomically; a running program keeps its old file.
put() {
  mkdir -p "${2%/*}"
  cp "$1" "$2.new.$$"
  chmod "$3" "$2.new.$$"
  mv -f "$2.new.$$" "$2"
}

# Installs manual pages and completions in the default search paths, relative to the directory of programs.
put_extras() {
  from="$1" share="${2%/bin}/share"
  for page in "$from"/man/*.1; do put "$page" "$share/man/man1/${page##*/}" 644; done
  put "$from/completions/hookloop.bash" "$share/bash-completion/completions/hookloop" 644
  put "$from/completions/hookloop.fish" "$share/fish/vendor_completions.d/hookloop.fish" 644
  put "$from/completions/_hookloop" "$share/zsh/site-functions/_hookloop" 644
}

# lasting DIRECTORY FILE: prints the command that adds DIRECTORY to the PATH in FILE and in this shell.
lasting() { say "  echo 'export PATH=\"$1:\$PATH\"' >> ~/$2 && . ~/$2"; }

# advise DIRECTORY: prints the next command, and how to add DIRECTORY to the PATH if necessary.
advise() {
  case ":$PATH:" in
    *":$1:"*)
      first="$(command -v hookloop || true)"
      [ "$first" = "$1/hookloop" ] || say "Another hookloop comes first in your PATH: $first"
      say 'Try it: hookloop demo'
      return
      ;;
  esac
  say "$1 is not in your PATH. To add it for this shell and new shells:"
  shell="${SHELL:-sh}"
  case "${shell##*/}" in
    fish) say "  fish_add_path $1" ;;
    zsh) lasting "$1" .zshrc ;;
    bash) lasting "$1" .bashrc ;;
    *) lasting "$1" .profile ;;
  esac
  say 'Then: hookloop demo'
}

# version_of PLACE: prints the version of the program at PLACE, or nothing.
version_of() { "$1" -V 2>/dev/null | cut -d ' ' -f 2 || true; }

main() {
  to="${HOME:?HOME is not set}/.local/bin"
  while [ $# -gt 0 ]; do
    case "$1" in
      --version | --to) [ $# -ge 2 ] || fail "$1 needs a value" 'See --help.' ;;
    esac
    case "$1" in
      --version) version="${2#v}" && shift ;;
      --to) to="$2" && shift ;;
      --help) usage && exit ;;
      *) fail "unknown option: $1" 'See --help.' ;;
    esac
    shift
  done
  downloads="${HOOKLOOP_DOWNLOADS:-$downloads}"
  downloads="${downloads%/}"
  check_address "$downloads"
  target="$(target)" || exit
  archive="hookloop-$target.tar.gz"
  from="$downloads/latest/download"
  [ -z "$version" ] || from="$downloads/download/v$version"

  mkdir -p "$to" 2>/dev/null && [ -w "$to" ] || fail "cannot write to $to" 'Name another directory with --to.'
  to="$(cd "$to" && pwd)"
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT TERM HUP
  say "Fetching $from/$archive"
  fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
  fetch "$from/$archive" "$work/$archive"
  check "$work/$archive" "$work/SHA256SUMS"
  tar -xzf "$work/$archive" -C "$work"
  unpacked="$work/hookloop-$target"
  now="$(version_of "$unpacked/hookloop")"
  [ -n "$now" ] || fail "the program in $archive does not run on this machine" 'Nothing was installed.'

  before="$(version_of "$to/hookloop")"
  put "$unpacked/hookloop" "$to/hookloop" 755
  case "$to" in */bin) put_extras "$unpacked" "$to" ;; esac
  case "$before" in
    '') say "hookloop $now is in $to" ;;
    "$now") say "hookloop $now is in $to already" ;;
    *) say "hookloop $now is in $to. It replaces $before." ;;
  esac
  advise "$to"
}

# The last line, so that a truncated download does nothing.
main "$@"
