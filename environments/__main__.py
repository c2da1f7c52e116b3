"""Makes environments below ``.cache/environments``, and runs what is to be run in each: ``python -m environments``."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from environments.table import ENVIRONMENTS, ROOT, Environment
from tests.support import servers
from tests.support.tiktoken_vocabularies import fill_cache

HOME = ROOT / ".cache" / "environments"
SERVERS = {
    "postgres": ("FIREFLY_TEST_POSTGRES_URL", servers.postgresql),
    "mongodb": ("FIREFLY_TEST_MONGODB_URL", servers.mongodb),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m environments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"by default all: {', '.join(ENVIRONMENTS)}")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="of the random order")
    arguments = parser.parse_args()
    names = arguments.names or list(ENVIRONMENTS)
    if unknown := set(names) - set(ENVIRONMENTS):
        parser.error(f"there is no environment {', '.join(sorted(unknown))}; there are: {', '.join(ENVIRONMENTS)}")
    summary = []
    for name in names:
        started = time.monotonic()
        passed = _run(name, ENVIRONMENTS[name], arguments.seed)
        summary.append(f"{'passed' if passed else 'FAILED'}   {name}, {time.monotonic() - started:.0f} s")
        print(summary[-1], flush=True)
    print("== Environments", *summary, sep="\n", flush=True)
    return any(line.startswith("FAILED") for line in summary)


def _run(name: str, environment: Environment, seed: int) -> bool:
    print(f"== {name}", flush=True)
    python = _made(name, environment) if environment.requirements else Path(sys.executable)
    if python is None:
        return False
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *environment.pytest]
    if "--random-order" in environment.pytest:
        command.append(f"--random-order-seed={seed}")
        print(f"the same order again: make environments ENVIRONMENTS='{name} --seed {seed}'", flush=True)
    with ExitStack() as running:
        variables = _variables(name, environment, python, running)
        return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0


def _made(name: str, environment: Environment) -> Path | None:
    """The Python of a new environment; ``None`` if it is not there, or something cannot be installed."""
    directory = HOME / name
    shutil.rmtree(directory, ignore_errors=True)
    if subprocess.run(["uv", "venv", "--quiet", "--python", environment.python, directory], check=False).returncode:
        return None
    python = directory / "bin" / "python"
    command = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    # The library is built anew: its version is the same each time.
    command += ["--refresh-package", "firefly-memory", "--reinstall-package", "firefly-memory"]
    if environment.lowest:
        command += ["--resolution", "lowest-direct"]
    installed = subprocess.run([*command, *environment.requirements], cwd=ROOT, check=False)
    return None if installed.returncode else python


def _is_before_conversation_stores(python: Path) -> bool:
    command = [str(python), "-c", "import pydantic_ai.conversation_store"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0


def _variables(name: str, environment: Environment, python: Path, running: ExitStack) -> dict[str, str]:
    """No setting of this machine, no vocabulary but where tokens are counted, and a server for each single extra."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FIREFLY_AGENTIC_", "TIKTOKEN_", "DATA_GYM_", "PYTHONPATH", "VIRTUAL_ENV"))
    }
    if not environment.requirements:
        return variables
    temporary = HOME / f"{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    variables |= {"TMPDIR": str(temporary), "FIREFLY_EXTRAS": " ".join(environment.extras)}
    for extra, (variable, server) in SERVERS.items():
        if environment.extras == (extra,):
            variables[variable] = running.enter_context(server())
    if "agents" in environment.extras and _is_before_conversation_stores(python):
        variables["FIREFLY_TEST_PYDANTIC_AI"] = "oldest"
    if environment.extras == ("tokens",):
        variables["TIKTOKEN_CACHE_DIR"] = str(fill_cache(temporary))
    return variables


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where uv is
    sys.exit(main())
