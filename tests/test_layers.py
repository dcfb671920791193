"""Who may import whom: the table of the design, kept true by walking every import, also inside functions."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import palaver

SOURCE = Path(palaver.__file__).parent
ROWS = [
    {"__main__"},
    {"cli"},
    {"reproduce", "evaluation"},
    {"server"},
    {"reports"},
    {"judges"},
    {"comparator", "personality", "probes", "studies", "collection"},
    {"training", "generation", "metrics", "knowledge"},
    {"models", "corpora"},
    {"text", "statistics"},
    {"readers", "artefacts", "engine"},
    {"schema"},
    {"errors", "registry", "config", "files", "sheets", "tables", "csv_tables", "text_columns", "tabular"}
    | {"drawing", "progress", "http"},
]
"""From the top down. A part imports from rows below its own; those of the last row also from each other."""

LEVEL = {part: level for level, row in enumerate(ROWS) for part in row}
BOTTOM = len(ROWS) - 1
WITHOUT_TORCH = ("statistics", "studies", "collection", "server")
HEAVY = [
    "fastapi",
    "jinja2",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "pydantic",
    "scipy",
]
HEAVY += ["lemminflect", "sklearn", "spacy", "sqlalchemy", "torch", "transformers"]

Import = tuple[str, int, bool]
"""What is imported, in which line, and whether that happens when the module itself is imported."""


def modules(root: Path = SOURCE, package: str = "palaver") -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(name: str, path: Path) -> tuple[Import, ...]:
    """All imports of a module: statements anywhere, `import_module("…")`, lazy "module:attribute" targets."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def walk(node: ast.AST, at_import: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno, at_import) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                anchor = package.rsplit(".", child.level - 1)[0] if child.level else ""
                base = ".".join(filter(None, (anchor, child.module)))
                yield base, child.lineno, at_import
                yield from ((f"{base}.{alias.name}", child.lineno, at_import) for alias in child.names)
            elif isinstance(child, ast.Constant) and isinstance(child.value, str):
                if re.fullmatch(r"palaver(\.\w+)+:\w+", child.value):
                    yield child.value.partition(":")[0], child.lineno, False
            elif isinstance(child, ast.Call) and child.args and isinstance(child.args[0], ast.Constant):
                called = (
                    child.func.attr
                    if isinstance(child.func, ast.Attribute)
                    else getattr(child.func, "id", "")
                )
                if called in ("import_module", "__import__", "require"):
                    yield str(child.args[0].value), child.lineno, at_import
            yield from walk(child, at_import and not inside)

    return tuple(walk(ast.parse(path.read_text(encoding="utf-8")), True))


