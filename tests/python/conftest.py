import pytest

import kolo


@pytest.fixture(scope="session", autouse=True)
def started():
    kolo.init()


@pytest.fixture
def rank():
    return kolo.rank()


@pytest.fixture
def size():
    return kolo.size()
