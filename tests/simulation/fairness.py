"""Max-min sharing by progressive filling (Bertsekas & Gallager, 6.5.2): the plain reference of the compiled one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def max_min_rates(
    routes: Sequence[Sequence[int]], capacities: Sequence[float], weights: Sequence[int] | None = None
) -> list[float]:
    """The rate of each flow, in the unit of `capacities`.

    `routes[f]` names the links that flow f crosses, at least one; `capacities[l]` is what link l carries. No link is
    over its capacity, and each flow crosses a full link on which no other flow has a higher rate, or one that is higher
    for its weight.
    """
    weights = weights or [1] * len(routes)
    flows_on: defaultdict[int, list[int]] = defaultdict(list)
    for flow, route in enumerate(routes):
        for link in route:
            flows_on[link].append(flow)
    free = {link: capacities[link] for link in flows_on}
    waiting = {link: sum(weights[flow] for flow in flows) for link, flows in flows_on.items()}
    rates = [-1.0] * len(routes)
    while waiting:
        fullest = min(waiting, key=lambda link: free[link] / waiting[link])
        share = max(0.0, free[fullest] / waiting[fullest])
        for flow in flows_on[fullest]:
            if rates[flow] >= 0:
                continue
            rates[flow] = share * weights[flow]
            for link in routes[flow]:
                free[link] -= share * weights[flow]
                waiting[link] -= weights[flow]
                if not waiting[link]:
                    del waiting[link]
    return rates
