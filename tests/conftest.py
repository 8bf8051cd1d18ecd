"""Settings for all tests."""

from hypothesis import settings

# How long an example takes says nothing on a machine that is shared.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")
