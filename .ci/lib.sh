# Shared by the scripts beside it; sourced, never run. Sets
#   top    the checkout
#   cache  what was fetched once and is kept
#   ci     "true" where a skipped step is a failure
# shellcheck shell=bash
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ci=${CI:-false}
plain_uid=65534

is_root() { [ "$(id -u)" = 0 ]; }
say() { printf '%s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Root's cache lies where a plain user can read it, since tests run as one too.
if [ -n "${CONFINE_CI_CACHE:-}" ]; then cache=$CONFINE_CI_CACHE
elif is_root; then cache=/var/cache/confine-ci
else cache=${XDG_CACHE_HOME:-$HOME/.cache}/confine-ci; fi
mkdir -p "$cache"

# retry COMMAND...: a registry that does not answer may do so a moment later.
retry() {
  local n
  for n in 1 2 3; do
    "$@" && return 0
    [ "$n" = 3 ] || { say "trying again: $*"; sleep $((n * 5)); }
  done
  return 1
}

# skip REASON: ends a step that cannot run here.
skip() {
  [ "$ci" != true ] || die "a required step cannot run: $*"
  say "skipped: $*"
  exit 77
}

# count PASSED FAILED SKIPPED: adds to the last line of the whole run.
count() { [ -z "${CONFINE_CI_TOTALS:-}" ] || say "$1 $2 $3" >> "$CONFINE_CI_TOTALS"; }

# make_work: sets work, a folder of this run that is removed at its end. It is
# not below /tmp or /var/tmp, of which confined commands and cases of the corpus
# have their own.
make_work() {
  if [ -n "${CONFINE_CI_WORK:-}" ]; then work=$CONFINE_CI_WORK; return; fi
  work=$(mktemp -d "$cache/work.XXXXXX")
  chmod 755 "$work"
  export CONFINE_CI_WORK=$work
  trap 'remove_work' EXIT
  trap 'exit 130' INT TERM HUP
}

remove_work() {
  local pid
  for pid in $(processes_of "$work"); do kill -KILL "$pid" 2>/dev/null || true; done
  ! mountpoint -q "$work" || umount -R -l "$work" || true
  chmod -R u+w "$work" 2>/dev/null || true
  rm -rf "$work"
}

# in_memory SCRIPT ARGUMENT...: goes on with a script where temporary files lie in
# memory, if root may arrange that and there is enough of it. A disk can be bad at
# making and removing as many files as tests do: see sandbox/ramtest.
in_memory() {
  [ -z "${CONFINE_CI_MEMORY:-}" ] && is_root || return 0
  case "$top/ $cache/ $HOME/ ${TMPDIR:-}" in *" /tmp/"* | *" /var/tmp/"* | /tmp/* | /var/tmp/*) return 0 ;; esac
  [ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -gt 12000000 ] || return 0
  unshare --mount true 2>/dev/null || return 0
  CONFINE_CI_MEMORY=1 exec unshare --mount -- bash -c 'mount -t tmpfs -o mode=1777 tests /tmp && mount -t tmpfs -o mode=1777 tests /var/tmp && exec bash "$@"' memory "$@"
}

# work_in_memory: the same for the folder of this run; what is below disk in it stays there.
work_in_memory() {
  mkdir "$work/disk"
  exec 9< "$work/disk"
  mount -t tmpfs -o mode=755 tests "$work"
  mkdir "$work/disk"
  mount -c --bind /proc/self/fd/9 "$work/disk" # -c: not what its name has become
  exec 9<&-
}

# on_disk COMMAND...: runs one where /var/tmp is what it was before in_memory.
on_disk() {
  if [ -n "${CONFINE_CI_MEMORY:-}" ]; then set -- unshare --mount -- sh -c 'umount /var/tmp && exec "$@"' disk "$@"; fi
  "$@"
}

# processes_of FOLDER: ids of the other processes that we started there: their
# program lies in it, their home does, or they inherited it as our work folder.
processes_of() {
  local dir pid
  for dir in /proc/[0-9]*; do
    pid=${dir#/proc/}
    case " $$ $BASHPID $PPID ${CONFINE_CI_PIDS:-} " in *" $pid "*) continue ;; esac
    case "$(readlink "$dir/exe" 2>/dev/null)" in "$1"*) say "$pid" && continue ;; esac
    if tr '\0' '\n' 2>/dev/null < "$dir/environ" | grep -qE "^(HOME=$1/|CONFINE_CI_WORK=$1\$)"; then say "$pid"; fi
  done
}

# binary: sets CONFINE_BIN, the program under test.
binary() {
  export CONFINE_BIN=${CONFINE_BIN:-$work/bin/confine}
  [ -x "$CONFINE_BIN" ] || (cd "$top" && CGO_ENABLED=0 go build -o "$CONFINE_BIN" ./cmd/confine)
}

# hasty_binary: sets CONFINE_HASTY_BIN, the same program with one constant
# replaced: it waits two seconds for an answer, not ten minutes.
hasty_binary() {
  export CONFINE_HASTY_BIN=$work/bin/confine-hasty
  [ ! -x "$CONFINE_HASTY_BIN" ] || return 0
  sed -E 's/^(\s*DefaultQuestionTTL\s*=).*/\1 2 * time.Second/' "$top/approval/gate.go" > "$work/gate.go"
  ! cmp -s "$top/approval/gate.go" "$work/gate.go" || die "approval/gate.go has no DefaultQuestionTTL to replace"
  say "{\"Replace\": {\"$top/approval/gate.go\": \"$work/gate.go\"}}" > "$work/overlay.json"
  (cd "$top" && CGO_ENABLED=0 go build -overlay "$work/overlay.json" -o "$CONFINE_HASTY_BIN" ./cmd/confine)
}

# extension_copy: sets extension, a copy of VS Code's extension that can be built
# with the packages that were fetched, so that the checkout stays as it is.
extension_copy() {
  extension=$work/vscode/extensions/vscode
  [ ! -d "$extension" ] || return 0
  [ -d "$cache/vscode/node_modules" ] || skip "npm packages are missing; run bash .ci/setup"
  mkdir -p "$extension"
  cp -r "$top/LICENSE" "$top/docs" "$work/vscode/" # pictures, and the schema of the protocol
  (cd "$top/extensions/vscode" && git ls-files -co --exclude-standard -z | tar -c --null -T -) | tar -x -C "$extension"
  ln -s "$cache/vscode/node_modules" "$extension/node_modules"
}

# extension_packages: sets CONFINE_VSIX, the extension for this machine with the
# program under test inside, and PROBE_VSIX, another one that does what tests say.
extension_packages() {
  local platform
  case $(uname -m) in aarch64) platform=linux-arm64 ;; *) platform=linux-x64 ;; esac
  export CONFINE_VSIX=$work/confine.vsix PROBE_VSIX=$work/probe.vsix
  [ ! -f "$PROBE_VSIX" ] || return 0
  binary
  extension_copy
  (cd "$extension" && node scripts/package.mjs --out "$work/packages" --program "$CONFINE_BIN" "$platform")
  mv "$work/packages/confine-$platform-"*.vsix "$CONFINE_VSIX"
  (cd "$extension/e2e/code/probe" && node "$extension/node_modules/@vscode/vsce/vsce" package --no-dependencies --allow-missing-repository --skip-license --out "$PROBE_VSIX")
}

# plain_home FOLDER: makes a home for as_plain.
plain_home() {
  mkdir -p "$1/tmp" "$1/gocache"
  chown -R "$plain_uid:$plain_uid" "$1"
}

# as_plain HOME COMMAND...: runs COMMAND as an unprivileged user; only root can.
as_plain() {
  local home=$1
  shift
  setpriv --reuid="$plain_uid" --regid="$plain_uid" --clear-groups --inh-caps=-all \
    env -i PATH="$PATH" LANG=C.UTF-8 HOME="$home" TMPDIR="$home/tmp" CI="$ci" CONFINE_SLOW="${CONFINE_SLOW:-}" \
    GOTOOLCHAIN=local GOFLAGS='-mod=mod -buildvcs=false' GOPROXY=off GOCACHE="$home/gocache" "$@"
}
