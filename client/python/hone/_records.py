"""Records: the measurements in the store, as a list and as a DataFrame of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, overload

from . import _protocol, errors

if TYPE_CHECKING:
    import pandas

    from .plot import Plot

# The columns of a record, and where they are in the message hone.v1.Record.
_COLUMNS = {
    "record": "id", "operator": "operator", "workload_digest": "workload_digest", "target": "target",
    "tolerance": "tolerance", "policy": "policy.name", "outcome": "result.outcome", "detail": "result.detail",
    "latency_ns": "result.latency_ns", "dispersion": "result.dispersion", "processes": "result.processes",
    "compile_ms": "result.facts.compile_ms", "job": "job_id", "trial": "trial", "is_default": "is_default",
    "proposer": "proposer",
    "quarantined": "quarantined", "space": "candidate.space_digest", "decisions": "candidate.decisions",
    "created_unix_ms": "created_unix_ms", "cpu": "environment.cpu", "compiler": "environment.compiler",
}


def _row(message: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, path in _COLUMNS.items():
        value = message
        for part in path.split("."):
            value = getattr(value, part)
        row[name] = value
    row["outcome"] = _protocol.enum_names("Outcome")[row["outcome"]]
    row["decisions"] = tuple(row["decisions"])
    # As in all commands, scaled to the speed of the machine when its worker registered.
    row["latency_ns"] /= message.result.reference_drift or 1.0
    return row


class Records(Sequence["dict[str, Any]"]):
    """Measurements as dictionaries, whose keys are the columns of frame()."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._rows = [_row(one) for one in messages]

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[dict[str, Any]]: ...

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<hone.Records of {len(self)} measurements>"

    def _repr_html_(self) -> str:
        try:
            made: str = self.frame()._repr_html_()
        except errors.InvalidArgument:
            return repr(self).replace("<", "&lt;").replace(">", "&gt;")
        return made

    def frame(self) -> pandas.DataFrame:
        """A DataFrame with a row for each measurement."""
        try:
            import pandas
        except ImportError:
            raise errors.InvalidArgument("frame() needs pandas: pip install 'hone[frames]'") from None
        return pandas.DataFrame(self._rows, columns=list(_COLUMNS))

    def plot(self) -> Plot:
        """The best latency over the trials."""
        from . import plot

        return plot.curve(self)
