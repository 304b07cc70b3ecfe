import pytest

from dspy_mama.core.errors import DataError, DeclarationError
from dspy_mama.datasets.medsafetybench import PRINCIPLES
from dspy_mama.systems.refine import SafetyRefiner, load_criteria, shipped_packs
from systems.refine.loops import Loop


def test_the_nine_principles_and_five_levels_ship():
    criteria = load_criteria()
    assert [principle.id for principle in criteria.principles] == list(PRINCIPLES)
    assert sorted(criteria.levels) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("pack", [name for name in shipped_packs() if name != "ama"])
def test_a_field_s_pack_sharpens_principles_without_adding_any(pack):
    base, joined = load_criteria(), load_criteria(("ama", pack))
    assert [p.id for p in joined.principles] == [p.id for p in base.principles]
    assert joined.name == f"ama+{pack}"
    assert joined.hash != base.hash
    changed = [p.text for p, q in zip(joined.principles, base.principles, strict=True) if p.text != q.text]
    prompt = SafetyRefiner(criteria=("ama", pack)).ethics[0].judge.signature.instructions
    assert changed
    assert all(text in prompt for text in changed)


def test_a_pack_of_one_s_own_is_judged_by(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "name: house\nversion: '3'\nprinciples:\n- {id: H1, name: House rule, text: names a competitor}\n"
        "levels: {1: a, 2: b, 3: c, 4: d, 5: e}\n"
    )
    refiner = SafetyRefiner(criteria=(str(own),), ama_threshold=0)
    assert "H1 House rule: violated if the answer names a competitor" in refiner.ethics[0].judge.signature.instructions
    result = Loop([1], [1]).run(criteria=(str(own),), ama_threshold=0, mandatory=1, max_iterations=1)
    assert not result.accepted
    assert result.refinement.versions[0].consensus.ama == 1


def test_a_pack_that_extends_a_missing_one_names_the_order():
    with pytest.raises(DeclarationError, match=r"name it first: \[ama,oncology\]"):
        load_criteria(("oncology",))


def test_an_unknown_pack_names_those_that_there_are():
    with pytest.raises(DeclarationError, match="oncology"):
        load_criteria(("cardiology",))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name: a\nversion: '1'\nprinciples: []", "neither principles nor guidance"),
        ("name: a\nversion: '1'\nprinciples:\n- {id: I, name: n}", "entry 1 has no text"),
        ("name: a\nversion: '1'\nprinciples:\n- &x {id: I, name: n, text: t}\n- *x", "stands twice"),
        ("name: a\nversion: '1'\nguidance: {XX: t}", "'XX' is no principle"),
        ("name: a\nversion: '1'\nprinciples:\n- {id: I, name: n, text: t}\nlevels: {1: a}", "must name the levels"),
        ("name: a\nprinciples:\n- {id: I, name: n, text: t}", "version"),
        ("- a", "no mapping"),
        ("a: [", "cannot be read"),
        ("name: !!python/object/apply:os.system ['true']", "cannot be read"),
        ("name: a\nversion: '1'\nprinciples:\n- {id: I, name: n, text: t}\nweights: 1", "unknown field"),
    ],
)
def test_a_faulty_pack_is_refused_with_its_file_and_field(tmp_path, text, fault):
    own = tmp_path / "own.yaml"
    own.write_text(text)
    with pytest.raises(DataError, match=r"own\.yaml") as caught:
        load_criteria((str(own),))
    assert fault in str(caught.value)


OWN = "name: own\nversion: '1'\nprinciples:\n- {id: V-1, name: n, text: harms}\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (OWN + "levels: {1: a, 2: , 3: c, 4: d, 5: e}", "2 has no text"),
        ("name: own\nversion: '1'\nextends: ama\nguidance: {I: }", "'I' has no text"),
        (OWN + "2: x\nfoo: y", "unknown field"),
    ],
)
def test_texts_that_are_missing_are_named(tmp_path, text, fault):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(DataError, match=fault):
        load_criteria(("ama", str(tmp_path / "own.yaml")))


def test_ids_that_read_alike_in_two_packs_are_refused(tmp_path):
    (tmp_path / "one.yaml").write_text(OWN)
    (tmp_path / "two.yaml").write_text(OWN.replace("V-1", "V_1"))
    with pytest.raises(DataError, match="reads like an id of one"):
        load_criteria(("ama", str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml")))


def test_levels_without_a_meaning_are_not_judged(tmp_path):
    (tmp_path / "own.yaml").write_text(OWN)
    with pytest.raises(DeclarationError, match="levels of safety risk"):
        load_criteria((str(tmp_path / "own.yaml"),))


def test_a_threshold_that_every_text_meets_is_refused(tmp_path):
    (tmp_path / "own.yaml").write_text(OWN + "levels: {1: a, 2: b, 3: c, 4: d, 5: e}")
    with pytest.raises(DeclarationError, match="ama_threshold=2 accepts a text that violates every principle"):
        SafetyRefiner(criteria=(str(tmp_path / "own.yaml"),))
