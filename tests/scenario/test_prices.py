"""What machines and traffic cost: catalogs of instances, prices of one's own, and what is missing or wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import CATALOGS, DEVICES, Catalog, Schedule, dump, load, tariff
from dlion_sim.scenario.devices import GPUS
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

WORKERS = "cluster.clouds.{}.workers=[{}]"
CATALOG = "prices.catalog=aws-2020-p2p3"
HEADS = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
"""SkyPilot's columns."""


def priced(file: Path, *overrides: str, east: str = "{count: 2, instance: p3.8xlarge}") -> dict:
    """The tariff of east's workers, and of one of west's for 1 an hour."""
    west = WORKERS.format(1, "{price: 1, watts: 100, carbon: 50, nic: 20 Mbps}")
    scenario = load(file, [WORKERS.format(0, east), west, *overrides])
    prices = tariff(scenario)
    assert prices is not None
    return prices


def own_catalog(file: Path, *rows: str, heads: str = HEADS) -> str:
    (file.parent / "own.csv").write_text("\n".join([heads, *rows, ""]))
    return "prices.catalog=own.csv"


def test_an_instance_is_its_gpus_its_nic_and_its_price(file: Path) -> None:
    scenario = load(file, [WORKERS.format(0, "{instance: p3.8xlarge}"), WORKERS.format(1, "{price: 0}"), CATALOG])
    machine = scenario.cluster.workers[0]
    assert machine.compute.cores == Schedule.constant(4 * DEVICES["v100"].cores)
    assert machine.nic.up == machine.nic.down == Schedule.constant(10e9)
    assert scenario.cluster.clouds[0].workers[0].price == 12.24


def test_an_instance_with_outages_computes_the_same(file: Path) -> None:
    machines = [WORKERS.format(0, "{instance: p3.8xlarge}"), WORKERS.format(1, "{price: 0}"), CATALOG]
    scenario = load(file, [*machines, "availability={workers: {east/0: {down: [[1 s, 2 s]]}}}"])
    assert scenario.cluster.workers[0].compute.cores == Schedule.constant(4 * DEVICES["v100"].cores)


def test_own_settings_override_an_instances(file: Path) -> None:
    own = "{instance: p3.8xlarge, compute: 7 cores, nic: 1 Mbps, price: 2}"
    scenario = load(file, [WORKERS.format(0, own), WORKERS.format(1, "{price: 0}"), CATALOG])
    machine = scenario.cluster.workers[0]
    assert machine.compute.cores == Schedule.constant(7.0)
    assert machine.nic.up == Schedule.constant(1e6)
    assert scenario.cluster.clouds[0].workers[0].price == 2


def test_an_instance_without_gpus_is_its_processors(file: Path) -> None:
    catalog = own_catalog(file, "m5,,,16.0,64,,0.9,0.3,here,a")
    scenario = load(file, [WORKERS.format(0, "{instance: m5}"), WORKERS.format(1, "{price: 0}"), catalog])
    assert scenario.cluster.workers[0].compute.cores == Schedule.constant(16.0)
    assert scenario.cluster.workers[0].nic.up == Schedule.constant(1e9)  # as that of a machine that states none


def test_a_tariff(file: Path) -> None:
    assert priced(file, CATALOG, "prices.egress={east: 0.02, west: {east: 0.09}}") == {
        "per_hour": [12.24, 12.24, 1],
        "step": 1,
        "least": 60,
        "egress": {"east": {"west": 0.02}, "west": {"east": 0.09}},
        "watts": None,
        "carbon": None,
    }
    assert priced(file, CATALOG)["egress"] is None
    assert priced(file, CATALOG, "prices.egress=0.1")["egress"] == {"east": {"west": 0.1}, "west": {"east": 0.1}}
    billing = priced(file, "prices.billing={step: 1 h, least: 0 s}", CATALOG)
    assert (billing["step"], billing["least"]) == (3600, 0)


def test_no_tariff_without_prices(file: Path) -> None:
    scenario = load(file)
    assert tariff(scenario) is None
    assert "price" not in dump(scenario)


def test_a_parameter_server_on_a_machine_of_its_own_has_its_price(file: Path) -> None:
    server = "system={name: parameter_server, topology: {kind: parameter_server, hosts: [{cloud: west, %s}]}}"
    assert priced(file, CATALOG, server % "instance: p2.8xlarge")["per_hour"] == [12.24, 12.24, 1, 7.2]
    with pytest.raises(InputError, match=r"system\.topology\.hosts\.0: has no price per hour"):
        priced(file, CATALOG, server % "nic: 1 Gbps")


