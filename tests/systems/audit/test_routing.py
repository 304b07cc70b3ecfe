import json
from typing import get_args

import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.core.outcomes import Unscored
from dspy_mama.settings import RouterSettings
from dspy_mama.systems.audit.presets import build_router
from dspy_mama.systems.audit.routing import SpecialistTable, question_key, read_mapping
from scripted import kind_of, scripted_lm
from systems.audit.parts import PAIR, MemoryRetriever, auditor, by_kind, kinds

QUESTION = PAIR["question"]


def routed(specialty):
    return scripted_lm(by_kind(routing=lambda values: {**values, "specialty": specialty}))


def run(lm, **router):
    program = auditor(lm, router=router, retriever=MemoryRetriever())
    return program(**PAIR)


def test_a_question_gets_its_specialist_and_a_generated_source_is_unverified():
    audit = run(routed("Cardiology"))
    found = audit.routing
    assert (found.specialty, found.origin, found.source, found.source_verified) == (
        "Cardiology", "lm", "text of source", False,
    )  # fmt: skip
    assert audit.phases["verification"].medical.role == "medical specialist (Cardiology)"


def test_the_agnostic_scope_asks_nobody():
    lm = scripted_lm()
    audit = run(lm, scope="agnostic")
    assert "routing" not in kinds(lm)
    assert (audit.routing.specialty, audit.routing.origin) == ("General medicine", "agnostic")


def test_a_question_is_routed_once():
    lm = scripted_lm()
    program = auditor(lm)
    program(**PAIR)
    second = program(question=f"  {QUESTION.upper()} ", answer="Another answer.")
    assert len(lm.requests) == 6 + 5
    assert second.routing.origin == "table"
    assert second.routing.usage.calls == 0


def test_a_saved_table_serves_a_second_program(tmp_path):
    path = tmp_path / "tables" / "specialists.json"
    run(routed("Cardiology"), table=str(path))
    lm = routed("Neurology")
    audit = run(lm, table=str(path))
    assert len(lm.requests) == 5
    assert (audit.routing.specialty, audit.routing.origin) == ("Cardiology", "table")
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_routing_that_failed_is_not_saved(tmp_path):
    path = tmp_path / "specialists.json"
    audit = run(scripted_lm(by_kind(routing=lambda values: "no idea")), table=str(path))
    assert isinstance(audit.routing.outcome, Unscored)
    assert audit.routing.specialty is None
    assert not path.exists()
    assert audit.phases["verification"].medical.role == "medical specialist (General medicine)"
    assert audit.needs_review is False


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '"x"', '{"k": "x"}', '{"k": {}}', '{"k": {"specialty": null}}', '{"k": {"specialty": " "}}', "\xff"],
)
def test_a_table_that_is_none_is_refused_by_name(tmp_path, content):
    path = tmp_path / "specialists.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match="not a table of specialists"):
        SpecialistTable(path)


def test_a_table_that_cannot_be_written_is_a_declaration_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DeclarationError, match="cannot be written"):
        run(scripted_lm(), table=str(blocked / "specialists.json"))


class TestAllowList:
    names = ("Cardiology", "Neurology")

    def test_it_is_a_literal_in_the_signature_and_an_enum_in_the_schema(self):
        router = build_router(RouterSettings(allow_list=self.names), roles=True)
        assert get_args(router.route.signature.output_fields["specialty"].annotation) == self.names
        lm = routed("Cardiology")
        run(lm, allow_list=self.names)
        request = next(r for r in lm.requests if kind_of(r) == "routing")
        assert request.config.response_format["schema"]["properties"]["specialty"]["enum"] == list(self.names)

    @pytest.mark.parametrize("given", ["cardiology", "**Cardiology**", "Heart medicine", "HEART MEDICINE."])
    def test_other_spellings_and_aliases_lead_to_the_permitted_name(self, given):
        lm = routed(given)
        audit = run(lm, allow_list=self.names, aliases={"Heart medicine": "Cardiology"})
        assert audit.routing.specialty == "Cardiology"
        assert audit.routing.outcome.value == "Cardiology"
        assert len(lm.requests) == 6

    def test_a_name_that_is_not_permitted_is_asked_again_and_then_unscored(self):
        lm = routed("Astrology")
        audit = run(lm, allow_list=self.names)
        assert audit.routing.specialty is None
        assert audit.routing.outcome.kind == "parse"
        assert kinds(lm).count("routing") == 2

    def test_a_table_from_a_wider_vocabulary_is_not_followed(self, tmp_path):
        path = tmp_path / "specialists.json"
        run(routed("Dermatology"), table=str(path))
        lm = routed("Neurology")
        audit = run(lm, table=str(path), allow_list=self.names)
        assert (audit.routing.specialty, audit.routing.origin) == ("Neurology", "lm")

    def test_a_table_entry_under_an_alias_is_followed(self, tmp_path):
        path = tmp_path / "specialists.json"
        run(routed("Heart medicine"), table=str(path))
        lm = scripted_lm()
        audit = run(lm, table=str(path), allow_list=self.names, aliases={"Heart medicine": "Cardiology"})
        assert (audit.routing.specialty, audit.routing.origin) == ("Cardiology", "table")

    @pytest.mark.parametrize(
        "router",
        [{"aliases": {"Heart": "Cardiology"}}, {"allow_list": names, "aliases": {"Skin": "Dermatology"}}],
    )
    def test_aliases_that_lead_nowhere_are_refused(self, router):
        with pytest.raises(DeclarationError, match="allow_list"):
            build_router(RouterSettings(**router), roles=True)


