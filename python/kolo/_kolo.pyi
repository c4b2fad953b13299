# The module in C++, for type checkers. Programs use the package kolo, whose functions have types of their own.
from typing import Any

def __getattr__(name: str) -> Any: ...
