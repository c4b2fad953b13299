"""python3 -m kolo.horovod [-m MODULE | PROGRAM.py] [ARGUMENTS …]: a program written for Horovod, as it is, on kolo."""

import os
import runpy
import sys

from kolo.horovod import environment, modules

USAGE = "usage: python3 -m kolo.horovod [-m MODULE | PROGRAM.py] [ARGUMENTS …]"


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    is_module = arguments[0] == "-m"
    if is_module and len(arguments) == 1:
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    environment.report(*environment.take_over(os.environ))
    modules.stand_in()
    sys.argv = arguments[1:] if is_module else arguments
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        if not os.path.exists(sys.argv[0]):
            print(f"kolo.horovod: there is no {sys.argv[0]}", file=sys.stderr)
            sys.exit(2)
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
