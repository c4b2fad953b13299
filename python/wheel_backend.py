"""`pip install .` from a checkout, without a network: builds with CMake and packs what is installed into a wheel
(PEP 517 and PEP 427). Debian's Python asks for --break-system-packages or a virtual environment.

A build in build/release is gone on with; without one the whole library is built, which takes long.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(kolo VERSION ([\d.]+)", file.read()).group(1)


def _environment():
    # pip hides this Python's packages by PYTHONPATH, and NumPy with them.
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _run(*command):
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr, env=_environment()).returncode != 0:
        raise SystemExit(f"kolo: {' '.join(command)} failed; what it said stands above")


def _check_python():
    """Before anything is configured for it."""
    numpy = subprocess.run([sys.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL, env=_environment())
    if numpy.returncode != 0:
        raise SystemExit(f"kolo: {sys.executable} has no NumPy, which the package needs; install it there first, "
                         "such as by pip install numpy")
    headers = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(headers, "Python.h")):
        raise SystemExit(f"kolo: {headers} has no Python.h; Debian's package is python3-dev")


def _configured_python(cache):
    """What build/release is for, as its user asked: "" is CMake's own choice."""
    with open(cache, encoding="utf-8") as file:
        return re.search(r"^KOLO_PYTHON:\w+=(.*)$", file.read(), re.MULTILINE).group(1)


def _installed(prefix):
    """Builds for this Python; path in the wheel → file: the package, and libkolo beside its module."""
    _check_python()
    cache = os.path.join(ROOT, "build", "release", "CMakeCache.txt")
    before = _configured_python(cache) if os.path.exists(cache) else None
    try:
        _run("cmake", *(["build/release"] if before is not None else ["--preset", "unity"]),
             f"-DKOLO_PYTHON={sys.executable}")
        return _built(prefix)
    finally:
        if before is not None:  # an environment goes, and the build stays
            _run("cmake", "build/release", f"-DKOLO_PYTHON={before}")


def _built(prefix):
    _run("cmake", "--build", "--preset", "release", "--target", "kolo_python")
    _run("cmake", "--install", os.path.join("build", "release"), "--prefix", prefix, "--component", "python")
    found = {}
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(folder, name)
            found[path[path.index(os.sep + "kolo" + os.sep) + 1:]] = path
    if "kolo/__init__.py" not in found:
        raise SystemExit("kolo: no package was built; CMake's line on Python above says what is missing")
    major = _version().split(".", maxsplit=1)[0]
    found[f"kolo/libkolo.so.{major}"] = os.path.join(ROOT, "build", "release", "lib", f"libkolo.so.{major}")
    return found


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"kolo-{version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: kolo\nVersion: {version}\n"
                            "Summary: Synchronous data-parallel training over MPI\nRequires-Dist: numpy\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: kolo\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    wheel = f"kolo-{version}-{tag}.whl"
    record = []
    with tempfile.TemporaryDirectory() as prefix, \
            zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:

        def add(path, content):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}")
            archive.writestr(path, content)

        for path, source in sorted(_installed(prefix).items()):
            with open(source, "rb") as file:
                add(path, file.read())
        for path, text in texts.items():
            add(path, text.encode())
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return wheel
