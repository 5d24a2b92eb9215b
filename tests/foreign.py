"""How source code uses other packages than its own, as its syntax tree shows it."""

import ast
import sys
from collections.abc import Iterator

OWN = {"app", "schemas", "scripts", "wsgi"}
SETTERS = ("setattr", "delattr")
# Of named tuples, which document them; the underscore keeps them apart from fields.
OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def private_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names with an underscore that are imported, and such attributes of all but `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            yield from (
                name
                for name in (f"{module}.{alias.name}".strip(".") for alias in node.names)
                if any(map(_is_private, name.split(".")))
            )
        elif isinstance(node, ast.Attribute):
            if _is_private(node.attr) and ast.unparse(node.value) not in ("self", "cls"):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", *SETTERS):
            yield from (ast.unparse(node) for name in node.args[1:2] if _is_private(ast.unparse(name).strip("'")))


def assigned_names(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes of imported names that are set or deleted, by their full names."""
    imported = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            target: ast.AST = node
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SETTERS:
            target = node.args[0]
        else:
            continue
        if (root := _root(target)) in imported:
            yield ast.unparse(target).replace(root, imported[root], 1)


def base_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the full names of the classes of third parties that classes are derived from."""
    imported = _imported(tree)
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            name = base.value if isinstance(base, ast.Subscript) else base
            if (root := _root(name)) in imported and _is_foreign(imported[root]):
                yield ast.unparse(name).replace(root, imported[root], 1)


def _imported(tree: ast.Module) -> dict[str, str]:
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


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMED_TUPLES


def _is_foreign(name: str) -> bool:
    return name.partition(".")[0] not in OWN | sys.stdlib_module_names
