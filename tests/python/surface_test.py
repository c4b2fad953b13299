"""What `import kolo` offers, to people and to type checkers."""
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys

import kolo
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = {"arrays", "checkpoints", "collectives", "errors", "handles", "job", "predictor", "process_sets", "torch"}


def public():
    return {name for name in dir(kolo) if not name.startswith("_")} - MODULES


def test_no_name_of_another_module_leaks():
    for name in public() - {"ALL"}:
        assert getattr(kolo, name).__module__.split(".")[0] in ("kolo", "_kolo"), name


def test_the_version_is_that_of_the_build():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        assert kolo.__version__ == re.search(r"project\(kolo VERSION ([\d.]+)", file.read()).group(1)


def test_blocking_calls_have_the_parameters_of_their_other_form():
    pairs = [name for name in public() if name + "_async" in public()]
    assert len(pairs) == 15
    for name in pairs:
        own, other = (inspect.signature(getattr(kolo, n)) for n in (name, name + "_async"))
        assert own.parameters == other.parameters
        assert own.return_annotation is not other.return_annotation
    assert str(inspect.signature(kolo.join).return_annotation) == "<class 'int'>"


def test_each_function_tells_its_parameters_and_its_result():
    for name in public():
        if inspect.isroutine(getattr(kolo, name)):
            signature = inspect.signature(getattr(kolo, name))
            assert signature.return_annotation is not inspect.Signature.empty, name
            assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values()), name


def test_type_checkers_find_its_types():
    folder = os.path.dirname(kolo.__file__)
    assert {"py.typed", "_kolo.pyi"} <= set(os.listdir(folder))


def stub():
    """Of the module in C++: each public name with its parameters, of classes those of their members."""
    def parameters(node):
        return [argument.arg for argument in node.args.args if argument.arg != "self"]

    with open(os.path.join(os.path.dirname(kolo.__file__), "_kolo.pyi"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = {member.name: parameters(member) for member in node.body if isinstance(member, ast.FunctionDef)}
    return found


def bound(routine):
    """The parameters that pybind11 writes into the docstring."""
    signature = re.match(r"\w+\((.*?)\) -> ", routine.__doc__).group(1)
    return [name for name in re.findall(r"(?:^|, )(\w+): ", signature) if name != "self"]


def test_the_module_in_cpp_has_types_for_all_of_its_names():
    types, module = stub(), kolo._kolo
    assert set(types) == {name for name in dir(module) if not name.startswith("_")}
    for name, declared in types.items():
        own = getattr(module, name)
        if not inspect.isclass(own):
            assert declared == bound(own), name
            continue
        members = {member for member in vars(own) if not member.startswith("_")}
        assert {member for member in declared if not member.startswith("_")} == members, name
        for member in declared:
            routine = getattr(own, member)
            if member == "__init__" or (member in members and not isinstance(inspect.getattr_static(own, member), property)):
                assert declared[member] == bound(routine), f"{name}.{member}"


def test_texts_name_functions_as_python_does():
    with pytest.raises(kolo.Error, match=r"kolo is not initialised; call kolo\.init\(\) first"):
        kolo.rank()


def test_a_python_without_numpy_gets_one_sentence(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    cache = os.path.join(ROOT, "build", "release", "CMakeCache.txt")
    before = os.path.exists(cache) and os.stat(cache).st_mtime_ns
    code = f"import sys; sys.path.insert(0, {os.path.join(ROOT, 'python')!r}); import wheel_backend; wheel_backend.build_wheel({str(tmp_path)!r})"
    result = subprocess.run([tmp_path / "bare" / "bin" / "python", "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert re.fullmatch(r"kolo: \S+/bare/bin/python has no NumPy, .*; install it there first, such as by pip install numpy\n", result.stderr)
    assert (os.path.exists(cache) and os.stat(cache).st_mtime_ns) == before, "nothing was configured"


def test_a_build_is_configured_for_its_own_python_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "python"))
    backend = importlib.import_module("wheel_backend")
    build = tmp_path / "build" / "release"
    build.mkdir(parents=True)
    (build / "CMakeCache.txt").write_text("KOLO_PYTHON:STRING=/usr/bin/python3\n")
    (tmp_path / "CMakeLists.txt").write_text("project(kolo VERSION 0.1.0)\n")
    commands = []
    monkeypatch.setattr(backend, "ROOT", str(tmp_path))
    monkeypatch.setattr(backend, "_check_python", lambda: None)
    monkeypatch.setattr(backend, "_run", lambda *words: commands.append(words))
    with pytest.raises(SystemExit, match="no package was built"):
        backend.build_wheel(str(tmp_path))
    assert commands[0] == ("cmake", "build/release", f"-DKOLO_PYTHON={sys.executable}")
    assert commands[-1] == ("cmake", "build/release", "-DKOLO_PYTHON=/usr/bin/python3")
