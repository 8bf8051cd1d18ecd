"""The plotting library that pages embed."""

from __future__ import annotations

import re
from functools import cache

from dlion_sim.errors import InputError


@cache
def plotly_script() -> str:
    """Plotly's JavaScript, to stand in an HTML element. Raises InputError where the package `plotly` is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError("reports need the package plotly", allowed="pip install 'dlion-sim[report]'") from None

    # A string in it that names the end of a script would be one.
    script: str = re.sub("</(?=script)", r"<\\/", get_plotlyjs(), flags=re.IGNORECASE)
    return script