def part_of(module: str) -> str | None:
    """`palaver.studies.ratings` -> `studies`; nothing for other packages and for `palaver` itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "palaver" and len(parts) > 1 else None


def violations(found: dict[str, Path]) -> list[str]:
    wrong = []
    for name, path in found.items():
        own = part_of(name)
        for target, line, _ in imports(name, path):
            part = part_of(target)
            if own is None or part is None or part == own or part not in LEVEL:
                continue  # `from palaver import __version__` names no part
            if LEVEL[part] < LEVEL[own] or (LEVEL[part] == LEVEL[own] != BOTTOM):
                wrong.append(f"{path.name}:{line}: {own} imports {part}")
    return wrong


def test_every_module_has_its_row() -> None:
    strangers = sorted({part for part in map(part_of, modules()) if part is not None} - set(LEVEL))
    assert strangers == [], "put them into the table of the design and into ROWS"
    assert {"cli", "schema", "statistics", "studies", "corpora", "tables"} <= {part_of(m) for m in modules()}


def test_imports_only_go_down() -> None:
    assert violations(modules()) == []


def test_the_last_row_has_no_circles() -> None:
    graph: dict[str, set[str]] = {part: set() for part in ROWS[BOTTOM]}
    for name, path in modules().items():
        if part_of(name) in ROWS[BOTTOM]:
            targets = {part_of(target) for target, _, _ in imports(name, path)}
            graph[str(part_of(name))] |= {t for t in targets if t in graph and t != part_of(name)}
    list(TopologicalSorter(graph).static_order())


def test_nothing_needs_a_plotting_library() -> None:
    """matplotlib is among the packages of the tests, but not among those of an install."""
    for name, path in modules().items():
        named = {target.split(".")[0] for target, _, _ in imports(name, path)}
        assert not named & {"matplotlib", "PIL"}, name


@pytest.mark.parametrize("part", WITHOUT_TORCH)
def test_torch_stays_out(part: str) -> None:
    found = modules()
    for name, path in found.items():
        if part_of(name) == part:
            named = {target.split(".")[0] for target, _, _ in imports(name, path)}
            assert "torch" not in named, name
    for name in reached({m for m in found if part_of(m) == part}, found):
        named = {target.split(".")[0] for target, _, at_import in imports(name, found[name]) if at_import}
        assert "torch" not in named, f"{part} reaches {name}, which imports torch"


def reached(start: set[str], found: dict[str, Path]) -> set[str]:
    """All modules that are imported when those of `start` are."""
    seen, left = set(start), list(start)
    while left:
        name = left.pop()
        for target, _, at_import in imports(name, found[name]):
            if at_import and target in found and target not in seen:
                seen.add(target)
                left.append(target)
    return seen


@pytest.mark.parametrize(
    ("own", "code", "wrong"),
    [
        ("schema/a.py", "import palaver.studies", True),
        ("schema/a.py", "from palaver import studies", True),
        ("schema/a.py", "from palaver.studies.ratings import x", True),
        ("schema/a.py", "def f():\n    from palaver.text import x", True),
        ("schema/a.py", "from ..text import x", True),
        ("schema/a.py", "from .. import text", True),
        ("schema/__init__.py", "from ..text import x", True),
        ("schema/a.py", "from .text import x", False),
        ("schema/a.py", "from palaver import __version__", False),
        ("schema/a.py", "import importlib\nx = lambda: importlib.import_module('palaver.cli.main')", True),
        ("schema/a.py", "x = {'a': 'palaver.cli.main:run'}", True),
        ("schema/a.py", "if True:\n  try:\n    import palaver.cli\n  except ImportError: pass", True),
        ("text/a.py", "import palaver.statistics", True),
        ("text/a.py", "import palaver.schema, palaver.tables", False),
        ("errors.py", "import palaver.schema", True),
        ("config.py", "import palaver.files", False),
        ("studies/a.py", "from palaver.studies.b import x", False),
        ("cli/a.py", "import palaver.server, palaver.errors", False),
    ],
)
def test_the_test_sees_what_it_should(own: str, code: str, wrong: bool, tmp_path: Path) -> None:
    path = tmp_path / own
    path.parent.mkdir(exist_ok=True)
    path.write_text(code)
    assert bool(violations(modules(tmp_path))) is wrong


def loaded_after(code: str) -> set[str]:
    """Top-level names of all modules in a fresh interpreter that ran `code`."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(m.partition('.')[0] for m in sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_the_package_and_the_command_line_start_light() -> None:
    loaded = loaded_after("import palaver, palaver.cli.main, palaver.errors, palaver.registry, palaver.files")
    assert sorted(loaded & set(HEAVY)) == []


def test_statistics_need_only_numpy_to_start() -> None:
    names = [m for m in modules() if m.startswith("palaver.statistics") and "kernels" not in m]
    loaded = loaded_after("import " + ", ".join(names))
    assert sorted(loaded & set(HEAVY)) == ["numpy"]


def test_the_nouns_need_only_pydantic() -> None:
    assert sorted(loaded_after("import palaver.schema") & set(HEAVY)) == ["pydantic"]


def test_every_public_name_resolves_and_is_no_module() -> None:
    assert len(palaver.__all__) == len(set(palaver.__all__))
    assert set(palaver.__all__) <= set(dir(palaver))
    for name in palaver.__all__:
        assert not isinstance(getattr(palaver, name), ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        palaver.nonsense  # noqa: B018


def test_what_packages_export_is_there_and_no_module() -> None:
    """`trueskill` names a module and a function: what the package exports must be the function.

    Also after the module itself was imported, which makes Python bind its name in the package.
    """
    script = f"""
import contextlib, importlib, types
for name in {sorted(m for m in modules() if ".migrations." not in m)!r}:  # those are run, not imported
    with contextlib.suppress(ModuleNotFoundError):  # an optional part that is not installed
        importlib.import_module(name)
for name in {[m for m, path in modules().items() if path.name == "__init__.py"]!r}:
    package = importlib.import_module(name)
    exported = getattr(package, "__all__", ())
    assert len(exported) == len(set(exported)), name
    for export in exported:
        assert not isinstance(getattr(package, export), types.ModuleType), (name, export)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_code_that_comes_with_a_model_is_never_run() -> None:
    """Left out, `trust_remote_code` makes transformers ask on the terminal."""
    loaders = re.compile(r"(transformers\.Auto\w+|loader)\.from_(pretrained|config)|SentenceTransformer")
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and loaders.fullmatch(ast.unparse(node.func)):
                words = {keyword.arg or ast.unparse(keyword.value) for keyword in node.keywords}
                assert words & {"trust_remote_code", "where"}, f"{path.name}, line {node.lineno}"
