import dspy
import pytest


@pytest.fixture(autouse=True)
def _no_lm_left_behind():
    """A test that configures DSPy does not reach the next one."""
    before = dspy.settings.lm
    yield
    if dspy.settings.lm is not before:
        dspy.configure(lm=before)


@pytest.fixture
def fresh_cache():
    """DSPy's response cache, in memory alone, emptied around the test."""
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield dspy.cache
    dspy.cache = before
