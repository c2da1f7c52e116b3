"""An editor shows the docstring of every public name. It reads the source, so these tests read the source as well."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.source_names import (
    Found,
    Function,
    Scope,
    bases_of,
    classes_in,
    definition,
    docstring_of,
    exported,
    functions_in,
    modules,
    text_below,
    tree_of,
)

PACKAGE = "firefly_memory"


def pairs() -> Iterator[tuple[str, Function, Function]]:
    """Each public function or method, and its counterpart ``async_…`` or ``…_sync``."""
    for module in modules():
        scopes: list[Scope] = [tree_of(module), *classes_in(module)]
        for scope in scopes:
            functions = functions_in(scope)
            for name, function in functions.items():
                base = name.removeprefix("async_").removesuffix("_sync")
                if base != name and base in functions and not base.startswith("_"):
                    yield f"{module}.{name}", functions[base], function


def public_classes() -> dict[str, Found]:
    """The classes among the public names, by where they are defined."""
    found: dict[str, Found] = {}
    for module, names in exported().items():
        for name in names:
            each = definition(module, name)
            assert each is not None, f"{module}.{name} is defined where an editor does not find it"
            if isinstance(each.node, ast.ClassDef):
                found[f"{each.module}.{each.node.name}"] = each
    return found


def test_a_function_and_its_counterpart_have_the_same_docstring() -> None:
    both = list(pairs())
    assert len(both) > 60  # they are found at all
    assert [name for name, one, other in both if ast.get_docstring(one) != ast.get_docstring(other)] == []


def test_a_function_and_its_counterpart_have_the_same_types() -> None:
    def types(function: Function) -> str:
        # What makes a function may make a coroutine function in its place.
        returned = re.sub(r"Awaitable\[(.+)\]", r"\1", ast.unparse(function.returns or function))
        return f"{ast.unparse(function.args)} -> {returned}"

    assert [name for name, one, other in pairs() if types(one) != types(other)] == []


def test_stores_have_the_docstrings_of_the_protocols() -> None:
    protocols = f"{PACKAGE}.protocols"
    stores = methods_of(f"{PACKAGE}.stores.base", "EntryStore")
    for class_name, others in (("StoreView", stores), ("AsyncMemoryStore", methods_of(protocols, "AsyncMemoryStore"))):
        compared = [
            (name, ast.get_docstring(ours), ast.get_docstring(others[counterpart]))
            for name, ours in methods_of(protocols, "StoreView" if others is stores else "MemoryStore").items()
            for counterpart in (name, f"async_{name}", f"{name}_sync")
            if counterpart in others and name != "capabilities"
        ]
        assert len(compared) >= 5, class_name
        assert [name for name, one, other in compared if one != other] == []


def methods_of(module: str, name: str) -> dict[str, Function]:
    found = definition(module, name)
    assert found is not None
    assert isinstance(found.node, ast.ClassDef)
    return functions_in(found.node)


@pytest.mark.parametrize("module", exported())
def test_every_public_name_has_a_docstring(module: str) -> None:
    found = {name: definition(module, name) for name in exported()[module]}
    assert [name for name, each in found.items() if each is None or not docstring_of(each)] == []


def test_every_public_method_has_a_docstring() -> None:
    """Its own, or that of the method of ours that it overrides: editors show that one then."""
    without = []
    for name, found in public_classes().items():
        assert isinstance(found.node, ast.ClassDef)
        inherited = [functions_in(base.node) for base in bases_of(found) if isinstance(base.node, ast.ClassDef)]
        for method, function in functions_in(found.node).items():
            overridden = [methods[method] for methods in inherited if method in methods]
            if not method.startswith("_") and not any(map(ast.get_docstring, (function, *overridden))):
                without.append(f"{name}.{method}")
    assert without == []


def test_every_field_of_the_classes_of_the_package_has_a_docstring() -> None:
    found = [definition(PACKAGE, name) for name in exported()[PACKAGE]]
    without = [
        f"{each.node.name}.{name}"
        for each in found
        if each is not None and isinstance(each.node, ast.ClassDef)
        for name, text in fields_of(each.node).items()
        if not text
        and not any(fields_of(base.node).get(name) for base in bases_of(each) if isinstance(base.node, ast.ClassDef))
    ]
    assert without == []


def fields_of(node: ast.ClassDef) -> dict[str, str | None]:
    """The public fields that a class declares, and the text below each. Members of an ``Enum`` are no fields."""
    declared = (each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name))
    fields = {ast.unparse(each.target): text_below(each, node.body) for each in declared}
    return {name: text for name, text in fields.items() if not name.startswith("_") and name != "model_config"}


def test_docstrings_are_not_written_when_the_program_runs() -> None:
    """But for those of functions that are made then: a tool tells a model what it is made for."""
    written = [
        f"{module}: {ast.unparse(node)}"
        for module in modules()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Attribute) and node.attr == "__doc__" and isinstance(node.ctx, ast.Store)
        if ast.unparse(node.value) not in functions_made_in(tree_of(module))
    ]
    assert written == []


def functions_made_in(tree: ast.Module) -> set[str]:
    """The names of the functions that other functions define."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    makers = [node for node in ast.walk(tree) if isinstance(node, functions)]
    return {inner.name for maker in makers for inner in ast.walk(maker) if isinstance(inner, functions)} - {
        node.name for node in tree.body if isinstance(node, functions)
    }
