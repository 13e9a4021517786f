"""The process that takes over from a running one."""
from .carpool import Carpool


class Successor(Carpool):
    """Starts another process of the same configuration; `process_before` ends by itself."""

    def __init__(self, before, start=True):
        self.folder, self._inside, self.config = before.folder, [], before.config
        self.address, self.admin_address = before.address, before.admin_address
        self.process, self.output, self._reader = None, [], None
        if start:
            self.start()
