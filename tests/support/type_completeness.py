"""What ``pyright --verifytypes`` says about the public names: ``python -m tests.support.type_completeness < its.json``."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.support.source_names import definition, exported


def main() -> int:
    """1 if a public name has a type that Pyright does not know, or would have to infer."""
    found = json.load(sys.stdin)["typeCompleteness"]
    public = public_names()
    symbols = [each for each in found["symbols"] if is_public(each["name"], public)]
    unknown = [each for each in symbols if not each["isTypeKnown"]]
    for each in unknown:
        print(each["name"], *(said["message"] for said in each["diagnostics"]), sep="\n    ")
    print(f"{len(symbols) - len(unknown)} of {len(symbols)} public symbols have a known type;", end=" ")
    print(f"of all modules, {found['completenessScore']:.1%}")
    return 1 if unknown or len(symbols) < 1000 else 0


def public_names() -> set[str]:
    """Where they are imported from, and where they are defined."""
    names: set[str] = set()
    for module, exports in exported().items():
        for name in exports:
            found: Any = definition(module, name)
            names |= {f"{module}.{name}", f"{found.module}.{getattr(found.node, 'name', name)}"}
    return names


def is_public(symbol: str, public: set[str]) -> bool:
    """Whether it is a public name, or a member of one that does not begin with an underscore."""
    parts = symbol.split(".")
    if any(part.startswith("_") and not part.startswith("__") for part in parts):
        return False
    return any(".".join(parts[:end]) in public for end in range(2, len(parts) + 1))


if __name__ == "__main__":
    sys.exit(main())
