"""What ``firefly-memory doctor`` looks at where a store is files, and what it asks of any file system."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic_core import from_json

from firefly_memory.concurrency.sync_bridge import finish
from firefly_memory.conversations.listing_file import NAME as LIST_FILE
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.databases.diagnostics import Finding, ok, problem, warning
from firefly_memory.errors import DatabaseConnectionError, FireflyMemoryError
from firefly_memory.identifiers import CONVERSATIONS, original_name
from firefly_memory.stores.file import LOCKS, FileStore

_MOUNTS = Path("/proc/self/mountinfo")
_OVER_A_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gfs2", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs", "vboxsf", "virtiofs",
}  # fmt: skip
_LITTLE = 100 * 2**20
_HARDLY_ANY = 10 * 2**20


def examine(directory: Path) -> Iterator[Finding]:
    """The directory of a :class:`FileStore`."""
    if not directory.is_dir():
        raise DatabaseConnectionError("doctor", f"there is no directory {directory}")
    if os.access(directory, os.W_OK | os.X_OK):
        yield ok("directory", f"{directory} is writable")
    else:
        yield problem("directory", f"{directory} is not writable", "give this user the right to write there")
    yield from by_others([directory])
    yield from file_system(directory)
    yield from free_space(directory, 0)
    if os.access(directory, os.R_OK | os.X_OK):
        yield from _files(directory)
    else:
        yield problem("files", f"{directory} cannot be listed", "give this user the right to read it")


def _files(directory: Path) -> Iterator[Finding]:
    store = FileStore(directory)
    files = sorted(path for path in directory.iterdir() if path.suffix == ".json")
    live, sound = 0, True
    for path in files:
        try:
            live += _live_in(store, from_json(path.read_bytes())["namespace"])
        except (OSError, FireflyMemoryError, KeyError, TypeError, ValueError) as exc:
            sound = False
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            yield problem("file", f"{path} cannot be read: {reason}", "mend it, or put a copy of it in its place")
            continue
        if not os.access(path, os.W_OK):
            yield problem("file", f"{path} is not writable", "give this user the right to write it")
    try:
        finish(store.blocking.log(CONVERSATION_LOG).page(1, None))
    except (OSError, FireflyMemoryError) as exc:
        sound = False
        do = "mend it, or put a copy of it in its place: without it no conversation is listed"
        yield problem("file", f"the list of conversations cannot be read: {exc}", do)
    yield from by_others([*files, directory / LIST_FILE])
    yield from by_others(sorted((directory / LOCKS).glob("*")))  # whoever may read one may hold it
    if sound:
        yield ok("files", f"each of {len(files):,} can be read; {live:,} live entries and turns")
    for path in sorted(directory.glob("*.tmp")):
        found = f"{path} is left from a write that broke off, or one is under way"
        yield warning("file", found, "if nobody is writing, delete it: the file beside it is whole")


def _live_in(store: FileStore, namespace: str) -> int:
    """How many live entries, or turns of a conversation, the file of this stored namespace has. All of it is read."""
    if namespace == CONVERSATIONS:
        return 0  # the list of an earlier version, which is read with the one of today
    if not namespace.startswith(CONVERSATIONS):
        return len(store.load(original_name(namespace)))
    head = finish(store.blocking.log(CONVERSATION_LOG).head(namespace.removeprefix(CONVERSATIONS)))
    return 0 if head is None else head.turns


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
