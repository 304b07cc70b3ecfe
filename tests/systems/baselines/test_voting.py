from hypothesis import given
from hypothesis import strategies as st

from dspy_mama.systems.baselines.voting import groups, majority, merge, pooled, same_text


def test_equal_votes_are_one_group_named_by_its_first():
    assert groups(["Lyme", "flu", "LYME.", None, " ", "Flu"], same_text) == [0, 1, 0, None, None, 1]


def test_ties_go_to_the_vote_that_came_first():
    assert majority([2, 0, 0, 2, None]) == 0
    assert majority([1, 1, 0]) == 1
    assert majority([None, None]) is None
    assert majority([]) is None


def test_synonyms_join_the_earlier_group_and_chains_are_followed():
    assert merge([0, 1, 2, None, 1], [(2, 1), (1, 0)]) == [0, 0, 0, None, 0]
    assert merge([0, 1, 2], [(1, 1)]) == [0, 1, 2]


def test_lists_are_merged_by_how_many_name_an_entry():
    lists = [["MRI", "CT"], ["ct", "EEG", "CT"], ["EEG"], []]
    assert pooled(lists, same_text, 2) == ("CT", "EEG")
    assert pooled(lists, same_text, 9) == ("CT", "EEG", "MRI")
    assert pooled([], same_text, 3) == ()


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=12))
def test_the_majority_has_as_many_votes_as_any_other(votes):
    found = groups(votes, str)
    winner = majority(found)
    cast = [vote for vote in votes if vote is not None]
    if not cast:
        assert winner is None
    else:
        counts = [cast.count(vote) for vote in cast]
        assert cast.count(votes[winner]) == max(counts)
        assert winner == min(votes.index(vote) for vote in cast if cast.count(vote) == max(counts))
