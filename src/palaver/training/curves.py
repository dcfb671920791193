"""Training curves: perplexity over steps, as a picture and as a few characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.files import write_atomically

Rows = Sequence[Mapping[str, Any]]
_BARS = "▁▂▃▄▅▆▇█"


def draw_curves(runs: Mapping[str, Rows], path: Path) -> None:
    """Perplexity per word in training and validation of one or more runs, as SVG."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "palaver", "svg.fonttype": "none", "font.size": 9}):
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, NullFormatter

        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, rows) in enumerate(runs.items()):
            steps = [row for row in rows if row["kind"] == "step"]
            epochs = [row for row in rows if "valid_ppl_word" in row]
            colour = f"C{number}"
            axes.plot(
                *_points(steps, "ppl_word"), color=colour, alpha=0.4, linewidth=1, label=f"{name}, training"
            )
            axes.plot(
                *_points(epochs, "valid_ppl_word"),
                color=colour,
                marker="o",
                markersize=3,
                label=f"{name}, validation",
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        seen = [row["valid_ppl_word"] for rows in runs.values() for row in rows if "valid_ppl_word" in row]
        if seen:  # the first steps would squeeze everything else
            axes.set_ylim(top=min(axes.get_ylim()[1], 3 * max(seen)))
        axes.set_xlabel("step")
        axes.set_ylabel("perplexity per word")
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        with write_atomically(path) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})


def _points(rows: Rows, key: str) -> tuple[list[int], list[float]]:
    return [row["step"] for row in rows], [row[key] for row in rows]


def sparkline(values: Sequence[float], width: int = 50) -> str:
    """The course of `values` as a line of bars; long ones are thinned out."""
    if not values:
        return ""
    picked = [values[i * len(values) // width] for i in range(width)] if len(values) > width else list(values)
    low, high = min(picked), max(picked)
    span = (high - low) or 1.0
    return "".join(_BARS[round((v - low) / span * (len(_BARS) - 1))] for v in picked)
