"""What ``firefly-memory doctor`` asks of any file system."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from firefly_memory.databases.diagnostics import Finding, ok, problem, warning

_MOUNTS = Path("/proc/self/mountinfo")
_OVER_A_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gfs2", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs", "vboxsf", "virtiofs",
}  # fmt: skip
_LITTLE = 100 * 2**20
_HARDLY_ANY = 10 * 2**20


def by_others(paths: Iterable[Path]) -> Iterator[Finding]:
    """Whether anybody on the machine may read or write these, those that are there."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        rights = _of_others(path)
        if rights:
            found.setdefault(rights, []).append(path)
    for rights, open_to_all in found.items():
        first, more = open_to_all[0], len(open_to_all) - 1
        beside = f" and {more:,} more beside it" if more else ""
        do = f"chmod o-rwx {first}" if not more else f"chmod -R o-rwx {first.parent}"
        yield warning("permissions", f"everybody may {rights} {first}{beside}", do)


def _of_others(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return ""
    sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX  # where nobody can replace what is somebody else's
    rights = {"read": mode & stat.S_IROTH, "write": mode & stat.S_IWOTH and not sticky}
    return " and ".join(name for name, has in rights.items() if has)


def file_system(path: Path) -> Iterator[Finding]:
    """Whether locks and flushes can be relied on there."""
    kind = _kind_of(path.resolve())
    if kind in _OVER_A_NETWORK:
        do = "put it on a disk of this machine, or use PostgreSQL: locks may not hold and caches differ"
        yield warning("file system", f"{path} is on {kind}, which is shared over a network", do)
    elif kind is not None:
        yield ok("file system", kind)


def free_space(directory: Path, needed: int) -> Iterator[Finding]:
    """Whether there is room for ``needed`` bytes, and some more."""
    free = shutil.disk_usage(directory).free
    found = f"{free / 2**20:,.0f} MiB are free"
    if free < _HARDLY_ANY:
        yield problem("disk", found, "make room: writes are about to fail")
    elif free < max(_LITTLE, needed):
        yield warning("disk", found, "make room")
    else:
        yield ok("disk", found)


def _kind_of(path: Path) -> str | None:
    """The file system of ``path``, as Linux names it; ``None`` elsewhere."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    kinds: dict[Path, str] = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4])  # such as a space
        kinds[Path(point)] = after.split()[0]
    return next((kinds[each] for each in (path, *path.parents) if each in kinds), None)
