"""The changes that `make mutants` makes: each is wrong in one place, and can still be compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.changes import changes_of


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("if a == b:\n    pass\n", ["if (a != b):\n    pass\n"]),
        ("x = a and b\n", ["x = (a or b)\n"]),
        ("x = not a\n", ["x = (a)\n"]),
        ("x = a + b\n", ["x = (a - b)\n"]),
        ("x = 'text' + b\n", []),
        ("while a:\n    b\n", ["while (not (a)):\n    b\n"]),
        ("x = True\n", ["x = False\n"]),
        ("x = 7\n", ["x = 8\n"]),
        ("def f():\n    return g\n", ["def f():\n    return None\n"]),
        ("def f():\n    return None\n", []),
        ("f(a)\n", ["pass\n"]),
        ("async def f():\n    await g()\n", ["async def f():\n    pass\n"]),
        ('"""A docstring."""\n', []),
        ("def f(x: 1) -> 2: ...\n", []),
        ("if TYPE_CHECKING:\n    f()\n", []),
        ("x = 'ä', a < b\n", ["x = 'ä', (a <= b)\n"]),
        ("x = f(\n    a,\n    1,\n)\n", ["x = f(\n    a,\n    2,\n)\n"]),
    ],
)
def test_each_change_is_in_one_place(code: str, changed: list[str]) -> None:
    source = code.encode()
    assert [change.applied_to(source).decode() for change in changes_of(source)] == changed


def test_all_changes_of_a_module_can_be_compiled() -> None:
    source = Path(changes_of.__code__.co_filename).read_bytes()
    changes = changes_of(source)
    assert len(changes) > 30
    for change in changes:
        compile(change.applied_to(source), "changed", "exec")
