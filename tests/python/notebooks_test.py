"""python/examples/*.ipynb run from their first cell to their last, and show what they showed before."""
import os
import re

import nbclient
import nbformat
import pytest

EXAMPLES = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "python", "examples"))


def texts(notebook):
    """What each cell writes, without the numbers: an optimizer's last digits differ from machine to machine."""
    shown = ["".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.get("outputs", []))
             for cell in notebook.cells]
    return [" ".join(re.sub(r"-?\d[\d.e+-]*|[.#]", "", text).split()) for text in shown]


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    if name == "torch":
        pytest.importorskip("torch")
    for variable in [variable for variable in os.environ if variable.startswith(("KOLO_", "OMPI_", "PMIX_"))]:
        monkeypatch.delenv(variable)
    # As root, and with more ranks than cores, mpirun asks for a word.
    for variable, value in {"ALLOW_RUN_AS_ROOT": "1", "ALLOW_RUN_AS_ROOT_CONFIRM": "1", "MCA_rmaps_base_oversubscribe": "1",
                            "MCA_plm": "isolated", "MCA_btl_vader_single_copy_mechanism": "none"}.items():
        monkeypatch.setenv("OMPI_" + variable, value)
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    notebook = nbformat.read(os.path.join(EXAMPLES, name + ".ipynb"), as_version=4)
    shown = texts(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(shown) and texts(notebook) == shown
