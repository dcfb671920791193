"""What an analysis found, shown: one HTML file that needs nothing else, and tables for the terminal."""

from __future__ import annotations

from palaver.reports.render import render_report, write_report
from palaver.reports.terminal import print_analysis

__all__ = ["print_analysis", "render_report", "write_report"]
