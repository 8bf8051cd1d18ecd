"""Names of settings in tables and figures."""

from dlion_sim.results import headings, in_words


def test_a_setting_is_named_by_the_end_of_its_path_that_is_unique_and_no_number():
    paths = ["cluster.clouds.4", "cluster.wan.bandwidth", "lan.bandwidth", "workload.batch_size"]
    assert list(headings(paths).values()) == ["clouds.4", "wan.bandwidth", "lan.bandwidth", "batch_size"]
    assert in_words("workload.batch_size", "8") == "batch size 8"
    assert in_words("cluster.clouds.4", "none") == "clouds 4 none"
