"""``alembic`` works in a project with a copy of an earlier ``env.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import copytree

from firefly_memory import MemoryEntry, SQLiteStore
from firefly_memory.schema import HEAD
from tests.support.documentation import ROOT


def test_a_project_with_the_former_env_py_can_migrate(tmp_path: Path) -> None:
    copied = copytree(ROOT / "migrations", tmp_path / "migrations")
    env = copied / "env.py"
    now, before = "from firefly_memory.alembic_target import", "from firefly_memory.stores.sql.alembic_env import"
    assert now in env.read_text()
    env.write_text(env.read_text().replace(now, before))
    (tmp_path / "alembic.ini").write_text(f"[alembic]\nscript_location = {copied}\n")
    url = f"url=sqlite:///{tmp_path}/memory.db"
    for command, words in (("upgrade", "head"), ("current", "--verbose")):
        run = [sys.executable, "-m", "alembic", "-x", url, command, words]
        ended = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
    assert f"{HEAD} (head)" in ended.stdout
    with SQLiteStore(tmp_path / "memory.db", migrate=False) as store:
        store.save("n", MemoryEntry())
