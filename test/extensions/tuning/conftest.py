"""A cluster of two workers in this process; their children are processes."""

import pytest


@pytest.fixture(scope="session")
def client():
    pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
    distributed = pytest.importorskip("distributed", reason="the extra 'tune' is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found
