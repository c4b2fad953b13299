"""The page of Python's API: each public name of kolo and kolo.torch, with its signature and its docstring.

Read from the sources, so that neither the package nor PyTorch must be there.
"""
import ast
import glob
import inspect
import os
import re

PACKAGES = ["kolo", "kolo.torch"]
ALSO = {"kolo": ["errors"], "kolo.torch": ["elastic"]}  # modules of a package that users call by their name


class Module:
    def __init__(self, root, name):
        folder = os.path.join(root, "python", *name.split("."))
        path = os.path.join(folder, "__init__.py") if os.path.isdir(folder) else folder + ".py"
        with open(path, encoding="utf-8") as file:
            self.tree = ast.parse(file.read())
        self.root, self.name = root, name
        self.defined = {}
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.defined[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.defined[node.targets[0].id] = node.value

    def doc(self):
        return ast.get_docstring(self.tree) or ""

    def public(self):
        """What `from module import *` brings."""
        listed = self.defined.get("__all__")
        return ast.literal_eval(listed) if listed else [name for name in self.defined if not name.startswith("_")]

    def imported(self):
        """(name, the module that defines it) of each public name of a package."""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kolo."):
                module = Module(self.root, node.module)
                for alias in node.names:
                    for name in module.public() if alias.name == "*" else [alias.name]:
                        yield name, module

    def described(self, name):
        """(signature, docstring), or None where a name is a constant."""
        node = self.defined.get(name)
        if isinstance(node, ast.FunctionDef):
            return signature(node), ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            begin = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
            bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases and not begin else ""
            text = signature(begin, node.name, skip=1) if begin else node.name + bases
            return f"class {text}", ast.get_docstring(node)
        # A form that waits, or one that checks first, made of another function.
        if isinstance(node, ast.Call) and node.args:
            text = [part.value for part in node.args[1:] if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            of = self.defined.get(ast.unparse(node.args[0]))
            if isinstance(of, ast.FunctionDef):
                return signature(of, name, returns=False), f"Waits for `{of.name}` and returns its result."
            return f"{name}()", text[0] if text else None
        return self.bound(name) if node is None else None

    def bound(self, name):
        """Of a function that the module in C++ defines under its own name."""
        for path in sorted(glob.glob(os.path.join(self.root, "python", "binding", "*.cc"))):
            with open(path, encoding="utf-8") as file:
                found = re.search(rf'module\.def\("{name}", &(\w+)(.*?)\);', file.read(), re.DOTALL)
            if found:
                arguments = ", ".join(re.findall(r'py::arg\("(\w+)"\)', found.group(2)))
                return f"{name}({arguments})", f"As `kolo::{found.group(1)}` in C++."
        return None

    def methods(self, name):
        node = self.defined.get(name)
        for part in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                skip = 0 if any(ast.unparse(d) == "staticmethod" for d in part.decorator_list) else 1
                yield signature(part, skip=skip), ast.get_docstring(part)


def signature(node, name=None, skip=0, returns=True):
    arguments = node.args
    arguments.args, kept = arguments.args[skip:], arguments.args
    text = ast.unparse(arguments)
    arguments.args = kept
    back = f" -> {ast.unparse(node.returns)}" if returns and node.returns and not name else ""
    return f"{name or node.name}({text}){back}"


def entry(level, name, described):
    text, doc = described
    return f"\n{level} {name}\n```python\n{text}\n```\n" + (f"{plain(doc)}\n" if doc else "")


def plain(doc):
    """A docstring as Markdown: what is indented in it is code, as what stands between backticks."""
    lines = []
    for line in inspect.cleandoc(doc).splitlines():
        pieces = line.split("`")
        if not line.startswith("    "):
            pieces[::2] = [re.sub(r"([*_<])", r"\\\1", piece) for piece in pieces[::2]]
        lines.append("`".join(pieces))
    return "\n".join(lines)


def page(root):
    text = "# Python's API\n\nThe public names, from their sources. [The page on Python](python.md) shows how they are used.\n"
    for package in PACKAGES:
        module = Module(root, package)
        text += f"\n## {package}\n{plain(module.doc())}\n"
        names = dict(module.imported())
        for name in sorted(names, key=str.lower):
            described = names[name].described(name)
            if described:
                text += entry("###", f"{package}.{name}", described)
                for method, doc in names[name].methods(name):
                    text += f"\n```python\n{name}.{method}\n```\n" + (f"{plain(doc)}\n" if doc else "")
        for also in ALSO[package]:
            inner = Module(root, f"{package}.{also}")
            text += f"\n## {package}.{also}\n{plain(inner.doc())}\n"
            for name in inner.public():
                described = inner.described(name)
                if described and not name.isupper():
                    text += entry("###", f"{package}.{also}.{name}", described)
    return text