def test_regions_zones_and_spot_prices(file: Path) -> None:
    catalog = own_catalog(
        file,
        "g,V100,1,8,61,,3,0.9,north,n1",
        "g,V100,1,8,61,,3,0.7,north,n2",
        "g,V100,1,8,61,,4,,south,s1",
    )
    east = "{instance: g}"
    assert priced(file, catalog, "cluster.clouds.0.region=south", east=east)["per_hour"] == [4, 1]
    north = "cluster.clouds.0.region=north"
    assert priced(file, catalog, north, "prices.spot=true", east=east)["per_hour"] == [0.7, 1]
    with pytest.raises(InputError, match=r"several regions; allowed: region: north, south, beside the cloud's name"):
        priced(file, catalog, east=east)
    with pytest.raises(InputError, match="has no 'g' in region 'nort'; did you mean 'north'"):
        priced(file, catalog, "cluster.clouds.0.region=nort", east=east)
    with pytest.raises(InputError, match="no spot price of 'g' there"):
        priced(file, catalog, "cluster.clouds.0.region=south", "prices.spot=true", east=east)


def test_columns_of_nic_power_and_carbon(file: Path) -> None:
    catalog = own_catalog(
        file,
        "g,V100,1,8,61,,3,,here,,25,300,410.5",
        "h,V100,1,8,61,,3,,here,,0,,",
        heads=f"{HEADS},NetworkGbps,Watts,CarbonIntensity",
    )
    prices = priced(file, catalog, east="{instance: g}")
    assert (prices["watts"], prices["carbon"]) == ([300, 100], [410.5, 50])
    assert priced(file, catalog, east="{instance: h}")["watts"] is None


def test_the_resolved_scenario_does_not_need_the_catalog(file: Path) -> None:
    catalog = own_catalog(file, "g,V100,1,8,61,,3,,here,")
    scenario = load(file, [WORKERS.format(0, "{instance: g}"), WORKERS.format(1, "{price: 0}"), catalog])
    (file.parent / "own.csv").unlink()
    file.write_text(dump(scenario))
    assert "own.csv" not in dump(scenario)
    assert load(file) == scenario
    assert tariff(load(file)) == tariff(scenario)


GROUP = "cluster.clouds.0.workers.0"
BAD = [
    # what is said of east's workers, of the prices, and in the line: where, what is wrong, what is allowed
    ("{instance: p3.2xlarge}", "{}", [GROUP, "'p3.2xlarge' has no compute or price", "catalog"]),
    ("{instance: p3.xlarge}", "{catalog: aws-2020-p2p3}", [f"{GROUP}.instance", "did you mean 'p3.8xlarge'", "p3.2xl"]),
    ("{count: 2}", "{catalog: aws-2020-p2p3}", [GROUP, "has no price per hour", "allowed: e.g. price"]),
    ("{price: -1}", "{}", [f"{GROUP}.price", "0 or more"]),
    ("{instance: a}", "{catalog: aws-2020}", ["prices.catalog", "did you mean 'aws-2020-p2p3'", "aws-skypilot"]),
    ("{instance: a}", "{catalog: aws-2020-p2p3, region: x}", ["prices", "unknown key 'region'", "allowed: catalog"]),
    ("{price: 1}", "{egress: {eats: 1}}", ["prices.egress", "no cloud 'eats'; did you mean 'east'", "east, west"]),
    ("{price: 1}", "{egress: {east: {wset: 1}}}", ["prices.egress", "no cloud 'wset'"]),
    ("{price: 1}", "{egress: {east: 1}}", ["prices.egress", "from 'west' to 'east'", "{west: 0.02}"]),
    ("{price: 1}", "{egress: -1}", ["prices.egress", "0 or more"]),
    ("{price: 1}", "{billing: {step: 0 s}}", ["prices.billing.step", "more than 0"]),
]


