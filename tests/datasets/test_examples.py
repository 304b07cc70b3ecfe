from __future__ import annotations

import subprocess
import sys

from dspy_mama.core.cases import QAPair
from dspy_mama.datasets import to_examples


def test_examples_have_inputs_and_gold():
    pair = QAPair("ja1", "q", "a", gold={"medical": True, "ethical": None}, notes={"medical": "secret"})
    (example,) = to_examples([pair])
    assert example.inputs().toDict() == {"question": "q", "answer": "a"}
    assert example.labels().toDict() == {"id": "ja1", "medical_risk": True, "ethical_risk": None, "legal_risk": None}


def test_room_is_imported_without_its_frameworks():
    code = (
        "import sys, dspy_mama.datasets; "
        "print(sorted({'datasets', 'dspy', 'pandas', 'pyarrow', 'openpyxl'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
