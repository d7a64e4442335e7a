import pytest


@pytest.fixture(scope="module", autouse=True)
def own_ray(no_ray):
    """A service starts a Ray of its own, and ends it."""
