from itertools import permutations

from dspy_mama.systems.audit.ordering import ordered
from scripted import kind_of, scripted_lm, user_of
from systems.audit.parts import PAIR, auditor


def test_without_a_seed_the_order_is_kept():
    assert ordered(["a", "b", "c"], None, "x") == ("a", "b", "c")


def test_a_seed_gives_one_order_and_another_seed_or_pair_another():
    orders = {seed: ordered(range(8), seed, "pair") for seed in range(5)}
    assert all(sorted(order) == list(range(8)) for order in orders.values())
    assert orders[1] == ordered(range(8), 1, "pair")
    assert len(set(orders.values())) == 5
    assert ordered(range(8), 1, "another pair") != orders[1]


def test_every_order_is_about_as_likely():
    counts = dict.fromkeys(permutations(range(3)), 0)
    for seed in range(1200):
        counts[ordered(range(3), seed)] += 1
    assert all(150 <= count <= 250 for count in counts.values())


def prompts(order_seed):
    lm = scripted_lm()
    program = auditor(lm, order_seed=order_seed)
    audit = program(**PAIR)
    return {kind: [user_of(r) for r in lm.requests if kind_of(r) == kind] for kind in
            ("routing", "initial", "verification", "consensus")}, audit  # fmt: skip


def domains_as_listed(text):
    lines = [line.split()[0] for line in text.splitlines() if line.endswith(" domain")]
    return [line for line in lines if line in ("medical", "ethical", "legal")]


def test_the_seed_changes_the_order_of_passages_and_of_domains_and_nothing_else():
    plain, _ = prompts(None)
    seen_domains, seen_passages = set(), set()
    for seed in range(8):
        moved, audit = prompts(seed)
        assert moved["routing"] == plain["routing"]
        assert moved["initial"] == plain["initial"]
        assert sorted("".join(moved["verification"])) == sorted("".join(plain["verification"]))
        assert sorted(moved["consensus"][0]) == sorted(plain["consensus"][0])
        seen_domains.add(tuple(domains_as_listed(moved["consensus"][0])))
        seen_passages.add(tuple(p.id for p in audit.phases["verification"].medical.passages))
    assert len(seen_domains) > 2
    assert seen_passages == {("medical#1", "medical#2"), ("medical#2", "medical#1")}


def test_a_citation_still_names_the_passage_that_stood_under_its_number():
    lm = scripted_lm()
    for seed in range(6):
        audit = auditor(lm, order_seed=seed)(**PAIR)
        verdict = audit.phases["verification"].medical
        assert verdict.citations == (verdict.passages[0].id,)


def test_a_saved_program_keeps_its_order(tmp_path):
    from dspy_mama.optimize import load_program, save_program
    from systems.audit.parts import MemoryRetriever

    path = save_program(auditor(scripted_lm(), order_seed=3), tmp_path / "program.json")
    loaded = load_program(path, lms={"default": scripted_lm()}, retriever=MemoryRetriever())
    assert loaded.order_seed == loaded.consensus.order_seed == 3
