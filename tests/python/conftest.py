import pytest

import kolo


@pytest.fixture(scope="session")
def started():
    kolo.init()


@pytest.fixture
def rank(started):
    return kolo.rank()


@pytest.fixture
def size(started):
    return kolo.size()
