"""Scenarios run several times to answer one question: what stalls them, whether papers' claims hold, whether a
simulation agrees with an emulation.
"""
