"""The public names as an editor finds them: in the source, without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.support.documentation import ROOT
from tests.support.public_names import NAMES

SOURCES = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.ClassDef


@dataclass(frozen=True)
class Found:
    """A definition, and the module that it is in."""

    module: str
    node: ast.stmt


@cache
def modules() -> tuple[str, ...]:
    """Every module of the library, but for revisions."""
    paths = (path.relative_to(SOURCES).with_suffix("") for path in (SOURCES / "firefly_memory").rglob("*.py"))
    names = (".".join(path.parts).removesuffix(".__init__") for path in paths if "alembic_branch" not in path.parts)
    return tuple(sorted(names))


@cache
def tree_of(module: str) -> ast.Module:
    """The module as it is written."""
    path = SOURCES.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def functions_in(scope: Scope) -> dict[str, Function]:
    """The functions that are defined in a module or a class, by name: of several with one name, the last one."""
    return {node.name: node for node in scope.body if isinstance(node, Function)}


def classes_in(module: str) -> Iterator[ast.ClassDef]:
    """All classes of the module."""
    return (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef))


def exported() -> dict[str, list[str]]:
    """The public names, by the module that they are imported from."""
    return {module: [name for name in names.split() if name != "__version__"] for module, names in NAMES.items()}


def definition(module: str, name: str) -> Found | None:
    """Where ``name`` of ``module`` is defined: imports are followed, as an editor follows them."""
    if module not in modules():
        return None
    for node in _statements(tree_of(module).body):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return Found(module, node)
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return Found(module, node)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, also the ones that stand in ``if`` and ``try``."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body)
            yield from _statements(node.orelse)


def _targets(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def docstring_of(found: Found) -> str | None:
    """The docstring, or the text below an assignment, which editors show as one."""
    if isinstance(found.node, ast.ClassDef | Function):
        return ast.get_docstring(found.node)
    return text_below(found.node, tree_of(found.module).body)


def text_below(node: ast.stmt, body: list[ast.stmt]) -> str | None:
    """The text that stands below an assignment."""
    after = body[body.index(node) + 1 : body.index(node) + 2] if node in body else []
    for each in after:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            return each.value.value
    return None


def bases_of(found: Found) -> Iterator[Found]:
    """The classes of ours that a class inherits from, nearest first."""
    assert isinstance(found.node, ast.ClassDef)
    for base in found.node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        inherited = definition(found.module, name.id) if isinstance(name, ast.Name) else None
        if inherited is not None and isinstance(inherited.node, ast.ClassDef):
            yield inherited
            yield from bases_of(inherited)
