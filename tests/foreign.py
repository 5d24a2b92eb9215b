"""How source code uses other packages than its own, as its syntax tree shows it."""

import ast
import sys
from collections.abc import Iterator

OWN = {"app", "schemas", "scripts", "wsgi", "tests", "bench"}
# Builtins, and methods of pytest's monkeypatch, whose targets may also be strings.
SETTERS = ("setattr", "delattr")
# Of named tuples, which document them; the underscore keeps them apart from fields.
OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def private_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names with an underscore that are imported, and such attributes of all but `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            yield from (
                name for name in (f"{module}.{alias.name}".strip(".") for alias in node.names) if _has_private(name)
            )
        elif isinstance(node, ast.Attribute):
            if _is_private(node.attr) and ast.unparse(node.value) not in ("self", "cls"):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("getattr", *SETTERS):
            yield from (ast.unparse(node) for names in map(_text, node.args[:2]) if _has_private(names))


def assigned_names(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes of imported names that are set or deleted, by their full names.

    Of a call that sets an attribute, it is the full name of what has the attribute, or the string that stands for both.
    """
    imported = imported_names(tree)
    for target in _targets(tree):
        if (root := _root(target)) in imported:
            yield ast.unparse(target).replace(root, imported[root], 1)
        elif text := _text(target):
            yield text


def object_attributes(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes of objects that are set or deleted: of all but `self`, `cls` and imported names."""
    known = {"self", "cls", *imported_names(tree)}
    for target in _targets(tree):
        if _root(target) not in known and not _text(target):
            yield ast.unparse(target)


def base_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the full names of the classes of third parties that classes are derived from."""
    imported = imported_names(tree)
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            name = base.value if isinstance(base, ast.Subscript) else base
            if (root := _root(name)) in imported and _is_foreign(imported[root]):
                yield ast.unparse(name).replace(root, imported[root], 1)


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return the full names that the names which a module imports stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _targets(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the attributes that are set or deleted, and the first arguments of calls that do so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node
        elif isinstance(node, ast.Call) and _last_name(node.func) in SETTERS:
            yield node.args[0]


def _last_name(node: ast.AST) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _text(node: ast.AST) -> str:
    """Return a string, or the beginning of an f-string."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _has_private(name: str) -> bool:
    return any(map(_is_private, name.split(".")))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMED_TUPLES


def _is_foreign(name: str) -> bool:
    return name.partition(".")[0] not in OWN | sys.stdlib_module_names
