"""The run folder: writing and reading."""

from dlion_sim.results.cost import Tariff, cost_of
from dlion_sim.results.frames import Frames
from dlion_sim.results.labels import (
    early_end,
    headings,
    in_words,
    is_representative,
    note,
    replaced_settings,
    scenario_label,
    system_label,
)
from dlion_sim.results.manifest import EvaluationSamples, environment
from dlion_sim.results.places import LAN, WAN, Traffic, clouds_of, participants, traffic_of, wan_path
from dlion_sim.results.reading import Run
from dlion_sim.results.run_folder import FolderLock, find_runs, free_folder, run_names
from dlion_sim.results.summarize import SPENT, Ending, final_metric, summarize, time_to_target
from dlion_sim.results.summary import Status
from dlion_sim.results.tables import (
    CLASSES,
    LINKS,
    MEMBERSHIP,
    METRICS,
    PARTS,
    TESTS,
    TRANSFERS,
    WALL_CLOCK_COLUMNS,
    ClassesRow,
    LinksRow,
    MembershipEvent,
    MembershipRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    Row,
    TransfersRow,
)
from dlion_sim.results.writing import RunWriter, mark
