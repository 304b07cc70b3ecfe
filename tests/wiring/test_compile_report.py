import json

from dspy_mama.wiring.compile_report import UNCOMPILED, _uncompiled


def test_separators_in_what_an_lm_wrote_do_not_end_a_record(tmp_path):
    rows = [{"key": "a", "reason": "one\u2028two\x85three"}, {"key": "b", "reason": "x"}]
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (tmp_path / UNCOMPILED).write_text(lines, encoding="utf-8")
    assert _uncompiled(tmp_path) == rows
