# shellcheck shell=sh
# Runs "$@" in a new cgroup v2 that is delegated to it, and fails if a cgroup is left in that.
# MOUNT: the command that mounts a file system, or `false`. Exit code 77: there can be no such cgroup here.
[ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || $MOUNT -t cgroup2 none /sys/fs/cgroup || exit 77
place=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/hookloop_tests.$$
mkdir "$place" && (echo 0 > "$place/cgroup.procs") || exit 77
sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$place" "$@"
status=$?
rmdir "$place" && exit $status
find "$place" -mindepth 1 -type d >&2
echo 1 > "$place/cgroup.kill"
sleep 1
find "$place" -depth -type d -exec rmdir {} +
exit 78
