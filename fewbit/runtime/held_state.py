"""State that stays on a device from call to call.

It reads as an array, which copies it to the host. A device is where a runtime calls functions; the
state moves there at the first call, and on to another only if a call is made there.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Place(Protocol):
    """Where values of a device are made and read."""

    def place(self, value: Any) -> Any: ...

    def fetch(self, value: Any, dtype: np.dtype[Any]) -> Array: ...


class HeldState:
    def __init__(self, array: Array) -> None:
        self._array = array
        self._held: Any = None
        self.home: Place | None = None
        """Where it is; None where no call was made yet."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array
        if self.home is not None:
            array = self.home.fetch(self._held, array.dtype)
        return array if dtype is None else array.astype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def on(self, home: Place | None = None) -> Any:
        """Return the value as it is on a device, by default where it is."""
        if home is not None and self.home is not home:
            self._held, self.home = home.place(np.asarray(self)), home
        return self._held

    def update(self, value: Any) -> None:
        """Take a new value, on the device where the old one is."""
        self._held = value

    def assign(self, array: Any) -> None:
        """Take the value of an array."""
        self._array, self._held, self.home = np.array(array, self._array.dtype), None, None
