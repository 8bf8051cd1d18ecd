"""The packet-level network in virtual time: ports with queues, and endpoints that share them by what comes back."""
