"""Compiles in a process of its own and may kill itself: `python killed.py OPTIMIZER FOLDER LAST_CALL`.

Every answered call is a line of FOLDER/calls.txt: that is what was paid for.
"""

import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from optimize.compile_parts import auditor, gold_pairs, scripted
from optimize.helped import HELPED, QUICK


def main(name, folder, last):
    from dspy_mama.optimize import compile_program

    script, options = HELPED[name]
    paid = Path(folder) / "calls.txt"

    def counted(request):
        before = len(paid.read_text().splitlines()) if paid.exists() else 0
        if last and before >= last:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = script(request)
        with paid.open("a") as file:
            file.write("call\n")
        return answer

    result = compile_program(
        auditor(scripted(counted)),
        gold_pairs(20),
        name,
        folder=Path(folder) / "run",
        **{**QUICK, **options, "threads": 1},
    )
    values = [result.test.before.value("joint_accuracy"), result.test.after.value("joint_accuracy")]
    return {"kept": result.kept, "values": values, "spent": result.spent.to_dict()}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