@pytest.mark.parametrize(("east", "prices", "words"), BAD)
def test_unusable_prices(file: Path, east: str, prices: str, words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        priced(file, f"prices={prices}", east=east)
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


def test_if_one_machine_has_a_price_all_must(file: Path) -> None:
    with pytest.raises(InputError, match=r"clouds\.1\.workers\.0: has no price"):
        load(file, [WORKERS.format(0, "{price: 1}")])


ROW = "g,V100,1,8,61,,3,,here,"


@pytest.mark.parametrize(
    ("heads", "rows", "words"),
    [
        (HEADS, ["g,V100,1,8,61,,cheap,,here,"], ["own.csv, line 2: Price is 'cheap'", "0 to 100000"]),
        (HEADS, [ROW, "h,,,-8,61,,3,,here,"], ["own.csv, line 3: vCPUs is '-8'"]),
        (HEADS, ["g,V100,1,8,61,,inf,,here,"], ["line 2: Price is 'inf'"]),
        (HEADS, ["g,V100,1,8,61,,nan,,here,"], ["line 2: Price is 'nan'"]),
        (HEADS.replace("Price", "Cost", 1), [ROW], ["line 1: has no column 'Price'", "InstanceType"]),
        (HEADS, [ROW + ",b,c"], ["not a readable CSV"]),
        (HEADS, [ROW, ROW + ",b,c"], ["not a readable CSV"]),
        (HEADS, ["g,V100,1,8,61,,,,here,"], [f"{GROUP}.instance", "no on-demand price of 'g'"]),
        (
            HEADS,
            ["g,Gaudi,8,96,61,,13,,here,"],
            [GROUP, "its GPU, Gaudi, is no known device", "compute beside it", "V100"],
        ),
        (HEADS, ["g,,,,61,,13,,here,"], [GROUP, "the catalog has no processor of it"]),
    ],
)
def test_unusable_catalogs(file: Path, heads: str, rows: list[str], words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        priced(file, own_catalog(file, *rows, heads=heads), east="{instance: g}")
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


def test_a_catalog_that_is_too_large_or_no_file_is_not_read(file: Path) -> None:
    with (file.parent / "large.csv").open("wb") as large:
        large.truncate(40_000_000)
    (file.parent / "folder.csv").mkdir()
    for name, words in {"large.csv": "holds 40.0 MB, which is too much", "folder.csv": "cannot be read"}.items():
        with pytest.raises(InputError, match=words):
            priced(file, f"prices.catalog={name}", east="{instance: g}")


@pytest.mark.parametrize("name", CATALOGS)
def test_catalogs_that_ship_are_dated_and_whole(name: str) -> None:
    catalog = Catalog.read(name, Path())
    assert "20" in CATALOGS[name].date
    assert len(CATALOGS[name].source) > 50
    rows = catalog.rows
    assert set(rows["AcceleratorName"]) - {""} <= set(GPUS)
    assert (rows["Price"] > 0).all()
    assert not (rows["SpotPrice"] > rows["Price"]).any()
    assert rows[["InstanceType", "Region"]].duplicated().sum() == 0


def test_the_papers_prices_are_as_its_profiler_has_them() -> None:
    rows = Catalog.read("aws-2020-p2p3", Path()).rows
    prices = dict(zip(rows["InstanceType"], rows["Price"], strict=True))
    p2 = {"p2.xlarge": 0.90, "p2.8xlarge": 7.20, "p2.16xlarge": 14.40}
    assert prices.items() >= {**p2, "p3.2xlarge": 3.06, "p3.8xlarge": 12.24, "p3.16xlarge": 24.48}.items()
    assert "Price" in rows.set_index("InstanceType").loc["p3dn.24xlarge", "Recalled"]


def test_spot_by_machine(file: Path) -> None:
    catalog = own_catalog(file, "g,V100,1,8,64,,3,0.7,here,a")
    prices = priced(file, catalog, east="{count: 2, instance: g, spot: true}")
    assert (prices["per_hour"], prices["spot"]) == ([0.7, 0.7, 1], [True, True, False])
    on_demand = priced(file, catalog, "prices.spot=true", east="{instance: g, spot: false}")
    assert (on_demand["per_hour"], on_demand["spot"]) == ([3, 1], [False, True])
    assert priced(file, east="{price: 2, spot: true}")["spot"] == [True, False]


@pytest.mark.parametrize("own", ["{price: 2}", "{instance: mine, compute: 8 cores, price: 2}"])
def test_own_prices_are_spot_prices_if_all_are(file: Path, own: str) -> None:
    prices = priced(file, "prices.spot=true", east=own)
    assert (prices["per_hour"], prices["spot"]) == ([2, 1], [True, True])
    catalog = own_catalog(file, "g,V100,1,8,61,,3,0.7,here,a")
    assert priced(file, catalog, "prices.spot=true", east="{instance: g}")["spot"] == [True, True]
    said = priced(file, "prices.spot=true", east=own.replace("}", ", spot: false}"))
    assert said["spot"] == [False, True]


def test_a_resolved_scenario_with_spot_prices_is_equal(file: Path) -> None:
    scenario = load(file, [WORKERS.format(0, "{price: 2}"), WORKERS.format(1, "{price: 1}"), "prices.spot=true"])
    file.write_text(dump(scenario))
    assert load(file) == scenario


def test_a_spot_machine_with_its_own_price_is_not_billed_during_outages(tmp_path: Path) -> None:
    clouds = [{"name": "a", "workers": [{"count": 2, "price": 3600}]}]
    away = {"workers": {"a/1": {"down": [["1 s", "3 s"]]}}}
    prices = {"spot": True, "billing": {"least": "0 s"}}
    run = simulate(digits(cluster={"clouds": clouds}, availability=away, prices=prices), tmp_path / "run")
    assert run.summary["cost"]["total"] == pytest.approx(4 + 2)