class TestMapping:
    def write(self, tmp_path, text, name="mapping.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    @pytest.mark.parametrize("name", ["mapping.csv", "mapping.json", "MAPPING.JSON"])
    def test_a_curated_specialist_comes_first_and_its_source_counts_as_verified(self, tmp_path, name):
        row = {"question": QUESTION, "specialty": "Pharmacology", "definition": "drugs", "source": "Society"}
        if name.lower().endswith("json"):
            text = json.dumps([row])
        else:
            text = "question,specialty,definition,source\n" + ",".join(row.values()) + "\n"
        lm = scripted_lm()
        audit = run(lm, mapping=str(self.write(tmp_path, text, name)))
        assert len(lm.requests) == 5
        found = audit.routing
        assert (found.specialty, found.origin, found.source, found.source_verified) == (
            "Pharmacology", "mapping", "Society", True,
        )  # fmt: skip

    def test_a_question_that_the_mapping_does_not_have_is_asked_of_the_lm(self, tmp_path):
        path = self.write(tmp_path, "question,specialty\nOther?,Surgery\n")
        audit = run(routed("Cardiology"), mapping=str(path))
        assert (audit.routing.specialty, audit.routing.origin) == ("Cardiology", "lm")

    def test_a_byte_order_mark_and_line_breaks_in_cells_are_read(self, tmp_path):
        path = self.write(tmp_path, '\ufeffquestion,specialty\r\n"Line one\r\nline two",Surgery\r\n')
        assert list(read_mapping(path)) == [question_key("Line one line two")]

    @pytest.mark.parametrize(
        ("text", "name", "message"),
        [
            ("question,specialty\n,Surgery\n", "m.csv", "row 2, column 'question': is missing"),
            ("question,specialty\nA?,Surgery\nB?,\n", "m.csv", "row 3, column 'specialty': is missing"),
            ("frage,fach\nA?,Surgery\n", "m.csv", "column 'question': is missing"),
            ("", "m.csv", "holds no rows"),
            ("question,specialty\n", "m.csv", "holds no rows"),
            ("question,specialty\nA?,Surgery\n a? ,Cardiology\n", "m.csv", "row 3.*an earlier row"),
            ("[", "m.json", "cannot be read"),
            ("{}", "m.json", "holds no rows"),
            ('["A?"]', "m.json", "row 1, column 'question'"),
            ('[{"question": "A?", "specialty": null}]', "m.json", "row 1, column 'specialty'"),
            (
                "question,specialty\n" + '"' + "x" * 200_000 + '",Surgery\n',
                "m.csv",
                "row 2: a cell of more than 131,072",
            ),
            (
                "question,specialty\nA?,Surgery\n\n" + "x" * 200_000 + ",Surgery\n",
                "m.csv",
                "row 4: a cell of more than",
            ),
            ('question,specialty\nA?,Surgery\n"B?,Surgery\n', "m.csv", "row 3: a quote mark .* never closed"),
            ("question,specialty\nA?,Surgery\n\nB?,\n", "m.csv", "row 4, column 'specialty': is missing"),
            ("question,specialty\nMay I, please?,Surgery\n", "m.csv", "row 2: 3 cells under a header of 2; put text"),
        ],
    )
    def test_a_bad_file_or_row_is_named(self, tmp_path, text, name, message):
        with pytest.raises(DataError, match=message):
            read_mapping(self.write(tmp_path, text, name))

    def test_another_encoding_is_named_with_what_to_do(self, tmp_path):
        with pytest.raises(DataError, match="save it as UTF-8"):
            read_mapping(self.write(tmp_path, "question,specialty\n頭痛?,神経内科\n", encoding="cp932"))

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(DataError, match="nowhere"):
            read_mapping(tmp_path / "nowhere.csv")

    def test_a_mapping_outside_the_allow_list_is_refused(self, tmp_path):
        path = self.write(tmp_path, "question,specialty\nA?,Surgery\n")
        with pytest.raises(DeclarationError, match="Surgery"):
            build_router(RouterSettings(allow_list=("Cardiology",), mapping=str(path)), roles=True)
