"""Whether a run has warned of anything."""
import re

KOLO = re.compile(r"^(\[[^]]*\] )*[WEF] \d{4}-\d\d-\d\d \d\d:\d\d:\d\d.*", re.MULTILINE)  # as kolo's log begins a line
OTHERS = re.compile(r"^(?!(\[[^]]*\] )*I \d{4}-).*(warning|error|PMIX|mpirun noticed).*", re.IGNORECASE | re.MULTILINE)


def warning(stdout, stderr):
    """The first line with one, or None."""
    found = KOLO.search(stdout + stderr) or OTHERS.search(stderr)
    return found and found.group()
